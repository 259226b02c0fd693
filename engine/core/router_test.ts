/**
 * What workers see of the router: who is there, who comes back, who leaves, and what is refused.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  FUNCTIONS_PER_WORKER_MAX,
  TRIGGERS_PER_WORKER_MAX,
} from "../../sdk/typescript/wire/limits.ts";
import { announce, answer, call, calling, handed, results } from "../../tests/fakes/calling.ts";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { fakeRouter, type FakeWorker } from "../../tests/fakes/fake_router.ts";

function offer(line: FakeWorker, id: string, fields: Record<string, unknown> = {}): void {
  line.say({ type: "registerfunction", id, ...fields });
}

Deno.test("a line is greeted with a worker id, a token and what the engine can do", () => {
  const { router } = fakeRouter();
  const connection = new FakeConnection("c");

  router.open(connection, { address: null, launch_id: null, builtin: null });

  const [greeting] = connection.take();
  assert.equal(greeting?.type, "workerregistered");
  assert.deepEqual(greeting.capabilities, ["cancel", "timeout", "progress"]);
  assert.notEqual(greeting.worker_id, greeting.reattach_token);
});

Deno.test("a call reaches the worker that offers the function, and its result the caller", () => {
  const { worker, caller, router } = calling();

  call(caller, "i1", { data: { a: 2 } });
  const [made] = handed(worker);
  answer(worker, made!.invocation_id, { c: 5 });

  const { invocation_id, ...rest } = made!;
  assert.notEqual(invocation_id, "i1");
  assert.deepEqual(rest, { type: "invokefunction", function_id: "f", data: { a: 2 } });
  assert.deepEqual(results(caller), { i1: { c: 5 } });
  assert.equal(router.runningCalls, 0);
});

Deno.test("a call right after a registration sees it, also on the same line", () => {
  const line = fakeRouter().open();

  offer(line, "mine");
  call(line, "i1", { function_id: "mine" });

  assert.equal(handed(line).length, 1);
});

Deno.test("a function that two workers offer outlives one of them", () => {
  const { worker, caller, open } = calling();
  const other = open();
  offer(other, "f");

  worker.cut();
  for (const id of ["i1", "i2"]) call(caller, id);

  assert.equal(handed(other).length, 2);
  other.say({ type: "unregisterfunction", id: "f" });
  call(caller, "i3");
  assert.deepEqual(results(caller), { i3: "function_not_found" });
});

Deno.test("calls go to the worker with the fewest, in turn among equals", () => {
  const { worker, caller, open } = calling();
  const other = open();
  offer(other, "f");

  for (const id of ["i1", "i2", "i3", "i4"]) call(caller, id);
  const [mine, others] = [handed(worker), handed(other)];
  assert.deepEqual([mine.length, others.length], [2, 2]);
  for (const { invocation_id } of others) answer(other, invocation_id);
  for (const id of ["i5", "i6"]) call(caller, id);

  assert.deepEqual([handed(worker).length, handed(other).length], [0, 2]);
});

Deno.test("ids of the engine are refused to workers and open to its own lines", () => {
  const { open, openBuiltin, router } = fakeRouter();
  const line = open();
  offer(line, "engine::x");
  line.say({ type: "registertriggertype", id: "engine::y", description: "" });

  const rejected = line.connection.take();
  assert.deepEqual(rejected.map((message) => message.type), [
    "registrationrejected",
    "registrationrejected",
  ]);
  assert.deepEqual(rejected[0], {
    type: "registrationrejected",
    code: "FUNCTION_NAMESPACE_CONFLICT",
    namespace: "default",
    function_id: "engine::x",
    owner_worker_id: "engine",
    message: "engine::x is refused: ids that begin with engine:: are the engine's",
  });
  const own = openBuiltin("engine");
  offer(own, "engine::x");
  assert.equal(router.directory.function("default", "engine::x")?.worker_name, "engine");
});

Deno.test("a function of the engine is kept, and who wanted it is in the log", () => {
  const { open, openBuiltin, router, events } = fakeRouter();
  const own = openBuiltin("engine-state");
  offer(own, "state::get");
  const line = open();

  offer(line, "state::get");

  assert.deepEqual(line.connection.take(), []);
  assert.equal(router.directory.function("default", "state::get")?.worker_id, own.worker_id);
  const warning = events.find(({ type }) => type === "warning");
  assert.equal(warning?.type === "warning" && warning.worker_id, line.worker_id);
});

Deno.test("a call of a function of the engine says who calls, whatever the caller claims", () => {
  const { openBuiltin, caller } = calling();
  const own = openBuiltin("engine-state");
  offer(own, "state::get");

  call(caller, "i1", { function_id: "state::get" });
  caller.say(
    '{"type":"invokefunction","invocation_id":"i2","function_id":"state::get","data":1,"caller":"x"}',
  );

  const callers = handed(own).map((message) => message.caller);
  assert.deepEqual(callers, [caller.worker_id, caller.worker_id]);
});

Deno.test("a worker is not told who calls, and cannot be told a lie", () => {
  const { worker, caller } = calling();

  call(caller, "i1", { caller: "forged" });

  assert.equal(handed(worker)[0]?.caller, undefined);
});

Deno.test("a function that asks to be served by HTTP has no effect and is in the log", () => {
  const { open, router, events } = fakeRouter();

  offer(open(), "legacy", { invocation: { url: "https://quotes.example" } });

  assert.equal(router.directory.function("default", "legacy"), undefined);
  assert.equal(events.filter(({ type }) => type === "warning").length, 1);
});

Deno.test("functions and triggers beyond the bound of a worker are refused, known ones are not", () => {
  const { open, router } = fakeRouter();
  const line = open();
  for (let i = 0; i < FUNCTIONS_PER_WORKER_MAX; i++) offer(line, `f${i}`);
  const trigger = { type: "registertrigger", trigger_type: "t", function_id: "f" };
  for (let i = 0; i < TRIGGERS_PER_WORKER_MAX; i++) line.say({ ...trigger, id: `${i}` });
  assert.deepEqual(line.connection.take(), []);

  offer(line, "f0", { description: "again" });
  assert.deepEqual(line.connection.take(), []);
  offer(line, "one too many");
  line.say({ ...trigger, id: "one too many" });
  line.say({ type: "registertriggertype", id: "one too many", description: "" });

  const codes = line.connection.take().map((message) => "error" in message && message.error?.code);
  assert.deepEqual(codes, ["overloaded", "overloaded", "overloaded"]);
  assert.equal(router.directory.function("default", "f0")?.description, "again");
});

Deno.test("what happens is reported once, after its consequences", () => {
  const { open, events, router } = fakeRouter();
  const [line, other] = [open({ address: "10.0.0.7", launch_id: "l1" }), open()];
  const worker_id = line.worker_id;
  events.length = 0;

  announce(line);
  offer(line, "f");
  offer(other, "f");
  offer(other, "g");
  line.cut(1006, "reset");
  other.say({ type: "unregisterfunction", id: "g" });
  other.say({ type: "unregisterfunction", id: "g" });

  assert.deepEqual(events, [
    { type: "worker_announced", worker_id, name: "w", pid: 0, launch_id: "l1" },
    { type: "functions_changed", worker_id, ids_changed: true },
    { type: "functions_changed", worker_id: other.worker_id, ids_changed: false },
    { type: "functions_changed", worker_id: other.worker_id, ids_changed: true },
    { type: "worker_disconnected", worker_id, name: "w", reason: "reset" },
    { type: "functions_changed", worker_id, ids_changed: false },
    { type: "functions_changed", worker_id: other.worker_id, ids_changed: true },
  ]);
  assert.equal(router.directory.workers().length, 1);
});

Deno.test("a router that drains refuses new calls, and lets running ones finish with their own", () => {
  const { worker, caller, router, openBuiltin } = calling();
  offer(openBuiltin("engine-state"), "state::get");
  call(caller, "i1");
  const [running] = handed(worker);

  router.drain();
  call(caller, "i2");
  call(worker, "nested", { function_id: "f" });

  assert.deepEqual(results(caller), { i2: "overloaded" });
  const [nested] = handed(worker);
  answer(worker, nested!.invocation_id);
  answer(worker, running!.invocation_id);
  assert.deepEqual(results(caller), { i1: "done" });
  assert.equal(router.runningCalls, 0);
  assert.equal(router.directory.worker(worker.worker_id)?.status, "draining");
});

Deno.test("a router that closes ends every line with 1001 and leaves nothing on the clock", () => {
  const { worker, caller, router, clock } = calling();
  call(caller, "i1", { timeout_ms: 50 });

  router.close();
  const late = new FakeConnection("late");
  router.open(late, { address: null, launch_id: null, builtin: null });

  const codes = [worker, caller].map(({ connection }) => connection.closing?.code);
  assert.deepEqual([...codes, late.closing?.code], [1001, 1001, 1001]);
  assert.equal(clock.waiting, 0);
  assert.deepEqual(router.directory.workers(), []);
});

Deno.test("new settings hold from then on", () => {
  const { worker, caller, router, clock } = calling();
  router.applySettings({
    invocation_timeout_ms: 5,
    validate_payloads: true,
    max_inflight_calls_per_worker: 1,
    max_inflight_bytes_per_worker: 1_000,
  });

  call(caller, "i1");
  call(caller, "i2");
  clock.tick(5);

  assert.equal(handed(worker).length, 1);
  assert.deepEqual(results(caller), { i1: "timeout", i2: "overloaded" });
});

Deno.test("somebody who hears of an event may call from within it", () => {
  const engine = fakeRouter();
  const own = engine.openBuiltin("engine");
  offer(own, "engine::note");
  own.connection.take();
  engine.events.push = (event) => {
    if (event.type === "worker_disconnected") call(own, "i1", { function_id: "engine::note" });
    return 0;
  };
  const line = engine.open();
  offer(line, "f");

  line.cut();

  assert.equal(handed(own).length, 1);
  assert.equal(engine.router.directory.function("default", "f"), undefined);
});
