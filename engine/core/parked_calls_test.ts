/**
 * Calls that are parked while a worker is being restarted.
 *
 * @module
 */
import assert from "node:assert/strict";
import { WARNINGS_WINDOW_MS } from "../ports/events.ts";
import {
  announce,
  answer,
  call,
  type Calling,
  calling,
  type FakeWorker,
  handed,
  only,
  results,
} from "../../tests/fakes/fake_router.ts";
import type { Handover } from "../ports/traffic.ts";
import { CALL_PARK_MS, PARKED_BYTES_MAX, PARKED_CALLS_MAX } from "./parked_calls.ts";
import type { RouterSettings } from "./router.ts";

const VOID = { action: { type: "void" } } as const;

/** A router whose worker with `f` has disconnected and is to come back. */
interface Restarting extends Calling {
  readonly handover: Handover;
  /** Opens a new connection that registers `f`. */
  comesBack(): FakeWorker;
}

function restarting(settings: Partial<RouterSettings> = {}): Restarting {
  const engine = calling(settings);
  const { worker, open, router } = engine;
  const handover = router.traffic.drain([worker.worker_id], { isComingBack: true });
  worker.cut();
  const comesBack = (): FakeWorker => {
    const peer = open();
    peer.say({ type: "registerfunction", id: "f" });
    return peer;
  };
  return { ...engine, handover, comesBack };
}

function ids({ connection }: FakeWorker): unknown[] {
  return connection.take().flatMap((message) => "data" in message ? [message.data] : []);
}

Deno.test("parked calls start in the order of their arrival, before later calls", () => {
  const { caller, open, comesBack } = restarting();
  const other = open();
  call(caller, "i1", { data: 1 });
  call(other, "i1", { data: 2 });
  caller.say('{ "type":"invokefunction", "function_id":"f", "data":3 }');
  call(caller, "i2", { data: 4 });

  const worker = comesBack();
  call(other, "i2", { data: 5 });

  assert.deepEqual(ids(worker), [1, 2, 3, 4, 5]);
});

Deno.test("a parked call starts with the registration that it waited for", () => {
  const { caller, router, open } = restarting();
  call(caller, "i1");
  const peer = open();
  let hadStarted = false;
  peer.connection.onText = () => {
    hadStarted = router.directory.function("default", "f") !== undefined;
  };

  peer.say({ type: "registerfunction", id: "f" });

  assert.equal(hadStarted, true);
  const [message] = handed(peer);
  answer(peer, message!.invocation_id, "late but well");
  assert.deepEqual(results(caller), { i1: "late but well" });
});

Deno.test("a parked call reaches its worker with its original bytes and fields", () => {
  const { caller, comesBack } = restarting();
  const data = '{"n":12345678901234567890, "f":1.50}';
  caller.say(
    `{"type":"invokefunction","invocation_id":"i1","function_id":"f",` +
      `"traceparent":"00-1","baggage":"a=b","data":${data}}`,
  );
  caller.say(
    `{"invocation_id":"i2","type":"invokefunction","function_id":"f","data":${data},"metadata":{"m": 1}}`,
  );

  const texts = comesBack().connection.takeTexts();

  assert.ok(
    texts[0]?.endsWith(`"function_id":"f","traceparent":"00-1","baggage":"a=b","data":${data}}`),
  );
  assert.ok(texts[1]?.endsWith(`"metadata":{"m": 1},"data":${data}}`));
});

for (const [path, space] of [["unparsed", ""], ["parsed", " "]] as const) {
  Deno.test(`a call that is parked too long ends with function_not_found, when it came ${path}`, () => {
    const { caller, clock, router, worker } = restarting();
    caller.say(
      `${space}{"type":"invokefunction","invocation_id":"i1","function_id":"f","data":1}`,
    );
    worker.cut();

    clock.tick(CALL_PARK_MS - 1);
    assert.deepEqual([caller.connection.take(), router.runningCalls], [[], 1]);
    clock.tick(1);

    assert.deepEqual(only(caller), {
      type: "invocationresult",
      invocation_id: "i1",
      function_id: "f",
      error: {
        code: "function_not_found",
        message: "Function f not found",
        details: { caller: "w" },
      },
    });
    assert.deepEqual([router.runningCalls, clock.waiting], [0, 0]);
  });
}

Deno.test("each call is parked from its own arrival, and finally gets similar ids", () => {
  const { caller, clock, open } = restarting();
  open().say({ type: "registerfunction", id: "f2" });
  call(caller, "i1");
  clock.tick(1_000);
  call(caller, "i2");

  clock.tick(CALL_PARK_MS - 1_000);
  const message = only(caller);
  clock.tick(1_000);

  assert.deepEqual(message.type === "invocationresult" && message.error?.details, {
    similar: ["f2"],
    caller: "w",
  });
  assert.deepEqual(results(caller), { i2: "function_not_found" });
});

Deno.test("a parked call with a shorter timeout times out as usual", () => {
  const { caller, clock } = restarting();
  call(caller, "i1", { timeout_ms: 100 });
  call(caller, "i2", { timeout_ms: CALL_PARK_MS });

  clock.tick(100);
  const message = only(caller);
  clock.tick(CALL_PARK_MS);

  assert.deepEqual(message.type === "invocationresult" && message.error, {
    code: "timeout",
    message: "Invocation of f timed out after 100 ms",
  });
  assert.deepEqual(results(caller), { i2: "function_not_found" });
});

Deno.test("the engine's timeout ends a parked call when it is the shorter one", () => {
  const { caller, clock } = restarting({ invocation_timeout_ms: 50 });
  call(caller, "i1");

  clock.tick(50);

  assert.deepEqual(results(caller), { i1: "timeout" });
});

Deno.test("a parked call keeps its deadline, and its callee receives the remaining time", () => {
  const { caller, clock, comesBack } = restarting();
  call(caller, "i1", { timeout_ms: 3_000 });
  call(caller, "i2");
  clock.tick(1_000);

  const worker = comesBack();
  announce(worker);
  const [timed, plain] = handed(worker);
  assert.deepEqual([timed?.timeout_ms, plain?.timeout_ms], [2_000, undefined]);
  clock.tick(1_999);
  assert.deepEqual(results(caller), {});
  clock.tick(1);

  assert.deepEqual(results(caller), { i1: "timeout" });
  assert.deepEqual(only(worker), {
    type: "cancelinvocation",
    invocation_id: timed!.invocation_id,
    reason: "timeout",
  });
});

Deno.test("a parked call that has started is no longer parked", () => {
  const { caller, clock, comesBack, handover } = restarting();
  call(caller, "i1");
  const worker = comesBack();
  const [message] = handed(worker);

  handover.end();
  clock.tick(2 * CALL_PARK_MS);
  assert.deepEqual(results(caller), {});
  answer(worker, message!.invocation_id);

  assert.deepEqual(results(caller), { i1: "done" });
});

Deno.test("void calls are parked, too, and those parked in vain are warnings", () => {
  const { caller, comesBack, router, clock, events, handover } = restarting();
  call(caller, "i1", { ...VOID, data: 1 });
  caller.say({ type: "invokefunction", function_id: "f", data: 2 });
  assert.equal(router.runningCalls, 2);

  const worker = comesBack();
  assert.deepEqual(ids(worker), [1, 2]);
  worker.cut();
  clock.tick(WARNINGS_WINDOW_MS);
  events.length = 0;
  call(caller, "i2", VOID);
  handover.end();

  assert.deepEqual([caller.connection.take(), router.runningCalls], [[], 0]);
  const [event] = events;
  assert.equal(
    event?.type === "warning" && event.detail,
    "function_not_found: Function f not found",
  );
});

Deno.test("only its caller can cancel a parked call", () => {
  const { caller, comesBack, open, router } = restarting();
  call(caller, "i1");
  call(caller, "i2");
  const stranger = open();

  stranger.say({ type: "cancelinvocation", invocation_id: "i1" });
  caller.say({ type: "cancelinvocation", invocation_id: "i1" });

  assert.deepEqual(results(caller), { i1: "cancelled" });
  assert.equal(router.runningCalls, 1);
  assert.equal(handed(comesBack()).length, 1);
});

Deno.test("parked calls end with their caller, except void calls", () => {
  const { caller, comesBack, router } = restarting();
  call(caller, "i1", { data: 1 });
  call(caller, "i2", { ...VOID, data: 2 });

  caller.cut();

  assert.equal(router.runningCalls, 1);
  assert.deepEqual(ids(comesBack()), [2]);
});

Deno.test("the id of a parked call is open, and free again when it has ended", () => {
  const { caller, comesBack } = restarting();
  call(caller, "i1");
  call(caller, "i1");
  const message = only(caller);
  assert.equal(message.type === "error" && message.error.code, "bad_message");

  const worker = comesBack();
  const [first, ...others] = handed(worker);
  assert.deepEqual(others, []);
  answer(worker, first!.invocation_id);
  call(caller, "i1");
  assert.equal(handed(worker).length, 1);
});

Deno.test("the payload of a parked call is checked against the replica that gets it", () => {
  const { caller, open, router } = restarting();
  call(caller, "i1", { data: {} });
  call(caller, "i2", { data: { a: 1 } });
  const peer = open();

  peer.say({
    type: "registerfunction",
    id: "f",
    request_format: { type: "object", required: ["a"] },
  });

  assert.deepEqual(results(caller), { i1: "invalid_payload" });
  assert.deepEqual(ids(peer), [{ a: 1 }]);
  assert.equal(router.runningCalls, 1);
});

Deno.test("parked calls beyond the limit of the worker end as overloaded", () => {
  const { caller, comesBack } = restarting({ max_inflight_calls_per_worker: 2 });
  for (const id of ["i1", "i2", "i3"]) call(caller, id);

  const worker = comesBack();

  assert.equal(handed(worker).length, 2);
  assert.deepEqual(results(caller), { i3: "overloaded" });
});

Deno.test("a built-in worker that comes back receives the caller of a parked call", () => {
  const { router, caller, openBuiltin } = calling();
  const first = openBuiltin("engine-state");
  first.say({ type: "registerfunction", id: "state::get" });
  router.traffic.drain([first.worker_id], { isComingBack: true });
  first.cut();
  call(caller, "i1", { function_id: "state::get" });
  caller.say({ type: "invokefunction", function_id: "state::get" });

  const again = openBuiltin("engine-state");
  again.say({ type: "registerfunction", id: "state::get" });

  const callers = handed(again).map(({ caller }) => caller);
  assert.deepEqual(callers, [caller.worker_id, caller.worker_id]);
});

Deno.test("a call beyond the limit of parked calls is rejected, until one of them has ended", () => {
  const { caller, open, router, comesBack } = restarting();
  for (let i = 0; i < PARKED_CALLS_MAX; i++) call(caller, `i${i}`);
  const other = open();

  call(other, "one");
  const message = only(other);
  caller.say({ type: "cancelinvocation", invocation_id: "i0" });
  call(other, "two");
  call(other, "three");

  assert.deepEqual(message.type === "invocationresult" && message.error, {
    code: "overloaded",
    message: "Function f is overloaded: too many calls wait for workers that are being restarted",
    retryable: true,
  });
  assert.deepEqual(results(other), { three: "overloaded" });
  assert.equal(router.runningCalls, PARKED_CALLS_MAX);
  assert.equal(handed(comesBack()).length, PARKED_CALLS_MAX);
});

Deno.test("the total size of parked calls is limited", () => {
  const { caller, router, handover } = restarting();
  const half = "x".repeat(PARKED_BYTES_MAX / 2 - 200);
  call(caller, "i1", { data: half });
  call(caller, "i2", { data: half });

  call(caller, "i3", { data: "x".repeat(500) });
  call(caller, "i4", { ...VOID, data: "x".repeat(500) });
  const messages = caller.connection.take();
  caller.say({ type: "cancelinvocation", invocation_id: "i1" });
  caller.connection.take();
  call(caller, "i5", { data: half });

  const codes = messages.map((message) => "error" in message && message.error?.code);
  assert.deepEqual(codes, ["overloaded", "overloaded"]);
  assert.equal(router.runningCalls, 2);
  handover.end();
  assert.deepEqual(Object.keys(results(caller)), ["i2", "i5"]);
});

Deno.test("an engine that drains takes no new calls and lets parked ones start", () => {
  const { caller, comesBack, router } = restarting();
  call(caller, "i1");

  router.drain();
  call(caller, "i2");
  const worker = comesBack();
  const [message] = handed(worker);
  answer(worker, message!.invocation_id);

  assert.deepEqual(results(caller), { i1: "done", i2: "overloaded" });
  assert.equal(router.runningCalls, 0);
});

Deno.test("an engine that closes leaves no parked call and no timer", () => {
  const { caller, router, clock, handover } = restarting();
  call(caller, "i1");
  call(caller, "i2", VOID);

  router.close();

  assert.deepEqual([router.runningCalls, clock.waiting], [0, 0]);
  handover.end();
});

Deno.test("the callee of the first parked call may end the others before they start", () => {
  const { caller, open, router } = restarting();
  for (const id of ["i1", "i2", "i3"]) call(caller, id);
  const peer = open();
  peer.connection.onText = () => {
    caller.say({ type: "cancelinvocation", invocation_id: "i2" });
    call(caller, "i4");
  };

  peer.say({ type: "registerfunction", id: "f" });

  assert.deepEqual(handed(peer).length, 3);
  assert.deepEqual(results(caller).i2, "cancelled");
  assert.equal(router.runningCalls, 3);
});

Deno.test("calls stay parked when the worker disconnects before they start", () => {
  const { caller, open, comesBack, router } = restarting();
  for (const id of ["i1", "i2"]) call(caller, id);
  const peer = open();
  peer.connection.onText = () => peer.cut();

  peer.say({ type: "registerfunction", id: "f" });

  assert.deepEqual(results(caller), { i1: "invocation_stopped" });
  assert.equal(router.runningCalls, 1);
  assert.equal(handed(comesBack()).length, 1);
});

Deno.test("a draining worker does not get parked calls", () => {
  const { caller, router, open } = restarting();
  call(caller, "i1");
  const peer = open();
  router.traffic.drain([peer.worker_id], { isComingBack: true });

  peer.say({ type: "registerfunction", id: "f" });

  assert.deepEqual([handed(peer), router.runningCalls], [[], 1]);
});

Deno.test("a replica at its limit rejects at once, although another one is draining", () => {
  const { worker, caller, open, router } = calling({ max_inflight_calls_per_worker: 1 });
  const other = open();
  other.say({ type: "registerfunction", id: "f" });
  router.traffic.drain([worker.worker_id], { isComingBack: true });

  call(caller, "i1");
  call(caller, "i2");

  assert.equal(handed(other).length, 1);
  assert.deepEqual(results(caller), { i2: "overloaded" });
});
