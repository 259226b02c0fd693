/**
 * Follows the streams of an engine, in browsers and anywhere with a `WebSocket`: the items of a
 * group, and every change of them as it happens.
 *
 * @example A list that is always up to date
 * ```ts
 * import { connectStreams } from "engine-sdk/browser";
 *
 * async function show(render: (messages: { text: string }[]) => void) {
 *   const streams = connectStreams("ws://127.0.0.1:3112/");
 *   const room = streams.subscribe<{ text: string }>("chat", "room-1");
 *   for await (const _event of room) render([...room.items.values()]);
 * }
 * ```
 *
 * @module
 */
export {
  connectStreams,
  type Credential,
  type StreamClient,
  type StreamClientOptions,
} from "./client.ts";
export type { StreamSubscription, SubscribeOptions } from "./subscription.ts";
export type { ChangeEvent, ItemId, SentEvent, StreamEvent, SyncEvent } from "./events.ts";
export type { ConnectionState, ReconnectOptions } from "../typescript/options.ts";
export { EngineError, type ErrorOptions } from "../typescript/wire/errors.ts";
export type { ErrorBody, Json, JsonObject } from "../typescript/wire/protocol.ts";
export type { WorkerClock } from "../typescript/platform.ts";
export type {
  Dial,
  DialOptions,
  Transport,
  TransportEvents,
} from "../typescript/wire/transport.ts";
