/**
 * A sampler with everything around it that a test can set: meters, workers, the supervisor, the
 * store's counts and what the process uses.
 *
 * @module
 */
import type { FunctionView, WorkerView } from "../../engine/ports/directory.ts";
import type { ReplicaStatus, WorkerStatus } from "../../engine/ports/supervision.ts";
import type { MetricPoint } from "../../workers/observability/metrics/otlp.ts";
import type { PageSources } from "../../workers/observability/metrics/prometheus.ts";
import { Sampler } from "../../workers/observability/metrics/sampler.ts";
import { WorkerMonitor } from "../../workers/observability/metrics/workers.ts";
import { FakeClock } from "./fake_clock.ts";
import { FakeMeters } from "./fake_meters.ts";

/** See the top of this file. */
export class FakeMetrics implements Disposable {
  readonly clock = new FakeClock();
  readonly meters = new FakeMeters();
  /** Lines, as the directory tells them. */
  workers: WorkerView[] = [];
  /** Function ids that are internal. */
  readonly hidden = new Set<string>();
  functionViews: FunctionView[] = [];
  /** What the supervisor tells. */
  supervised: WorkerStatus[] = [];
  /** How often it was asked. */
  looks = 0;
  readonly stats = { commits: 0, changes: 0, failed: 0, bytes: 0, commit_ms: null };
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

  /** As much of a directory as metrics look at. */
  get directory() {
    return {
      workers: () => this.workers,
      worker: (id: string) => this.workers.find((view) => view.id === id),
      functions: () => this.functionViews,
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
      version: "1.2.3",
      started_at_ms: this.clock.wall(),
      process: () => this.process,
    };
  }

  /** Lets what waits for a promise only have its turn. */
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

/** A line; what is left out is plain. */
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

/** A supervised worker of one replica; what is left out is plain. */
export function supervisedWorker(
  name: string,
  more: Partial<WorkerStatus> = {},
  replica: Partial<ReplicaStatus> = {},
): WorkerStatus {
  return {
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

/** What an SDK measured; what is left out is plain. */
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
