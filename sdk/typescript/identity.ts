/**
 * Who this worker is: what it announces to the engine about itself.
 *
 * @module
 */
import { attempt, builtinModule, environment, processGlobal } from "./platform.ts";
import type { Announcement } from "./protocol.ts";

/** Version of this SDK; the same as that of the package. */
export const SDK_VERSION = "0.1.0";

/** What this SDK supports of the optional parts of the protocol. */
export const SDK_CAPABILITIES: readonly string[] = ["cancel", "timeout", "progress"];

/** What a worker may say of itself; the rest is found out. */
export interface IdentityOptions {
  readonly workerName?: string | undefined;
  readonly description?: string | undefined;
  readonly namespace?: string | undefined;
}

/** The parts of `node:os` that are used. */
interface OsModule {
  hostname(): string;
  release(): string;
}

/**
 * The announcement of a worker: name from the options, else ENGINE_WORKER_NAME, else
 * `<hostname>:<pid>`. What the platform does not tell is `unknown`, a missing pid is 0.
 */
export function describeWorker(options: IdentityOptions): Announcement {
  const runtime = findRuntime();
  const announcement: Announcement = {
    runtime,
    version: SDK_VERSION,
    name: options.workerName || environment("ENGINE_WORKER_NAME") || defaultName(runtime),
    os: findOs(),
    pid: attempt(() => processGlobal()?.pid) ?? 0,
    isolation: environment("ENGINE_ISOLATION") ?? null,
    capabilities: [...SDK_CAPABILITIES],
    telemetry: { language: findLanguage(), project_name: null, framework: "engine-sdk-ts" },
  };
  if (options.description) announcement.description = options.description;
  if (options.namespace) announcement.namespace = options.namespace;
  return announcement;
}

function findRuntime(): string {
  const versions = attempt(() => processGlobal()?.versions);
  if (!versions) return "browser";
  if (versions.deno) return "deno";
  return versions.bun ? "bun" : "node";
}

function defaultName(runtime: string): string {
  if (runtime === "browser") return "browser";
  const os = builtinModule<OsModule>("node:os");
  const hostname = attempt(() => os?.hostname()) ?? "localhost";
  return `${hostname}:${attempt(() => processGlobal()?.pid) ?? 0}`;
}

function findOs(): string {
  const process = processGlobal();
  if (!process) {
    return (globalThis as { navigator?: { platform?: string } }).navigator?.platform || "unknown";
  }
  const os = builtinModule<OsModule>("node:os");
  const release = attempt(() => os?.release()) ?? "unknown";
  return `${process.platform ?? "unknown"} ${release} (${process.arch ?? "unknown"})`;
}

function findLanguage(): string | null {
  return attempt(() => new Intl.DateTimeFormat().resolvedOptions().locale) ?? null;
}
