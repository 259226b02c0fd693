/**
 * Every bound of the wire, the SDKs and the engine's core, with its unit in its name.
 *
 * PROTOCOL 12 fixes most of them. Bounds of one part only stand in a `limits.ts` of that
 * part. One that is used nowhere fails a test.
 *
 * @module
 */

/** Port of the worker listener. */
export const WORKER_PORT = 49134;
/** Where a worker looks for the engine when nobody says otherwise. */
export const ENGINE_URL_DEFAULT = `ws://127.0.0.1:${WORKER_PORT}`;
/** A call without a time-out of its own, as the engine sees it. */
export const INVOCATION_TIMEOUT_MS = 600_000;
/** A call without a time-out of its own, as the SDKs see it. */
export const CALL_TIMEOUT_MS = 30_000;
/** How long the SDK waits beyond the deadline for the engine's own word on it. */
export const TIMEOUT_GRACE_MS = 1_000;
/** The longest time-out a call may ask for: a week. */
export const TIMEOUT_MS_MAX = 604_800_000;
/** Largest message on a worker line. */
export const MESSAGE_BYTES_MAX = 64 * 1024 * 1024;
/** Calls that one worker may have unanswered. */
export const INFLIGHT_CALLS_MAX = 10_000;
/** Bytes of unfinished calls and unsent frames of one worker. */
export const INFLIGHT_BYTES_MAX = 256 * 1024 * 1024;
/** Both sides ping this often. */
export const PING_INTERVAL_MS = 20_000;
/** A line from which nothing came for so long is dead. */
export const SILENCE_MS = 60_000;
/** Longest id of a function, a trigger or a type, in characters. */
export const ID_CHARS_MAX = 1_024;
/** Close ids offered with `function_not_found`. */
export const SIMILAR_IDS_MAX = 3;
/** Warnings that one line may give rise to within {@linkcode WARNINGS_WINDOW_MS}. */
export const WARNINGS_MAX = 20;
/** See {@linkcode WARNINGS_MAX}. */
export const WARNINGS_WINDOW_MS = 10_000;
/** Largest schema a worker may bring along, as JSON text. */
export const SCHEMA_CHARS_MAX = 64 * 1024;
/** Deepest nesting of a schema. */
export const SCHEMA_DEPTH_MAX = 64;
/** Misfits listed for one value. */
export const VALIDATION_ERRORS_MAX = 20;
/** Characters of one value in the log. */
export const LOG_VALUE_CHARS_MAX = 4_000;
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
/** How long the engine lets running calls finish before it stops. */
export const DRAIN_MS = 5_000;
/** Last lines of output kept in memory and shown with a failure. */
export const TAIL_LINES_MAX = 200;
/** Time from the death of the engine to the end of what it started, after SIGTERM. */
export const ORPHAN_GRACE_MS = 10_000;
/** Quiet time after an edit before a file is read. */
export const EDIT_DEBOUNCE_MS = 150;
/** Values in one YAML file, those behind aliases counted each time. */
export const YAML_VALUES_MAX = 100_000;
/** A worker that restarts or stops gets so long to finish the calls it runs, in milliseconds. */
export const WORKER_DRAIN_MS = 10_000;
/** Least memory of a microVM, in MiB. */
export const GUEST_MEMORY_MB_MIN = 128;
/** Copies of one worker at most. */
export const REPLICAS_MAX = 64;
/** A payload is checked against a schema with expressions for so long, in milliseconds. */
export const SCHEMA_CHECK_MS = 250;
/** Port of `engine-console`. */
export const CONSOLE_PORT = 3113;
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
/** A console of its own process waits so long for its first line, in milliseconds. */
export const CONSOLE_CONNECT_MS = 10_000;
/** First wait of such a console before it tries again to reach the engine, in milliseconds. */
export const CONSOLE_RECONNECT_MS = 250;
/** When after connecting the key of the engine's user is looked at again, in milliseconds. */
export const CONTROL_KEY_LOOKS_MS: readonly number[] = [500, 2_000, 10_000];
/**
 * Characters of several messages in one frame. Below 1 MiB, however long they are in UTF-8, and so
 * few that the other side can begin while this one goes on: 340 Ki took 8 to 20 % of the rate.
 */
export const BATCH_CHARS_MAX = 64 * 1024;
/** So long before a certificate ends its renewal is asked for, in milliseconds: two weeks. */
export const CERTIFICATE_WARNING_MS = 1_209_600_000;
