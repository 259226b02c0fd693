import assert from "node:assert/strict";
import { STOP_FIRST, type Supervised, supervised } from "../../tests/fakes/fake_supervision.ts";
import type { DirectoryEntry } from "../ports/config.ts";
import type { WorkerStatus } from "../ports/supervision.ts";
import { type Prepared, prepareLaunch } from "../install/prepare.ts";

/** A worker with so many replicas, all of them ready. */
async function ready(
  there: Supervised,
  replicas: number,
  manifest?: string,
): Promise<DirectoryEntry> {
  const entry = { ...await there.entry("w", manifest), replicas };
  there.supervisor.apply([entry]);
  for (let n = 1; n <= replicas; n++) {
    await there.started("w", n);
    await there.announce("w");
  }
  await there.until("w", areReady);
  return entry;
}

function areReady({ replicas }: WorkerStatus): boolean {
  return replicas.every(({ state }) => state === "ready");
}

function pidsOf({ replicas }: WorkerStatus): (number | null)[] {
  return replicas.map(({ pid }) => pid);
}

Deno.test("a worker has as many replicas as its entry says, else its manifest, else one", async () => {
  await using there = await supervised();
  const { supervisor, launcher } = there;
  const manifest =
    "runtime: { kind: javascript, package_manager: deno }\nscripts: { start: run }\nreplicas: 2\n";
  const both = { ...await there.entry("both", manifest), replicas: 3 };

  supervisor.apply([await there.entry("one"), await there.entry("two", manifest), both]);
  for (let i = 0; i < 6; i++) {
    await there.until("one", () => launcher.programs.length > i);
    const program = launcher.programs[i]!;
    await there.announce(program.spec.name.split("@")[0]!, program);
  }
  await there.settle();

  const names = launcher.programs.map(({ spec }) => spec.name).sort();
  assert.deepEqual(names, ["both", "both@2", "both@3", "one", "two", "two@2"]);
  assert.deepEqual((await supervisor.status("two")).replicas.map(({ number }) => number), [1, 2]);
});

Deno.test("replicas are prepared once", async () => {
  let prepared = 0;
  await using there = await supervised({
    prepare: (...args) => (prepared++, prepareLaunch(...args)),
  });

  await ready(there, 3);

  assert.equal(prepared, 1);
});

Deno.test("settings of microVMs without effect on a plain process are logged once", async () => {
  await using there = await supervised();
  const manifest =
    "runtime: { kind: javascript, package_manager: deno }\nscripts: { start: run }\nnetwork: engine\n";
  there.supervisor.apply([await there.entry("w", manifest)]);
  await there.started("w", 1);
  await there.announce("w");

  await there.supervisor.restart("w", { reinstall: false });
  await there.started("w", 2);

  const said = there.lines.filter((line) => line.includes("no effect"));
  assert.deepEqual(said, ["warn a setting has no effect"]);
});

Deno.test("lines in the log name the replica that printed them", async () => {
  await using there = await supervised();
  await ready(there, 2);
  const [first, second] = there.running("w");

  first!.print("hello");
  second!.print("hi");

  const texts = (await there.supervisor.logs("w", 10)).map((line) => line.slice(29));
  assert.deepEqual(texts, ["[1] hello", "[2] hi"]);
});

Deno.test("a changed number of replicas starts or stops the difference only", async () => {
  await using there = await supervised();
  const { supervisor, launcher, traffic } = there;
  const entry = await ready(there, 2);
  const [first, second] = there.running("w");

  supervisor.apply([{ ...entry, replicas: 3 }]);
  await there.started("w", 3);
  await there.announce("w");
  assert.equal((await there.until("w", areReady)).replicas.length, 3);
  supervisor.apply([{ ...entry, replicas: 1 }]);
  await there.until("w", () => there.running("w").length === 1);

  assert.deepEqual(launcher.programs.map(({ stops }) => stops.length), [0, 1, 1]);
  assert.deepEqual(there.running("w"), [first]);
  assert.ok(second!.stops.length === 1 && !second!.isKept);
  assert.ok(traffic.handovers.every(({ isComingBack, isOver }) => !isComingBack && isOver));
});

Deno.test("a replica that is desired again while it stops starts after it has ended", async () => {
  await using there = await supervised();
  const { supervisor } = there;
  const entry = await ready(there, 2);
  const second = there.running("w")[1]!;
  second.leavesWhenAsked = false;
  supervisor.apply([{ ...entry, replicas: 1 }]);
  await there.until("w", () => second.stops.length === 1);

  supervisor.apply([{ ...entry, replicas: 2 }]);
  await there.settle();
  assert.equal(there.running("w").length, 2);
  second.exit(0);
  await there.announce("w", await there.started("w", 3));

  await there.until("w", areReady);
});

Deno.test("a restart goes from replica to replica, each after the one before is ready", async () => {
  await using there = await supervised();
  const { supervisor, launcher } = there;
  await ready(there, 3);
  const before = pidsOf(await supervisor.status("w"));

  await supervisor.restart("w", { reinstall: false });
  for (let n = 0; n < 3; n++) {
    const next = await there.started("w", 4 + n);
    await there.settle();
    const { state, replicas, launch } = await supervisor.status("w");
    assert.equal(state, "ready");
    assert.equal(replicas.filter(({ state }) => state === "ready").length, 3);
    assert.deepEqual(replicas.slice(n).map(({ pid }) => pid), before.slice(n));
    assert.equal(launch, 3);
    await there.announce("w", next);
  }
  await there.until("w", ({ launch }) => launch === 4);

  assert.deepEqual(pidsOf(await there.until("w", areReady)), [103, 104, 105]);
  assert.equal(launcher.programs.length, 6);
});

Deno.test("a replica is drained before it is stopped, and its calls wait for its successor", async () => {
  await using there = await supervised();
  const { supervisor, traffic, launcher, clock } = there;
  await ready(there, 1, STOP_FIRST);
  traffic.runningCalls = 1;

  await supervisor.restart("w", { reinstall: false });
  await there.reaches("w", "stopping");
  const [handover] = traffic.handovers;
  assert.deepEqual([handover!.worker_ids, handover!.isComingBack], [["connection-100"], true]);
  assert.deepEqual(launcher.last.stops, []);
  handover!.runningCalls = 0;
  clock.tick(20);
  const next = await there.started("w", 2);
  assert.deepEqual([launcher.programs[0]!.stops, launcher.programs[0]!.isKept], [[10_000], true]);
  assert.equal(handover!.isOver, false);
  await there.announce("w", next);
  await there.reaches("w", "ready");

  assert.equal(handover!.isOver, true);
});

Deno.test("a replica that is stopped for good is drained, and no successor is expected", async () => {
  await using there = await supervised();
  const { supervisor, traffic, launcher } = there;
  await ready(there, 1);
  traffic.runningCalls = 1;

  await supervisor.stop("w");
  await there.settle();
  const [handover] = traffic.handovers;
  assert.equal(handover!.isComingBack, false);
  assert.deepEqual(launcher.last.stops, []);
  handover!.runningCalls = 0;
  there.clock.tick(20);
  await there.reaches("w", "stopped");

  assert.equal(launcher.last.isKept, false);
  assert.equal(handover!.isOver, true);
});

for (const then of ["stop", "crash"] as const) {
  Deno.test(`a restart that comes to nothing (${then}) ends the handover of parked calls`, async () => {
    await using there = await supervised();
    const { supervisor, traffic } = there;
    await ready(there, 1, STOP_FIRST);
    await supervisor.restart("w", { reinstall: false });
    const next = await there.started("w", 2);
    assert.equal(traffic.handovers[0]!.isOver, false);

    if (then === "stop") await supervisor.stop("w");
    else next.exit(1);
    await there.reaches("w", then === "stop" ? "stopped" : "waiting");

    assert.equal(traffic.handovers[0]!.isOver, true);
  });
}

Deno.test("an edit installs while the old program serves, and only then replaces it", async () => {
  const gate = { open: Promise.resolve() };
  await using there = await supervised({
    prepare: async (...args): Promise<Prepared> => {
      args[1].began("installing dependencies with pip");
      await gate.open;
      return await prepareLaunch(...args);
    },
  });
  const { launcher, clock } = there;
  await ready(there, 1);
  const { promise, resolve } = Promise.withResolvers<void>();
  gate.open = promise;
  clock.tick(1_000);

  there.edit("w", { paths: ["requirements.txt"] });
  await there.settle();
  const during = await there.supervisor.status("w");
  assert.deepEqual([during.state, during.pid], ["ready", 100]);
  assert.deepEqual(launcher.last.stops, []);
  resolve();
  await there.announce("w", await there.started("w", 2));

  assert.equal((await there.reaches("w", "ready")).pid, 101);
});

Deno.test("an edit whose dependencies cannot be installed keeps the running version, with the reason", async () => {
  const network = { isThere: true };
  await using there = await supervised({
    prepare: (...args) => {
      if (network.isThere) return prepareLaunch(...args);
      return Promise.reject(new Error("pip found no network"));
    },
  });
  await ready(there, 2);
  const before = await there.supervisor.status("w");
  network.isThere = false;
  there.clock.tick(1_000);

  there.edit("w");
  const after = await there.until("w", ({ reason }) => reason !== null);
  assert.equal(
    after.reason,
    "Reload failed: pip found no network; 2 of 2 replicas keep running the version before",
  );
  assert.deepEqual([after.state, after.last_error], ["ready", "pip found no network"]);
  assert.deepEqual(pidsOf(after), pidsOf(before));
  assert.ok(after.launch > before.launch);

  network.isThere = true;
  await there.supervisor.start("w");
  for (const n of [3, 4]) await there.announce("w", await there.started("w", n));
  const mended = await there.until("w", ({ reason }) => reason === null);
  assert.deepEqual(pidsOf(mended), [102, 103]);
});

Deno.test("an edit that does not start stops at the first replica (stop-first); the next edit repairs all", async () => {
  await using there = await supervised();
  const { launcher, clock } = there;
  await ready(there, 3, STOP_FIRST);
  clock.tick(1_000);
  launcher.onStart = (program) => {
    program.print("SyntaxError");
    program.exit(1);
  };

  there.edit("w");
  for (let n = 4; n < 8; n++) {
    await there.started("w", n);
    await there.until("w", ({ replicas }) => replicas[0]!.state === "waiting");
    clock.tick(clock.nextIn!);
  }
  const status = await there.until("w", ({ replicas }) => replicas[0]!.state === "failed");
  assert.equal(
    status.reason,
    "Reload failed: Given up after it ended 5 times in quick succession: " +
      "It ended with exit code 1 before it was ready; " +
      "2 of 3 replicas keep running the version before",
  );
  assert.deepEqual([status.state, status.tail], ["ready", ["SyntaxError"]]);
  assert.deepEqual(pidsOf(status), [null, 101, 102]);

  launcher.onStart = () => {};
  there.edit("w");
  for (const n of [9, 10, 11]) await there.announce("w", await there.started("w", n));
  assert.equal((await there.until("w", areReady)).reason, null);
});

Deno.test("edits in quick succession replace each program once", async () => {
  await using there = await supervised();
  const { launcher, clock } = there;
  await ready(there, 2);
  clock.tick(1_000);

  for (let i = 0; i < 3; i++) there.edit("w");
  await there.announce("w", await there.started("w", 3));
  await there.announce("w", await there.started("w", 4));
  await there.until("w", areReady);
  await there.settle();

  assert.equal(launcher.programs.length, 4);
});

Deno.test("a replica that crashes is prepared and restarted alone", async () => {
  let prepared = 0;
  await using there = await supervised({
    prepare: (...args) => (prepared++, prepareLaunch(...args)),
  });
  await ready(there, 2);
  there.clock.tick(1_000);

  there.running("w")[1]!.exit(1);
  const status = await there.until("w", ({ replicas }) => replicas[1]!.state === "waiting");
  assert.equal(
    status.reason,
    "Replica 2 is waiting: It ended with exit code 1; next start in 1 s",
  );
  assert.equal(status.state, "ready");
  there.clock.tick(1_000);
  await there.announce("w", await there.started("w", 3));
  await there.until("w", areReady);

  assert.equal(prepared, 2);
  const { restarts, last_error, replicas } = await there.supervisor.status("w");
  assert.deepEqual([restarts, last_error], [1, "It ended with exit code 1"]);
  assert.deepEqual(replicas.map(({ restarts }) => restarts), [0, 1]);
});

Deno.test("a command runs beside the requested replica, or the first that runs", async () => {
  await using there = await supervised();
  const { supervisor } = there;
  await ready(there, 2);
  const [first, second] = there.running("w");
  const { signal } = new AbortController();
  const exec = (replica?: number) => {
    const request = { name: "w", command: ["ls"], ...replica === undefined ? {} : { replica } };
    return supervisor.exec(request, () => {}, signal);
  };

  const beside = exec(2);
  second!.commands[0]!.end({ code: 4, signal: null });
  assert.deepEqual(await beside, { code: 4, signal: null });
  const any = exec();
  first!.commands[0]!.end({ code: 0, signal: null });
  await any;

  for (const replica of [0, 3, 1.5]) {
    const message = `Worker w has no replica ${replica}; there are 1 to 2`;
    await assert.rejects(exec(replica), { code: "INVALID_ARGUMENTS", message });
  }
});

Deno.test("a command needs a running worker, and a program to run", async () => {
  await using there = await supervised();
  const { supervisor } = there;
  await ready(there, 1);
  const { signal } = new AbortController();
  const exec = (name: string, command: string[], replica?: number) =>
    supervisor.exec({ name, command, ...replica && { replica } }, () => {}, signal);
  await supervisor.stop("w");
  await there.reaches("w", "stopped");

  await assert.rejects(exec("w", ["ls"]), {
    code: "INVALID_ARGUMENTS",
    message: "Worker w is stopped, and commands run beside running workers only",
    details: { state: "stopped" },
  });
  await assert.rejects(exec("w", ["ls"], 1), { message: /^Replica 1 of worker w is stopped/ });
  await assert.rejects(exec("x", ["ls"]), { code: "NOT_FOUND" });
  for (const command of [[], [""]]) {
    await assert.rejects(exec("w", command), {
      code: "INVALID_ARGUMENTS",
      message: "Missing command to run beside w",
    });
  }
});

Deno.test("a worker that exits as its policy allows stays stopped, with the reason", async () => {
  await using there = await supervised();
  const manifest =
    "runtime: { kind: javascript, package_manager: deno }\nscripts: { start: run }\n" +
    "restart: { policy: on-failure }\n";
  there.supervisor.apply([await there.entry("w", manifest)]);
  await there.announce("w");

  there.launcher.last.exit(0);
  const { reason, restarts, last_error } = await there.reaches("w", "stopped");

  assert.match(reason!, /^It ended with exit code 0.*, and its restart policy is on-failure$/);
  assert.deepEqual([restarts, last_error], [0, null]);
  await there.supervisor.start("w");
  await there.announce("w");
  await there.reaches("w", "ready");
});

Deno.test("an edit during a rolling restart begins it anew, and one replica always serves", async () => {
  await using there = await supervised();
  const { supervisor, clock } = there;
  await ready(there, 2);
  clock.tick(1_000);

  there.edit("w");
  await there.announce("w", await there.started("w", 3));
  const second = await there.started("w", 4);
  clock.tick(1_000);
  there.edit("w");
  const third = await there.started("w", 5);
  assert.equal((await supervisor.status("w")).replicas[0]!.state, "ready");
  assert.equal(second.isRunning, false);
  await there.announce("w", third);
  await there.announce("w", await there.started("w", 6));

  await there.until("w", ({ launch }) => launch === 3);
  assert.deepEqual(pidsOf(await there.until("w", areReady)), [104, 105]);
});

Deno.test("a stop during a rolling restart stops all, and a start starts the new version", async () => {
  await using there = await supervised();
  const { supervisor } = there;
  const entry = await ready(there, 2);
  supervisor.apply([{ ...entry, env: { LEVEL: "2" } }]);
  await there.started("w", 3);

  await supervisor.stop("w");
  await there.reaches("w", "stopped");
  assert.deepEqual(there.running("w"), []);
  await supervisor.start("w");
  for (const n of [4, 5]) await there.announce("w", await there.started("w", n));
  await there.until("w", areReady);

  assert.deepEqual(there.running("w").map(({ spec }) => spec.env.LEVEL), ["2", "2"]);
});

Deno.test("an invalid manifest keeps the running version, with its problems", async () => {
  await using there = await supervised();
  await ready(there, 1);
  there.clock.tick(1_000);

  await there.entry("w", "runtime: { kind: cobol }\nscripts: { start: run }\n");
  there.edit("w", { paths: ["engine.worker.yaml"] });
  const { reason, state } = await there.until("w", ({ reason }) => reason !== null);

  assert.equal(state, "ready");
  assert.match(reason!, /^Reload failed: .*; the version before keeps running$/);
  assert.match(reason!, /runtime.kind: expected one of python, typescript, javascript/);
});
