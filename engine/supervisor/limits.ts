/**
 * Every bound of starting and watching workers, with its unit in its name.
 *
 * A bound that is used nowhere fails a test.
 *
 * @module
 */

/** Workers that install or start at the same time. */
export const STARTS_AT_ONCE_MAX = 4;
/** Time from start to ready. */
export const READY_TIMEOUT_MS = 120_000;
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
/** A command that is run beside a worker ends after so long, in milliseconds. */
export const EXEC_TIMEOUT_MS = 600_000;
/** What such a command may print, in bytes. */
export const EXEC_OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
