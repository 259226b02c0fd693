/**
 * Write functions anywhere, call them from anywhere: the SDK for workers, for Deno, Node and
 * browsers.
 *
 * A worker connects to an engine over a WebSocket and says which functions it offers; the engine
 * finds a worker for each call and brings back the result.
 *
 * @example A worker that offers a function and calls it
 * ```ts
 * import { isTimeout, registerWorker } from "engine-sdk";
 *
 * const worker = registerWorker(); // ENGINE_URL, or port 49134 on this machine
 * worker.registerFunction("math::add", ({ a, b }: { a: number; b: number }) => ({ c: a + b }));
 *
 * try {
 *   const payload = { a: 2, b: 3 };
 *   console.log(await worker.trigger({ function_id: "math::add", payload, timeout_ms: 500 }));
 * } catch (error) {
 *   console.log(isTimeout(error) ? "no engine there" : error);
 * }
 *
 * await worker.shutdown(); // Leaves; without it the worker goes on until the process ends.
 * ```
 *
 * @module
 */
export { Logger, type LogTarget } from "./sdk/typescript/logger.ts";
export { registerWorker, Worker } from "./sdk/typescript/worker.ts";
export {
  EngineError,
  type ErrorOptions,
  InvocationError,
  isTimeout,
} from "./sdk/typescript/wire/errors.ts";
export {
  type CallContext,
  type CallRequest,
  type ConnectionState,
  type FunctionOptions,
  type Handler,
  type ReconnectOptions,
  type Registration,
  TriggerAction,
  type TriggerHandlers,
  type TriggerInput,
  type TriggerInstance,
  type TriggerTypeInput,
  type WorkerOptions,
} from "./sdk/typescript/options.ts";
export type { WorkerClock } from "./sdk/typescript/platform.ts";
export type { Action, ErrorBody, Json, JsonObject } from "./sdk/typescript/wire/protocol.ts";
export type {
  Dial,
  DialOptions,
  Transport,
  TransportEvents,
} from "./sdk/typescript/wire/transport.ts";
