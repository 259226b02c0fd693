import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDirectory } from "../../tests/fakes/fake_supervision.ts";
import type { Usage } from "../process/usage.ts";
import { type ReplicaReport, StatusTracker, type WorkerFacts, workerStatus } from "./status.ts";

const FACTS: WorkerFacts = {
  name: "w",
  path: "/p/w",
  required: false,
  isolation: "process",
  network: null,
  resources: null,
  dependencies: "none",
  launch: 1,
  log_path: "/l/w.log",
  problem: null,
};

const IDLE: ReplicaReport = {
  number: 1,
  state: "stopped",
  since_ms: 100,
  reason: null,
  pid: null,
  restarts: 0,
  started_at_ms: null,
  ready_after_ms: null,
  lastExit: null,
  lastError: null,
  tail: [],
  connections: [],
  accelerator: null,
};

/** A replica that serves on the connection c<number>, with the process id 10 × number. */
function serving(number: number): ReplicaReport {
  const pid = number * 10;
  return { ...IDLE, number, state: "ready", pid, connections: [`c${number}`], started_at_ms: 50 };
}

function setup() {
  const directory = new FakeDirectory();
  const usages = new Map<number, Usage>();
  const status = (replicas: readonly ReplicaReport[], facts: Partial<WorkerFacts> = {}) =>
    workerStatus({ ...FACTS, ...facts }, replicas, { directory, usages, nowMs: 9_000 });
  return { directory, usages, status };
}

Deno.test("workerStatus() of one replica shows what it reports", () => {
  const { directory, usages, status } = setup();
  directory.offer("c1", "w::run", "w::also");
  usages.set(10, { isAlive: true, memoryBytes: 5_000, cpuPercent: 12.5 });

  const worker = status([{ ...serving(1), ready_after_ms: 40 }]);

  assert.deepEqual(worker, {
    name: "w",
    kind: "directory",
    path: "/p/w",
    required: false,
    isolation: "process",
    network: null,
    resources: null,
    dependencies: "none",
    launch: 1,
    log_path: "/l/w.log",
    state: "ready",
    suspect: false,
    since_ms: 100,
    reason: null,
    pid: 10,
    functions: ["w::also", "w::run"],
    restarts: 0,
    started_at_ms: 50,
    ready_after_ms: 40,
    last_exit: null,
    last_error: null,
    tail: [],
    accelerator: null,
    memory_bytes: 5_000,
    cpu_percent: 12.5,
    replicas: [{
      number: 1,
      state: "ready",
      since_ms: 100,
      reason: null,
      pid: 10,
      suspect: false,
      worker_ids: ["c1"],
      restarts: 0,
      started_at_ms: 50,
      last_exit: null,
      memory_bytes: 5_000,
      cpu_percent: 12.5,
    }],
  });
});

Deno.test("workerStatus() corrects a replica whose process is gone", () => {
  const { directory, usages, status } = setup();
  directory.offer("c1", "w::run");
  usages.set(10, { isAlive: false, memoryBytes: null, cpuPercent: null });

  for (const state of ["ready", "starting"] as const) {
    const { state: shown, reason, pid, since_ms } = status([{ ...serving(1), state }]);
    assert.deepEqual([shown, reason, pid, since_ms], [
      "queued",
      "Process 10 is gone",
      null,
      9_000,
    ]);
  }
  const stopping = status([{ ...serving(1), state: "stopping" }]);
  assert.deepEqual([stopping.state, stopping.pid], ["stopping", null]);
});

Deno.test("workerStatus() adds that a process is stopped by a signal", () => {
  const { directory, usages, status } = setup();
  directory.offer("c1", "w::run");
  usages.set(10, { isAlive: true, halted: 11, memoryBytes: 5_000, cpuPercent: 0 });
  const remark = "Process 11 is stopped by a signal; to continue it: kill -CONT 11";

  const { state, reason } = status([serving(1)]);

  assert.deepEqual([state, reason], ["ready", remark]);
  assert.equal(status([{ ...serving(1), reason: "A warning" }]).reason, `A warning. ${remark}`);
});

Deno.test("workerStatus() corrects a replica whose connection is gone", () => {
  const { status } = setup();

  const { state, reason, pid, replicas } = status([{ ...serving(1), ready_after_ms: 3 }]);

  assert.deepEqual([state, reason, pid], ["starting", "It has no connection to the engine", 10]);
  assert.deepEqual(replicas[0]!.worker_ids, []);
});

Deno.test("workerStatus() has the furthest state of its replicas, since the first reached it", () => {
  const { directory, status } = setup();
  directory.offer("c2", "w::run");
  directory.offer("c3", "w::run");
  const failed = { ...IDLE, state: "failed", reason: "no shell", tail: ["oh"] } as const;

  const worker = status([failed, { ...serving(2), since_ms: 400 }, serving(3)]);

  assert.deepEqual([worker.state, worker.since_ms, worker.pid], ["ready", 100, 20]);
  assert.equal(worker.reason, "Replica 1 is failed: no shell");
  assert.deepEqual([worker.tail, worker.functions], [["oh"], ["w::run"]]);
  assert.deepEqual(worker.replicas.map(({ state }) => state), ["failed", "ready", "ready"]);
});

Deno.test("workerStatus() ranks states", () => {
  const { status } = setup();
  const states = ["failed", "waiting", "stopping", "queued", "installing", "starting"] as const;
  const replicas: ReplicaReport[] = [IDLE];

  for (const state of states) {
    replicas.push({ ...IDLE, state });
    assert.equal(status(replicas).state, state);
  }
});

Deno.test("workerStatus() adds up usage and restarts of replicas", () => {
  const { directory, usages, status } = setup();
  for (const line of ["c1", "c2", "c3"]) directory.offer(line, "w::run");
  usages.set(10, { isAlive: true, memoryBytes: 1_000, cpuPercent: 0.1 });
  usages.set(20, { isAlive: true, memoryBytes: 2_000, cpuPercent: 0.2 });

  const { memory_bytes, cpu_percent, restarts, replicas } = status([
    { ...serving(1), restarts: 2 },
    { ...serving(2), restarts: 1 },
    serving(3),
  ]);

  assert.deepEqual([memory_bytes, cpu_percent, restarts], [3_000, 0.3, 3]);
  assert.equal(replicas[2]!.memory_bytes, null);
});

Deno.test("workerStatus() drops the last error of a replica that is ready for a minute", () => {
  const { directory, status } = setup();
  directory.offer("c1", "w::run");
  const failed = { ...serving(1), lastError: { text: "exit code 1", atMs: 1 } };
  const since = (ms: number) => status([{ ...failed, since_ms: 9_000 - ms }]).last_error;

  assert.equal(since(59_999), "exit code 1");
  assert.equal(since(60_000), null);
  const waiting = { ...failed, state: "waiting" as const, since_ms: -99_000 };
  assert.equal(status([waiting]).last_error, "exit code 1");
});

Deno.test("workerStatus() shows the last exit and error of all replicas, and a problem first", () => {
  const { directory, status } = setup();
  directory.offer("c1", "w::run");
  directory.offer("c2", "w::run");
  const dated = (text: string, atMs: number) => ({ text, atMs });

  const { last_exit, last_error, reason } = status([
    { ...serving(1), lastExit: dated("exit code 1", 7), lastError: dated("first", 1) },
    { ...serving(2), lastExit: dated("exit code 2", 5), lastError: dated("second", 2) },
  ], { problem: "Reload failed" });

  assert.deepEqual([last_exit, last_error], ["exit code 1", "second"]);
  assert.equal(reason, "Reload failed");
});

function setupTracker() {
  const clock = new FakeClock();
  const lines: string[] = [];
  const at = (level: string) => (text: string): void => void lines.push(`${level} ${text}`);
  const log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  return { clock, lines, tracker: new StatusTracker({ clock, log }, () => ({ worker: "w" })) };
}

Deno.test("StatusTracker starts as stopped", () => {
  const { tracker, clock } = setupTracker();

  assert.deepEqual(tracker.status(), {
    state: "stopped",
    since_ms: clock.wall(),
    reason: null,
    pid: null,
    restarts: 0,
    started_at_ms: null,
    ready_after_ms: null,
    lastExit: null,
    lastError: null,
    tail: [],
  });
});

Deno.test("StatusTracker dates a state by its beginning, also when its reason changes", () => {
  const { tracker, clock } = setupTracker();
  tracker.set("installing");
  const since = clock.wall();
  clock.tick(500);

  tracker.set("installing", "with pip");
  assert.deepEqual([tracker.status().since_ms, tracker.status().reason], [since, "with pip"]);

  tracker.set("queued");
  assert.equal(tracker.status().since_ms, since + 500);
});

Deno.test("StatusTracker dates a program and clears it when it ends", () => {
  const { tracker, clock } = setupTracker();
  tracker.begin("starting");
  tracker.started(7);
  clock.tick(300);

  const { pid, started_at_ms } = tracker.status();
  assert.deepEqual([pid, started_at_ms], [7, clock.wall() - 300]);
  tracker.ended("exit code 1");

  const view = tracker.status();
  assert.deepEqual([view.pid, view.started_at_ms], [null, null]);
  assert.deepEqual(view.lastExit, { text: "exit code 1", atMs: clock.wall() });
});

Deno.test("StatusTracker reports whole milliseconds to readiness, and none while not ready", () => {
  const { tracker } = setupTracker();
  tracker.begin("starting");
  assert.equal(tracker.status().ready_after_ms, null);

  tracker.ready(300.6);
  assert.equal(tracker.status().ready_after_ms, 301);

  tracker.set("starting", "its connection ended");
  assert.equal(tracker.status().ready_after_ms, null);
});

Deno.test("StatusTracker keeps the last error after recovery", () => {
  const { tracker, clock } = setupTracker();
  tracker.error("It ended with exit code 1");
  const atMs = clock.wall();
  clock.tick(1_000);

  tracker.ready(5);

  assert.deepEqual(tracker.status().lastError, { text: "It ended with exit code 1", atMs });
  assert.equal(tracker.status().reason, null);
});

Deno.test("StatusTracker shows the last lines of the current attempt, and only after a failure", () => {
  const { tracker } = setupTracker();
  tracker.print("old");
  tracker.begin("starting");
  for (let i = 0; i < 30; i++) tracker.print(`line ${i}`);
  assert.deepEqual(tracker.status().tail, []);

  tracker.set("failed", "no");

  const { tail, reason } = tracker.status();
  assert.equal(reason, "no");
  assert.equal(tail.length, 20);
  assert.equal(tail.at(-1), "line 29");
});

Deno.test("StatusTracker counts restarts until they are reset", () => {
  const { tracker } = setupTracker();
  tracker.countRestart();
  tracker.countRestart();
  assert.equal(tracker.status().restarts, 2);

  tracker.resetRestarts();

  assert.equal(tracker.status().restarts, 0);
});

Deno.test("StatusTracker logs each change of state once, at its level", () => {
  const { tracker, lines } = setupTracker();

  tracker.set("starting");
  tracker.set("starting", "still");
  tracker.ready(1);
  tracker.set("waiting", "ended");
  tracker.set("failed", "given up");
  tracker.set("stopped");

  assert.deepEqual(lines, [
    "debug worker changed state",
    "info worker ready",
    "warn worker waits for its next start",
    "error worker failed",
    "info worker stopped",
  ]);
});

Deno.test("StatusTracker reports each change of its status, and nothing else", () => {
  let changes = 0;
  const quiet = () => {};
  const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
  const tracker = new StatusTracker(
    { clock: new FakeClock(), log },
    () => ({}),
    () => void changes++,
  );

  const steps = [
    () => tracker.set("installing", "with pip"),
    () => tracker.set("installing", "with pip"),
    () => tracker.set("installing", "with uv"),
    () => tracker.started(7),
    () => tracker.print("hello"),
    () => tracker.error("broken"),
    () => tracker.ended("exit code 1"),
  ].map((step) => {
    const before = changes;
    step();
    return changes - before;
  });

  assert.deepEqual(steps, [1, 0, 1, 1, 0, 1, 1]);
});

Deno.test("workerStatus() of a replica that does not answer is suspect, and says what follows", () => {
  const { directory, status } = setup();
  directory.offer("c1", "w::run");
  directory.offer("c2", "w::run");
  directory.suspects.add("c2");

  const some = status([serving(1), serving(2)]);
  directory.suspects.add("c1");
  const all = status([serving(1), serving(2)]);

  assert.deepEqual(some.replicas.map(({ suspect }) => suspect), [false, true]);
  assert.equal(some.suspect, false);
  assert.match(some.reason!, /^Replica 2: It does not answer; calls go to other workers/);
  assert.equal(all.suspect, true);
  assert.match(all.reason!, /^It does not answer/);
});
