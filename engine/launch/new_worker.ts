/**
 * Checks a worker before anything is written down or started.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/errors.ts";
import type { Isolation } from "../ports/launcher.ts";
import { readManifest } from "./manifest.ts";

/** What this version can start. */
const AVAILABLE: readonly Isolation[] = ["process"];

/** A worker that can be added. */
export interface NewWorker {
  /** What its manifest calls it. */
  readonly name: string;
  /** How it would run. */
  readonly isolation: Isolation;
}

/**
 * Reads the manifest of a directory (absolute) and settles how the worker would be kept apart.
 *
 * @throws {EngineError} `manifest_invalid` with every problem; `isolation_unavailable`.
 */
// deno-lint-ignore require-await -- A throw has to become a rejection.
export async function checkNewWorker(
  path: string,
  isolation: Isolation | undefined,
  platform: typeof Deno.build.os,
): Promise<NewWorker> {
  const spec = readManifest(path);
  const settled = isolation ?? spec.isolation ?? defaultIsolation(platform);
  if (!AVAILABLE.includes(settled)) throw isolationUnavailable(spec.name, settled);
  return { name: spec.name, isolation: settled };
}

/** How a worker is kept apart when nobody says. */
export function defaultIsolation(platform: typeof Deno.build.os): Isolation {
  return platform === "linux" ? "microvm" : "process";
}

/** The error for an isolation that there is no launcher for. */
export function isolationUnavailable(name: string, isolation: Isolation): EngineError {
  const message = isolation === "microvm"
    ? `Worker ${name} would run in a microVM, which this version cannot start; ` +
      "add it with --isolation process, which runs it as a plain process without containment"
    : `Worker ${name} asks for the isolation ${isolation}, which is not available here`;
  return new EngineError("isolation_unavailable", message, { details: { isolation } });
}
