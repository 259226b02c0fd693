import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDirectory } from "../../tests/fakes/fake_directory.ts";
import { Readiness } from "./readiness.ts";

function setup() {
  const clock = new FakeClock();
  const directory = new FakeDirectory();
  const told: string[] = [];
  const readiness = new Readiness({ clock, directory }, "math", "launch-1", {
    ready: () => void told.push(`ready at ${clock.now()}`),
    lost: (reason) => void told.push(`lost: ${reason}`),
  });
  const announce = (worker_id: string, launch_id: string | null, name = "math", pid = 7): void =>
    readiness.onEvent({ type: "worker_announced", worker_id, name, pid, launch_id });
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

  announce("c1", "launch-1");
  register("c1", "math::add");
  clock.tick(90);
  register("c1", "math::add", "math::sub");
  clock.tick(99);
  assert.deepEqual(told, []);
  clock.tick(1);

  assert.deepEqual(told, ["ready at 190"]);
  assert.deepEqual(readiness.functions, ["math::add", "math::sub"]);
});

Deno.test("Readiness counts functions that were registered before the announcement", () => {
  const { clock, told, announce, directory } = setup();
  directory.offer("c1", "math::add");

  announce("c1", "launch-1");
  clock.tick(100);

  assert.deepEqual(told, ["ready at 100"]);
});

Deno.test("Readiness comes 2 s after an announcement without functions", () => {
  const { clock, told, announce } = setup();

  announce("c1", "launch-1");
  clock.tick(1_999);
  assert.deepEqual(told, []);
  clock.tick(1);

  assert.deepEqual(told, ["ready at 2000"]);
});

Deno.test("Readiness is told once, whatever is registered later", () => {
  const { clock, told, announce, register } = setup();
  announce("c1", "launch-1");
  register("c1", "a::b");
  clock.tick(5_000);

  register("c1", "a::b", "a::c");
  clock.tick(5_000);

  assert.deepEqual(told, ["ready at 100"]);
});

Deno.test("Readiness takes a line without a launch id by its name or its process", () => {
  const byName = setup();
  byName.announce("c1", null, "math", 99);
  byName.clock.tick(2_000);
  const byProcess = setup();
  byProcess.readiness.pid = 7;
  byProcess.announce("c1", null, "other", 7);
  byProcess.clock.tick(2_000);

  assert.equal(byName.told.length, 1);
  assert.equal(byProcess.told.length, 1);
});

Deno.test("Readiness leaves lines of other launches and other workers alone", () => {
  const { clock, told, announce, register, leave, readiness } = setup();
  readiness.pid = 7;

  announce("c1", "launch-0");
  announce("c2", null, "other", 8);
  register("c2", "other::f");
  leave("c2");
  clock.tick(10_000);

  assert.deepEqual(told, []);
  assert.deepEqual(readiness.functions, []);
});

Deno.test("Readiness is lost with the last line and comes again with the next", () => {
  const { clock, told, announce, leave } = setup();
  announce("c1", "launch-1");
  announce("c2", "launch-1");
  clock.tick(2_000);

  leave("c1");
  assert.equal(told.length, 1);
  leave("c2");
  announce("c3", "launch-1");
  clock.tick(2_000);

  assert.deepEqual(told, ["ready at 2000", "lost: cut", "ready at 4000"]);
});

Deno.test("Readiness is silent when its launch is over", () => {
  const { clock, told, announce, readiness } = setup();
  announce("c1", "launch-1");

  readiness[Symbol.dispose]();
  clock.tick(5_000);

  assert.deepEqual(told, []);
  assert.equal(clock.waiting, 0);
});
