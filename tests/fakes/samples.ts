/**
 * Samples of what commands and pages show: the status of a worker, a span of a trace.
 *
 * @module
 */
import type { ReplicaStatus, WorkerStatus } from "../../engine/ports/supervision.ts";
import type { TraceSpan } from "../../workers/console/page/pages/traces/span_tree.ts";

/** A worker that is ready, but for what a test changes. */
export function workerStatus(changed: Partial<WorkerStatus> = {}): WorkerStatus {
  return {
    name: "math",
    kind: "directory",
    state: "ready",
    since_ms: 1_000,
    reason: null,
    path: "/project/workers/math",
    isolation: "process",
    required: false,
    suspect: false,
    pid: 42,
    functions: ["math::add"],
    restarts: 0,
    started_at_ms: 0,
    ready_after_ms: 900,
    last_exit: null,
    dependencies: "none",
    launch: 1,
    tail: [],
    log_path: "/project/.engine/logs/math.log",
    last_error: null,
    accelerator: null,
    network: null,
    resources: null,
    memory_bytes: null,
    cpu_percent: null,
    replicas: [replicaStatus()],
    ...changed,
  };
}

/** A worker that comes with the engine, but for what a test changes. */
export function builtinStatus(changed: Partial<WorkerStatus> = {}): WorkerStatus {
  return workerStatus({
    name: "engine-state",
    kind: "builtin",
    reason: "Values that outlive the engine",
    path: null,
    isolation: null,
    pid: 7,
    functions: ["state::get", "state::set"],
    dependencies: null,
    log_path: null,
    replicas: [],
    ...changed,
  });
}

/** A copy of a worker that is ready, but for what a test changes. */
export function replicaStatus(changed: Partial<ReplicaStatus> = {}): ReplicaStatus {
  return {
    number: 1,
    state: "ready",
    since_ms: 1_000,
    reason: null,
    pid: 42,
    suspect: false,
    worker_ids: ["w1"],
    restarts: 0,
    started_at_ms: 0,
    last_exit: null,
    memory_bytes: null,
    cpu_percent: null,
    ...changed,
  };
}

/** A span of a worker that took a millisecond and succeeded, but for what is given. */
export function span(fields: Partial<TraceSpan> & { readonly id: string }): TraceSpan {
  const startMs = fields.startMs ?? 0;
  return {
    trace_id: "t",
    parentId: null,
    name: fields.id,
    service: "shop",
    engine: null,
    kind: "work",
    startMs,
    endMs: startMs + 1,
    failed: false,
    errorCode: null,
    errorMessage: null,
    attributes: {},
    ...fields,
  };
}
