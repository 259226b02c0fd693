/**
 * Resource usage of each worker: calls and bytes from the router; memory and CPU from the
 * supervisor for processes that the engine runs, else from the metrics of the worker's SDK.
 *
 * Querying processes is expensive, so it happens rarely and one query at a time; a sample contains
 * the latest known values.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { Directory, WorkerView } from "../../../engine/ports/directory.ts";
import type { Supervision, WorkerStatus } from "../../../engine/ports/supervision.ts";
import { round } from "./meters.ts";
import { type MetricPoint, SDK_METRICS_STALE_MS } from "./otlp.ts";

/** Usage of a worker. */
export interface WorkerSample {
  readonly worker_id: string;
  /** Announced name, or else the id. */
  readonly name: string;
  readonly in_flight: number;
  /** Bytes queued to the worker. */
  readonly queued_bytes: number;
  /** Resident memory of all processes of a replica; `null`: unknown. */
  readonly memory_bytes: number | null;
  /** 100: one CPU; `null`: unknown. */
  readonly cpu_percent: number | null;
  /** The largest recent lag; `null` if the SDK does not report it. */
  readonly event_loop_lag_ms: number | null;
  /** Name of the other engine that the connection leads to; absent for a worker. */
  readonly engine?: string;
}

/** How busy the handlers of a connection are, as its SDK reports it. */
export interface HandlerLoad {
  readonly worker_id: string;
  /** Announced name, or else the id. */
  readonly name: string;
  /** Threads that run a handler, and how many there may be; `null`: unknown, or it has none. */
  readonly threads_busy: number | null;
  readonly threads_max: number | null;
  /** Calls that wait for a thread. */
  readonly calls_waiting: number;
  /** Functions whose handlers run past their deadline, the latest first. */
  readonly overdue: readonly { readonly function_id: string; readonly seconds: number }[];
}

/** Functions past their deadline that are kept of one connection. */
const OVERDUE_MAX = 50;

/** Latest metrics that an SDK reported of its process. */
interface Reported {
  threads_busy: number | null;
  threads_max: number | null;
  calls_waiting: number | null;
  /** Seconds past the deadline, by function. */
  readonly overdue: Map<string, number>;
  memory_bytes: number | null;
  cpu_percent: number | null;
  lag_ms: number | null;
  /** Its clock minus the engine's, in milliseconds. */
  skew_ms: number | null;
  atMs: number;
}

/** Tracks the usage of all workers. */
export class WorkerMonitor {
  readonly #directory: Pick<Directory, "workers" | "worker">;
  readonly #supervision: Pick<Supervision, "list">;
  readonly #clock: Clock;
  /** By worker id. */
  readonly #reports = new Map<string, Reported>();
  #supervised: readonly WorkerStatus[] = [];
  readonly #counters = new Map<string, number>();
  #restartsSum = 0;
  readonly #restartsByName = new Map<string, number>();
  #query: Promise<void> | undefined;
  #queriedAtMs = -Infinity;

  constructor(
    directory: Pick<Directory, "workers" | "worker">,
    supervision: Pick<Supervision, "list">,
    clock: Clock,
  ) {
    this.#directory = directory;
    this.#supervision = supervision;
    this.#clock = clock;
  }

  /** Unexpected exits of supervised workers since this monitor was created. */
  get restarts(): number {
    return this.#restartsSum;
  }

  /** The same per worker name. */
  get restartsByName(): ReadonlyMap<string, number> {
    return this.#restartsByName;
  }

  /** Connections that leave pings unanswered. */
  get suspects(): number {
    return this.#directory.workers().filter(({ suspect }) => suspect).length;
  }

  /** The supervised workers at the last refresh. */
  get supervised(): readonly WorkerStatus[] {
    return this.#supervised;
  }

  /** Stores process metrics of SDKs; ignores other metrics. */
  record(points: readonly MetricPoint[]): void {
    for (const { worker_id, name, value, time_ms, attributes } of points) {
      if (worker_id === null || !this.#directory.worker(worker_id)) continue;
      const report = this.#reportOf(worker_id);
      report.atMs = this.#clock.now();
      report.skew_ms = round(time_ms - this.#clock.wall());
      if (name === "process.memory.usage") report.memory_bytes = value;
      else if (name === "process.cpu.utilization") report.cpu_percent = round(value * 100);
      else if (name === "engine.event_loop.lag.max") report.lag_ms = round(value * 1_000);
      else if (name.startsWith(HANDLERS)) recordHandlers(report, name, value, attributes);
    }
  }

  /** Removes the metrics of a closed connection. */
  leave(workerId: string): void {
    this.#reports.delete(workerId);
  }

  /** Queries the supervisor, unless a query is running or was started less than `everyMs` ago. */
  refresh(everyMs: number): Promise<void> {
    const now = this.#clock.now();
    if (this.#query || now - this.#queriedAtMs < everyMs) return this.#query ?? Promise.resolve();
    this.#queriedAtMs = now;
    this.#query = this.#supervision.list().then((list) => this.#update(list), () => {
      // Supervision is starting or stopping.
      this.#supervised = [];
    }).finally(() => this.#query = undefined);
    return this.#query;
  }

  /** The current usage of every worker. */
  samples(): WorkerSample[] {
    const usage = this.#usageByWorker();
    return this.#directory.workers().map((view) => {
      const report = this.#fresh(view);
      const used = usage.get(view.id);
      return {
        worker_id: view.id,
        name: view.name ?? view.id,
        in_flight: view.active_invocations,
        queued_bytes: view.queued_bytes,
        memory_bytes: used?.memory_bytes ?? report?.memory_bytes ?? null,
        cpu_percent: used?.cpu_percent ?? report?.cpu_percent ?? null,
        event_loop_lag_ms: report?.lag_ms ?? null,
        ...view.engine !== undefined && { engine: view.engine },
      };
    });
  }

  /** How busy the handlers of each connection are whose SDK reports it. */
  loads(): HandlerLoad[] {
    return this.#directory.workers().flatMap((view) => {
      const report = this.#fresh(view);
      if (!report || report.calls_waiting === null) return [];
      const { threads_busy, threads_max, calls_waiting } = report;
      const overdue = [...report.overdue].map(([function_id, seconds]) => ({
        function_id,
        seconds,
      }))
        .sort((a, b) => b.seconds - a.seconds);
      const { id, name } = view;
      return [{
        worker_id: id,
        name: name ?? id,
        threads_busy,
        threads_max,
        calls_waiting,
        overdue,
      }];
    });
  }

  /** Worker clock minus engine clock in milliseconds, by worker id; includes network delay. */
  skews(): ReadonlyMap<string, number> {
    const skews = this.#directory.workers().flatMap((view) => {
      const skew = this.#fresh(view)?.skew_ms ?? null;
      return skew === null ? [] : [[view.id, skew] as const];
    });
    return new Map(skews);
  }

  #fresh({ id }: WorkerView): Reported | undefined {
    const report = this.#reports.get(id);
    if (!report || this.#clock.now() - report.atMs <= SDK_METRICS_STALE_MS) return report;
    this.#reports.delete(id);
    return undefined;
  }

  #reportOf(workerId: string): Reported {
    let report = this.#reports.get(workerId);
    if (!report) {
      report = {
        memory_bytes: null,
        cpu_percent: null,
        lag_ms: null,
        skew_ms: null,
        threads_busy: null,
        threads_max: null,
        calls_waiting: null,
        overdue: new Map(),
        atMs: 0,
      };
      this.#reports.set(workerId, report);
    }
    return report;
  }

  #usageByWorker(): Map<string, { memory_bytes: number | null; cpu_percent: number | null }> {
    const usage = this.#supervised.flatMap(({ replicas }) =>
      replicas.flatMap((replica) => replica.worker_ids.map((id) => [id, replica] as const))
    );
    return new Map(usage);
  }

  #update(list: readonly WorkerStatus[]): void {
    this.#supervised = list;
    for (const { name, kind, restarts } of list) {
      if (kind !== "directory") continue;
      const before = this.#counters.get(name);
      this.#counters.set(name, restarts);
      // The supervisor's counter restarts when a worker is started by hand.
      const more = before === undefined ? restarts : restarts - (restarts < before ? 0 : before);
      this.#restartsSum += more;
      this.#restartsByName.set(name, (this.#restartsByName.get(name) ?? 0) + more);
    }
    const names = new Set(list.map(({ name }) => name));
    for (const name of this.#counters.keys()) if (!names.has(name)) this.#counters.delete(name);
    for (const name of this.#restartsByName.keys()) {
      if (!names.has(name)) this.#restartsByName.delete(name);
    }
  }
}

const HANDLERS = "engine.handlers.";

/** A report begins with the calls that wait, and names only functions that are overdue now. */
function recordHandlers(
  report: Reported,
  name: string,
  value: number,
  attributes: MetricPoint["attributes"],
): void {
  const function_id = attributes["engine.function.id"];
  if (name === `${HANDLERS}waiting`) {
    report.calls_waiting = value;
    report.overdue.clear();
  } else if (name === `${HANDLERS}threads.busy`) report.threads_busy = value;
  else if (name === `${HANDLERS}threads.max`) report.threads_max = value;
  else if (name === `${HANDLERS}overdue` && function_id && report.overdue.size < OVERDUE_MAX) {
    report.overdue.set(function_id, round(value));
  }
}
