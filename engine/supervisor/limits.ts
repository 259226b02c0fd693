/**
 * Every bound of starting and watching workers, with its unit in its name.
 *
 * A bound that is used nowhere fails a test.
 *
 * @module
 */

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
/** Longest line of a worker's output; a longer one is cut into several. */
export const OUTPUT_LINE_CHARS_MAX = 16_384;
/** Output of a worker that waits to be written to its log; beyond it lines are dropped. */
export const OUTPUT_PENDING_CHARS_MAX = 4 * 1024 * 1024;
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
/** Memory of a microVM that says nothing about it, in MiB. */
export const GUEST_MEMORY_MB = 512;
/** Most memory of a microVM, in MiB. */
export const GUEST_MEMORY_MB_MAX = 1_048_576;
/** Processors of a microVM at most. */
export const GUEST_CPUS_MAX = 64;
/** A command that is run beside a worker ends after so long, in milliseconds. */
export const EXEC_TIMEOUT_MS = 600_000;
/** What such a command may print, in bytes. */
export const EXEC_OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
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
