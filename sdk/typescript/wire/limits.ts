/**
 * Bounds that the engine and its SDKs share, and those that several files of the SDK share.
 *
 * PROTOCOL 12 specifies most of them. A bound that one file keeps is a constant of that file.
 *
 * @module
 */

/** Port of the worker listener. */
export const WORKER_PORT = 49134;
/** Address of the engine unless a program or ENGINE_URL names another. */
export const ENGINE_URL_DEFAULT = `ws://127.0.0.1:${WORKER_PORT}`;
/** Default timeout of a call that an SDK makes. */
export const CALL_TIMEOUT_MS = 30_000;
/** Longest timeout of a call: a week. */
export const TIMEOUT_MS_MAX = 604_800_000;
/** Interval of WebSocket pings, of both peers. */
export const PING_INTERVAL_MS = 20_000;
/** A connection is closed when nothing arrives for this long. */
export const SILENCE_MS = 60_000;
/** Longest id of a function, a trigger or a trigger type, in characters. */
export const ID_CHARS_MAX = 1_024;
/** How long a connection may take to open. */
export const OPEN_TIMEOUT_MS = 10_000;
/**
 * Longest frame that holds several messages, in characters. It stays below 1 MiB in UTF-8, and is
 * short enough that the receiver starts while the sender continues: 340 Ki cost 8 to 20 % of the
 * rate.
 */
export const BATCH_CHARS_MAX = 64 * 1024;
