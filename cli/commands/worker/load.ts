/**
 * How busy the handlers of a worker are: threads, calls that wait for one, and handlers that run
 * past their deadline, as its SDK reports it every few seconds.
 *
 * Only the Python SDK has threads; a worker without telemetry reports nothing.
 *
 * @module
 */
import type { WorkerStatus } from "../../../engine/mod.ts";
import type { EngineConnection } from "../../connect.ts";
import { count, printable } from "../../render.ts";

/** The load of one connection, as `engine::metrics::handlers` returns it. */
export interface HandlerLoad {
  readonly worker_id: string;
  readonly threads_busy: number | null;
  readonly threads_max: number | null;
  readonly calls_waiting: number;
  readonly overdue: readonly { readonly function_id: string; readonly seconds: number }[];
}

/** Functions past their deadline that are shown. */
const SHOWN_MAX = 10;

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
    .toSorted((one, other) => other.seconds - one.seconds).slice(0, SHOWN_MAX)
    .map(({ function_id, seconds }) =>
      printable(
        `${"overdue".padEnd(12)}  ${function_id} runs ${Math.round(seconds)} s past its deadline`,
      )
    );
  return [...threads, ...overdue];
}
