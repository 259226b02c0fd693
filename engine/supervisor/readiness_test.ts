import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDirectory } from "../../tests/fakes/fake_directory.ts";
import { ownerOf, Readiness } from "./readiness.ts";

function setup() {
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
  const { clock, told, announce, register, readiness } = setup();

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
  const { clock, told, announce, directory } = setup();
  directory.offer("c1", "math::add");

  announce("c1");
  clock.tick(100);

  assert.deepEqual(told, ["ready at 100"]);
});

Deno.test("Readiness comes 2 s after an announcement without functions", () => {
  const { clock, told, announce } = setup();

  announce("c1");
  clock.tick(1_999);
  assert.deepEqual(told, []);
  clock.tick(1);

  assert.deepEqual(told, ["ready at 2000"]);
});

Deno.test("Readiness is told once, whatever is registered later", () => {
  const { clock, told, announce, register } = setup();
  announce("c1");
  register("c1", "a::b");
  clock.tick(5_000);

  register("c1", "a::b", "a::c");
  clock.tick(5_000);

  assert.deepEqual(told, ["ready at 100"]);
});

Deno.test("Readiness leaves other lines alone", () => {
  const { clock, told, register, leave, readiness } = setup();

  register("c2", "other::f");
  leave("c2");
  clock.tick(10_000);

  assert.deepEqual(told, []);
  assert.deepEqual(readiness.lines, []);
});

Deno.test("Readiness is lost with the last line and comes again with the next", () => {
  const { clock, told, announce, leave } = setup();
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
  const { clock, told, announce, readiness } = setup();
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
