import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeProgram, STOP_FIRST, supervised } from "../../tests/fakes/fake_supervision.ts";
import type { ExecOptions } from "../ports/launcher.ts";
import type { WorkerStatus } from "../ports/supervision.ts";
import type { PrintedLine } from "../ports/telemetry.ts";
import { EXEC_OUTPUT_BYTES_MAX, execWithin } from "./supervisor.ts";

Deno.test("Supervisor.apply() touches only what changed", async () => {
  await using there = await supervised();
  const { supervisor, launcher } = there;
  const [a, b, c] = await Promise.all(["a", "b", "c"].map((name) => there.entry(name)));
  supervisor.apply([a!, b!]);
  await there.announce("a");
  await there.announce("b");

  supervisor.apply([{ ...b!, env: { LEVEL: "2" } }, c!, { ...a! }]);
  await there.announce("b");
  await there.announce("c");

  const names = launcher.programs.map(({ spec }) => spec.name).sort();
  assert.deepEqual(names, ["a", "b", "b", "c"]);
  assert.equal((await supervisor.status("a")).launch, 1);
  assert.equal((await supervisor.status("b")).launch, 2);
  assert.equal(launcher.programs.findLast(({ spec }) => spec.name === "b")!.spec.env.LEVEL, "2");
});

Deno.test("Supervisor passes on what programs print, and keeps marks out of logs", async () => {
  const printed: PrintedLine[] = [];
  await using there = await supervised({ print: (line) => printed.push(line) });
  const { clock, launcher, supervisor } = there;
  supervisor.apply([await there.entry("w")]);
  await there.announce("w");
  const trace = { trace_id: "a".repeat(32), span_id: "b".repeat(16) };
  const mark = `\u001b]engine;${trace.trace_id}-${trace.span_id}`;

  launcher.last.print(`${mark}\u0007hello`);
  launcher.last.print(`${mark};logger\u0007INFO  [w] accepted`);
  launcher.last.print("without a call");

  const line = { worker: "w", replica: 1, stream: "stdout", at_ms: clock.wall() } as const;
  assert.deepEqual(printed, [
    { ...line, text: "hello", trace, isLogger: false },
    { ...line, text: "INFO  [w] accepted", trace, isLogger: true },
    { ...line, text: "without a call", trace: null, isLogger: false },
  ]);
  const logged = (await supervisor.logs("w", 3)).map((text) => text.slice(text.indexOf(" ") + 1));
  assert.deepEqual(logged, ["out hello", "out INFO  [w] accepted", "out without a call"]);
});

Deno.test("Supervisor reports every change of a worker's status", async () => {
  const changes: string[] = [];
  await using there = await supervised({ changed: (name) => void changes.push(name) });
  const { supervisor } = there;
  const reported = (): string[] => changes.splice(0);
  supervisor.apply([await there.entry("a"), await there.entry("b")]);
  await there.announce("a");
  await there.announce("b");
  assert.deepEqual([...new Set(reported())].sort(), ["a", "b"]);

  const [connection] = (await supervisor.status("a")).replicas[0]!.worker_ids;
  supervisor.onEvent({ type: "functions_changed", worker_id: connection!, ids_changed: true });
  supervisor.onEvent({ type: "functions_changed", worker_id: "other", ids_changed: true });
  assert.deepEqual(reported(), ["a"]);

  there.hangUp(there.running("b")[0]!);
  assert.deepEqual(reported(), ["b"]);

  supervisor.apply([await there.entry("b")]);
  assert.ok(reported().includes("a"), "removing a worker changes its status");
});

Deno.test("Supervisor names the replica that printed a line", async () => {
  const printed: PrintedLine[] = [];
  await using there = await supervised({ print: (line) => printed.push(line) });
  const entry = { ...await there.entry("w"), replicas: 2 };
  there.supervisor.apply([entry]);
  await there.started("w", 2);

  for (const program of there.running("w")) program.print(program.spec.name);

  const found = printed.map(({ worker, replica, text }) => [worker, replica, text]).sort();
  assert.deepEqual(found, [["w", 1, "w"], ["w", 2, "w@2"]]);
});

Deno.test("Supervisor.apply() stops what is no longer listed", async () => {
  await using there = await supervised();
  const { supervisor, launcher } = there;
  supervisor.apply([await there.entry("w")]);
  await there.announce("w");

  supervisor.apply([]);
  await there.settle();

  assert.deepEqual(await supervisor.list(), []);
  assert.deepEqual(launcher.last.stops, [10_000]);
});

Deno.test("Supervisor never runs two copies of a name, also when it is removed and added quickly", async () => {
  await using there = await supervised();
  const { supervisor, launcher } = there;
  const entry = await there.entry("w");
  launcher.onStart = (program) => program.leavesWhenAsked = false;
  supervisor.apply([entry]);
  await there.announce("w");
  const first = launcher.last;

  supervisor.apply([]);
  supervisor.apply([entry]);
  await there.settle();
  assert.equal((await supervisor.status("w")).state, "queued");
  assert.equal(launcher.programs.length, 1);

  launcher.onStart = () => {};
  first.exit(0);
  await there.announce("w");
  assert.equal((await supervisor.status("w")).state, "ready");
  assert.equal(launcher.programs.length, 2);
});

Deno.test("Supervisor starts a bounded number of workers at the same time", async () => {
  await using there = await supervised();
  const { supervisor, launcher } = there;
  const names = ["a", "b", "c", "d", "e", "f"];
  supervisor.apply(await Promise.all(names.map((name) => there.entry(name))));
  await there.until("a", () => launcher.programs.length === 4);
  const [first, second] = launcher.programs;
  await there.settle();
  assert.equal(launcher.programs.length, 4);
  const states = (await supervisor.list()).map(({ state }) => state);
  assert.deepEqual(states.sort(), ["queued", "queued", ...Array(4).fill("starting")]);

  await there.announce(first!.spec.name, first);
  second!.exit(1);
  await there.until("a", () => launcher.programs.length === 6);

  assert.equal(launcher.programs.length, 6);
});

Deno.test("Supervisor restarts a bounded number of workers at the same time", async () => {
  await using there = await supervised();
  const { supervisor, launcher } = there;
  const names = ["a", "b", "c", "d", "e", "f"];
  supervisor.apply(await Promise.all(names.map((name) => there.entry(name, STOP_FIRST))));
  for (let i = 0; i < 6; i++) {
    await there.until("a", () => launcher.programs.length > i);
    await there.announce(launcher.programs[i]!.spec.name, launcher.programs[i]);
  }

  for (const name of names) await supervisor.restart(name, { reinstall: false });
  await there.until("a", () => launcher.programs.length === 10);
  await there.settle();

  const states = (await supervisor.list()).map(({ state }) => state).sort();
  assert.deepEqual(states, ["ready", "ready", ...Array(4).fill("starting")]);
});

Deno.test("Supervisor.stop() stops a worker for good, start() starts it again", async () => {
  await using there = await supervised();
  const { supervisor, launcher } = there;
  const entry = await there.entry("w");
  supervisor.apply([entry]);
  await there.announce("w");

  assert.equal((await supervisor.stop("w")).state, "stopping");
  await there.reaches("w", "stopped");
  supervisor.apply([{ ...entry, env: { A: "1" } }]);
  await there.settle();
  assert.equal(launcher.programs.length, 1);
  assert.equal((await supervisor.status("w")).last_exit, "signal SIGTERM");

  assert.equal((await supervisor.start("w")).state, "queued");
  await there.announce("w");
  assert.equal((await supervisor.status("w")).state, "ready");
  assert.equal(launcher.last.spec.env.A, "1");
});

Deno.test("Supervisor.start() of a running worker changes nothing", async () => {
  await using there = await supervised();
  const { supervisor, launcher } = there;
  supervisor.apply([await there.entry("w")]);
  await supervisor.start("w");
  await there.announce("w");

  assert.equal((await supervisor.start("w")).state, "ready");

  assert.equal((await supervisor.status("w")).launch, 1);
  assert.equal(launcher.programs.length, 1);
});

Deno.test("Supervisor.start() ends a wait and clears a failure", async () => {
  await using there = await supervised();
  const { supervisor, launcher } = there;
  launcher.onStart = (program) => program.exit(1);
  supervisor.apply([await there.entry("w")]);
  await there.reaches("w", "waiting");

  launcher.onStart = () => {};
  await supervisor.start("w");
  await there.announce("w");

  const { state, restarts, launch } = await supervisor.status("w");
  assert.deepEqual([state, restarts, launch], ["ready", 0, 2]);
  assert.equal(there.clock.waiting, 0);
});

Deno.test("Supervisor.start() resets earlier exits", async () => {
  await using there = await supervised();
  const { supervisor, launcher, clock } = there;
  launcher.onStart = (program) => program.exit(1);
  supervisor.apply([await there.entry("w")]);
  await there.reaches("w", "waiting");
  clock.tick(1_000);
  await there.settle();
  await there.reaches("w", "waiting");
  assert.equal(clock.nextIn, 2_000);

  await supervisor.start("w");
  await there.settle();
  await there.reaches("w", "waiting");

  assert.equal(clock.nextIn, 1_000);
});

Deno.test("Supervisor.stop() ends a wait at once", async () => {
  await using there = await supervised();
  const { supervisor, launcher } = there;
  launcher.onStart = (program) => program.exit(1);
  supervisor.apply([await there.entry("w")]);
  await there.reaches("w", "waiting");

  await supervisor.stop("w");
  await there.reaches("w", "stopped");

  assert.equal(there.clock.waiting, 0);
});

Deno.test("Supervisor.restart() starts a worker again and stops the program before", async () => {
  await using there = await supervised();
  const { supervisor, launcher } = there;
  supervisor.apply([await there.entry("w")]);
  await there.announce("w");

  await supervisor.restart("w", { reinstall: false });
  await there.announce("w");

  assert.deepEqual(launcher.programs.map(({ stops }) => stops.length), [1, 0]);
  assert.equal((await supervisor.status("w")).launch, 2);
});

Deno.test("Supervisor.restart() several times in a row leads to one new copy", async () => {
  await using there = await supervised();
  const { supervisor, launcher } = there;
  launcher.onStart = (program) => program.leavesWhenAsked = false;
  supervisor.apply([await there.entry("w")]);
  await there.announce("w");

  for (let i = 0; i < 3; i++) supervisor.restart("w", { reinstall: false });
  await there.settle();
  launcher.programs[0]!.exit(0);
  launcher.onStart = () => {};
  await there.announce("w");

  assert.equal(launcher.programs.length, 2);
  launcher.last.exit(0);
});

Deno.test("Supervisor.logs() returns the log of a worker and rejects unknown names", async () => {
  await using there = await supervised();
  const { supervisor, launcher } = there;
  supervisor.apply([await there.entry("w"), await there.entry("v")]);
  await there.announce("w");
  launcher.programs.find(({ spec }) => spec.name === "w")!.print("hello");

  const lines = await supervisor.logs("w", 5);

  assert.equal(lines.length, 1);
  assert.match(lines[0]!, /^2025-11-21T12:00:00\.\d{3}Z out hello$/);
  const unknown = { code: "NOT_FOUND", message: "There is no worker x; there are: w, v" };
  await assert.rejects(supervisor.status("x"), unknown);
  await assert.rejects(supervisor.start("x"), unknown);
  await assert.rejects(supervisor.stop("x"), unknown);
  await assert.rejects(supervisor.restart("x", { reinstall: false }), unknown);
  await assert.rejects(supervisor.logs("x", 1), unknown);
});

Deno.test("Supervisor.close() stops all workers at the same time and waits for the last", async () => {
  await using there = await supervised();
  const { supervisor, launcher } = there;
  launcher.onStart = (program) => program.leavesWhenAsked = false;
  supervisor.apply([await there.entry("a"), await there.entry("b")]);
  await there.announce("a");
  await there.announce("b");
  let isClosed = false;

  const closed = supervisor.close().then(() => isClosed = true);
  await there.settle();
  assert.deepEqual(launcher.programs.map(({ stops }) => stops.length), [1, 1]);
  launcher.programs[0]!.exit(0);
  await there.settle();
  assert.equal(isClosed, false);
  launcher.programs[1]!.exit(0);
  await closed;

  assert.equal(launcher.isClosed, true);
  assert.deepEqual(there.watches, new Set());
  assert.equal(there.clock.waiting, 0);
});

Deno.test("Supervisor.close() does not wait for calls, also of workers that are already stopping", async () => {
  await using there = await supervised();
  const { supervisor, launcher, traffic } = there;
  traffic.runningCalls = 1;
  const [a, b] = await Promise.all(["a", "b"].map((name) => there.entry(name)));
  supervisor.apply([a!, b!]);
  await there.announce("a");
  await there.announce("b");
  supervisor.apply([b!]);
  await there.settle();
  assert.deepEqual(launcher.programs.map(({ stops }) => stops.length), [0, 0]);

  await supervisor.close();

  assert.deepEqual(launcher.programs.map(({ stops }) => stops.length), [1, 1]);
  assert.ok(traffic.handovers.every(({ isOver }) => isOver));
});

Deno.test("Supervisor checks status against processes and connections", async () => {
  await using there = await supervised();
  const { supervisor, usages, directory } = there;
  supervisor.apply([await there.entry("w")]);
  await there.announce("w");
  usages.set(100, { isAlive: true, memoryBytes: 4_096, cpuPercent: 1.5 });
  const { memory_bytes, cpu_percent } = await supervisor.status("w");
  assert.deepEqual([memory_bytes, cpu_percent], [4_096, 1.5]);

  directory.leave("connection-100");
  assert.equal((await supervisor.status("w")).state, "starting");
  usages.set(100, { isAlive: false, memoryBytes: null, cpuPercent: null });

  const [{ state, pid, functions }] = await supervisor.list() as [WorkerStatus];
  assert.deepEqual([state, pid, functions], ["queued", null, []]);
});

function setup(options: ExecOptions = {}) {
  const clock = new FakeClock();
  const spec = { name: "w", command: "run", directory: "/", env: {} };
  const program = new FakeProgram(7, spec, () => {});
  const stopping = new AbortController();
  let bytes = 0;
  const ended = execWithin(program, clock, {
    command: ["ls", "-l"],
    output: (chunk) => void (bytes += chunk.bytes.length),
    signal: stopping.signal,
    options,
  });
  const command = program.commands[0]!;
  return { clock, command, stopping, ended, received: () => bytes };
}

Deno.test("execWithin() passes on what a command prints and how it ended", async () => {
  const { clock, command, ended, received } = setup();

  command.output({ stream: "stdout", bytes: new Uint8Array(5) });
  command.end({ code: 3, signal: null });

  assert.deepEqual(await ended, { code: 3, signal: null });
  assert.deepEqual(command.command, ["ls", "-l"]);
  assert.equal(received(), 5);
  assert.equal(clock.waiting, 0);
});

Deno.test("execWithin() ends a command after ten minutes, with the reason", async () => {
  const { clock, ended } = setup();

  clock.tick(600_000);

  const reason = "took longer than 600 s";
  assert.deepEqual(await ended, { code: null, signal: "SIGTERM", reason });
});

Deno.test("execWithin() ends a command in a terminal that shows nothing for an hour", async () => {
  const { clock, command, ended } = setup({ tty: { columns: 80, rows: 24, term: "xterm" } });

  clock.tick(3_599_999);
  command.output({ stream: "stdout", bytes: new Uint8Array(1) });
  clock.tick(3_599_999);
  assert.equal(command.signal.aborted, false);
  clock.tick(1);

  const reason = "its terminal was silent for 3600 s";
  assert.deepEqual(await ended, { code: null, signal: "SIGTERM", reason });
  assert.equal(clock.waiting, 0);
});

Deno.test("execWithin() ends a command that prints too much, and passes on no more than the bound", async () => {
  const { command, ended, received } = setup();
  const bytes = new Uint8Array(EXEC_OUTPUT_BYTES_MAX - 3);

  command.output({ stream: "stdout", bytes });
  command.output({ stream: "stderr", bytes: new Uint8Array(3) });
  assert.equal(command.signal.aborted, false);
  command.output({ stream: "stderr", bytes: new Uint8Array(3) });
  command.output({ stream: "stderr", bytes: new Uint8Array(3) });

  assert.equal((await ended).reason, `printed more than ${EXEC_OUTPUT_BYTES_MAX} bytes`);
  assert.equal(received(), EXEC_OUTPUT_BYTES_MAX);
});

Deno.test("execWithin() ends a command when its signal aborts, without a reason", async () => {
  const { stopping, ended, clock } = setup();

  stopping.abort();

  assert.deepEqual(await ended, { code: null, signal: "SIGTERM" });
  assert.equal(clock.waiting, 0);
});
