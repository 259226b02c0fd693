/**
 * The engines of a cluster as rows, and what is known of its keeper and log, in words.
 *
 * @module
 */

/** The log of the state as one engine sees it. */
export interface LogItem {
  readonly kind: "jetstream" | "postgres";
  readonly copies: number | null;
  readonly require_sync: boolean;
  readonly applied: number | null;
  readonly behind: number | null;
  readonly seen_ms_ago: number | null;
  readonly bytes: number;
  readonly problem: string | null;
}

/** An engine as `engine::cluster::engines` returns it. */
export interface EngineItem {
  readonly life: string;
  readonly name: string;
  readonly version: string;
  readonly state: "here" | "linked" | "draining";
  readonly keeper: boolean;
  readonly link: {
    readonly age_ms: number;
    readonly rtt_ms: number | null;
    readonly calls_out: number;
    readonly calls_in: number;
    readonly bytes_out: number;
    readonly bytes_in: number;
    readonly queued_bytes: number;
  } | null;
  readonly log?: LogItem | null;
}

/** The result of `engine::cluster::engines`. */
export interface ClusterInfo {
  /** `null`: the engine is alone. */
  readonly cluster: string | null;
  readonly connected: boolean;
  /** Older engines leave the others out. */
  readonly keeper?: string | null;
  readonly log?: LogItem | null;
  readonly link_ends?: Readonly<Record<string, number>>;
  readonly engines: readonly EngineItem[];
}

/** A log that was not seen for longer is not followed. */
const SEEN_MS_MAX = 5_000;

/** Which engine keeps the state. */
export function keeperText({ keeper = null, log = null, engines }: ClusterInfo): string {
  if (log === null) return "Each engine keeps its own state";
  if (keeper === null) return "None: state, queues and cron wait for one";
  return engines.find(({ life }) => life === keeper)?.name ??
    "An engine without a link to this one";
}

/** Where the log is, and how safe. */
export function logText({ kind, copies, require_sync }: LogItem): string {
  const where = kind === "postgres"
    ? "Postgres"
    : `JetStream, ${copies === 1 ? "1 copy" : `${copies} copies`}`;
  return require_sync ? where : `${where}, not checked for sync`;
}

/** How far an engine follows the log. */
export function followText(log: LogItem | null | undefined): string | null {
  if (!log) return null;
  if (log.applied === null || log.behind === null) return "nothing yet";
  return log.behind === 0 ? `all ${log.applied}` : `${log.behind} behind`;
}

/** Whether an engine does not follow the log. */
export function isBehind(log: LogItem | null | undefined): boolean {
  if (!log) return false;
  return log.problem !== null || (log.behind ?? 1) > 0 ||
    (log.seen_ms_ago ?? Infinity) > SEEN_MS_MAX;
}

/** Why links have ended, with how often. */
export function endsText({ link_ends = {} }: ClusterInfo): string | null {
  const ends = Object.entries(link_ends).filter(([, times]) => times > 0);
  return ends.length === 0 ? null : ends.map(([reason, times]) => `${reason} ${times}`).join(", ");
}
