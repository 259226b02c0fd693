/**
 * Meters that count the calls a test reports, and a sampler with all its sources as fakes: workers,
 * supervisor, store and process.
 *
 * @module
 */
import type { FunctionView, TriggerView, WorkerView } from "../../engine/ports/directory.ts";
import { UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";
import type { ReplicaStatus, WorkerStatus } from "../../engine/ports/supervision.ts";
import type { FunctionMeter, Meters, RouterLoad } from "../../engine/ports/telemetry.ts";
import type { MetricPoint } from "../../workers/observability/metrics/otlp.ts";
import type { PageSources } from "../../workers/observability/metrics/prometheus.ts";
import { Sampler } from "../../workers/observability/metrics/sampler.ts";
import { WorkerMonitor } from "../../workers/observability/metrics/workers.ts";
import { FakeClock } from "./fake_clock.ts";

export class FakeMetrics implements Disposable {
  readonly clock = new FakeClock();
  readonly meters = new FakeMeters();
  /** Connected workers, as the directory lists them. */
  workers: WorkerView[] = [];
  /** Function ids that are internal. */
  readonly hidden = new Set<string>();
  functionViews: FunctionView[] = [];
  /** Workers, as the supervisor lists them. */
  supervised: WorkerStatus[] = [];
  /** How often the supervisor was asked. */
  looks = 0;
  readonly stats = { commits: 0, changes: 0, failed: 0, lost: 0, bytes: 0, commit_ms: null };
  process = { memory_bytes: 100, heap_bytes: 40, cpu_seconds: 1 };
  readonly look: WorkerMonitor;
  readonly sampler: Sampler;

  constructor() {
    this.look = new WorkerMonitor(this.directory, { list: () => this.#list() }, this.clock);
    this.sampler = new Sampler({
      clock: this.clock,
      meters: this.meters,
      directory: this.directory,
      stats: this.stats,
      workers: this.look,
      process: () => this.process,
    });
  }

  triggerViews: TriggerView[] = [];

  /** As much of a directory as metrics look at. */
  get directory() {
    return {
      workers: () => this.workers,
      worker: (id: string) => this.workers.find((view) => view.id === id),
      functions: () => this.functionViews,
      functionsAfter: () =>
        this.functionViews.toSorted((a, b) => a.function_id < b.function_id ? -1 : 1),
      triggers: () => this.triggerViews,
      function: (_: string, id: string) => ({ internal: this.hidden.has(id) }) as FunctionView,
    };
  }

  /** What a page is made of. */
  get page(): PageSources {
    const { meters, sampler, stats } = this;
    return {
      meters,
      sampler,
      workers: this.look,
      store: { stats },
      traces: { usage: { spans: 3, capacity: 10, bytes: 300, recorded: 5, overwritten: 2 } },
      memory: { ...UNLIMITED_MEMORY, limitBytes: 1_000, used: (use) => use === "rings" ? 7 : 0 },
      channels: { stats: { open: 2, created: 5, bytes: 400 } },
      descriptors: () => ({ open: 12, limit: 1_024 }),
      version: "1.2.3",
      started_at_ms: this.clock.wall(),
      process: () => this.process,
    };
  }

  /** Runs all pending microtasks. */
  async settle(): Promise<void> {
    for (let i = 0; i < 20; i++) await Promise.resolve();
  }

  [Symbol.dispose](): void {
    this.sampler[Symbol.dispose]();
  }

  #list(): Promise<WorkerStatus[]> {
    this.looks++;
    return Promise.resolve(this.supervised);
  }
}

/** A connected worker; fields that are left out have defaults. */
export function workerView(id: string, more: Partial<WorkerView> = {}): WorkerView {
  return {
    id,
    name: `worker ${id}`,
    namespace: null,
    description: null,
    version: null,
    runtime: null,
    os: null,
    pid: null,
    isolation: null,
    launch_id: null,
    status: "connected",
    suspect: false,
    announced: true,
    builtin: false,
    operator: false,
    function_count: 0,
    trigger_count: 0,
    connected_at_ms: 0,
    active_invocations: 0,
    queued_bytes: 0,
    ip_address: null,
    ...more,
  };
}

/** A supervised worker of one replica; fields that are left out have defaults. */
export function supervisedWorker(
  name: string,
  more: Partial<WorkerStatus> = {},
  replica: Partial<ReplicaStatus> = {},
): WorkerStatus {
  return {
    required: false,
    name,
    kind: "directory",
    state: "ready",
    restarts: 0,
    memory_bytes: null,
    cpu_percent: null,
    replicas: [{
      number: 1,
      state: "ready",
      worker_ids: [],
      memory_bytes: null,
      cpu_percent: null,
      ...replica,
    } as unknown as ReplicaStatus],
    ...more,
  } as unknown as WorkerStatus;
}

/** A point that an SDK measured; fields that are left out have defaults. */
export function metricPoint(name: string, value: number, more: Partial<MetricPoint> = {}) {
  const point: MetricPoint = {
    name,
    unit: "1",
    kind: "gauge",
    value,
    count: null,
    attributes: {},
    time_ms: 0,
    worker_id: "w1",
    service_name: "math",
    ...more,
  };
  return point;
}

/** A call that a test reports. */
export interface FakeCall {
  /** How long it took; left out: it still runs. */
  readonly ms?: number;
  /** Code of the error it ended with. */
  readonly code?: string;
  readonly namespace?: string;
  /** How often it happened. */
  readonly times?: number;
}

type Growing = { -readonly [K in keyof FunctionMeter]: FunctionMeter[K] } & {
  errors: Map<string, number>;
  durations: Float64Array;
};

export class FakeMeters implements Meters {
  /** Coarse, so that the bucket of a duration is plain. */
  readonly bounds_ms: readonly number[];
  readonly other: FunctionMeter;
  /** The result of {@linkcode load}. */
  now: RouterLoad = { running: 0, parked: 0, connections: 0, queued_bytes: 0 };
  readonly #meters = new Map<string, Growing>();

  constructor(bounds_ms: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 1_000]) {
    this.bounds_ms = bounds_ms;
    this.other = this.#make("(other)", "");
  }

  functions(): Iterable<FunctionMeter> {
    return this.#meters.values();
  }

  load(): RouterLoad {
    return this.now;
  }

  /** Counts calls of a function. */
  call(function_id: string, call: FakeCall = {}): void {
    const { ms, code, namespace = "default", times = 1 } = call;
    const key = `${namespace} ${function_id}`;
    let meter = this.#meters.get(key);
    if (!meter) this.#meters.set(key, meter = this.#make(function_id, namespace));
    meter.calls += times;
    if (ms === undefined) meter.in_flight += times;
    else this.#end(meter, ms, times, code);
  }

  /** Ends a running call. */
  end(function_id: string, ms: number, code?: string): void {
    const meter = this.#meters.get(`default ${function_id}`)!;
    meter.in_flight--;
    this.#end(meter, ms, 1, code);
  }

  forget(namespace: string, function_id: string): void {
    const key = `${namespace} ${function_id}`;
    if (this.#meters.get(key)?.in_flight === 0) this.#meters.delete(key);
  }

  #end(meter: Growing, ms: number, times: number, code?: string): void {
    const found = this.bounds_ms.findIndex((bound) => ms <= bound);
    meter.durations[found < 0 ? this.bounds_ms.length : found]! += times;
    meter.duration_sum_ms += ms * times;
    if (code !== undefined) meter.errors.set(code, (meter.errors.get(code) ?? 0) + times);
  }

  #make(function_id: string, namespace: string): Growing {
    return {
      function_id,
      namespace,
      calls: 0,
      in_flight: 0,
      errors: new Map(),
      duration_sum_ms: 0,
      durations: new Float64Array(this.bounds_ms.length + 1),
    };
  }
}
