/**
 * Every bound of the engine and the SDKs, with its unit in its name.
 *
 * PROTOCOL section 12 fixes most of them. A bound that is used nowhere fails a test.
 *
 * @module
 */

/** Port of the worker listener. */
export const WORKER_PORT = 49134;
/** Port of `engine-http`. */
export const HTTP_PORT = 3111;
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
/** Malformed frames of one line within {@linkcode MALFORMED_WINDOW_MS} before it is closed. */
export const MALFORMED_FRAMES_MAX = 100;
/** See {@linkcode MALFORMED_FRAMES_MAX}. */
export const MALFORMED_WINDOW_MS = 10_000;
/** Both sides ping this often. */
export const PING_INTERVAL_MS = 20_000;
/** A line from which nothing came for so long is dead. */
export const SILENCE_MS = 60_000;
/** The head of an upgrade has to be there by then. */
export const UPGRADE_HEAD_MS = 10_000;
/** Functions one worker may offer. */
export const FUNCTIONS_PER_WORKER_MAX = 10_000;
/** Triggers and trigger types one worker may hold. */
export const TRIGGERS_PER_WORKER_MAX = 10_000;
/** Lines the engine serves at once. */
export const CONNECTIONS_MAX = 20_000;
/** Longest id of a function, a trigger or a type, in characters. */
export const ID_CHARS_MAX = 1_024;
/** How long `engine::register_trigger` waits for a provider. */
export const PROVIDER_ANSWER_MS = 10_000;
/** Close ids offered with `function_not_found`. */
export const SIMILAR_IDS_MAX = 3;
/** Functions looked through for close ids. */
export const SIMILAR_SCAN_MAX = 2_000;
/** Ids in one `engine::functions::info`. */
export const INFO_IDS_MAX = 32;
/** Characters of `config_summary`. */
export const SUMMARY_CHARS_MAX = 80;
/** Quiet time before `engine::functions-available` fires. */
export const FUNCTIONS_CHANGED_DEBOUNCE_MS = 100;

/** HTTP trigger: time for the whole answer. */
export const HTTP_TIMEOUT_MS = 30_000;
/** HTTP trigger: largest request body. */
export const HTTP_BODY_BYTES_MAX = 16 * 1024 * 1024;
/** HTTP trigger: requests at once. */
export const HTTP_CONCURRENCY_MAX = 1_024;
/** Longest path of an HTTP route, in characters. */
export const ROUTE_CHARS_MAX = 1_024;

/** Largest value in the store. */
export const VALUE_BYTES_MAX = 64 * 1024 * 1024;
/** Bytes of values that the store keeps in memory. */
export const STORE_CACHE_BYTES_MAX = 256 * 1024 * 1024;

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

/** How long the engine lets running calls finish before it stops. */
export const DRAIN_MS = 5_000;
/** How long a worker gets to leave after SIGTERM. */
export const STOP_GRACE_MS = 10_000;
/** Workers that install or start at the same time. */
export const STARTS_AT_ONCE_MAX = 4;
/** First wait before a worker that ended unasked starts again. */
export const RESTART_FIRST_MS = 1_000;
/** Longest such wait. */
export const RESTART_MAX_MS = 30_000;
/** Ready for so long: the next unasked end counts as the first. */
export const RESTART_RESET_MS = 60_000;
/** Quick ends in a row before a worker is given up. */
export const QUICK_ENDS_MAX = 5;
/** Time from start to ready. */
export const READY_TIMEOUT_MS = 120_000;
/** Time for `scripts.install`. */
export const INSTALL_TIMEOUT_MS = 600_000;
/** One log file of a worker; at this size it is rotated. */
export const LOG_FILE_BYTES_MAX = 10 * 1024 * 1024;
/** Last lines of output kept in memory and shown with a failure. */
export const TAIL_LINES_MAX = 200;
