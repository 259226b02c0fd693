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
/** Longest head of an upgrade. */
export const UPGRADE_HEAD_BYTES_MAX = 16 * 1024;
/** What a line reads into at first; it grows with what comes. */
export const READ_BYTES_FIRST = 4 * 1024;
/** What a line reads into at most, but for a message that is larger. */
export const READ_BYTES_MAX = 256 * 1024;
/** What a line writes at once at first; it grows with what is sent. */
export const WRITE_BYTES_FIRST = 4 * 1024;
/** What a line writes at once at most, but for a message that is larger. */
export const WRITE_BYTES_MAX = 256 * 1024;
/** Memory for writing that is kept for the next message, of each size. */
export const WRITE_POOL_BYTES_MAX = 4 * 1024 * 1024;
/** Functions one worker may offer. */
export const FUNCTIONS_PER_WORKER_MAX = 10_000;
/** Triggers and trigger types one worker may hold. */
export const TRIGGERS_PER_WORKER_MAX = 10_000;
/** Lines the engine serves at once. */
export const CONNECTIONS_MAX = 20_000;
/** What a line hands to the platform ahead of the wire; the rest waits where it can be dropped. */
export const SEND_AHEAD_BYTES = 1024 * 1024;
/** Below this many unsent bytes a line that was above {@linkcode SEND_AHEAD_BYTES} has drained. */
export const DRAINED_BYTES = 256 * 1024;
/** How often a line that is behind looks whether it may send on. */
export const SEND_RETRY_MS = 2;
/** How long the end of a line waits for the peer's part in it. */
export const LINE_CLOSE_MS = 2_000;
/** Bytes that may wait on a line inside the engine. */
export const LOCAL_LINE_BYTES_MAX = 512 * 1024 * 1024;
/** Longest id of a function, a trigger or a type, in characters. */
export const ID_CHARS_MAX = 1_024;
/** How long `engine::register_trigger` waits for a provider. */
export const PROVIDER_ANSWER_MS = 10_000;
/** Close ids offered with `function_not_found`. */
export const SIMILAR_IDS_MAX = 3;
/** Functions looked through for close ids. */
export const SIMILAR_SCAN_MAX = 2_000;
/** Such searches within {@linkcode SIMILAR_WINDOW_MS}; beyond, nothing is offered. */
export const SIMILAR_SEARCHES_MAX = 20;
/** See {@linkcode SIMILAR_SEARCHES_MAX}. */
export const SIMILAR_WINDOW_MS = 1_000;
/** Warnings that one line may give rise to within {@linkcode WARNINGS_WINDOW_MS}. */
export const WARNINGS_MAX = 20;
/** See {@linkcode WARNINGS_MAX}. */
export const WARNINGS_WINDOW_MS = 10_000;
/** Ids in one `engine::functions::info`. */
export const INFO_IDS_MAX = 32;
/** Characters of `config_summary`. */
export const SUMMARY_CHARS_MAX = 80;
/** Quiet time before `engine::functions-available` fires. */
export const FUNCTIONS_CHANGED_DEBOUNCE_MS = 100;

/** Largest schema a worker may bring along, as JSON text. */
export const SCHEMA_CHARS_MAX = 64 * 1024;
/** Deepest nesting of a schema. */
export const SCHEMA_DEPTH_MAX = 64;
/** Misfits listed for one value. */
export const MISFITS_MAX = 20;
/** Characters of one value in the log. */
export const LOG_VALUE_CHARS_MAX = 4_000;

/** HTTP trigger: time for the whole answer. */
export const HTTP_TIMEOUT_MS = 30_000;
/** HTTP trigger: largest request body. */
export const HTTP_BODY_BYTES_MAX = 16 * 1024 * 1024;
/** HTTP trigger: levels of a JSON body. */
export const HTTP_JSON_DEPTH_MAX = 10_000;
/** HTTP trigger: requests at once. */
export const HTTP_CONCURRENCY_MAX = 1_024;
/** How often running HTTP requests are looked at: clients that left, deadlines that passed. */
export const HTTP_WATCH_MS = 50;
/** After the drain: time for the last answers to leave before lines are cut. */
export const HTTP_FLUSH_MS = 500;
/** Remarks on what handlers return that are made once each; beyond, none is made. */
export const HTTP_REMARKS_MAX = 1_000;
/** Longest path of an HTTP route, in characters. */
export const ROUTE_CHARS_MAX = 1_024;

/** Largest value in the store: it fits into one message with what is around it. */
export const VALUE_BYTES_MAX = 64 * 1024 * 1024 - 64 * 1024;
/** Bytes of values that the store keeps in memory. */
export const STORE_CACHE_BYTES_MAX = 256 * 1024 * 1024;
/** Longest key of the store: UTF-8 of its parts and 2 bytes for each; Deno KV ends at 2,048. */
export const STORE_KEY_BYTES_MAX = 2_000;
/** Changes in one commit, and so in one write; Deno KV takes 1,000. */
export const STORE_COMMIT_CHANGES_MAX = 500;
/** Bytes of keys and values in one commit; Deno KV takes 819,200. */
export const STORE_COMMIT_BYTES_MAX = 700 * 1024;
/** Largest record that Deno KV takes; a larger value is cut into parts. */
export const STORE_RECORD_BYTES_MAX = 64 * 1024;
/** One part of a large value. */
export const STORE_PART_BYTES = 60 * 1024;

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
/** How long a worker gets to leave after SIGTERM. */
export const STOP_GRACE_MS = 10_000;
/** Workers that install or start at the same time. */
export const STARTS_AT_ONCE_MAX = 4;
/** First wait before a worker that ended unasked starts again; each later one is twice as long. */
export const RESTART_FIRST_MS = 1_000;
/** Longest such wait. */
export const RESTART_MAX_MS = 30_000;
/** Ready for so long: the next such wait is the first again. */
export const RESTART_RESET_MS = 60_000;
/** Unasked ends within `RESTART_WITHIN_S` before a worker is given up, when nobody says. */
export const RESTART_ENDS = 5;
/** Most ends that a manifest can allow. */
export const RESTART_ENDS_MAX = 1_000;
/** Time in which unasked ends are counted, in seconds, when nobody says. */
export const RESTART_WITHIN_S = 60;
/** Longest such time, in seconds: a day. */
export const RESTART_WITHIN_S_MAX = 86_400;
/** Time from start to ready. */
export const READY_TIMEOUT_MS = 120_000;
/** Time for `scripts.install`. */
export const INSTALL_TIMEOUT_MS = 600_000;
/** One log file of a worker; at this size it is rotated. */
export const LOG_FILE_BYTES_MAX = 10 * 1024 * 1024;
/** Last lines of output kept in memory and shown with a failure. */
export const TAIL_LINES_MAX = 200;
/** Longest line of a worker's output; a longer one is cut into several. */
export const OUTPUT_LINE_CHARS_MAX = 16_384;
/** Output of a worker that waits to be written to its log; beyond it lines are dropped. */
export const OUTPUT_PENDING_CHARS_MAX = 4 * 1024 * 1024;
/** Time from the death of the engine to the end of what it started, after SIGTERM. */
export const ORPHAN_GRACE_MS = 10_000;
/** Quiet time after an edit before a file is read. */
export const EDIT_DEBOUNCE_MS = 150;
/** Edits that go on and on are told after so long all the same. */
export const EDIT_HOLD_MS = 5_000;
/** Patterns that say which files of a worker to watch, alternatives in braces counted each. */
export const WATCH_PATTERNS_MAX = 1_000;
/** Folders watched for one worker; edits in further ones go unseen, and the log says so. */
export const WATCH_FOLDERS_MAX = 2_000;
/** Files watched for one worker; edits of further ones go unseen, and the log says so. */
export const WATCH_FILES_MAX = 20_000;
/** Where the system gives no notice, edits are looked for so often, in milliseconds. */
export const WATCH_RETRY_MS = 1_000;
/** A worker is ready when it has registered nothing for so long after its first function. */
export const READY_QUIET_MS = 100;
/** A worker without functions is ready so long after it announced itself. */
export const READY_WITHOUT_FUNCTIONS_MS = 2_000;
/** Values in one YAML file, those behind aliases counted each time. */
export const YAML_VALUES_MAX = 100_000;
/** Lines of a worker's log that are shown when nobody says how many. */
export const LOG_TAIL_LINES = 100;
/** Lines of a worker's log that may be asked for at once. */
export const LOG_TAIL_LINES_MAX = 10_000;

/** A call waits so long for a worker that is being restarted, in milliseconds. */
export const CALL_HOLD_MS = 5_000;
/** Calls that wait for workers that are being restarted, in all. */
export const HELD_CALLS_MAX = 10_000;
/** Characters of the payloads of those calls, in all. */
export const HELD_BYTES_MAX = 64 * 1024 * 1024;
/** A worker that restarts or stops gets so long to finish the calls it runs, in milliseconds. */
export const WORKER_DRAIN_MS = 10_000;
/** A microVM has to be up by then, in milliseconds; emulation on a busy machine is slow. */
export const BOOT_TIMEOUT_MS = 60_000;
/** A microVM that is kept for the next program of its worker waits so long, in milliseconds. */
export const GUEST_KEEP_MS = 10_000;
/** The guest that tells whether KVM runs guests has to answer by then, in milliseconds. */
export const KVM_PROBE_MS = 5_000;
/** Memory of a microVM that says nothing about it, in MiB. */
export const GUEST_MEMORY_MB = 512;
/** Least memory of a microVM, in MiB. */
export const GUEST_MEMORY_MB_MIN = 128;
/** Most memory of a microVM, in MiB. */
export const GUEST_MEMORY_MB_MAX = 1_048_576;
/** Processors of a microVM at most. */
export const GUEST_CPUS_MAX = 64;
/** Copies of one worker at most. */
export const REPLICAS_MAX = 64;
/** A command that is run beside a worker ends after so long, in milliseconds. */
export const EXEC_TIMEOUT_MS = 600_000;
/** What such a command may print, in bytes. */
export const EXEC_OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
/** A payload is checked against a schema with expressions for so long, in milliseconds. */
export const SCHEMA_CHECK_MS = 250;
/** What a worker left is removed for so long, in milliseconds; the rest stays for another time. */
export const REMOVAL_TIMEOUT_MS = 60_000;
/** Largest manifest of a worker, in bytes: the engine's only thread reads it. */
export const MANIFEST_BYTES_MAX = 32 * 1024;
/** Largest package.json that is looked into, in bytes. */
export const PACKAGE_JSON_BYTES_MAX = 1024 * 1024;
/** Files that list dependencies are read up to so many bytes in all; others count by their size. */
export const DEPENDENCY_FILE_BYTES_MAX = 64 * 1024 * 1024;
/** Files that list dependencies which are looked at; of others only the name counts. */
export const DEPENDENCY_FILES_MAX = 1_000;
/** A page of the worker port, such as `/metrics`, has to be made by then, in milliseconds. */
export const PAGE_TIMEOUT_MS = 10_000;
/** Telemetry that one line may send in a second, in bytes; more is dropped. */
export const TELEMETRY_BYTES_PER_SECOND = 4 * 1024 * 1024;

/** A page of the console that lost its line tries again after so long, in milliseconds. */
export const LIVE_RETRY_MS = 250;
/** That wait doubles up to this, in milliseconds. */
export const LIVE_RETRY_MS_MAX = 5_000;
/** Calls and watches that one page of the console may have open. */
export const LIVE_QUEUE_MAX = 1_000;
/** Beyond a call's own deadline, a page waits so much longer for its end, in milliseconds. */
export const LIVE_ANSWER_GRACE_MS = 5_000;
/** A query that no component needs any more is watched for so long still, in milliseconds. */
export const LIVE_LINGER_MS = 10_000;

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
/** Notices that the console's page shows at once. */
export const TOASTS_MAX = 4;
/** A notice of the console's page that is no failure goes after so long, in milliseconds. */
export const TOAST_MS = 5_000;

/** Port of `engine-console`. */
export const CONSOLE_PORT = 3113;
/** Browsers that one console serves at once. */
export const CONSOLE_BROWSERS_MAX = 64;
/** A browser has to say its token by then, in milliseconds. */
export const CONSOLE_HELLO_MS = 10_000;
/** Longest message of a browser that has not said its token yet, in characters. */
export const CONSOLE_HELLO_CHARS_MAX = 4_096;
/** The answer to a wrong token comes so late, in milliseconds, to make guessing slow. */
export const CONSOLE_WRONG_TOKEN_MS = 500;
/** Longest message of a browser, in characters. */
export const CONSOLE_MESSAGE_CHARS_MAX = 16 * 1024 * 1024;
/** Calls, watches and requests that one browser has open at once. */
export const CONSOLE_OPEN_MAX = 500;
/** Different triggers and queries that all browsers together watch. */
export const CONSOLE_FEEDS_MAX = 2_000;
/** Triggers that one query is asked again on. */
export const CONSOLE_QUERY_TRIGGERS_MAX = 20;
/** Bytes on their way to a browser above which watches are left out until it has read on. */
export const CONSOLE_AHEAD_BYTES = 1024 * 1024;
/** Bytes on their way to a browser above which its line is cut. */
export const CONSOLE_UNSENT_BYTES_MAX = 256 * 1024 * 1024;
/** How often a console looks whether a browser that is behind has read on, in milliseconds. */
export const CONSOLE_BEHIND_LOOK_MS = 50;
/** A browser that has read nothing for so long is cut, in milliseconds. */
export const CONSOLE_STALLED_MS = 30_000;
/** Firings within this time lead to one new query, in milliseconds. */
export const CONSOLE_QUERY_DEBOUNCE_MS = 100;
/** Least time between two queries of one watch, in milliseconds. */
export const CONSOLE_QUERY_INTERVAL_MS = 250;
/** A query takes up at most this part of one: the next waits that much longer than it took. */
export const CONSOLE_QUERY_WAIT_FACTOR = 5;
/** Longest such wait, in milliseconds. */
export const CONSOLE_QUERY_WAIT_MS_MAX = 3_000;
/** Wait after a query that failed and may succeed again, in milliseconds. */
export const CONSOLE_QUERY_RETRY_MS = 1_000;
/** Such failures in a row before the watch ends with the error. */
export const CONSOLE_QUERY_RETRIES = 5;
/** Largest answer to an HTTP request made from a page, in bytes. */
export const CONSOLE_HTTP_BYTES_MAX = 8 * 1024 * 1024;
/** Time for an HTTP request made from a page, in milliseconds. */
export const CONSOLE_HTTP_MS = 60_000;
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
/** Rows beyond what is seen that the console's page draws on each side of a long list. */
export const LIST_OVERSCAN_ROWS = 8;
/** Members of an object or array, and characters of a text, that it shows before asking. */
export const JSON_VIEW_MEMBERS = 100;
/** See {@linkcode JSON_VIEW_MEMBERS}. */
export const JSON_VIEW_CHARS = 2_000;
/** Lines of logs that a page holds; new ones push out the oldest. */
export const CONSOLE_LOG_LINES_MAX = 20_000;
/** Levels of a payload or a log's data that telemetry looks through. */
export const TELEMETRY_DEPTH_MAX = 64;
/** Members of one baggage that are read, as W3C allows. */
export const BAGGAGE_ENTRIES_MAX = 180;
/** Functions with counts of their own; calls of further ones are counted together. */
export const METERED_FUNCTIONS_MAX = 10_000;
/** Codes of errors that are counted apart for one function. */
export const METERED_CODES_MAX = 100;
/** Longest such code, in characters; the rest is cut off. */
export const METERED_CODE_CHARS_MAX = 100;
/** Calls in a second whose payloads and candidates are kept with their spans. */
export const TRACE_DETAILS_PER_SECOND = 1_000;
/** Replicas listed among the candidates of one call. */
export const TRACE_CANDIDATES_MAX = 64;
/** Longest baggage that is kept with a span, in characters. */
export const TRACE_BAGGAGE_CHARS_MAX = 8_192;
/** Longest text of an error that is kept with a span, in characters. */
export const TRACE_ERROR_CHARS_MAX = 2_000;
/** Longest name of a worker or function that is kept with a span, in characters. */
export const TRACE_NAME_CHARS_MAX = 1_024;
/** Spans that are forgotten together when there is no room. */
export const TRACE_PAGE_SPANS_MAX = 4_096;
/** Rows that the page keys move by in a table of the console. */
export const TABLE_PAGE_ROWS = 15;
/** Points of a sparkline. */
export const SPARK_POINTS_MAX = 120;
/** A button that copied says so for so long, in milliseconds. */
export const COPIED_MS = 1_500;
/** Spans or log records that are taken from one frame of telemetry. */
export const TELEMETRY_FRAME_ITEMS_MAX = 5_000;
/** Attributes that a span or a log record keeps. */
export const TELEMETRY_ATTRIBUTES_MAX = 128;
/** Longest name in a span or a log record, in characters. */
export const TELEMETRY_NAME_CHARS_MAX = 1_024;
/** Longest text in a span or a log record that is kept, in characters. */
export const TELEMETRY_TEXT_CHARS_MAX = 32_768;
/** A drawing of the console is magnified between these. */
export const ZOOM_MIN = 0.1;
/** See {@linkcode ZOOM_MIN}. */
export const ZOOM_MAX = 4;
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
/** The second key of a shortcut of the console comes within so long, in milliseconds. */
export const CHORD_MS = 1_200;
/** What its command palette shows at most. */
export const PALETTE_ROWS_MAX = 50;
/** Lines of logs that the page asks for at once. */
export const CONSOLE_LOG_PAGE_LINES = 500;
/** New lines of logs come to the page in heaps, so many milliseconds apart. */
export const CONSOLE_LOG_BATCH_MS = 250;
/** Traces that the page asks for at once, and keeps up to date. */
export const CONSOLE_TRACES_PAGE = 200;
/** Traces that a list holds at most, after scrolling for older ones. */
export const CONSOLE_TRACES_MAX = 20_000;
/** New traces come to the page in heaps, so many milliseconds apart. */
export const CONSOLE_TRACE_BATCH_MS = 500;
/** Spans of a trace that the page asks for at once. */
export const CONSOLE_SPANS_PAGE = 1_000;
/** Spans of a trace that the page holds at most. */
export const CONSOLE_SPANS_MAX = 200_000;
/** A trace that grows is read anew at most after so many times as long as reading it took. */
export const CONSOLE_REREAD_FACTOR = 10;
/** Boxes of a service map at most. */
export const CONSOLE_MAP_NODES_MAX = 120;
/** Cards of the flow picture at most. */
export const CONSOLE_FLOW_CARDS_MAX = 60;
/** Rows of one of its cards at most. */
export const CONSOLE_FLOW_ROWS_MAX = 10;
/** Lines between cards that were seen once and are remembered. */
export const CONSOLE_FLOW_EDGES_MAX = 2_000;
/** What is typed into a filter counts after so many milliseconds without another key. */
export const CONSOLE_SETTLE_MS = 250;
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
/** A console of its own process waits so long for its first line, in milliseconds. */
export const CONSOLE_CONNECT_MS = 10_000;
/** First wait of such a console before it tries again to reach the engine, in milliseconds. */
export const CONSOLE_RECONNECT_MS = 250;
/** When after connecting the key of the engine's user is looked at again, in milliseconds. */
export const CONTROL_KEY_LOOKS_MS: readonly number[] = [500, 2_000, 10_000];
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

/** Samples between two times that a list of functions is sorted anew by what they do. */
export const CONSOLE_RERANK_SAMPLES = 3;
/** Entries of a scope that the State page fetches at once. */
export const CONSOLE_ENTRIES_PAGE = 500;
/** Entries of a scope that the State page keeps, also for a search in all of them. */
export const CONSOLE_ENTRIES_MAX = 20_000;
/** Changes of the state that the State page remembers. */
export const CONSOLE_CHANGES_MAX = 200;
/** Changes within so many milliseconds are shown at once. */
export const CONSOLE_CHANGES_BATCH_MS = 100;
/** News of a running call that the invoke form shows. */
export const CONSOLE_PROGRESS_MAX = 200;
/** Functions that have a chart of their own on the Metrics page. */
export const CONSOLE_CHARTED_FUNCTIONS = 6;
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
/** Samples of each worker that a page of the console keeps: five minutes of one a second. */
export const GAUGE_SAMPLES_MAX = 300;
/** Log lines that the page of one worker begins with. */
export const WORKER_LOG_LINES = 500;
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
/** Longest `baggage` of an HTTP request that its calls take over, in characters, as W3C has it. */
export const BAGGAGE_CHARS_MAX = 8_192;
