/**
 * What is wrong with workers that run: busy handlers, triggers that do not fire, connections that
 * do not answer.
 *
 * Nothing fails for such a worker, so the commands that start or show workers say it in lines of
 * their own. An engine that does not tell counts as one where nothing is wrong.
 *
 * @module
 */
import type { WorkerStatus } from "../../../engine/mod.ts";
import type { EngineConnection } from "../../connect.ts";
import { count, printable } from "../../render.ts";
import type { DoctorCheck } from "../engine/doctor_checks.ts";

// How busy handlers are, and how late: SDKs report it every few seconds; threads only Python's.

/** The load of one connection, as `engine::metrics::handlers` returns it. */
export interface HandlerLoad {
  readonly worker_id: string;
  readonly threads_busy: number | null;
  readonly threads_max: number | null;
  readonly calls_waiting: number;
  readonly overdue: readonly { readonly function_id: string; readonly seconds: number }[];
}

/** Functions past their deadline that are shown. */
const LATE_SHOWN_MAX = 10;

/** The loads of the connections of a worker; none if it or the engine does not tell. */
export async function readLoads(
  engine: EngineConnection,
  { replicas }: WorkerStatus,
): Promise<readonly HandlerLoad[]> {
  const answer = await engine.call("engine::metrics::handlers", {})
    .catch(() => undefined) as { workers?: HandlerLoad[] } | undefined;
  const ids = new Set(replicas.flatMap(({ worker_ids }) => worker_ids));
  return answer?.workers?.filter(({ worker_id }) => ids.has(worker_id)) ?? [];
}

/** Lines for the status of a worker; empty without a load. */
export function renderLoads(loads: readonly HandlerLoad[]): string[] {
  if (loads.length === 0) return [];
  const sum = (of: (load: HandlerLoad) => number | null): number =>
    loads.reduce((total, load) => total + (of(load) ?? 0), 0);
  const [busy, most] = [sum((load) => load.threads_busy), sum((load) => load.threads_max)];
  const waiting = sum((load) => load.calls_waiting);
  const calls = waiting === 0
    ? ""
    : `, ${count(waiting, "call")} ${waiting === 1 ? "waits" : "wait"}`;
  const threads = most === 0 ? [] : [`${"threads".padEnd(12)}  ${busy} of ${most} busy${calls}`];
  const overdue = loads.flatMap((load) => load.overdue)
    .toSorted((one, other) => other.seconds - one.seconds).slice(0, LATE_SHOWN_MAX)
    .map(({ function_id, seconds }) =>
      printable(
        `${"overdue".padEnd(12)}  ${function_id} runs ${Math.round(seconds)} s past its deadline`,
      )
    );
  return [...threads, ...overdue];
}

// Triggers that do not fire: parked ones, whose type no worker provides, and refused ones.

/** Such a trigger, as `engine::registered-triggers::list` returns it. */
export interface InactiveTrigger {
  readonly id: string;
  readonly trigger_type: string;
  readonly function_id: string;
  readonly worker_name: string;
  readonly worker_id: string;
  readonly status: "parked" | "refused";
  readonly reason: string;
}

/** Triggers that are asked for, of all workers. */
const TRIGGERS_ASKED_MAX = 1_000;
/** Triggers that are shown of one worker. */
const TRIGGERS_SHOWN_MAX = 20;

/** The triggers of a worker that do not fire; none from an engine that does not tell. */
export async function readInactiveTriggers(
  engine: EngineConnection,
  { name, kind, replicas }: WorkerStatus,
): Promise<readonly InactiveTrigger[]> {
  const query = { status: "inactive", limit: TRIGGERS_ASKED_MAX, include_internal: true };
  const answer = await engine.call("engine::registered-triggers::list", query)
    .catch(() => undefined) as { registered_triggers?: InactiveTrigger[] } | undefined;
  const ids = new Set(replicas.flatMap(({ worker_ids }) => worker_ids));
  const isOwn = (trigger: InactiveTrigger): boolean =>
    kind === "builtin" ? trigger.worker_name === name : ids.has(trigger.worker_id);
  return answer?.registered_triggers?.filter(isOwn) ?? [];
}

/** One line for each trigger that differs from the others: replicas register equal ones. */
export function renderInactiveTriggers(triggers: readonly InactiveTrigger[]): string[] {
  const lines = new Set(
    triggers.map(({ trigger_type, function_id, status, reason }) =>
      printable(`trigger ${trigger_type} of ${function_id} is ${status}: ${reason}`)
    ),
  );
  const more = lines.size - TRIGGERS_SHOWN_MAX;
  const rest = more > 0 ? [`and ${more} more triggers that do not fire; see: engine doctor`] : [];
  return [...[...lines].slice(0, TRIGGERS_SHOWN_MAX), ...rest];
}

// Connections with a ping that had no answer: their worker may be busy, stopped or behind a broken
// network. New calls go to other workers with the function; one that stays silent is closed.

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
