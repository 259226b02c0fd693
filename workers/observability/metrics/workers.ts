/**
 * What each worker uses: calls and bytes from the router, memory and processor from the supervisor
 * where the engine runs the process, else from what the worker's SDK says of itself.
 *
 * Looking at processes is dear, so it happens by itself, seldom, and never twice at once; a sample
 * takes what was seen last.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { Directory, WorkerView } from "../../../engine/ports/directory.ts";
import type { Supervision, WorkerStatus } from "../../../engine/ports/supervision.ts";
import { SDK_METRICS_STALE_MS } from "../../limits.ts";
import type { MetricPoint } from "./otlp.ts";
import { round } from "./meters.ts";

/** A worker at one moment. */
export interface WorkerSample {
  readonly worker_id: string;
  /** As announced, else its id. */
  readonly name: string;
  readonly in_flight: number;
  /** Bytes that it has not taken yet. */
  readonly queued_bytes: number;
  /** Resident; all processes of a replica together. `null`: nobody says. */
  readonly memory_bytes: number | null;
  /** Of one processor. */
  readonly cpu_percent: number | null;
  /** The largest of late; `null` when its SDK does not say. */
  readonly event_loop_lag_ms: number | null;
}

/** What an SDK said of its process. */
interface Said {
  memory_bytes: number | null;
  cpu_percent: number | null;
  lag_ms: number | null;
  /** Its clock minus the engine's, in milliseconds. */
  skew_ms: number | null;
  atMs: number;
}

/** Looks at workers. */
export class WorkerMonitor {
  readonly #directory: Pick<Directory, "workers" | "worker">;
  readonly #supervision: Pick<Supervision, "list">;
  readonly #clock: Clock;
  /** By worker id. */
  readonly #said = new Map<string, Said>();
  #supervised: readonly WorkerStatus[] = [];
  readonly #restarts = new Map<string, number>();
  #restartsSum = 0;
  readonly #restartsOf = new Map<string, number>();
  #look: Promise<void> | undefined;
  #lookedAtMs = -Infinity;

  /** Looks at nothing yet. */
  constructor(
    directory: Pick<Directory, "workers" | "worker">,
    supervision: Pick<Supervision, "list">,
    clock: Clock,
  ) {
    this.#directory = directory;
    this.#supervision = supervision;
    this.#clock = clock;
  }

  /** Ends of supervised workers that nobody asked for, since this began to look. */
  get restarts(): number {
    return this.#restartsSum;
  }

  /** The same by name of the worker. */
  get restartsByName(): ReadonlyMap<string, number> {
    return this.#restartsOf;
  }

  /** What the supervisor said last. */
  get supervised(): readonly WorkerStatus[] {
    return this.#supervised;
  }

  /** Takes what SDKs say of processes; points about others are left alone. */
  record(points: readonly MetricPoint[]): void {
    for (const { worker_id, name, value, time_ms } of points) {
      if (worker_id === null || !this.#directory.worker(worker_id)) continue;
      const said = this.#saidBy(worker_id);
      said.atMs = this.#clock.now();
      said.skew_ms = round(time_ms - this.#clock.wall());
      if (name === "process.memory.usage") said.memory_bytes = value;
      else if (name === "process.cpu.utilization") said.cpu_percent = round(value * 100);
      else if (name === "engine.event_loop.lag.max") said.lag_ms = round(value * 1_000);
    }
  }

  /** A line is gone. */
  leave(workerId: string): void {
    this.#said.delete(workerId);
  }

  /** Asks the supervisor, unless that was less than `everyMs` ago or is still going on. */
  refresh(everyMs: number): Promise<void> {
    const now = this.#clock.now();
    if (this.#look || now - this.#lookedAtMs < everyMs) return this.#look ?? Promise.resolve();
    this.#lookedAtMs = now;
    this.#look = this.#supervision.list().then((list) => this.#see(list), () => {
      // The engine is stopping, or nobody can tell; the next look may know more.
      this.#supervised = [];
    }).finally(() => this.#look = undefined);
    return this.#look;
  }

  /** Every worker as it is now. */
  samples(): WorkerSample[] {
    const uses = this.#usesByLine();
    return this.#directory.workers().map((view) => {
      const said = this.#fresh(view);
      const use = uses.get(view.id);
      return {
        worker_id: view.id,
        name: view.name ?? view.id,
        in_flight: view.active_invocations,
        queued_bytes: view.queued_bytes,
        memory_bytes: use?.memory_bytes ?? said?.memory_bytes ?? null,
        cpu_percent: use?.cpu_percent ?? said?.cpu_percent ?? null,
        event_loop_lag_ms: said?.lag_ms ?? null,
      };
    });
  }

  /** By worker id, its clock minus the engine's in milliseconds, less the way from there. */
  skews(): ReadonlyMap<string, number> {
    const skews = this.#directory.workers().flatMap((view) => {
      const skew = this.#fresh(view)?.skew_ms ?? null;
      return skew === null ? [] : [[view.id, skew] as const];
    });
    return new Map(skews);
  }

  #fresh({ id }: WorkerView): Said | undefined {
    const said = this.#said.get(id);
    if (!said || this.#clock.now() - said.atMs <= SDK_METRICS_STALE_MS) return said;
    this.#said.delete(id);
    return undefined;
  }

  #saidBy(workerId: string): Said {
    let said = this.#said.get(workerId);
    if (!said) {
      said = { memory_bytes: null, cpu_percent: null, lag_ms: null, skew_ms: null, atMs: 0 };
      this.#said.set(workerId, said);
    }
    return said;
  }

  #usesByLine(): Map<string, { memory_bytes: number | null; cpu_percent: number | null }> {
    const uses = this.#supervised.flatMap(({ replicas }) =>
      replicas.flatMap((replica) => replica.worker_ids.map((id) => [id, replica] as const))
    );
    return new Map(uses);
  }

  #see(list: readonly WorkerStatus[]): void {
    this.#supervised = list;
    for (const { name, kind, restarts } of list) {
      if (kind !== "directory") continue;
      const before = this.#restarts.get(name);
      this.#restarts.set(name, restarts);
      // The supervisor counts anew when a worker is started by hand.
      const more = before === undefined ? restarts : restarts - (restarts < before ? 0 : before);
      this.#restartsSum += more;
      this.#restartsOf.set(name, (this.#restartsOf.get(name) ?? 0) + more);
    }
    const names = new Set(list.map(({ name }) => name));
    for (const name of this.#restarts.keys()) if (!names.has(name)) this.#restarts.delete(name);
    for (const name of this.#restartsOf.keys()) if (!names.has(name)) this.#restartsOf.delete(name);
  }
}
