import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeTraffic, supervised } from "../../tests/fakes/fake_supervision.ts";
import { ReplicaDrain } from "./replica.ts";

Deno.test("Replica starts a worker with the engine's address in its environment", async () => {
  await using there = await supervised();
  const { supervisor, launcher } = there;
  const entry = await there.entry("w");

  supervisor.apply([{ ...entry, env: { LEVEL: "3" } }]);
  assert.equal((await supervisor.status("w")).state, "queued");
  await there.reaches("w", "starting");

  const { spec } = launcher.last;
  assert.equal(spec.command, "run");
  assert.equal(spec.directory, entry.path);
  const { ENGINE_URL, ENGINE_WORKER_NAME, ENGINE_LAUNCH_ID, ENGINE_ISOLATION, LEVEL } = spec.env;
  assert.deepEqual([ENGINE_URL, ENGINE_WORKER_NAME, ENGINE_LAUNCH_ID, ENGINE_ISOLATION, LEVEL], [
    "ws://127.0.0.1:1",
    "w",
    "launch-1",
    "process",
    "3",
  ]);
});

Deno.test("Replica is ready after the worker has announced itself, and reports how long it took", async () => {
  await using there = await supervised();
  const { supervisor, clock } = there;
  supervisor.apply([await there.entry("w")]);
  await there.reaches("w", "starting");
  clock.tick(400);

  await there.announce("w");

  const status = await supervisor.status("w");
  assert.equal(status.state, "ready");
  assert.equal(status.pid, 100);
  assert.equal(status.ready_after_ms, 500);
  assert.equal(status.launch, 1);
  assert.deepEqual(status.functions, ["w::run"]);
  assert.equal(status.dependencies, "none");
  assert.equal(status.isolation, "process");
  assert.deepEqual(status.tail, []);
});

Deno.test("Replica waits after an immediate exit and shows its code and last lines", async () => {
  await using there = await supervised();
  const { supervisor, launcher } = there;
  launcher.onStart = (program) => {
    program.print("Traceback");
    program.print("ValueError: no");
    program.exit(1);
  };

  supervisor.apply([await there.entry("w")]);
  await there.reaches("w", "waiting");

  const status = await supervisor.status("w");
  assert.equal(
    status.reason,
    "It ended with exit code 1 before it was ready; next start in 1 s",
  );
  assert.equal(status.last_exit, "exit code 1");
  assert.deepEqual(status.tail, ["Traceback", "ValueError: no"]);
  assert.equal(status.restarts, 1);
  assert.equal(status.pid, null);
  assert.equal(status.started_at_ms, null);
});

Deno.test("Replica reports a worker that exits with code 0 before it registered", async () => {
  await using there = await supervised();
  there.launcher.onStart = (program) => program.exit(0);

  there.supervisor.apply([await there.entry("w")]);
  await there.reaches("w", "waiting");

  const { reason } = await there.supervisor.status("w");
  assert.equal(reason, "It ended with exit code 0 before it was ready; next start in 1 s");
});

Deno.test("Replica restarts with growing waits and gives up after five quick exits", async () => {
  await using there = await supervised();
  const { supervisor, launcher, clock } = there;
  launcher.onStart = (program) => {
    program.print(`run ${launcher.programs.length}`);
    program.exit(127);
  };
  supervisor.apply([await there.entry("w")]);

  for (const [wait, runs] of [[1_000, 1], [2_000, 2], [4_000, 3], [8_000, 4]] as const) {
    await there.reaches("w", "waiting");
    assert.equal(launcher.programs.length, runs);
    assert.equal(clock.nextIn, wait);
    clock.tick(wait);
    await there.settle();
  }
  await there.reaches("w", "failed");

  const status = await supervisor.status("w");
  assert.equal(
    status.reason,
    "Given up after it ended 5 times in quick succession: " +
      "It ended with exit code 127 (a program that it needs was not found) before it was ready",
  );
  assert.deepEqual(status.tail, ["run 5"]);
  assert.equal(status.launch, 5);
  assert.equal(clock.waiting, 0);
});

Deno.test("Replica stops a worker that never announces itself, and gives up", async () => {
  await using there = await supervised();
  const { supervisor, launcher, clock } = there;
  supervisor.apply([await there.entry("w")]);
  await there.started("w", 1);
  await there.settle();
  launcher.last.print("connecting ...");

  clock.tick(119_999);
  assert.equal((await supervisor.status("w")).state, "starting");
  clock.tick(1);
  const status = await there.reaches("w", "failed");

  assert.deepEqual(launcher.last.stops, [10_000]);
  assert.equal(status.reason, "It did not register with the engine within 120 s");
  assert.equal(status.last_error, status.reason);
  assert.deepEqual([status.tail, status.pid], [["connecting ..."], null]);
  clock.tick(600_000);
  await there.settle();
  assert.equal(launcher.programs.length, 1);
});

Deno.test("Replica restarts a worker that was ready and lost its connection for good", async () => {
  await using there = await supervised();
  const { launcher, clock } = there;
  there.supervisor.apply([await there.entry("w")]);
  await there.announce("w");

  there.hangUp(launcher.last);
  clock.tick(120_000);
  const status = await there.reaches("w", "waiting");

  assert.equal(status.reason, "It had no connection to the engine for 120 s; next start in 1 s");
  clock.tick(1_000);
  await there.announce("w");
  assert.equal(launcher.programs.length, 2);
});

Deno.test("Replica restarts a worker that exited after it was ready", async () => {
  await using there = await supervised();
  const { supervisor, launcher, clock } = there;
  supervisor.apply([await there.entry("w")]);
  await there.announce("w");

  clock.tick(61_000);
  launcher.last.exit(3);
  await there.reaches("w", "waiting");
  assert.equal(
    (await supervisor.status("w")).reason,
    "It ended with exit code 3; next start in 1 s",
  );
  clock.tick(1_000);
  await there.announce("w");

  const status = await supervisor.status("w");
  assert.deepEqual([status.state, status.pid, status.restarts], ["ready", 101, 1]);
});

Deno.test("Replica is not ready while the worker has no connection", async () => {
  await using there = await supervised();
  const { supervisor } = there;
  supervisor.apply([await there.entry("w")]);
  await there.announce("w");

  there.hangUp(there.launcher.last);

  const { state, reason, pid } = await supervisor.status("w");
  assert.deepEqual([state, reason, pid], [
    "starting",
    "Its connection to the engine ended (cut); waiting for it to reconnect",
    100,
  ]);
  await there.announce("w", there.launcher.last);
  assert.equal((await supervisor.status("w")).state, "ready");
});

Deno.test("Replica fails at once when the manifest is wrong, with every problem", async () => {
  await using there = await supervised();

  there.supervisor.apply([await there.entry("w", "runtime: { kind: cobol }\nwatch: src\n")]);
  await there.reaches("w", "failed");

  assert.equal(
    (await there.supervisor.status("w")).reason,
    'runtime.kind: expected one of python, typescript, javascript, received "cobol" (line 2); ' +
      "runtime.entry: expected the entry file, or scripts.start, or one of the files main.py, " +
      "worker.py, src/main.py, src/worker.py, received nothing (line 2); " +
      'watch: expected a list of strings, received "src" (line 3)',
  );
  assert.equal(there.launcher.programs.length, 0);
});

Deno.test("Replica fails when there is no launcher for the isolation or the launcher refuses", async () => {
  await using there = await supervised();
  const { supervisor, launcher } = there;
  const microvm = { ...await there.entry("vm"), isolation: "microvm" } as const;
  launcher.failure = "Worker w cannot be started: no shell";

  supervisor.apply([microvm, await there.entry("w")]);
  await there.reaches("vm", "failed");
  await there.reaches("w", "failed");

  assert.match(
    (await supervisor.status("vm")).reason!,
    /^Worker vm would run in a microVM.*--isolation/,
  );
  assert.equal((await supervisor.status("w")).reason, "Worker w cannot be started: no shell");
  assert.equal(there.clock.waiting, 0);
});

Deno.test("Replica restarts an edited worker, also one that failed", async () => {
  await using there = await supervised();
  const { supervisor, launcher, clock } = there;
  const manifest = "runtime: { kind: nothing }\n";
  const entry = await there.entry("w", manifest);
  supervisor.apply([entry]);
  await there.reaches("w", "failed");

  await there.entry("w");
  there.edit("w");
  await there.announce("w");
  clock.tick(1_000);
  there.edit("w");
  await there.announce("w", await there.started("w", 2));

  assert.deepEqual(launcher.programs.map(({ stops }) => stops.length), [1, 0]);
  assert.equal((await supervisor.status("w")).restarts, 0);
});

Deno.test("Replica ignores edits that the program has already read, and edits while it is stopped", async () => {
  await using there = await supervised();
  const { supervisor, launcher, clock } = there;
  clock.tick(10_000);
  supervisor.apply([await there.entry("w")]);
  await there.announce("w");

  there.edit("w", { changedAtMs: clock.wall() - 5_000 });
  assert.equal((await supervisor.status("w")).state, "ready");
  await supervisor.stop("w");
  await there.reaches("w", "stopped");
  there.edit("w");
  await there.settle();

  assert.equal((await supervisor.status("w")).state, "stopped");
  assert.equal(launcher.programs.length, 1);
});

Deno.test("Replica watches what the manifest lists, and the manifest", async () => {
  await using there = await supervised();
  const start = "runtime: { kind: javascript, package_manager: deno }\nscripts: { start: run }\n";

  there.supervisor.apply([
    await there.entry("a", `${start}watch: [src]\n`),
    await there.entry("b", `${start}watch: []\n`),
    await there.entry("c"),
  ]);
  for (const name of ["a", "b", "c"]) await there.reaches(name, "starting");

  const watched = [...there.watches].map(({ watch }) => watch.join(" ")).sort();
  assert.deepEqual(watched, ["", ".", "src engine.worker.yaml"]);
});

function setup(runningCalls: number) {
  const clock = new FakeClock();
  const traffic = new FakeTraffic();
  traffic.runningCalls = runningCalls;
  const replicaDrain = new ReplicaDrain({ clock, traffic });
  const closing = new AbortController();
  /** Drains; `isDone` becomes true when that has ended. */
  const drain = (connections: string[], isComingBack = true) => {
    const drained = { isDone: false };
    void replicaDrain.drain(connections, isComingBack, closing.signal).then(() =>
      drained.isDone = true
    );
    return drained;
  };
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 20) {
      clock.tick(20);
      for (let i = 0; i < 10; i++) await Promise.resolve();
    }
  };
  return { clock, traffic, replicaDrain, closing, drain, pass };
}

Deno.test("ReplicaDrain.drain() waits until the connections run no calls", async () => {
  const { traffic, drain, pass, clock } = setup(2);
  const drained = drain(["c1", "c2"]);
  await pass(1_000);
  assert.equal(drained.isDone, false);

  traffic.handovers[0]!.runningCalls = 0;
  await pass(20);

  assert.equal(drained.isDone, true);
  assert.deepEqual(traffic.handovers[0]!.worker_ids, ["c1", "c2"]);
  assert.equal(traffic.handovers[0]!.isOver, false);
  assert.equal(clock.waiting, 0);
});

Deno.test("ReplicaDrain.drain() waits for 10 s at most, or until the signal aborts", async () => {
  const slow = setup(1);
  const drained = slow.drain(["c1"]);
  await slow.pass(9_980);
  assert.equal(drained.isDone, false);
  await slow.pass(20);
  assert.equal(drained.isDone, true);

  const closing = setup(1);
  const cut = closing.drain(["c1"]);
  closing.closing.abort();
  await closing.pass(20);
  assert.equal(cut.isDone, true);
  assert.equal(closing.clock.waiting, 0);
});

Deno.test("ReplicaDrain.drain() without connections does not call the core", async () => {
  const { traffic, replicaDrain, closing } = setup(1);

  await replicaDrain.drain([], true, closing.signal);

  assert.deepEqual(traffic.handovers, []);
});

Deno.test("ReplicaDrain.expectReturn() opens one handover that parks calls", () => {
  const { traffic, replicaDrain, drain } = setup(1);
  replicaDrain.expectReturn();
  drain(["c1"], false);

  replicaDrain.expectReturn();
  replicaDrain.expectReturn();

  const asked = traffic.handovers.map(({ worker_ids, isComingBack }) => [worker_ids, isComingBack]);
  assert.deepEqual(asked, [[["c1"], false], [["c1"], true]]);
});

Deno.test("ReplicaDrain.end() ends all handovers", () => {
  const { traffic, replicaDrain, drain } = setup(1);
  drain(["c1"], false);
  replicaDrain.expectReturn();

  replicaDrain.end();
  replicaDrain.expectReturn();

  assert.deepEqual(traffic.handovers.map(({ isOver }) => isOver), [true, true]);
});
