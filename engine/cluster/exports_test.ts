import assert from "node:assert/strict";
import { fakeRouter, TRIGGER, TYPE } from "../../tests/fakes/fake_router.ts";
import { changes, exportsOf } from "./exports.ts";
import { TriggerTimes } from "./trigger_times.ts";

function setup() {
  const { router, open, openBuiltin } = fakeRouter();
  const b = open({ engine: "b" });
  const worker = open();
  const isEngine = (id: string): boolean => id === b.worker_id;
  const shared = new Set<string>();
  const sources = {
    directory: router.directory,
    isEngine,
    isShared: (n: string) => shared.has(n),
    namespace: "own",
    times: new TriggerTimes(() => 7),
  };
  const frames = () => [...exportsOf(sources).values()].map((frame) => JSON.parse(frame));
  return { openBuiltin, b, worker, shared, frames };
}

Deno.test("functions of workers are offered as they are registered, those of engines are not", () => {
  const { b, worker, frames } = setup();
  const about = {
    id: "f",
    namespace: "billing",
    description: "Adds",
    request_format: { type: "object" },
    response_format: { type: "object" },
    metadata: { internal: true },
  };
  worker.say({ type: "registerfunction", ...about });
  b.say({ type: "registerfunction", id: "far" });
  b.say({ type: "registerfunction", id: "both" });
  worker.say({ type: "registerfunction", id: "both" });

  assert.deepEqual(
    frames(),
    [
      { type: "registerfunction", id: "both" },
      { type: "registerfunction", ...about },
    ].reverse(),
  );
});

Deno.test("functions and types of built-ins are offered only while those are shared", () => {
  const { openBuiltin, shared, frames } = setup();
  const state = openBuiltin("engine-state");
  state.say({ type: "registerfunction", id: "state::get" });
  state.say({ type: "registertriggertype", id: "state", description: "Changes" });
  openBuiltin("engine-http").say({ type: "registerfunction", id: "websocket::send" });

  assert.deepEqual(frames(), []);
  shared.add("engine-state");
  assert.deepEqual(frames(), [
    { type: "registerfunction", id: "state::get" },
    { type: "registertriggertype", id: "state", description: "Changes" },
  ]);
});

Deno.test("what an engine offers under its own name is offered", () => {
  const { openBuiltin, frames } = setup();
  openBuiltin("engine").say({ type: "registerfunction", id: "cluster::ask", namespace: "own" });

  assert.deepEqual(frames(), [
    { type: "registerfunction", id: "cluster::ask", namespace: "own" },
  ]);
});

Deno.test("types of workers are offered, and of triggers those that fire everywhere", () => {
  const { b, worker, frames } = setup();
  worker.say(TYPE);
  worker.say(TRIGGER);
  const route = { ...TRIGGER, id: "t2", trigger_type: "http", metadata: { n: 1 } };
  worker.say(route);
  b.say({ ...route, id: "t3" });
  worker.say({ ...route, id: "t4", trigger_namespace: "other" });

  const { type: _, ...type } = TYPE;
  assert.deepEqual(frames(), [
    { type: "registertriggertype", ...type },
    { ...route, created_at_ms: 7 },
  ]);
});

Deno.test("changes are what is new, and what is gone in the other order", () => {
  const before = new Map([["-a", "a"], ["-b", "b"], ["-c", "c"]]);
  const after = new Map([["-b", "b2"], ["-d", "d"]]);

  assert.deepEqual([...changes(before, after)], ["b2", "d", "-c", "-a"]);
  assert.deepEqual([...changes(after, after)], []);
});
