import assert from "node:assert/strict";
import { STOP_FIRST, type Supervised, supervised } from "../../tests/fakes/fake_supervision.ts";
import { causeIn } from "./reload.ts";

/** A worker whose first program, 100, serves. */
async function serving(there: Supervised, manifest?: string): Promise<void> {
  there.supervisor.apply([await there.entry("w", manifest)]);
  await there.announce("w", await there.started("w", 1));
  await there.until("w", ({ state }) => state === "ready");
  there.clock.tick(1_000);
}

Deno.test("a new version starts beside the one that serves, which ends after its calls", async () => {
  await using there = await supervised();
  const { launcher, traffic, clock } = there;
  await serving(there);
  traffic.runningCalls = 1;

  there.edit("w");
  const next = await there.started("w", 2);
  await there.settle();
  const during = await there.supervisor.status("w");
  assert.deepEqual([during.state, during.pid, during.launch], ["ready", 100, 1]);
  assert.equal(during.reason, "Its new version is starting");
  assert.deepEqual([launcher.programs[0]!.stops, traffic.handovers.length], [[], 0]);

  await there.announce("w", next);
  const after = await there.until("w", ({ pid }) => pid === 101);
  assert.deepEqual([after.state, after.reason, after.launch], ["ready", null, 2]);
  const [handover] = traffic.handovers;
  assert.deepEqual([handover!.worker_ids, handover!.isComingBack], [["connection-100"], false]);
  assert.deepEqual(launcher.programs[0]!.stops, []);
  handover!.runningCalls = 0;
  clock.tick(20);
  await there.settle();
  assert.deepEqual([launcher.programs[0]!.stops, handover!.isOver], [[10_000], true]);
});

Deno.test("versions that finish their calls keep no other worker from starting", async () => {
  await using there = await supervised();
  const names = ["a", "b", "c", "d"]; // As many as may start at once.
  const entries = await Promise.all(names.map((name) => there.entry(name)));
  there.supervisor.apply(entries);
  const announceAll = async (count: number): Promise<void> => {
    for (const name of names) await there.announce(name, await there.started(name, count));
    for (const name of names) await there.until(name, ({ launch }) => launch === count);
    there.clock.tick(1_000);
  };
  await announceAll(1);
  there.traffic.runningCalls = 1;
  for (const name of names) there.edit(name);
  await announceAll(2);
  for (const name of names) there.edit(name);
  await there.settle();

  there.supervisor.apply([...entries, await there.entry("e")]);

  await there.started("e", 1);
  for (const name of names) {
    assert.equal(there.launcher.programs.filter(({ spec }) => spec.name === name).length, 2);
  }
});

Deno.test("a new version that fails leaves the old one serving, with the reason and the log line", async () => {
  await using there = await supervised();
  const { launcher, traffic } = there;
  await serving(there);
  launcher.onStart = (program) => {
    for (const line of ["Traceback:", "SyntaxError: invalid syntax", "  at main.py"]) {
      program.print(line);
    }
    program.exit(1);
  };

  there.edit("w");
  const failed = await there.until("w", ({ reason }) => reason?.startsWith("Reload") ?? false);

  assert.equal(
    failed.reason,
    "Reload failed: It ended with exit code 1 before it was ready: " +
      "SyntaxError: invalid syntax; the version before keeps running",
  );
  assert.deepEqual([failed.state, failed.pid, failed.restarts], ["ready", 100, 0]);
  assert.deepEqual([traffic.handovers.length, launcher.programs[0]!.stops], [0, []]);
  assert.equal(launcher.programs.length, 2);
  assert.ok(there.lines.includes("error reload failed"));
  const log = (await there.supervisor.logs("w", 10)).map((line) => line.slice(29));
  assert.ok(log.includes("SyntaxError: invalid syntax"), log.join("\n"));

  launcher.onStart = () => {};
  there.clock.tick(1_000);
  there.edit("w");
  await there.announce("w", await there.started("w", 3));
  const mended = await there.until("w", ({ pid }) => pid === 102);
  assert.equal(mended.reason, null);
});

Deno.test("a new version that cannot be started leaves the old one serving", async () => {
  await using there = await supervised();
  await serving(there);
  there.launcher.failure = "Worker w cannot be started: no shell";

  await there.supervisor.restart("w", { reinstall: false });
  const { state, reason, launch } = await there.until(
    "w",
    ({ reason }) => /failed/.test(`${reason}`),
  );

  assert.deepEqual([state, launch], ["ready", 2]);
  assert.match(reason!, /^Reload failed: Worker w cannot be started: no shell; the version before/);
});

Deno.test("a new version that does not register in time is ended, and the old one serves", async () => {
  await using there = await supervised();
  await serving(there);
  there.edit("w");
  const next = await there.started("w", 2);
  await there.settle();

  there.clock.tick(120_000);
  const { reason, pid } = await there.until("w", ({ reason }) => /failed/.test(`${reason}`));

  assert.match(reason!, /^Reload failed: It did not register within 120 s; /);
  assert.deepEqual([pid, next.isRunning], [100, false]);
});

Deno.test("a new version that needs the address of the old one starts after that has ended", async () => {
  await using there = await supervised();
  const { launcher } = there;
  await serving(there);
  launcher.onStart = (program) => {
    launcher.onStart = () => {};
    program.print("Error: listen EADDRINUSE: address already in use :::8080");
    program.exit(1);
  };

  there.edit("w");
  await there.announce("w", await there.started("w", 3));
  const { reason } = await there.until("w", ({ pid }) => pid === 102);

  assert.equal(reason, null);
  assert.deepEqual(launcher.programs.map(({ isRunning }) => isRunning), [false, false, true]);
  assert.ok(there.lines.some((line) => /^info the running version holds its address/.test(line)));
});

Deno.test("with stop-first the old version has ended before the new one starts", async () => {
  await using there = await supervised();
  const { launcher } = there;
  await serving(there, STOP_FIRST);
  launcher.onStart = () => assert.equal(launcher.programs[0]!.isRunning, false);

  there.edit("w");
  await there.announce("w", await there.started("w", 2));

  await there.until("w", ({ pid, state }) => pid === 101 && state === "ready");
});

for (const what of ["stop", "close", "another edit"] as const) {
  Deno.test(`a new version on its way ends with ${what}`, async () => {
    await using there = await supervised();
    const { supervisor } = there;
    await serving(there);
    there.edit("w");
    const next = await there.started("w", 2);
    await there.settle();

    if (what === "stop") {
      await supervisor.stop("w");
      await there.reaches("w", "stopped");
    } else if (what === "close") await supervisor.close();
    else {
      there.clock.tick(1_000);
      there.edit("w");
      await there.announce("w", await there.started("w", 3));
      await there.until("w", ({ pid }) => pid === 102);
      await there.settle();
    }

    assert.equal(next.isRunning, false);
    assert.equal(there.running("w").length, what === "another edit" ? 1 : 0);
  });
}

Deno.test("a replica whose reload is put off does not say that its new version is starting", async () => {
  await using there = await supervised();
  const { supervisor } = there;
  supervisor.apply([{ ...await there.entry("w"), replicas: 2 }]);
  for (const n of [1, 2]) await there.announce("w", await there.started("w", n));
  await there.until("w", ({ replicas }) => replicas.every(({ state }) => state === "ready"));
  there.clock.tick(1_000);
  there.edit("w");
  await there.announce("w", await there.started("w", 3));
  await there.until("w", ({ replicas }) => replicas[1]!.reason === "Its new version is starting");
  there.clock.tick(1_000);

  there.edit("w"); // The first replica comes first again.
  await there.started("w", 5);

  await there.until(
    "w",
    ({ replicas: [first, second] }) =>
      first!.reason === "Its new version is starting" && second!.reason === null,
  );
});

Deno.test("a new version takes over although the old one ends meanwhile", async () => {
  await using there = await supervised();
  await serving(there);
  there.edit("w");
  const next = await there.started("w", 2);
  await there.settle();

  there.launcher.programs[0]!.exit(1);
  await there.settle();
  await there.announce("w", next);

  const { state, reason } = await there.until("w", ({ pid }) => pid === 101);
  assert.deepEqual([state, reason], ["ready", null]);
});

Deno.test("when both versions end, the new one is started by the restart policy", async () => {
  await using there = await supervised();
  const { launcher } = there;
  await serving(there);
  there.edit("w");
  const next = await there.started("w", 2);
  await there.settle();

  launcher.programs[0]!.exit(1);
  next.exit(1);
  await there.reaches("w", "waiting");
  there.clock.tick(1_000);
  await there.announce("w", await there.started("w", 3));

  await there.until("w", ({ state, pid }) => state === "ready" && pid === 102);
});

Deno.test("causeIn() prefers the last line about an error to the last line, and cuts it", () => {
  assert.equal(causeIn(["TypeError: x", "    at main.js:1", "Node.js v22"]), "TypeError: x");
  assert.equal(causeIn(["one", "two", "  "]), "two");
  assert.equal(causeIn([]), undefined);
  assert.equal(causeIn(["x".repeat(300)])!.length, 201);
});
