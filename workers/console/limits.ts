/**
 * Every bound of the console and its page, with its unit in its name.
 *
 * A bound that is used nowhere fails a test.
 *
 * @module
 */

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
/** Notices that the console's page shows at once. */
export const TOASTS_MAX = 4;
/** A notice of the console's page that is no failure goes after so long, in milliseconds. */
export const TOAST_MS = 5_000;
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
/** Rows beyond what is seen that the console's page draws on each side of a long list. */
export const LIST_OVERSCAN_ROWS = 8;
/** Members of an object or array, and characters of a text, that it shows before asking. */
export const JSON_VIEW_MEMBERS = 100;
/** See {@linkcode JSON_VIEW_MEMBERS}. */
export const JSON_VIEW_CHARS = 2_000;
/** Lines of logs that a page holds; new ones push out the oldest. */
export const CONSOLE_LOG_LINES_MAX = 20_000;
/** Rows that the page keys move by in a table of the console. */
export const TABLE_PAGE_ROWS = 15;
/** Points of a sparkline. */
export const SPARK_POINTS_MAX = 120;
/** A button that copied says so for so long, in milliseconds. */
export const COPIED_MS = 1_500;
/** A drawing of the console is magnified between these. */
export const ZOOM_MIN = 0.1;
/** See {@linkcode ZOOM_MIN}. */
export const ZOOM_MAX = 4;
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
/** Samples of each worker that a page of the console keeps: five minutes of one a second. */
export const GAUGE_SAMPLES_MAX = 300;
/** Log lines that the page of one worker begins with. */
export const WORKER_LOG_LINES = 500;
