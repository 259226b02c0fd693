import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDirectory } from "../../tests/fakes/fake_directory.ts";
import type { Usage } from "../process/usage.ts";
import { type ReplicaView, StatusBoard, type WorkerFacts, workerStatus } from "./status.ts";

const FACTS: WorkerFacts = {
  name: "w",
  path: "/p/w",
  isolation: "process",
  network: null,
  resources: null,
  dependencies: "none",
  launch: 1,
  log_path: "/l/w.log",
  problem: null,
};

const IDLE: ReplicaView = {
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
  lines: [],
  accelerator: null,
};

/** A replica that serves on the line c<number>, with the process id 10 × number. */
function serving(number: number): ReplicaView {
  const pid = number * 10;
  return { ...IDLE, number, state: "ready", pid, lines: [`c${number}`], started_at_ms: 50 };
}

function setup() {
  const directory = new FakeDirectory();
  const usages = new Map<number, Usage>();
  const status = (replicas: readonly ReplicaView[], facts: Partial<WorkerFacts> = {}) =>
    workerStatus({ ...FACTS, ...facts }, replicas, { directory, usages, nowMs: 9_000 });
  return { directory, usages, status };
}

Deno.test("workerStatus() of one replica says what that says", () => {
  const { directory, usages, status } = setup();
  directory.offer("c1", "w::run", "w::also");
  usages.set(10, { isAlive: true, memoryBytes: 5_000, cpuPercent: 12.5 });

  const worker = status([{ ...serving(1), ready_after_ms: 40 }]);

  assert.deepEqual(worker, {
    name: "w",
    kind: "directory",
    path: "/p/w",
    isolation: "process",
    network: null,
    resources: null,
    dependencies: "none",
    launch: 1,
    log_path: "/l/w.log",
    state: "ready",
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
      worker_ids: ["c1"],
      restarts: 0,
      started_at_ms: 50,
      last_exit: null,
      memory_bytes: 5_000,
      cpu_percent: 12.5,
    }],
  });
});

Deno.test("workerStatus() does not believe a replica whose process is gone", () => {
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

Deno.test("workerStatus() says that a program is held by a signal, beside what it says already", () => {
  const { directory, usages, status } = setup();
  directory.offer("c1", "w::run");
  usages.set(10, { isAlive: true, halted: 11, memoryBytes: 5_000, cpuPercent: 0 });
  const remark = "Process 11 is held by a signal; to let it go on: kill -CONT 11";

  const { state, reason } = status([serving(1)]);

  assert.deepEqual([state, reason], ["ready", remark]);
  assert.equal(status([{ ...serving(1), reason: "A warning" }]).reason, `A warning. ${remark}`);
});

Deno.test("workerStatus() does not believe a replica whose line is gone", () => {
  const { status } = setup();

  const { state, reason, pid, replicas } = status([{ ...serving(1), ready_after_ms: 3 }]);

  assert.deepEqual([state, reason, pid], ["starting", "It has no line to the engine", 10]);
  assert.deepEqual(replicas[0]!.worker_ids, []);
});

Deno.test("workerStatus() is the furthest of several replicas, since the first that came so far", () => {
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

Deno.test("workerStatus() puts states in the order of how far they are", () => {
  const { status } = setup();
  const states = ["failed", "waiting", "stopping", "queued", "installing", "starting"] as const;
  const replicas: ReplicaView[] = [IDLE];

  for (const state of states) {
    replicas.push({ ...IDLE, state });
    assert.equal(status(replicas).state, state);
  }
});

Deno.test("workerStatus() adds up what replicas use and how often they were restarted", () => {
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

Deno.test("workerStatus() tells the last end and the last error of all, and a problem first", () => {
  const { directory, status } = setup();
  directory.offer("c1", "w::run");
  directory.offer("c2", "w::run");
  const dated = (text: string, atMs: number) => ({ text, atMs });

  const { last_exit, last_error, reason } = status([
    { ...serving(1), lastExit: dated("exit code 1", 7), lastError: dated("first", 1) },
    { ...serving(2), lastExit: dated("exit code 2", 5), lastError: dated("second", 2) },
  ], { problem: "The new version did not become ready" });

  assert.deepEqual([last_exit, last_error], ["exit code 1", "second"]);
  assert.equal(reason, "The new version did not become ready");
});

function setupOfStatusBoard() {
  const clock = new FakeClock();
  const lines: string[] = [];
  const at = (level: string) => (text: string): void => void lines.push(`${level} ${text}`);
  const log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  return { clock, lines, board: new StatusBoard({ clock, log }, () => ({ worker: "w" })) };
}

Deno.test("StatusBoard begins as one that is stopped", () => {
  const { board, clock } = setupOfStatusBoard();

  assert.deepEqual(board.view(), {
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

Deno.test("StatusBoard dates a state by its beginning, whatever is said meanwhile", () => {
  const { board, clock } = setupOfStatusBoard();
  board.set("installing");
  const since = clock.wall();
  clock.tick(500);

  board.set("installing", "with pip");
  assert.deepEqual([board.view().since_ms, board.view().reason], [since, "with pip"]);

  board.set("queued");
  assert.equal(board.view().since_ms, since + 500);
});

Deno.test("StatusBoard dates a program and forgets it with its end", () => {
  const { board, clock } = setupOfStatusBoard();
  board.begin("starting");
  board.started(7);
  clock.tick(300);

  const { pid, started_at_ms } = board.view();
  assert.deepEqual([pid, started_at_ms], [7, clock.wall() - 300]);
  board.ended("exit code 1");

  const view = board.view();
  assert.deepEqual([view.pid, view.started_at_ms], [null, null]);
  assert.deepEqual(view.lastExit, { text: "exit code 1", atMs: clock.wall() });
});

Deno.test("StatusBoard tells whole milliseconds to readiness, and none while not ready", () => {
  const { board } = setupOfStatusBoard();
  board.begin("starting");
  assert.equal(board.view().ready_after_ms, null);

  board.ready(300.6);
  assert.equal(board.view().ready_after_ms, 301);

  board.set("starting", "its line is gone");
  assert.equal(board.view().ready_after_ms, null);
});

Deno.test("StatusBoard keeps the last error when all is well again", () => {
  const { board, clock } = setupOfStatusBoard();
  board.error("It ended with exit code 1");
  const atMs = clock.wall();
  clock.tick(1_000);

  board.ready(5);

  assert.deepEqual(board.view().lastError, { text: "It ended with exit code 1", atMs });
  assert.equal(board.view().reason, null);
});

Deno.test("StatusBoard shows last lines with a failure only, and those of this attempt", () => {
  const { board } = setupOfStatusBoard();
  board.print("old");
  board.begin("starting");
  for (let i = 0; i < 30; i++) board.print(`line ${i}`);
  assert.deepEqual(board.view().tail, []);

  board.set("failed", "no");

  const { tail, reason } = board.view();
  assert.equal(reason, "no");
  assert.equal(tail.length, 20);
  assert.equal(tail.at(-1), "line 29");
});

Deno.test("StatusBoard counts restarts until somebody starts it by hand", () => {
  const { board } = setupOfStatusBoard();
  board.countRestart();
  board.countRestart();
  assert.equal(board.view().restarts, 2);

  board.forgetRestarts();

  assert.equal(board.view().restarts, 0);
});

Deno.test("StatusBoard logs each change of state once, at the level it deserves", () => {
  const { board, lines } = setupOfStatusBoard();

  board.set("starting");
  board.set("starting", "still");
  board.ready(1);
  board.set("waiting", "ended");
  board.set("failed", "given up");
  board.set("stopped");

  assert.deepEqual(lines, [
    "debug worker changed state",
    "info worker ready",
    "warn worker waits for its next start",
    "error worker failed",
    "info worker stopped",
  ]);
});

Deno.test("StatusBoard tells of each change of its view, and of nothing else", () => {
  let told = 0;
  const quiet = () => {};
  const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
  const board = new StatusBoard({ clock: new FakeClock(), log }, () => ({}), () => void told++);

  const steps = [
    () => board.set("installing", "with pip"),
    () => board.set("installing", "with pip"),
    () => board.set("installing", "with uv"),
    () => board.started(7),
    () => board.print("hello"),
    () => board.error("broken"),
    () => board.ended("exit code 1"),
  ].map((step) => {
    const before = told;
    step();
    return told - before;
  });

  assert.deepEqual(steps, [1, 0, 1, 1, 0, 1, 1]);
});
