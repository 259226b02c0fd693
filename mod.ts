/**
 * Write functions anywhere, call them from anywhere: the SDK for workers, for Deno, Node and
 * browsers.
 *
 * A worker connects to an engine over a WebSocket and registers functions. The engine routes each
 * call to a worker that offers the function, and returns its result.
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
 *   console.log(isTimeout(error) ? "no engine runs" : error);
 * }
 *
 * await worker.shutdown(); // Without it, the worker runs until the process ends.
 * ```
 *
 * @module
 */
export type { Channel, ChannelOptions } from "./sdk/typescript/channels/channels.ts";
export type { ChannelReader } from "./sdk/typescript/channels/reader.ts";
export type { ChannelWriter } from "./sdk/typescript/channels/writer.ts";
export type { ChannelDirection, ChannelRef } from "./sdk/typescript/wire/channels.ts";
export type {
  ConfigurationOptions,
  LiveConfiguration,
} from "./sdk/typescript/builtin/live_configuration.ts";
export type {
  StateChange,
  StateChanges,
  StatePlace,
  WatchOptions,
} from "./sdk/typescript/builtin/state_watch.ts";
export { Logger, type LogTarget } from "./sdk/typescript/logger.ts";
export type {
  Awaitable,
  Stream,
  StreamChange,
  StreamEventOptions,
  StreamGroup,
  StreamItemPlace,
  StreamSource,
  StreamSubscriber,
  StreamTriggerEvent,
  StreamTriggerOptions,
  UpdateOp,
} from "./sdk/typescript/builtin/streams.ts";
export { registerWorker } from "./sdk/typescript/register_worker.ts";
export { Worker } from "./sdk/typescript/worker.ts";
export type {
  SchemaInput,
  SchemaIssue,
  SchemaOutput,
  SchemaResult,
  StandardSchema,
} from "./sdk/typescript/typed/standard_schema.ts";
export {
  EngineError,
  type ErrorOptions,
  InvocationError,
  isTimeout,
} from "./sdk/typescript/wire/errors.ts";
export {
  type CallContext,
  type CallOptions,
  type CallRequest,
  type ConnectionState,
  type EnqueueReceipt,
  type EnqueueRequest,
  type FunctionOptions,
  type Handler,
  type HttpAuth,
  type HttpInvocation,
  type QueueDeclaration,
  type ReconnectOptions,
  type Registration,
  type SchemaOptions,
  TriggerAction,
  type TriggerHandlers,
  type TriggerInput,
  type TriggerInstance,
  type TriggerTypeInput,
  type WorkerOptions,
} from "./sdk/typescript/options.ts";
export type { WorkerClock } from "./sdk/typescript/platform.ts";
export type {
  Action,
  EnqueueOptions,
  ErrorBody,
  Json,
  JsonInput,
  JsonObject,
} from "./sdk/typescript/wire/protocol.ts";
export type {
  Dial,
  DialOptions,
  Transport,
  TransportEvents,
} from "./sdk/typescript/wire/transport.ts";
