/**
 * The announcement of a worker: the description of itself that it sends to the engine.
 *
 * @module
 */
import { attempt, builtinModule, denoGlobal, environment, processGlobal } from "./platform.ts";
import type { Announcement } from "./wire/protocol.ts";

/** Version of this SDK; the same as that of the package. */
export const SDK_VERSION = "0.1.0";

/** Optional features of the protocol that this SDK supports in Deno and Node. */
export const SDK_CAPABILITIES: readonly string[] = ["cancel", "timeout", "progress", "batch"];

/** The names of architectures in Node, by those in Deno. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x86_64: "x64", aarch64: "arm64" };

/** The parts of an announcement that options set. */
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
 * The announcement of a worker. Its name is that of the options, else ENGINE_WORKER_NAME, else
 * `<hostname>:<pid>`. What the platform does not provide is `unknown`; a missing pid is 0.
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
    // Browsers do not offer the subprotocol: see browserDial.
    capabilities: SDK_CAPABILITIES.filter((name) => name !== "batch" || runtime !== "browser"),
    telemetry: { language: findLanguage(), project_name: null, framework: "engine-sdk-ts" },
  };
  if (options.description) announcement.description = options.description;
  if (options.namespace) announcement.namespace = options.namespace;
  return announcement;
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

function findPid(): number {
  return attempt(() => (denoGlobal() ?? processGlobal())?.pid) ?? 0;
}

function findOs(): string {
  const deno = denoGlobal();
  if (deno) {
    const platform = deno.build.os === "windows" ? "win32" : deno.build.os; // As in Node.
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

function findLanguage(): string | null {
  const { navigator } = globalThis as { navigator?: { language?: string } };
  if (navigator?.language) return navigator.language; // The first use of Intl takes 20 ms.
  return attempt(() => new Intl.DateTimeFormat().resolvedOptions().locale) ?? null;
}
