import assert from "node:assert/strict";
import type { WorkerState, WorkerStatus } from "../../../engine/mod.ts";
import { builtinStatus, replicaStatus, workerStatus } from "../../../tests/fakes/samples.ts";
import { failureOf, phaseOf, renderReady, renderStatus, renderWorkers } from "./view.ts";

const MIB = 1024 * 1024;

const machine = workerStatus({
  name: "python-worker",
  since_ms: 70_000,
  restarts: 2,
  isolation: "microvm",
  accelerator: "tcg",
  network: "engine",
  resources: { cpus: 1, memory_mb: 512 },
  memory_bytes: 212 * MIB,
  cpu_percent: 12.4,
  reason: "KVM opens but runs no guest, so this worker runs in software emulation",
  last_error: "out of memory (512 MiB)",
  replicas: [
    replicaStatus({ memory_bytes: 106 * MIB, cpu_percent: 6 }),
    replicaStatus({ number: 2, state: "waiting", pid: null, reason: "killed", since_ms: 74_000 }),
    replicaStatus({ number: 3, restarts: 2, pid: 44, last_exit: "signal SIGTERM" }),
  ],
});

Deno.test("the list of workers is a table, with reasons below", () => {
  const stopped = workerStatus({
    state: "stopped",
    since_ms: 75_000 - 2 * 3_600_000,
    pid: null,
    functions: [],
    replicas: [replicaStatus({ state: "stopped" })],
  });

  assert.deepEqual(renderWorkers([builtinStatus(), machine, stopped], 75_000), [
    "NAME           STATE    SINCE  READY  PID  RESTARTS  FUNCS  MEMORY   CPU%  ISOLATION",
    "engine-state   ready    1m     -      -    0         2      -        -     -",
    "python-worker  ready    5s     2/3    42   2         1      212 MiB  12    microvm/tcg",
    "  KVM opens but runs no guest, so this worker runs in software emulation",
    "  last error: out of memory (512 MiB)",
    "math           stopped  2h     0/1    -    0         0      -        -     process",
  ]);
});

Deno.test("the list of workers stays within 100 columns, whatever it contains", () => {
  const wide = workerStatus({
    name: "a-worker-with-a-very-long-name-that-does-not-fit-into-a-column",
    state: "installing",
    since_ms: 0,
    pid: 4_194_304,
    restarts: 12_345,
    functions: Array.from({ length: 10_000 }, (_, i) => `a::f${i}`),
    isolation: "microvm",
    accelerator: "kvm",
    memory_bytes: 1_023 * 1024 * MIB,
    cpu_percent: 6_400,
    reason: "word ".repeat(60),
    last_error: `${"another ".repeat(40)}\nline`,
    replicas: Array.from({ length: 64 }, (_, i) => replicaStatus({ number: i + 1 })),
  });
  const named = workerStatus({ ...wide, name: "x".repeat(20) });

  const lines = renderWorkers([wide, named, builtinStatus()], 400 * 86_400_000);

  for (const line of lines) assert.ok(line.length <= 100, `${line.length}: ${line}`);
  assert.ok(lines.includes(wide.name));
});

Deno.test("the summary of a built-in worker is in its status, its failure in the list too", () => {
  const failed = builtinStatus({ state: "failed", reason: "Port 3111 is taken" });

  assert.ok(!renderWorkers([builtinStatus()], 0).join().includes("outlive"));
  assert.ok(renderStatus(builtinStatus(), 0).join().includes("outlive"));
  assert.equal(renderWorkers([failed], 0).at(-1), "  Port 3111 is taken");
});

Deno.test("the status of a worker shows every property", () => {
  const lines = renderStatus(machine, 75_000);

  assert.deepEqual(lines, [
    "python-worker",
    "  state         ready",
    "  since         5.0 s ago",
    "  remark        KVM opens but runs no guest, so this worker runs in software emulation",
    "  last error    out of memory (512 MiB)",
    "  kind          directory",
    "  directory     /project/workers/math",
    "  isolation     microvm (tcg)",
    "  resources     1 cpu, 512 MiB",
    "  network       engine",
    "  replicas      2 of 3 ready",
    "  pid           42",
    "  up            1 min 15 s",
    "  ready after   900 ms",
    "  memory        212 MiB",
    "  cpu           12.4 %",
    "  restarts      2",
    "  dependencies  none",
    "  log           /project/.engine/logs/math.log",
    "  functions     math::add",
    "  REPLICA  STATE    SINCE  PID  RESTARTS  MEMORY   CPU%  REMARK",
    "  1        ready    1m     42   0         106 MiB  6",
    "  2        waiting  1s     -    0         -        -     killed",
    "  3        ready    1m     44   2         -        -     last exit: signal SIGTERM",
  ]);
});

Deno.test("the status of a worker leaves out unknown properties, and repeats nothing", () => {
  const failed = workerStatus({
    state: "failed",
    pid: null,
    started_at_ms: null,
    path: null,
    reason: "no luck",
    last_error: "no luck",
  });
  const lines = renderStatus(failed, 75_000);
  const waits = workerStatus({ ...failed, state: "waiting", reason: "no luck; next start in 1 s" });

  for (const shown of [renderStatus(waits, 0), renderWorkers([failed, waits], 0)]) {
    assert.ok(!shown.join().includes("last error"));
  }
  assert.ok(!lines.some((line) => /^ {2}(pid|up|directory|last exit|memory|cpu) /.test(line)));
  assert.equal(lines.filter((line) => line.includes("no luck")).length, 1);
});

Deno.test("the status of a failed worker ends with its last output, without control characters", () => {
  const lines = renderStatus(
    workerStatus({ state: "failed", tail: ["\u001b[31mboom", "bang"] }),
    0,
  );

  assert.deepEqual(lines.slice(-3), ["  last lines", "    | boom", "    | bang"]);
});

Deno.test("the line of a ready worker has name, pid, time and functions", () => {
  assert.equal(renderReady(workerStatus()), "math is ready: pid 42, 900 ms, math::add");
  assert.equal(
    renderReady(builtinStatus({ ready_after_ms: 3, functions: ["a", "b", "c", "d", "e"] })),
    "engine-state is ready: part of the engine, 3 ms, 5 functions",
  );
  assert.equal(
    renderReady(workerStatus({ functions: [], ready_after_ms: null })),
    "math is ready: pid 42, no functions",
  );
  assert.equal(
    renderReady(machine),
    "python-worker is ready: 3 replicas, pids 42 ? 44, 900 ms, math::add",
  );
});

function replicas(...states: WorkerState[]): WorkerStatus["replicas"] {
  return states.map((state, i) => replicaStatus({ number: i + 1, state }));
}

for (
  const [text, status] of [
    ["waiting for its turn", { state: "queued" }],
    ["waiting for its turn: 4 others start", { state: "queued", reason: "4 others start" }],
    ["checking dependencies", { state: "installing" }],
    ["installing dependencies with pip", {
      state: "installing",
      reason: "installing dependencies with pip",
    }],
    ["starting in a microVM", { state: "starting", isolation: "microvm" }],
    ["starting", { state: "starting", isolation: null }],
    ["stopping", { state: "stopping" }],
    ["1 of 3 ready", { reason: "a warning", replicas: replicas("ready", "queued", "starting") }],
  ] as [string, Partial<WorkerStatus>][]
) {
  Deno.test(`a phase reads ${text}`, () => assert.equal(phaseOf(workerStatus(status)), text));
}

for (
  const [text, status] of [
    ["math failed: no luck; all it printed: engine worker logs math", {
      state: "failed",
      reason: "no luck",
    }],
    ["math failed: exit code 1; all it printed: engine worker logs math", {
      state: "failed",
      last_exit: "exit code 1",
    }],
    ["math failed: out of memory", {
      state: "failed",
      last_error: "out of memory",
      log_path: null,
    }],
    ["math failed: no reason was given", { state: "failed", log_path: null }],
    ["math was stopped meanwhile", { state: "stopped", log_path: null }],
    ["math ended: with exit code 0, and its restart policy is on-failure", {
      state: "stopped",
      reason: "with exit code 0, and its restart policy is on-failure",
      log_path: null,
    }],
    ["math ended and will be tried again: killed", {
      state: "waiting",
      reason: "killed",
      log_path: null,
    }],
    ["math: Reload failed: it ended; the version before keeps running", {
      reason: "Reload failed: it ended; the version before keeps running",
      log_path: null,
    }],
    ["replica 2 of math was stopped meanwhile", {
      log_path: null,
      replicas: replicas("ready", "stopped"),
    }],
  ] as [string, Partial<WorkerStatus>][]
) {
  Deno.test(`a failure reads ${text}`, () => assert.equal(failureOf(workerStatus(status)), text));
}

Deno.test("a message of several lines is shown whole", () => {
  const reason = "KVM not accessible\nlog in again\nor use --accel tcg";

  assert.ok(failureOf(workerStatus({ state: "failed", reason })).includes(reason));
});
