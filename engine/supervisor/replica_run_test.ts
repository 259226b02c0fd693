import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDirectory, FakeLauncher } from "../../tests/fakes/fake_supervision.ts";
import type { WorkerSpec } from "../install/manifest.ts";
import type { Launcher } from "../ports/launcher.ts";
import type { Release } from "./releases.ts";
import { launchOf, Readiness, ReplicaRun } from "./replica_run.ts";

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
  const events: string[] = [];
  const release: Release = {
    version: 1,
    entry: { kind: "directory", name: "w", path: "/p/w", env: {} },
    spec: { start: "run it" } as WorkerSpec,
    prepared: { launcher, containment, env: { A: "1" }, dependencies: "none" },
  };
  const tools = { clock, directory, engineUrl: () => "ws://here", newId: () => "launch-1" };
  const run = new ReplicaRun(release, tools, {
    line: ({ text }) => void events.push(text),
    phase: (what) => void events.push(what),
    started: ({ pid }) => void events.push(`started ${pid}`),
    ready: () => void events.push("ready"),
    lost: (reason) => void events.push(`lost: ${reason}`),
    ended: ({ code }) => void events.push(`ended ${code}`),
  });
  /** Announces a connection with one function; the run is ready 100 ms later. */
  const announce = (): void => {
    directory.offer("c1", "w::run");
    run.readiness.add("c1");
  };
  const leave = (): void =>
    run.readiness.onEvent({
      type: "worker_disconnected",
      worker_id: "c1",
      name: "w",
      reason: "cut",
    });
  return { clock, run, events, announce, leave };
}

const NEVER = new AbortController().signal;

Deno.test("ReplicaRun starts the command of the release with engine and launch in its environment", async () => {
  const launcher = new FakeLauncher();
  const { run } = setup(launcher, CONTAINMENT);

  await run.start("w@2", NEVER);

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

Deno.test("ReplicaRun reports its events in order and is over when the program ends", async () => {
  const launcher = new FakeLauncher();
  const { run, events, clock, announce, leave } = setup(launcher);
  await run.start("w", NEVER);
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
  assert.deepEqual(events, ["started 100", "ready", "lost: cut", "ready", "bye", "ended 3"]);
  assert.deepEqual([run.isReady, run.running, run.readyForMs], [false, undefined, 1_000]);
  assert.equal(clock.waiting, 0);
});

Deno.test("ReplicaRun is not ready before the launcher reports that it runs", async () => {
  const inner = new FakeLauncher();
  const gate = Promise.withResolvers<void>();
  const { run, events, clock, announce } = setup({
    isolation: "process",
    start: async (spec, output, phase) => {
      phase?.("booting");
      await gate.promise;
      return await inner.start(spec, output);
    },
  });
  const started = run.start("w", NEVER);
  announce();
  clock.tick(10_000);
  assert.deepEqual([run.isReady, run.running], [false, undefined]);

  gate.resolve();
  await started;

  assert.deepEqual(events, ["booting", "started 100", "ready"]);
  assert.equal(clock.waiting, 0);
  inner.last.exit(0);
  await run.over;
});

Deno.test("ReplicaRun is over when it does not register within two minutes", async () => {
  const launcher = new FakeLauncher();
  const { run, clock } = setup(launcher);
  await run.start("w", NEVER);

  clock.tick(120_000);

  assert.deepEqual(await run.over, { type: "silent", wasReady: false });
  assert.equal(run.running, launcher.last);
  launcher.last.exit(0);
});

Deno.test("ReplicaRun waits two minutes for a lost connection", async () => {
  const launcher = new FakeLauncher();
  const { run, clock, announce, leave } = setup(launcher);
  await run.start("w", NEVER);
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

Deno.test("ReplicaRun leaves no timer behind when it cannot be started", async () => {
  const launcher = new FakeLauncher();
  launcher.failure = "no shell";
  const { run, clock, announce } = setup(launcher);
  announce();

  await assert.rejects(run.start("w", NEVER), { message: "no shell" });

  assert.equal(clock.waiting, 0);
  assert.deepEqual(run.readiness.connections, []);
});

Deno.test("ReplicaRun aborts a start with the signal", async () => {
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

Deno.test("ReplicaRun matches process ids of plain processes only", async () => {
  const launcher = new FakeLauncher();
  const plain = setup(launcher);
  await plain.run.start("w", NEVER);
  const contained = setup({
    isolation: "microvm",
    start: (spec, output) => launcher.start(spec, output),
  });
  await contained.run.start("w", NEVER);

  assert.equal(plain.run.readiness.pid, 100);
  assert.equal(contained.run.readiness.pid, undefined);
  for (const program of launcher.programs) program.exit(0);
});

function setupReadiness() {
  const clock = new FakeClock();
  const directory = new FakeDirectory();
  const events: string[] = [];
  const readiness = new Readiness({ clock, directory }, "launch-1", {
    ready: () => void events.push(`ready at ${clock.now()}`),
    lost: (reason) => void events.push(`lost: ${reason}`),
  });
  const announce = (worker_id: string): void => readiness.add(worker_id);
  const register = (worker_id: string, ...ids: string[]): void => {
    directory.offer(worker_id, ...ids);
    readiness.onEvent({ type: "functions_changed", worker_id, ids_changed: true });
  };
  const leave = (worker_id: string): void =>
    readiness.onEvent({ type: "worker_disconnected", worker_id, name: "math", reason: "cut" });
  return { clock, directory, events, readiness, announce, register, leave };
}

Deno.test("Readiness comes 100 ms after the last function", () => {
  const { clock, events, announce, register, readiness } = setupReadiness();

  announce("c1");
  register("c1", "math::add");
  clock.tick(90);
  register("c1", "math::add", "math::sub");
  clock.tick(99);
  assert.deepEqual(events, []);
  clock.tick(1);

  assert.deepEqual(events, ["ready at 190"]);
  assert.deepEqual(readiness.connections, ["c1"]);
});

Deno.test("Readiness counts functions that were registered before the announcement", () => {
  const { clock, events, announce, directory } = setupReadiness();
  directory.offer("c1", "math::add");

  announce("c1");
  clock.tick(100);

  assert.deepEqual(events, ["ready at 100"]);
});

Deno.test("Readiness comes 2 s after an announcement without functions", () => {
  const { clock, events, announce } = setupReadiness();

  announce("c1");
  clock.tick(1_999);
  assert.deepEqual(events, []);
  clock.tick(1);

  assert.deepEqual(events, ["ready at 2000"]);
});

Deno.test("Readiness is reported once, also when more is registered later", () => {
  const { clock, events, announce, register } = setupReadiness();
  announce("c1");
  register("c1", "a::b");
  clock.tick(5_000);

  register("c1", "a::b", "a::c");
  clock.tick(5_000);

  assert.deepEqual(events, ["ready at 100"]);
});

Deno.test("Readiness ignores other connections", () => {
  const { clock, events, register, leave, readiness } = setupReadiness();

  register("c2", "other::f");
  leave("c2");
  clock.tick(10_000);

  assert.deepEqual(events, []);
  assert.deepEqual(readiness.connections, []);
});

Deno.test("Readiness is lost with the last connection and returns with the next", () => {
  const { clock, events, announce, leave } = setupReadiness();
  announce("c1");
  announce("c2");
  clock.tick(2_000);

  leave("c1");
  assert.equal(events.length, 1);
  leave("c2");
  announce("c3");
  clock.tick(2_000);

  assert.deepEqual(events, ["ready at 2000", "lost: cut", "ready at 4000"]);
});

Deno.test("Readiness reports nothing after its launch is over", () => {
  const { clock, events, announce, readiness } = setupReadiness();
  announce("c1");

  readiness[Symbol.dispose]();
  clock.tick(5_000);

  assert.deepEqual(events, []);
  assert.equal(clock.waiting, 0);
});

/** Two launches of a worker, with the process ids 7 and 8. */
function twoLaunches() {
  const tools = { clock: new FakeClock(), directory: new FakeDirectory() };
  const events = { ready: () => {}, lost: () => {} };
  const first = new Readiness(tools, "launch-1", events);
  const second = new Readiness(tools, "launch-2", events);
  [first.pid, second.pid] = [7, 8];
  const find = (launch_id: string | null, name: string, pid: number) => {
    const connection = { type: "worker_announced", worker_id: "c1", name, pid, launch_id } as const;
    return launchOf(connection, "math", [first, second]);
  };
  return { first, second, find };
}

Deno.test("launchOf() matches only the launch id of a connection that has one", () => {
  const { second, find } = twoLaunches();

  assert.equal(find("launch-2", "other", 7), second);
  assert.equal(find("launch-0", "math", 7), undefined);
});

Deno.test("launchOf() matches process id, then name, of a connection without a launch id", () => {
  const { first, second, find } = twoLaunches();

  assert.equal(find(null, "other", 8), second);
  assert.equal(find(null, "math", 99), first);
  assert.equal(find(null, "other", 99), undefined);
});

Deno.test("launchOf() assigns connections by name to launches that have none yet", () => {
  const { first, second, find } = twoLaunches();
  first.add("c0");
  assert.equal(find(null, "math", 99), second);

  second.add("c1");

  assert.equal(find(null, "math", 99), undefined);
});
