import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDirectory } from "../../tests/fakes/fake_directory.ts";
import { FakeLauncher } from "../../tests/fakes/fake_launcher.ts";
import type { WorkerSpec } from "../install/manifest.ts";
import type { Launcher } from "../ports/launcher.ts";
import type { Release } from "./releases.ts";
import { ownerOf, Readiness, ReplicaRun } from "./replica_run.ts";

const CONTAINMENT = {
  reads: [],
  writes: [],
  network: "full",
  resources: { cpus: 1, memory_mb: 256 },
  accel: "auto",
} as const;

function setup(launcher: Launcher = new FakeLauncher(), containment?: typeof CONTAINMENT) {
  const clock = new FakeClock();
  const directory = new FakeDirectory();
  const told: string[] = [];
  const release: Release = {
    version: 1,
    entry: { kind: "directory", name: "w", path: "/p/w", env: {} },
    spec: { start: "run it" } as WorkerSpec,
    prepared: { launcher, containment, env: { A: "1" }, dependencies: "none" },
  };
  const tools = { clock, directory, engineUrl: () => "ws://here", newId: () => "launch-1" };
  const run = new ReplicaRun(release, tools, {
    line: ({ text }) => void told.push(text),
    phase: (what) => void told.push(what),
    started: ({ pid }) => void told.push(`started ${pid}`),
    ready: () => void told.push("ready"),
    lost: (reason) => void told.push(`lost: ${reason}`),
    ended: ({ code }) => void told.push(`ended ${code}`),
  });
  /** It announces a line with one function, which is ready 100 ms later. */
  const announce = (): void => {
    directory.offer("c1", "w::run");
    run.readiness.take("c1");
  };
  const leave = (): void =>
    run.readiness.onEvent({
      type: "worker_disconnected",
      worker_id: "c1",
      name: "w",
      reason: "cut",
    });
  return { clock, run, told, announce, leave };
}

/** Nobody changes his mind. */
const WANTED = new AbortController().signal;

Deno.test("ReplicaRun starts what the release says, and names engine and launch", async () => {
  const launcher = new FakeLauncher();
  const { run } = setup(launcher, CONTAINMENT);

  await run.start("w@2", WANTED);

  assert.deepEqual(launcher.last.spec, {
    name: "w@2",
    command: "run it",
    directory: "/p/w",
    env: {
      ENGINE_OUTPUT_MARKS: "1",
      A: "1",
      ENGINE_URL: "ws://here",
      ENGINE_LAUNCH_ID: "launch-1",
    },
    containment: CONTAINMENT,
  });
  assert.equal(run.running, launcher.last);
  launcher.last.exit(0);
});

Deno.test("ReplicaRun tells its story in order, and is over with its end", async () => {
  const launcher = new FakeLauncher();
  const { run, told, clock, announce, leave } = setup(launcher);
  await run.start("w", WANTED);
  clock.tick(400);

  announce();
  clock.tick(100);
  assert.deepEqual([run.isReady, run.readyAfterMs], [true, 500]);
  leave();
  assert.equal(run.isReady, false);
  announce();
  clock.tick(1_000);
  launcher.last.print("bye");
  launcher.last.exit(3);

  const ended = { code: 3, signal: null };
  assert.deepEqual(await run.over, { type: "ended", ended });
  assert.deepEqual(told, ["started 100", "ready", "lost: cut", "ready", "bye", "ended 3"]);
  assert.deepEqual([run.isReady, run.running, run.readyForMs], [false, undefined, 1_000]);
  assert.equal(clock.waiting, 0);
});

Deno.test("ReplicaRun is not ready before the launcher says that it runs", async () => {
  const inner = new FakeLauncher();
  const gate = Promise.withResolvers<void>();
  const { run, told, clock, announce } = setup({
    isolation: "process",
    start: async (spec, output, phase) => {
      phase?.("booting");
      await gate.promise;
      return await inner.start(spec, output);
    },
  });
  const started = run.start("w", WANTED);
  announce();
  clock.tick(10_000);
  assert.deepEqual([run.isReady, run.running], [false, undefined]);

  gate.resolve();
  await started;

  assert.deepEqual(told, ["booting", "started 100", "ready"]);
  assert.equal(clock.waiting, 0);
  inner.last.exit(0);
  await run.over;
});

Deno.test("ReplicaRun is over when it is not heard of for two minutes", async () => {
  const launcher = new FakeLauncher();
  const { run, clock } = setup(launcher);
  await run.start("w", WANTED);

  clock.tick(120_000);

  assert.deepEqual(await run.over, { type: "silent", wasReady: false });
  assert.equal(run.running, launcher.last);
  launcher.last.exit(0);
});

Deno.test("ReplicaRun gives a lost line two minutes to come back", async () => {
  const launcher = new FakeLauncher();
  const { run, clock, announce, leave } = setup(launcher);
  await run.start("w", WANTED);
  announce();
  clock.tick(500_000);
  leave();
  clock.tick(119_000);
  announce();
  clock.tick(500_000);
  assert.equal(run.isReady, true);
  leave();

  clock.tick(120_000);

  assert.deepEqual(await run.over, { type: "silent", wasReady: true });
  launcher.last.exit(0);
});

Deno.test("ReplicaRun leaves nothing behind when it cannot be started", async () => {
  const launcher = new FakeLauncher();
  launcher.failure = "no shell";
  const { run, clock, announce } = setup(launcher);
  announce();

  await assert.rejects(run.start("w", WANTED), { message: "no shell" });

  assert.equal(clock.waiting, 0);
  assert.deepEqual(run.readiness.lines, []);
});

Deno.test("ReplicaRun gives up a start that is no longer wanted", async () => {
  const { run, clock } = setup({
    isolation: "microvm",
    start: (_spec, _output, _phase, signal) =>
      new Promise((_, reject) =>
        signal!.addEventListener("abort", () => reject(new Error("given up")))
      ),
  });
  const asked = new AbortController();

  const starting = run.start("w", asked.signal);
  asked.abort();

  await assert.rejects(starting, { message: "given up" });
  assert.equal(clock.waiting, 0);
});

Deno.test("ReplicaRun knows process ids of plain processes only", async () => {
  const launcher = new FakeLauncher();
  const plain = setup(launcher);
  await plain.run.start("w", WANTED);
  const contained = setup({
    isolation: "microvm",
    start: (spec, output) => launcher.start(spec, output),
  });
  await contained.run.start("w", WANTED);

  assert.equal(plain.run.readiness.pid, 100);
  assert.equal(contained.run.readiness.pid, undefined);
  for (const program of launcher.programs) program.exit(0);
});

function setupOfReadiness() {
  const clock = new FakeClock();
  const directory = new FakeDirectory();
  const told: string[] = [];
  const readiness = new Readiness({ clock, directory }, "launch-1", {
    ready: () => void told.push(`ready at ${clock.now()}`),
    lost: (reason) => void told.push(`lost: ${reason}`),
  });
  const announce = (worker_id: string): void => readiness.take(worker_id);
  const register = (worker_id: string, ...ids: string[]): void => {
    directory.offer(worker_id, ...ids);
    readiness.onEvent({ type: "functions_changed", worker_id, ids_changed: true });
  };
  const leave = (worker_id: string): void =>
    readiness.onEvent({ type: "worker_disconnected", worker_id, name: "math", reason: "cut" });
  return { clock, directory, told, readiness, announce, register, leave };
}

Deno.test("Readiness comes 100 ms after the last function", () => {
  const { clock, told, announce, register, readiness } = setupOfReadiness();

  announce("c1");
  register("c1", "math::add");
  clock.tick(90);
  register("c1", "math::add", "math::sub");
  clock.tick(99);
  assert.deepEqual(told, []);
  clock.tick(1);

  assert.deepEqual(told, ["ready at 190"]);
  assert.deepEqual(readiness.lines, ["c1"]);
});

Deno.test("Readiness counts functions that were registered before the announcement", () => {
  const { clock, told, announce, directory } = setupOfReadiness();
  directory.offer("c1", "math::add");

  announce("c1");
  clock.tick(100);

  assert.deepEqual(told, ["ready at 100"]);
});

Deno.test("Readiness comes 2 s after an announcement without functions", () => {
  const { clock, told, announce } = setupOfReadiness();

  announce("c1");
  clock.tick(1_999);
  assert.deepEqual(told, []);
  clock.tick(1);

  assert.deepEqual(told, ["ready at 2000"]);
});

Deno.test("Readiness is told once, whatever is registered later", () => {
  const { clock, told, announce, register } = setupOfReadiness();
  announce("c1");
  register("c1", "a::b");
  clock.tick(5_000);

  register("c1", "a::b", "a::c");
  clock.tick(5_000);

  assert.deepEqual(told, ["ready at 100"]);
});

Deno.test("Readiness leaves other lines alone", () => {
  const { clock, told, register, leave, readiness } = setupOfReadiness();

  register("c2", "other::f");
  leave("c2");
  clock.tick(10_000);

  assert.deepEqual(told, []);
  assert.deepEqual(readiness.lines, []);
});

Deno.test("Readiness is lost with the last line and comes again with the next", () => {
  const { clock, told, announce, leave } = setupOfReadiness();
  announce("c1");
  announce("c2");
  clock.tick(2_000);

  leave("c1");
  assert.equal(told.length, 1);
  leave("c2");
  announce("c3");
  clock.tick(2_000);

  assert.deepEqual(told, ["ready at 2000", "lost: cut", "ready at 4000"]);
});

Deno.test("Readiness is silent when its launch is over", () => {
  const { clock, told, announce, readiness } = setupOfReadiness();
  announce("c1");

  readiness[Symbol.dispose]();
  clock.tick(5_000);

  assert.deepEqual(told, []);
  assert.equal(clock.waiting, 0);
});

/** Two launches of a worker, with the process ids 7 and 8. */
function twoLaunches() {
  const tools = { clock: new FakeClock(), directory: new FakeDirectory() };
  const events = { ready: () => {}, lost: () => {} };
  const first = new Readiness(tools, "launch-1", events);
  const second = new Readiness(tools, "launch-2", events);
  [first.pid, second.pid] = [7, 8];
  const owner = (launch_id: string | null, name: string, pid: number) => {
    const line = { type: "worker_announced", worker_id: "c1", name, pid, launch_id } as const;
    return ownerOf(line, "math", [first, second]);
  };
  return { first, second, owner };
}

Deno.test("ownerOf() goes by the launch id of a line and nothing else if it has one", () => {
  const { second, owner } = twoLaunches();

  assert.equal(owner("launch-2", "other", 7), second);
  assert.equal(owner("launch-0", "math", 7), undefined);
});

Deno.test("ownerOf() goes by process id, then by name, when a line has no launch id", () => {
  const { first, second, owner } = twoLaunches();

  assert.equal(owner(null, "other", 8), second);
  assert.equal(owner(null, "math", 99), first);
  assert.equal(owner(null, "other", 99), undefined);
});

Deno.test("ownerOf() gives lines of the same name to launches that have none yet", () => {
  const { first, second, owner } = twoLaunches();
  first.take("c0");
  assert.equal(owner(null, "math", 99), second);

  second.take("c1");

  assert.equal(owner(null, "math", 99), undefined);
});
