/**
 * `registerWorker()`, which connects a worker: to the engine at an address, or to the one of a test
 * that runs in this process.
 *
 * @module
 */
import { testConnection } from "../testing/hook.ts";
import { readUrl } from "./arguments.ts";
import type { WorkerOptions } from "./options.ts";
import { environment } from "./platform.ts";
import { ENGINE_URL_DEFAULT } from "./wire/limits.ts";
import { Worker } from "./worker.ts";

/**
 * Creates a worker, which connects to the engine in the background: registrations and calls are
 * sent as soon as the connection is open. It reconnects until {@linkcode Worker.shutdown}. While a
 * test engine of `engine-sdk/testing` runs in this process, it connects to that one instead.
 *
 * @param url Address of the engine: `ws:`, `wss:`, `http:` or `https:`.
 * Default: ENGINE_URL, else `ws://127.0.0.1:49134`.
 * @throws {EngineError} `INVALID_ARGUMENTS` for an invalid address or option.
 *
 * @example
 * ```ts
 * import { registerWorker } from "engine-sdk";
 *
 * const worker = registerWorker("ws://127.0.0.1:49134", { workerName: "math" });
 * worker.registerFunction("math::add", ({ a, b }: { a: number; b: number }) => ({ c: a + b }));
 * await worker.shutdown(); // Without it, the worker runs until the process ends.
 * ```
 */
export function registerWorker(url?: string, options: WorkerOptions = {}): Worker {
  const address = readUrl(url ?? environment("ENGINE_URL") ?? ENGINE_URL_DEFAULT);
  const test = options.dial ? undefined : testConnection();
  return Worker.connect(address, test ? { ...options, ...test } : options);
}
