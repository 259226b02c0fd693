/**
 * The port that workers connect to: which listener, who may come in, and where lines lead.
 *
 * @module
 */
import { CONNECTIONS_MAX } from "../sdk/typescript/limits.ts";
import { LAUNCH_ID_HEADER } from "../sdk/typescript/protocol.ts";
import type { ControlKey } from "./control_key.ts";
import { CONTROL_HEADER } from "./user_key.ts";
import type { Router } from "./core/router.ts";
import { makeGate } from "./line/gate.ts";
import type { Pages } from "./line/pages.ts";
import { listenRaw } from "./line/raw_listener.ts";
import { listenServe } from "./line/serve_listener.ts";
import { TelemetryLine } from "./line/telemetry_line.ts";
import type { Clock } from "./ports/clock.ts";
import type { EngineSettings } from "./ports/config.ts";
import type { Accept, Listener, Upgrade } from "./ports/connection.ts";
import type { Log } from "./ports/log.ts";
import type { TelemetryListener } from "./ports/telemetry.ts";

/** What the port is opened with. */
export interface WorkerPortOptions {
  readonly settings: EngineSettings;
  readonly clock: Clock;
  readonly log: Log;
  /** Takes worker lines. */
  readonly router: Router;
  /** Takes what lines of telemetry bring. */
  readonly telemetry: TelemetryListener;
  readonly pages: Pages;
  /** What an operator's line proves itself with; not there before it was made. */
  key(): ControlKey | undefined;
}

/** Opens it. @throws {EngineError} `address_in_use`, `address_not_available`. */
export function openWorkerPort(options: WorkerPortOptions): Listener {
  const { settings, clock, log, router, telemetry, pages } = options;
  const accept = ({ address, headers }: Upgrade): Accept => {
    const launch_id = headers.get(LAUNCH_ID_HEADER);
    const operator = options.key()?.matches(headers.get(CONTROL_HEADER)) ?? false;
    const peer = { address, launch_id, builtin: null, operator };
    return (connection) => router.open(connection, peer);
  };
  const acceptTelemetry = ({ address }: Upgrade): Accept => () => {
    return new TelemetryLine({ clock, log, address, listener: telemetry });
  };
  const gate = makeGate({
    ...settings.auth_token === undefined ? {} : { authToken: settings.auth_token },
    allowedOrigins: settings.allowed_origins,
    maxConnections: CONNECTIONS_MAX,
    accept,
    acceptTelemetry,
  });
  const listen = settings.transport === "raw" ? listenRaw : listenServe;
  return listen({
    hostname: settings.host,
    port: settings.port,
    maxMessageBytes: settings.max_message_bytes,
    maxQueuedBytes: settings.max_inflight_bytes_per_worker,
    onCut: (address, reason) => log.warn("line cut", { address, reason }),
    answerPage: pages.answer,
  }, gate);
}

/** The address of a port as a client dials it. */
export function addressOf({ hostname, port }: Listener): string {
  return `ws://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
}

/** Where workers on this machine reach a listener, whatever address it listens on. */
export function reachable(listener: Listener): Listener {
  const everywhere = listener.hostname === "0.0.0.0" || listener.hostname === "::";
  return everywhere ? { ...listener, hostname: "127.0.0.1" } : listener;
}

/** The address that workers of the engine's own dial, with the token they need. */
export function workerUrl(listener: Listener, token: string | undefined): string {
  const url = addressOf(reachable(listener));
  return token === undefined ? url : `${url}?token=${encodeURIComponent(token)}`;
}
