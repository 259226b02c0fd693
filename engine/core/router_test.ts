/**
 * The router as workers see it: connecting, registering, reattaching, disconnecting.
 *
 * @module
 */
import assert from "node:assert/strict";
import { PROBE_INTERVAL_MS } from "./peer.ts";
import {
  announce,
  answer,
  call,
  calling,
  fakeRouter,
  type FakeWorker,
  handed,
  only,
  results,
} from "../../tests/fakes/fake_router.ts";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { FUNCTIONS_PER_WORKER_MAX } from "./function_table.ts";
import { noopObserver } from "./router.ts";
import { TRIGGERS_PER_WORKER_MAX } from "./trigger_table.ts";

function offer(peer: FakeWorker, id: string, fields: Record<string, unknown> = {}): void {
  peer.say({ type: "registerfunction", id, ...fields });
}

Deno.test("a connection starts with a worker id, a token and the engine's capabilities", () => {
  const { router } = fakeRouter();
  const connection = new FakeConnection("c");

  router.open(connection, { address: null, launch_id: null, builtin: null });

  const [greeting] = connection.take();
  assert.equal(greeting?.type, "workerregistered");
  assert.deepEqual(greeting.capabilities, ["cancel", "timeout", "progress"]);
  assert.notEqual(greeting.worker_id, greeting.reattach_token);
});

Deno.test("schemas are prepared when a worker registers a function, if payloads are checked", () => {
  const request_format = { type: "object" };
  const [engine, lenient] = [fakeRouter(), fakeRouter({ validate_payloads: false })];

  offer(engine.openBuiltin("engine-x"), "x", { request_format });
  offer(lenient.open(), "f", { request_format });
  assert.deepEqual([engine.prepared(), lenient.prepared()], [0, 0]);

  // Another worker's first call of a function with a schema finds them ready.
  offer(engine.open(), "plain");
  assert.equal(engine.prepared(), 1);
});

Deno.test("a call reaches the worker that registered the function, and its result the caller", () => {
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

Deno.test("a call right after a registration sees it, also on the same connection", () => {
  const peer = fakeRouter().open();

  offer(peer, "mine");
  call(peer, "i1", { function_id: "mine" });

  assert.equal(handed(peer).length, 1);
});

Deno.test("a function with two replicas outlives one of them", () => {
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

Deno.test("calls go to the worker with the fewest calls, round-robin among equals", () => {
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

Deno.test("workers cannot register engine:: ids, built-in workers can", () => {
  const { open, openBuiltin, router } = fakeRouter();
  const peer = open();
  offer(peer, "engine::x");
  peer.say({ type: "registertriggertype", id: "engine::y", description: "" });

  const rejected = peer.connection.take();
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

Deno.test("a registration of a built-in function has no effect, and is a warning", () => {
  const { open, openBuiltin, router, events } = fakeRouter();
  const own = openBuiltin("engine-state");
  offer(own, "state::get");
  const peer = open();

  offer(peer, "state::get");

  assert.deepEqual(peer.connection.take(), []);
  assert.equal(router.directory.function("default", "state::get")?.worker_id, own.worker_id);
  const warning = events.find(({ type }) => type === "warning");
  assert.equal(warning?.type === "warning" && warning.worker_id, peer.worker_id);
});

Deno.test("a call of a built-in function carries the true caller, whatever the frame claims", () => {
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

Deno.test("a worker does not receive the caller, not even an invented one", () => {
  const { worker, caller } = calling();

  call(caller, "i1", { caller: "forged" });

  assert.equal(handed(worker)[0]?.caller, undefined);
});

Deno.test("functions and triggers beyond the limit of a worker are rejected, known ones are not", () => {
  const { open, router } = fakeRouter();
  const peer = open();
  for (let i = 0; i < FUNCTIONS_PER_WORKER_MAX; i++) offer(peer, `f${i}`);
  const trigger = { type: "registertrigger", trigger_type: "t", function_id: "f" };
  for (let i = 0; i < TRIGGERS_PER_WORKER_MAX; i++) peer.say({ ...trigger, id: `${i}` });
  assert.deepEqual(peer.connection.take(), []);

  offer(peer, "f0", { description: "again" });
  assert.deepEqual(peer.connection.take(), []);
  offer(peer, "one too many");
  peer.say({ ...trigger, id: "one too many" });
  peer.say({ type: "registertriggertype", id: "one too many", description: "" });

  const codes = peer.connection.take().map((message) => "error" in message && message.error?.code);
  assert.deepEqual(codes, ["overloaded", "overloaded", "overloaded"]);
  assert.equal(router.directory.function("default", "f0")?.description, "again");
});

Deno.test("events are reported once, after their consequences", () => {
  const { open, events, router } = fakeRouter();
  const [peer, other] = [open({ address: "10.0.0.7", launch_id: "l1" }), open()];
  const worker_id = peer.worker_id;
  events.length = 0;

  announce(peer);
  offer(peer, "f");
  offer(other, "f");
  offer(other, "g");
  peer.cut(1006, "reset");
  other.say({ type: "unregisterfunction", id: "g" });
  other.say({ type: "unregisterfunction", id: "g" });

  const ids = ({ id }: { readonly id: string }) => id;
  const named = events.map((event) =>
    event.type === "worker_disconnected"
      ? { ...event, functions: event.functions?.map(ids) }
      : event
  );
  assert.deepEqual(named, [
    { type: "worker_announced", worker_id, name: "w", pid: 0, launch_id: "l1" },
    { type: "functions_changed", worker_id, ids_changed: true },
    { type: "functions_changed", worker_id: other.worker_id, ids_changed: false },
    { type: "functions_changed", worker_id: other.worker_id, ids_changed: true },
    { type: "worker_disconnected", worker_id, name: "w", reason: "reset", functions: ["f"] },
    { type: "functions_changed", worker_id, ids_changed: false },
    { type: "functions_changed", worker_id: other.worker_id, ids_changed: true },
  ]);
  assert.equal(router.directory.workers().length, 1);
});

Deno.test("Router.drain() rejects new calls, and lets running ones finish with the calls that they make", () => {
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

Deno.test("Router.drain() lets built-in workers finish what they have begun", () => {
  const { worker, router, openBuiltin } = calling();
  const http = openBuiltin("engine-http");

  router.drain();
  call(http, "i1");
  answer(worker, handed(worker)[0]!.invocation_id);

  assert.deepEqual(results(http), { i1: "done" });
});

Deno.test("Router.close() closes every connection with 1001 and cancels all timers", () => {
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

Deno.test("new settings apply to later calls", () => {
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

Deno.test("a listener may send calls from within an event", () => {
  const engine = fakeRouter();
  const own = engine.openBuiltin("engine");
  offer(own, "engine::note");
  own.connection.take();
  engine.events.push = (event) => {
    if (event.type === "worker_disconnected") call(own, "i1", { function_id: "engine::note" });
    return 0;
  };
  const peer = engine.open();
  offer(peer, "f");

  peer.cut();

  assert.equal(handed(own).length, 1);
  assert.equal(engine.router.directory.function("default", "f"), undefined);
});

Deno.test("a router without an observer keeps the caller's traceparent and lists no candidates", () => {
  const subject = noopObserver.functionOf("eu", "f");
  const endpoint = noopObserver.endpointOf("w1", "shop", false);
  const call = {
    slot: 1,
    uses: 1,
    callerId: new Uint8Array(),
    callerIdAt: 0,
    callerIdBytes: 0,
    timeout_ms: 1,
    since: 0,
    subject,
  };

  assert.deepEqual(subject, { namespace: "eu", function_id: "f" });
  assert.equal(endpoint.worker_id, "w1");
  assert.equal(noopObserver.wantsCandidates(call), false);
  assert.equal(noopObserver.sent(call, endpoint, 0, undefined), undefined);
});

Deno.test("a disconnected worker is cleaned up in order, before any listener is called", () => {
  const engine = fakeRouter();
  const [leaving, caller, runner, provider] = [0, 1, 2, 3].map(() => engine.open());
  assert.ok(leaving && caller && runner && provider);
  announce(runner);
  leaving.say({ type: "registerfunction", id: "gone" });
  leaving.say({ type: "registertriggertype", id: "gone", description: "" });
  runner.say({ type: "registerfunction", id: "runs" });
  provider.say({ type: "registertriggertype", id: "stays", description: "" });
  const trigger = { type: "registertrigger", function_id: "gone" };
  leaving.say({ ...trigger, id: "t1", trigger_type: "stays" });
  provider.say({ ...trigger, id: "t2", trigger_type: "gone" });
  call(caller, "i1", { function_id: "gone" });
  call(leaving, "i2", { function_id: "runs" });
  for (const { connection } of [caller, runner, provider]) connection.take();
  engine.events.length = 0;
  const order: string[] = [];
  for (const { connection } of [caller, runner, provider]) {
    connection.onText = (text) => {
      assert.equal(engine.router.directory.function("default", "gone"), undefined);
      order.push(JSON.parse(text).type);
    };
  }
  engine.events.push = (event) => order.push(event.type);

  leaving.cut();

  assert.deepEqual(order, [
    "invocationresult",
    "cancelinvocation",
    "unregistertrigger",
    "trigger_parked",
    "worker_disconnected",
    "functions_changed",
    "triggers_changed",
  ]);
  assert.equal(engine.router.directory.trigger("t2")?.state, "parked");
});

Deno.test("callers are notified at once when the callee disconnects", () => {
  const { worker, caller, router } = calling();
  call(caller, "i1");
  call(caller, "i2");

  worker.cut(1006, "connection reset");

  const details = { reason: "connection reset" };
  const stopped = { code: "invocation_stopped", message: "Invocation stopped", details };
  const errors = caller.connection.take().map((message) => "error" in message && message.error);
  assert.deepEqual(errors, [stopped, stopped]);
  assert.equal(router.runningCalls, 0);
});

Deno.test("calls that are cut by a stop get an error frame before their connection is closed", () => {
  const { worker, caller, router } = calling();
  call(caller, "i1");
  const [handedCall] = handed(worker);

  router.stopCalls();

  assert.equal(caller.connection.closing, undefined);
  const details = { reason: "the engine is stopping" };
  assert.deepEqual(only(caller), {
    type: "invocationresult",
    invocation_id: "i1",
    function_id: "f",
    error: { code: "invocation_stopped", message: "Invocation stopped", details },
  });
  assert.deepEqual(only(worker), {
    type: "cancelinvocation",
    invocation_id: handedCall!.invocation_id,
    reason: "engine_stopping",
  });
  call(caller, "i2");
  assert.deepEqual(results(caller), { i2: "overloaded" });
});

Deno.test("close() alone answers the calls of both sides before it closes them", () => {
  const { worker, caller, router } = calling();
  call(caller, "i1");
  worker.say({ type: "registerfunction", id: "g" });
  call(worker, "i2", { function_id: "g" });

  router.close();

  assert.equal(results(caller).i1, "invocation_stopped");
  assert.equal(results(worker).i2, "invocation_stopped");
});

Deno.test("a suspect worker gets no new calls while another one offers the function", () => {
  const { worker, caller, open, router, events } = calling();
  const other = open();
  other.say({ type: "registerfunction", id: "f" });
  call(caller, "i1");
  call(caller, "i2");
  assert.deepEqual([handed(worker).length, handed(other).length], [1, 1]);
  events.length = 0;

  worker.events.suspected(true);
  worker.events.suspected(true);
  for (const id of ["i3", "i4", "i5"]) call(caller, id);

  assert.deepEqual([handed(worker).length, handed(other).length], [0, 3]);
  const { worker_id } = worker;
  assert.deepEqual(events, [{ type: "worker_suspected", worker_id, name: "w", is_suspect: true }]);
  assert.equal(router.directory.worker(worker_id)?.suspect, true);
  other.events.suspected(true);
  call(caller, "i6");
  assert.equal(handed(worker).length, 1, "both are suspect, and it is the less busy one");
  other.cut();
  call(caller, "i7");
  assert.equal(handed(worker).length, 1, "it is the last one");
  worker.events.suspected(false);
  assert.equal(router.directory.worker(worker_id)?.suspect, false);
});

Deno.test("a worker that joins a suspect one gets the calls, and both when that is heard again", () => {
  const { worker, caller, open } = calling();
  worker.events.suspected(true);
  const other = open();
  other.say({ type: "registerfunction", id: "f" });

  for (const id of ["i1", "i2"]) call(caller, id);
  assert.deepEqual([handed(worker).length, handed(other).length], [0, 2]);
  worker.events.suspected(false);
  for (const id of ["i3", "i4"]) call(caller, id);
  assert.deepEqual([handed(worker).length, handed(other).length], [2, 0]);
});

Deno.test("what a suspect worker registers does not get calls before others", () => {
  const { worker, caller, open } = calling();
  const other = open();
  other.events.suspected(true);

  other.say({ type: "registerfunction", id: "f" });

  for (const id of ["i1", "i2"]) call(caller, id);
  assert.deepEqual([handed(worker).length, handed(other).length], [2, 0]);
});

Deno.test("a worker with an overdue call is pinged at once, at most once a second", () => {
  const { worker, caller, clock } = calling();
  let probes = 0;
  Object.assign(worker.connection, { probe: () => probes++ });
  for (let i = 0; i < 5; i++) call(caller, `i${i}`, { timeout_ms: 100 });

  clock.tick(100);
  assert.equal(probes, 1);
  call(caller, "i6", { timeout_ms: PROBE_INTERVAL_MS });
  clock.tick(PROBE_INTERVAL_MS);
  assert.equal(probes, 2);
  worker.events.suspected(true);
  call(caller, "i7", { timeout_ms: PROBE_INTERVAL_MS });
  clock.tick(PROBE_INTERVAL_MS);
  assert.equal(probes, 2);
});

Deno.test("a callee is notified when a caller disconnects, except for void calls", () => {
  const { worker, caller, router } = calling();
  call(caller, "i1");
  call(caller, "i2", { action: { type: "void" } });
  const [first] = handed(worker);

  caller.cut();

  assert.deepEqual(only(worker), {
    type: "cancelinvocation",
    invocation_id: first!.invocation_id,
    reason: "caller_disconnected",
  });
  assert.equal(router.runningCalls, 1);
});

Deno.test("the calls of a caller that disconnects are cancelled in the order of their arrival", () => {
  const { worker, caller } = calling();
  const idsOf = (count: number): string[] => {
    for (let i = 0; i < count; i++) call(caller, crypto.randomUUID());
    return handed(worker).map(({ invocation_id }) => invocation_id);
  };
  const [first, over, then] = [idsOf(10), idsOf(30), idsOf(10)];
  // Free records are reused, the last one first, so their slots are not in order.
  for (const id of over) answer(worker, id);
  const last = idsOf(40);

  caller.cut();

  const cancelled = worker.connection.take().map((message) =>
    message.type === "cancelinvocation" && message.invocation_id
  );
  assert.deepEqual(cancelled, [...first, ...then, ...last]);
});

Deno.test("reattach closes the old connection before the next frame, without a reply", () => {
  const { worker, caller, open, events } = calling();
  call(caller, "i1");
  handed(worker);
  const again = open();

  again.say({
    type: "reattach",
    previous_worker_id: worker.worker_id,
    reattach_token: worker.reattach_token,
  });
  again.say({ type: "registerfunction", id: "f" });
  call(caller, "i2");

  assert.ok(worker.connection.closing);
  assert.deepEqual(handed(worker), []);
  assert.equal(handed(again).length, 1);
  assert.deepEqual(results(caller), { i1: "invocation_stopped" });
  worker.cut();
  assert.equal(events.filter(({ type }) => type === "worker_disconnected").length, 1);
});

for (
  const [name, change] of [
    ["a wrong token", { reattach_token: "x" }],
    ["an empty token", { reattach_token: "" }],
    ["a token that only starts right", { cut: true }],
    ["an unknown id", { previous_worker_id: "x" }],
    ["no token", { reattach_token: undefined }],
  ] as const
) {
  Deno.test(`reattach with ${name} is ignored silently`, () => {
    const { worker, open } = calling();
    const again = open();
    const { worker_id: previous_worker_id, reattach_token } = worker;
    const frame = { type: "reattach", previous_worker_id, reattach_token, ...change };
    if ("cut" in change) frame.reattach_token = reattach_token.slice(0, -1);

    again.say(frame);

    assert.deepEqual([again.connection.take(), worker.connection.closing], [[], undefined]);
  });
}

Deno.test("reattach is valid as the first frame only, and never for the connection itself", () => {
  const { worker, open } = calling();
  const again = open();
  const { worker_id: previous_worker_id, reattach_token } = worker;

  again.say({ type: "ping" });
  again.say({ type: "reattach", previous_worker_id, reattach_token });
  const third = open();
  third.say({
    type: "reattach",
    previous_worker_id: third.worker_id,
    reattach_token: third.reattach_token,
  });

  const closings = [worker, again, third].map(({ connection }) => connection.closing);
  assert.deepEqual(closings, [undefined, undefined, undefined]);
});

for (
  const [code, reason, said] of [
    [1000, "", "the worker closed"],
    [1005, "", "the worker closed"],
    [1006, "", "the connection was lost"],
    [1006, "nothing heard for 60 s", "nothing heard for 60 s"],
  ] as const
) {
  Deno.test(`a connection that closes with ${code} ${reason} is reported as: ${said}`, () => {
    const { open, events } = fakeRouter();

    open().cut(code, reason);

    const event = events.at(-1);
    assert.equal(event?.type === "worker_disconnected" && event.reason, said);
  });
}
