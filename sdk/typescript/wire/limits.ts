/**
 * Bounds that the engine and its SDKs share, and those that several files of the SDK share.
 *
 * PROTOCOL 12 specifies most of them. A bound that one file keeps is a constant of that file.
 *
 * @module
 */

/** Port of the worker listener. */
export const WORKER_PORT = 49134;
/** Where a worker looks for the engine when nobody says otherwise. */
export const ENGINE_URL_DEFAULT = `ws://127.0.0.1:${WORKER_PORT}`;
/** A call without a time-out of its own, as the SDKs see it. */
export const CALL_TIMEOUT_MS = 30_000;
/** How long the SDK waits beyond the deadline for the engine's own word on it. */
export const TIMEOUT_GRACE_MS = 1_000;
/** The longest time-out a call may ask for: a week. */
export const TIMEOUT_MS_MAX = 604_800_000;
/** Both sides ping this often. */
export const PING_INTERVAL_MS = 20_000;
/** A line from which nothing came for so long is dead. */
export const SILENCE_MS = 60_000;
/** Longest id of a function, a trigger or a type, in characters. */
export const ID_CHARS_MAX = 1_024;
/** First wait before a worker dials again. */
export const RECONNECT_FIRST_MS = 1_000;
/** Longest wait before a worker dials again. */
export const RECONNECT_MAX_MS = 30_000;
/** Part of the wait that chance adds or takes. */
export const RECONNECT_JITTER = 0.3;
/** A line has to be open by then. */
export const OPEN_TIMEOUT_MS = 10_000;
/** Bytes of calls kept while the line is down. */
export const OFFLINE_QUEUE_BYTES_MAX = 64 * 1024 * 1024;
/** Log lines a logger lets wait for a line. */
export const OFFLINE_LOG_LINES_MAX = 1_000;
/** Logs and spans of a worker wait so long for more of them before they are sent. */
export const TELEMETRY_BATCH_MS = 100;
/** Logs of a worker that wait to be sent, in characters, and spans; beyond, they are left out. */
export const TELEMETRY_QUEUE_CHARS_MAX = 1024 * 1024;
/** Characters of logs or spans in one frame; the rest waits for the next. */
export const TELEMETRY_FRAME_CHARS_MAX = 256 * 1024;
/** Bytes of telemetry on their way to the engine above which it waits. */
export const TELEMETRY_AHEAD_BYTES = 1024 * 1024;
/** Longest text in telemetry, in characters; the rest is cut off. */
export const TELEMETRY_VALUE_CHARS_MAX = 32 * 1024;
/** Spans of handlers that a worker sends in a second. */
export const WORKER_SPANS_PER_SECOND = 100;
/** How often a worker tells what it uses, when OTEL_METRIC_EXPORT_INTERVAL does not say. */
export const WORKER_GAUGES_MS = 5_000;
/** Shortest such time. */
export const WORKER_GAUGES_MS_MIN = 500;
/** Longest such time. */
export const WORKER_GAUGES_MS_MAX = 3_600_000;
/** How often a worker looks whether its event loop is late. */
export const LOOP_LAG_SAMPLE_MS = 50;
/**
 * Characters of several messages in one frame. Below 1 MiB, however long they are in UTF-8, and so
 * few that the other side can begin while this one goes on: 340 Ki took 8 to 20 % of the rate.
 */
export const BATCH_CHARS_MAX = 64 * 1024;
