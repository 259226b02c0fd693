/**
 * Who this worker is: what it announces to the engine about itself.
 *
 * @module
 */
import { attempt, builtinModule, denoGlobal, environment, processGlobal } from "./platform.ts";
import type { Announcement } from "./wire/protocol.ts";

/** Version of this SDK; the same as that of the package. */
export const SDK_VERSION = "0.1.0";

/** What this SDK supports of the optional parts of the protocol, in Deno and Node. */
export const SDK_CAPABILITIES: readonly string[] = ["cancel", "timeout", "progress", "batch"];

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
    pid: findPid(),
    isolation: environment("ENGINE_ISOLATION") ?? null,
    // A browser cannot offer a subprotocol without insisting on it, see browser_transport.ts.
    capabilities: SDK_CAPABILITIES.filter((name) => name !== "batch" || runtime !== "browser"),
    telemetry: { language: findLanguage(), project_name: null, framework: "engine-sdk-ts" },
  };
  if (options.description) announcement.description = options.description;
  if (options.namespace) announcement.namespace = options.namespace;
  return announcement;
}

function findPid(): number {
  return attempt(() => (denoGlobal() ?? processGlobal())?.pid) ?? 0;
}

function findRuntime(): string {
  if (denoGlobal()) return "deno";
  const versions = attempt(() => processGlobal()?.versions);
  if (!versions) return "browser";
  return versions.bun ? "bun" : "node";
}

function defaultName(runtime: string): string {
  if (runtime === "browser") return "browser";
  const os = denoGlobal() ?? builtinModule<OsModule>("node:os");
  return `${attempt(() => os?.hostname()) ?? "localhost"}:${findPid()}`;
}

function findOs(): string {
  const deno = denoGlobal();
  if (deno) {
    const platform = deno.build.os === "windows" ? "win32" : deno.build.os; // As Node says it.
    const arch = ARCHITECTURES[deno.build.arch] ?? deno.build.arch;
    return `${platform} ${attempt(() => deno.osRelease()) ?? "unknown"} (${arch})`;
  }
  const process = processGlobal();
  if (!process) {
    return (globalThis as { navigator?: { platform?: string } }).navigator?.platform || "unknown";
  }
  const os = builtinModule<OsModule>("node:os");
  const release = attempt(() => os?.release()) ?? "unknown";
  return `${process.platform ?? "unknown"} ${release} (${process.arch ?? "unknown"})`;
}

/** The names that Node has for Deno's. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x86_64: "x64", aarch64: "arm64" };

function findLanguage(): string | null {
  const { navigator } = globalThis as { navigator?: { language?: string } };
  if (navigator?.language) return navigator.language; // Asking Intl takes 20 ms the first time.
  return attempt(() => new Intl.DateTimeFormat().resolvedOptions().locale) ?? null;
}
