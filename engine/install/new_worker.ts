/**
 * Checks a worker before anything is written down or started.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { keyFolder, thisUser } from "../auth/user_key.ts";
import type { Accelerator, Isolation, Launcher } from "../ports/launcher.ts";
import { checkPlace } from "../vm/shares.ts";
import { allowManifest } from "./containment_pin.ts";
import { readManifest } from "./manifest.ts";

/** What somebody wants to add. */
export interface NewWorkerRequest {
  /** Absolute directory with a manifest. */
  readonly path: string;
  /** Left out: what the manifest says, else what the platform offers. */
  readonly isolation?: Isolation | undefined;
  /** Left out: `auto`. */
  readonly accel?: Accelerator | "auto" | undefined;
}

/** What this machine can start, and where the engine's own files lie. */
export interface NewWorkerSurroundings {
  readonly platform: typeof Deno.build.os;
  readonly dataDirectory: string;
  readonly launchers: Partial<Record<Isolation, Launcher>>;
}

/** A worker that can be added. */
export interface NewWorker {
  /** What its manifest calls it. */
  readonly name: string;
  /** How it would run. */
  readonly isolation: Isolation;
}

/**
 * Reads the manifest of a directory, settles how the worker would be kept apart, and asks the
 * launcher whether that can be had. Somebody who adds a worker anew agrees to its manifest.
 *
 * @throws {EngineError} `manifest_invalid` with every problem; `isolation_unavailable` with what
 * to do.
 */
export async function checkNewWorker(
  { path, isolation, accel }: NewWorkerRequest,
  { platform, launchers, dataDirectory }: NewWorkerSurroundings,
): Promise<NewWorker> {
  const spec = readManifest(path);
  const settled = isolation ?? spec.isolation ?? defaultIsolation(platform);
  const launcher = launchers[settled];
  if (!launcher) throw isolationUnavailable(spec.name, settled);
  await launcher.check?.(spec.name, accel ?? "auto");
  if (settled === "microvm") {
    const more = [keyFolder(thisUser())];
    await checkPlace(spec.name, path, { dataDirectory, home: Deno.env.get("HOME"), more });
    await allowManifest(dataDirectory, path, spec);
  }
  return { name: spec.name, isolation: settled };
}

/** How a worker is kept apart when nobody says. */
export function defaultIsolation(platform: typeof Deno.build.os): Isolation {
  return platform === "linux" ? "microvm" : "process";
}

/** The error for an isolation that there is no launcher for. */
export function isolationUnavailable(name: string, isolation: Isolation): EngineError {
  const message = isolation === "microvm"
    ? `Worker ${name} would run in a microVM, which only Linux can start; ` +
      "add it with --isolation process, which runs it as a plain process without containment"
    : `Worker ${name} asks for the isolation ${isolation}, which is not available here`;
  return new EngineError("isolation_unavailable", message, { details: { isolation } });
}
