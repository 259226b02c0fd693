/**
 * The engines of a cluster as rows, and what is known of its keeper and log, in words.
 *
 * @module
 */

import type { ClusterLogView, ClusterView } from "../../../../../engine/ports/directory.ts";
import { formatCount } from "../../kit/mod.ts";

/** A busy log has so many messages on their way. */
const BEHIND_MAX = 100;
/** A log that was not seen for longer is not followed. */
const SEEN_MS_MAX = 5_000;

/** Which engine keeps the state. */
export function keeperText({ keeper = null, log = null, engines }: ClusterView): string {
  if (log === null) return "Each engine keeps its own state";
  if (keeper === null) return "None: state, queues and cron wait for one";
  return engines.find(({ life }) => life === keeper)?.name ??
    "An engine without a link to this one";
}

/** Where the log is, and how safe. */
export function logText({ kind, copies, require_sync }: ClusterLogView): string {
  const where = kind === "postgres"
    ? "Postgres"
    : `JetStream, ${copies === 1 ? "1 copy" : `${copies} copies`}`;
  return require_sync ? where : `${where}, not checked for sync`;
}

/** How far an engine follows the log. */
export function followText(log: ClusterLogView | null | undefined): string | null {
  if (!log) return null;
  if (log.applied === null || log.behind === null) return "nothing yet";
  return log.behind === 0 ? `all ${formatCount(log.applied)}` : `${formatCount(log.behind)} behind`;
}

/** Whether an engine does not follow the log. */
export function isBehind(log: ClusterLogView | null | undefined): boolean {
  if (!log) return false;
  return log.problem !== null || (log.behind ?? Infinity) > BEHIND_MAX ||
    (log.seen_ms_ago ?? Infinity) > SEEN_MS_MAX;
}

/** Why links have ended, with how often. */
export function endsText({ link_ends = {} }: ClusterView): string | null {
  const ends = Object.entries(link_ends).filter(([, times]) => times > 0);
  return ends.length === 0 ? null : ends.map(([reason, times]) => `${reason} ${times}`).join(", ");
}
