/**
 * Every bound of the built-in workers, with its unit in its name.
 *
 * Those of the console stand beside it.
 *
 * A bound that is used nowhere fails a test.
 *
 * @module
 */

/** Ids in one `engine::functions::info`. */
export const INFO_IDS_MAX = 32;
/** Characters of `config_summary`. */
export const SUMMARY_CHARS_MAX = 80;
/** Quiet time before `engine::functions-available` fires. */
export const FUNCTIONS_CHANGED_DEBOUNCE_MS = 100;
/** Names on the way to a place inside a value, in one op of `state::update`. */
export const UPDATE_PATH_DEPTH_MAX = 32;
/** Longest such name, in UTF-8. */
export const UPDATE_SEGMENT_BYTES_MAX = 256;
/** Members of the value of one `merge`. */
export const MERGE_KEYS_MAX = 1_024;
/** Levels of the value of one `merge`. */
export const MERGE_DEPTH_MAX = 16;
/** Entries in one answer of `state::list_entries` when nobody says otherwise. */
export const STATE_ENTRIES_LIMIT = 100;
/** Entries in one answer of `state::list_entries` at most. */
export const STATE_ENTRIES_LIMIT_MAX = 1_000;
/** Bytes of values in one answer of a state function. */
export const STATE_ANSWER_BYTES_MAX = 48 * 1024 * 1024;
/** Longest name of a scope and longest key, in UTF-8; together they fit into a key of the store. */
export const STATE_NAME_BYTES_MAX = 900;
/** Longest life of an entry, in milliseconds: a hundred years. */
export const STATE_TTL_MS_MAX = 3_155_760_000_000;
/** Lines of a worker's log that are shown when nobody says how many. */
export const LOG_TAIL_LINES = 100;
/** Lines of a worker's log that may be asked for at once. */
export const LOG_TAIL_LINES_MAX = 10_000;
/** Memory of recorded spans, those of workers included, in MiB, when nobody says otherwise. */
export const TRACE_MEMORY_MB = 32;
/** Memory of recorded log lines, in MiB, when nobody says otherwise. */
export const LOG_MEMORY_MB = 16;
/** Memory or disk that a kind of telemetry may be given, in MiB. */
export const TELEMETRY_MB_MAX = 65_536;
/** Longest payload and result that a span keeps, in characters, when nobody says otherwise. */
export const TRACE_PAYLOAD_CHARS = 2_048;
/** The most that may be asked for, in characters. */
export const TRACE_PAYLOAD_CHARS_MAX = 65_536;
/** How often the lag of the engine's event loop is looked at, in milliseconds. */
export const LAG_PROBE_MS = 50;
/** How often metrics are sampled, in milliseconds. */
export const METRICS_STEP_MS = 1_000;
/** Samples that are kept: 15 minutes. */
export const METRICS_SAMPLES_MAX = 900;
/** Functions whose samples are kept; the one that is quiet for longest makes room. */
export const METRICS_FUNCTION_SERIES_MAX = 500;
/** Workers whose samples are kept. */
export const METRICS_WORKER_SERIES_MAX = 1_000;
/** Functions in one sample; the busiest. */
export const METRICS_SAMPLE_FUNCTIONS_MAX = 2_000;
/** Longest interval of `engine::metrics-sampled`, in milliseconds. */
export const METRICS_INTERVAL_MS_MAX = 60_000;
/** Triggers of type `engine::metrics-sampled`. */
export const METRICS_TRIGGERS_MAX = 1_000;
/** Processes are looked at so often while somebody reads metrics, in milliseconds. */
export const USAGE_LOOK_MS = 2_000;
/** The same while nobody does. */
export const USAGE_LOOK_IDLE_MS = 10_000;
/** Somebody who asked so long ago still counts as reading, in milliseconds. */
export const METRICS_READ_MS = 60_000;
/** What an SDK said of its process is forgotten after so long, in milliseconds. */
export const SDK_METRICS_STALE_MS = 150_000;
/** Metrics of SDKs whose last value is kept. */
export const SDK_METRICS_MAX = 5_000;
/** Largest frame of metrics, in bytes. */
export const METRICS_FRAME_BYTES_MAX = 1024 * 1024;
/** Values taken from one frame of metrics. */
export const METRICS_FRAME_POINTS_MAX = 1_000;
/** Attributes of one value of an SDK's metric. */
export const METRICS_ATTRIBUTES_MAX = 16;
/** Functions with lines of their own in `/metrics`; the rest are one. */
export const PROMETHEUS_FUNCTIONS_MAX = 1_000;
/** Workers with lines of their own in `/metrics`. */
export const PROMETHEUS_WORKERS_MAX = 1_000;
/** Functions of which a rollup says something; the busiest. */
export const ROLLUP_FUNCTIONS_MAX = 20;
/** Rules for alerts. */
export const ALERT_RULES_MAX = 100;
/** What `engine::health::measure` found is told again for so long, in milliseconds. */
export const HEALTH_MEASURE_MS = 2_000;
/** An answer of `/readyz` is told again for so long, in milliseconds. */
export const READY_CHECK_MS = 1_000;
/** The store has to answer `/readyz` by then, in milliseconds. */
export const READY_STORE_MS = 2_000;
/** Levels of a payload or a log's data that telemetry looks through. */
export const TELEMETRY_DEPTH_MAX = 64;
/** Members of one baggage that are read, as W3C allows. */
export const BAGGAGE_ENTRIES_MAX = 180;
/** Spans or log records that are taken from one frame of telemetry. */
export const TELEMETRY_FRAME_ITEMS_MAX = 5_000;
/** Attributes that a span or a log record keeps. */
export const TELEMETRY_ATTRIBUTES_MAX = 128;
/** Longest name in a span or a log record, in characters. */
export const TELEMETRY_NAME_CHARS_MAX = 1_024;
/** Longest text in a span or a log record that is kept, in characters. */
export const TELEMETRY_TEXT_CHARS_MAX = 32_768;
/** Whoever hears of ended spans gets those of so long at once, in milliseconds. */
export const SPAN_COLLECT_MS = 250;
/** Calls that are handed over at once, and spans of one trace that are shown. */
export const SPAN_COLLECT_MAX = 5_000;
/** Traces that can be listed; the oldest make room. */
export const TRACE_INDEX_MAX = 25_000;
/** Workers and functions that are known of one trace in that list. */
export const TRACE_INDEX_NAMES_MAX = 32;
/** Spans are looked through for so long at a time, in milliseconds. */
export const SPAN_TURN_MS = 10;
/** Spans that are not found by their trace until somebody asks; more would hold him up. */
export const SPANS_UNINDEXED_MAX = 8_192;
/** Spans or traces in one answer when nobody says otherwise. */
export const TRACE_LIST_LIMIT = 100;
/** Spans or traces in one answer at most. */
export const TRACE_LIST_LIMIT_MAX = 1_000;
/** Spans that one question looks through, the newest. */
export const TRACE_SCAN_MAX = 20_000;
/** Lists and maps that look through as many at once: one, and the others wait. */
export const TRACE_SCANS_MAX = 64;
/** Nodes of a map of calls. */
export const TRACE_MAP_NODES_MAX = 5_000;
/** Log records in one answer when nobody says otherwise. */
export const LOG_LIST_LIMIT = 100;
/** Log records in one answer at most. */
export const LOG_LIST_LIMIT_MAX = 1_000;
/** Spans whose function is remembered for the next line that belongs to them. */
export const LOG_JOIN_KEPT_MAX = 5_000;
/** Spans that are looked for in a second, so that lines find their functions. */
export const LOG_JOINS_PER_SECOND = 20;
/** How far back such a span may have begun, in milliseconds. */
export const LOG_JOIN_WITHIN_MS = 600_000;
/** Where telemetry is exported to when an exporter is named and no endpoint. */
export const OTLP_ENDPOINT_DEFAULT = "http://localhost:4318";
/** One request of an export has to be answered by then, in milliseconds. */
export const OTLP_TIMEOUT_MS = 10_000;
/** Between two exports of spans, in milliseconds. */
export const OTLP_SPAN_DELAY_MS = 5_000;
/** Between two exports of log records, in milliseconds. */
export const OTLP_LOG_DELAY_MS = 1_000;
/** Between two exports of metrics, in milliseconds. */
export const OTLP_METRIC_INTERVAL_MS = 60_000;
/** Spans or log records that wait for an export. */
export const OTLP_QUEUE_MAX = 2_048;
/** Spans or log records in one export. */
export const OTLP_BATCH_MAX = 512;
/** First wait before a failed export is tried again; each later one is twice as long. */
export const OTLP_RETRY_FIRST_MS = 1_000;
/** Longest such wait. */
export const OTLP_RETRY_MAX_MS = 30_000;
/** Tries of one export; then it is given up. */
export const OTLP_TRIES_MAX = 6;
/** At its end the engine gives the last export so long, in milliseconds. */
export const OTLP_FLUSH_MS = 2_000;
/** Firings of one trigger of type `log` or `trace` in a second, unless it takes heaps. */
export const FIRINGS_PER_SECOND_MAX = 200;
/** Shortest `batch_ms` of a trigger. */
export const TRIGGER_BATCH_MS_MIN = 100;
/** Longest `batch_ms` of a trigger. */
export const TRIGGER_BATCH_MS_MAX = 10_000;
/** Records or traces in one heap; more are counted only. */
export const TRIGGER_BATCH_RECORDS_MAX = 500;
/** Frames of spans and logs of all workers that are read in a second, in bytes. */
export const TELEMETRY_INTAKE_BYTES_PER_SECOND = 16 * 1024 * 1024;
/** How long the engine reads frames of spans and logs in a second, in milliseconds; metrics too. */
export const TELEMETRY_INTAKE_MS_PER_SECOND = 250;
/** How often it is said that telemetry is dropped, in milliseconds. */
export const TELEMETRY_WARNING_MS = 60_000;
/** A map of calls is answered with again for so long, in milliseconds. */
export const TRACE_MAP_KEPT_MS = 1_000;
/** Changes of triggers, workers and configuration are told so long after the first of a heap. */
export const CHANGES_DEBOUNCE_MS = 100;
/** Names of what changed that are told at once; whoever hears asks for the rest. */
export const CHANGES_NAMED_MAX = 1_000;
/** Spans and logs on disk lie in files of so many bytes at most. */
export const DISK_FILE_BYTES_MAX = 16 * 1024 * 1024;
/** They are written so long after they are there, in milliseconds. */
export const DISK_FLUSH_MS = 500;
/** Characters that may wait to be written; beyond, they are dropped. */
export const DISK_PENDING_CHARS_MAX = 16 * 1024 * 1024;
