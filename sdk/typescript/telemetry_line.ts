/**
 * Which line telemetry takes: `/otel` of the engine, with the worker's token, a line of its own so
 * that no call waits behind a flood of logs.
 *
 * @module
 */
import { attempt, environment } from "./platform.ts";
import type { WorkerOptions } from "./options.ts";

/**
 * Whether a worker sends telemetry: OTEL_ENABLED does not say `false`, and neither do its options.
 * A worker with a line of its own lives inside another program, so it has to be told to.
 */
export function sendsTelemetry({ telemetry, dial }: WorkerOptions): boolean {
  const isOff = /^(false|0)$/i.test(environment("OTEL_ENABLED") ?? "");
  return !isOff && (telemetry ?? dial === undefined);
}

/** The address of the telemetry route: behind the path, before the query. */
export function telemetryUrl(url: string): string {
  const address = attempt(() => new URL(url));
  if (!address) return url;
  address.pathname = `${address.pathname.replace(/\/+$/, "")}/otel`;
  return address.href;
}

/** The headers of that route: the proof that this worker may connect, and nothing else. */
export function telemetryHeaders({ token, headers = {} }: WorkerOptions): Record<string, string> {
  if (token) return { Authorization: `Bearer ${token}` };
  const own = Object.entries(headers).filter(([name]) => name.toLowerCase() === "authorization");
  return Object.fromEntries(own);
}
