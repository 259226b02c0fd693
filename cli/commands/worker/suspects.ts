/**
 * Workers that do not answer: their connection is open, and a ping on it has had no answer.
 *
 * Such a worker may be busy, stopped or behind a broken network. The engine sends new calls to
 * other workers that offer the same function, and closes the connection if it stays silent.
 *
 * @module
 */
import type { EngineConnection } from "../../connect.ts";
import { count, printable } from "../../render.ts";
import type { DoctorCheck } from "../doctor_checks.ts";

/** A connection of such a worker, as `engine::workers::list` returns it. */
export interface Suspect {
  readonly id: string;
  readonly name: string | null;
  readonly ip_address: string | null;
  readonly active_invocations: number;
}

/** Names in one sentence. */
const NAMES_MAX = 5;

/** The connections that do not answer; none from an engine that does not tell. */
export async function readSuspects(engine: EngineConnection): Promise<readonly Suspect[]> {
  const asked = engine.call("engine::workers::list", { status: "suspect" });
  const answer = await asked.catch(() => undefined) as { workers?: Suspect[] } | undefined;
  return answer?.workers ?? [];
}

/** One line for each connection that belongs to none of these ids. */
export function renderSuspects(
  suspects: readonly Suspect[],
  shown: ReadonlySet<string>,
): string[] {
  return suspects.filter(({ id }) => !shown.has(id)).map((suspect) => {
    const calls = suspect.active_invocations;
    const running = calls === 0 ? "" : `, with ${count(calls, "running call")}`;
    return printable(`suspect: ${nameOf(suspect)} does not answer${running}`);
  });
}

/** The check of `engine doctor`. */
export function checkSuspects(suspects: readonly Suspect[]): DoctorCheck {
  const name = "workers answer";
  if (suspects.length === 0) {
    const message = "Every worker answers the engine's pings";
    return { name, status: "ok", measured: 0, message, remedy: null };
  }
  const names = suspects.slice(0, NAMES_MAX).map(nameOf).join(", ");
  const more = suspects.length > NAMES_MAX ? ` and ${suspects.length - NAMES_MAX} more` : "";
  return {
    name,
    status: "warn",
    measured: suspects.length,
    message: `${count(suspects.length, "worker")} left a ping unanswered: ${names}${more}`,
    remedy: "See whether the process is stopped or busy, and the network to it; new calls go to " +
      "other workers while there are any",
  };
}

function nameOf({ name, id, ip_address }: Suspect): string {
  return ip_address === null ? name ?? id : `${name ?? id} (${ip_address})`;
}
