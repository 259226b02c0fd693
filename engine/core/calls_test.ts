/**
 * Starting, settling, cancelling and enqueueing calls, as workers see it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Access } from "./access/access.ts";
import { Pattern } from "./access/patterns.ts";
import { NO_ABSENCES } from "../ports/absences.ts";
import {
  ENQUEUE_FUNCTION_ID,
  type InvokeFunction,
  type JsonObject,
} from "../../sdk/typescript/wire/protocol.ts";
import {
  announce,
  answer,
  call,
  type Calling,
  calling,
  fakeRouter,
  type FakeWorker,
  handed,
  type HandedCall,
  only,
  results,
} from "../../tests/fakes/fake_router.ts";

Deno.test("payload and result keep every byte, on both paths", () => {
  const { worker, caller } = calling();
  const value = '{"n":12345678901234567890, "f":1.50,\t"e":[ ],"u":"\\u00e9\\/"}';
  const frames = [
    `{"type":"invokefunction","invocation_id":"i","function_id":"f","data":${value}}`,
    `{"data":${value},"invocation_id":"j","type":"invokefunction","function_id":"f"}`,
  ];
  for (const frame of frames) caller.say(frame);

  const texts = worker.connection.takeTexts();
  for (const text of texts) assert.ok(text.endsWith(`"function_id":"f","data":${value}}`), text);

  const ids = texts.map((text) => JSON.parse(text).invocation_id);
  worker.say(
    `{"type":"invocationresult","invocation_id":"${ids[0]}","function_id":"f","result":${value}}`,
  );
  worker.say(
    `{"result":${value},"invocation_id":"${ids[1]}","type":"invocationresult","function_id":"f"}`,
  );
  for (const text of caller.connection.takeTexts()) {
    assert.ok(text.endsWith(`"function_id":"f","result":${value}}`), text);
  }
});

Deno.test("equal ids of two callers are two calls, each with its own result", () => {
  const { worker, caller, open } = calling();
  const other = open();
  call(caller, "same");
  call(other, "same");

  const [first, second] = handed(worker);
  assert.notEqual(first?.invocation_id, second?.invocation_id);
  answer(worker, second!.invocation_id, "for the other");
  answer(worker, first!.invocation_id, "for the caller");

  assert.deepEqual(results(caller), { same: "for the caller" });
  assert.deepEqual(results(other), { same: "for the other" });
});

Deno.test("an id that is still open is rejected without ending its call", () => {
  const { worker, caller } = calling();
  call(caller, "i1");
  call(caller, "i1");
  call(caller, "i1", { function_id: "missing" });
  call(caller, "i1", { function_id: "engine::workers::register" });

  const errorReplies = caller.connection.take();
  assert.deepEqual(errorReplies.map(({ type }) => type), ["error", "error", "error"]);
  const calls = handed(worker);
  assert.equal(calls.length, 1);
  answer(worker, calls[0]!.invocation_id);
  assert.deepEqual(results(caller), { i1: "done" });
  call(caller, "i1");
  assert.equal(handed(worker).length, 1);
});

Deno.test("a result counts once, and only from the callee", () => {
  const { worker, caller, open } = calling();
  call(caller, "i1");
  const [{ invocation_id }] = handed(worker) as [HandedCall];

  for (const liar of [open(), caller]) answer(liar, invocation_id, "forged");
  answer(worker, "unknown", "forged");
  answer(worker, "i1", "forged");
  assert.deepEqual(results(caller), {});

  answer(worker, invocation_id);
  answer(worker, invocation_id, "again");
  assert.deepEqual(results(caller), { i1: "done" });
});

Deno.test("a null result is omitted", () => {
  const { worker, caller } = calling();
  call(caller, "i1");
  const [{ invocation_id }] = handed(worker) as [HandedCall];

  answer(worker, invocation_id, null);

  const expected = { type: "invocationresult", invocation_id: "i1", function_id: "f" };
  assert.deepEqual(only(caller), expected);
});

Deno.test("an error of a worker is forwarded unchanged; a bare string becomes an object", () => {
  const { worker, caller } = calling();
  const error = { code: "out", message: "Only 2", details: { left: 2 }, retryable: true, extra: 1 };
  call(caller, "i1");
  call(caller, "i2");
  const [first, second] = handed(worker);

  const rest = { type: "invocationresult", function_id: "f" };
  worker.say({ ...rest, invocation_id: first!.invocation_id, error });
  worker.say({ ...rest, invocation_id: second!.invocation_id, error: "boom" });

  assert.deepEqual(caller.connection.take(), [
    { ...rest, invocation_id: "i1", error },
    { ...rest, invocation_id: "i2", error: { code: "UNKNOWN", message: "boom" } },
  ]);
});

Deno.test("a call of an unknown function ends at once and suggests similar ids", () => {
  const { caller, worker } = calling();
  worker.say({ type: "registerfunction", id: "math::add" });

  call(caller, "i1", { function_id: "math::ad" });

  const message = only(caller);
  assert.equal(message.type, "invocationresult");
  assert.deepEqual(message.error, {
    code: "function_not_found",
    message: "Function math::ad not found",
    details: { similar: ["math::add"], caller: "w" },
  });
});

Deno.test("a call of a function that is known to be away says why, who called and what helps", () => {
  const absence = {
    reason: "engine-state provides it, which is not in config.yaml",
    worker: "engine-state",
    command: "engine worker add engine-state",
  };
  const absences = { ...NO_ABSENCES, ofFunction: (id: string) => id === "g" ? absence : undefined };
  const { open } = fakeRouter({}, undefined, undefined, absences);
  const caller = open();
  announce(caller, [], "py");

  call(caller, "i1", { function_id: "g" });

  const message = only(caller);
  assert.deepEqual(message.type === "invocationresult" && message.error, {
    code: "function_not_found",
    message: "Function g not found",
    details: { ...absence, caller: "py" },
  });
});

Deno.test("an enqueue without a worker that provides queues says what helps", () => {
  const absence = { reason: "it is not in config.yaml", worker: "engine-queue" };
  const absences = {
    ...NO_ABSENCES,
    ofFunction: (id: string) => id === "engine::queue::enqueue" ? absence : undefined,
  };
  const { open } = fakeRouter({}, undefined, undefined, absences);
  const caller = open();

  call(caller, "i1", { action: { type: "enqueue", queue: "mail" } });

  const message = only(caller);
  assert.deepEqual(message.type === "invocationresult" && message.error, {
    code: "enqueue_error",
    message: "Queue 'mail' not found",
    details: absence,
  });
});

Deno.test("a caller with access rules learns of no other function and no worker", () => {
  const absences = { ...NO_ABSENCES, ofFunction: () => ({ reason: "it is down", worker: "py" }) };
  const { open } = fakeRouter({}, undefined, undefined, absences);
  const token = { name: "ci", allow: [Pattern.glob("g*")] };
  const caller = open({ access: new Access({ token }) });

  call(caller, "i1", { function_id: "g" });

  const message = only(caller);
  assert.deepEqual(message.type === "invocationresult" && message.error, {
    code: "function_not_found",
    message: "Function g not found",
  });
});

Deno.test("an error that a built-in worker meant has no stack, any other keeps it", () => {
  const { open, openBuiltin } = fakeRouter();
  const [caller, builtin, worker] = [open(), openBuiltin("engine-state"), open()];
  builtin.say({ type: "registerfunction", id: "state::get" });
  worker.say({ type: "registerfunction", id: "f" });
  const outcome = (callee: FakeWorker, function_id: string, code: string): unknown => {
    call(caller, "i1", { function_id });
    const [{ invocation_id } = { invocation_id: "" }] = handed(callee);
    const error = { code, message: "no", stacktrace: "at x", details: { a: 1 } };
    callee.say({ type: "invocationresult", invocation_id, function_id, error });
    const message = only(caller);
    return message.type === "invocationresult" && message.error;
  };

  const plain = { message: "no", details: { a: 1 } };
  assert.deepEqual(outcome(builtin, "state::get", "NOT_FOUND"), { code: "NOT_FOUND", ...plain });
  const bug = { code: "invocation_failed", ...plain, stacktrace: "at x" };
  assert.deepEqual(outcome(builtin, "state::get", "invocation_failed"), bug);
  assert.deepEqual(outcome(worker, "f", "NOT_FOUND"), { ...bug, code: "NOT_FOUND" });
});

Deno.test("searches for similar ids are limited", () => {
  const { caller, worker, clock } = calling();
  for (let i = 0; i < 100; i++) worker.say({ type: "registerfunction", id: `group::f${i}` });

  for (let i = 0; i < 10_000; i++) call(caller, `${i}`, { function_id: `group::x${i}` });
  const withDetails = caller.connection.take()
    .filter((message) => message.type === "invocationresult" && message.error?.details?.similar);
  clock.tick(1_000);
  call(caller, "later", { function_id: "group::y1" });

  assert.equal(withDetails.length, 20);
  const later = only(caller);
  assert.ok(later.type === "invocationresult" && later.error?.details?.similar);
});

Deno.test("similar ids contain neither internal nor built-in functions", () => {
  const { caller, worker, openBuiltin } = calling();
  worker.say({ type: "registerfunction", id: "hidden::a", metadata: { internal: true } });
  openBuiltin("engine").say({ type: "registerfunction", id: "engine::a" });

  call(caller, "i1", { function_id: "hidden::b" });
  call(caller, "i2", { function_id: "engine::b" });

  const [first, second] = caller.connection.take();
  assert.deepEqual(first?.type === "invocationresult" && first.error?.details, { caller: "w" });
  assert.deepEqual(second?.type === "invocationresult" && second.error?.details, {
    similar: ["engine::a"],
    caller: "w",
  });
});

Deno.test("a call without an id is executed and gets no reply", () => {
  const { worker, caller, router } = calling();
  caller.say({ type: "invokefunction", function_id: "f", data: 1 });
  call(caller, "i1", { action: { type: "void" } });
  caller.say({ type: "invokefunction", function_id: "f", action: { type: "void" }, data: 1 });

  const calls = handed(worker);
  assert.equal(calls.length, 3);
  for (const { invocation_id, ...rest } of calls) {
    assert.deepEqual(rest, { type: "invokefunction", function_id: "f", data: 1 });
    answer(worker, invocation_id);
  }
  assert.deepEqual(caller.connection.take(), []);
  assert.equal(router.runningCalls, 0);
});

Deno.test("a call without an id of an unknown function is only a warning", () => {
  const { caller, events } = calling();

  call(caller, "i1", { function_id: "missing", action: { type: "void" } });

  assert.deepEqual(caller.connection.take(), []);
  assert.equal(events.filter(({ type }) => type === "warning").length, 1);
});

Deno.test("an enqueue without a worker that provides queues is enqueue_error", () => {
  const { caller, worker } = calling();

  call(caller, "i1", { action: { type: "enqueue", queue: "slow" } });

  const message = only(caller);
  assert.deepEqual(message.type === "invocationresult" && message.error, {
    code: "enqueue_error",
    message: "Queue 'slow' not found",
  });
  assert.deepEqual(handed(worker), []);
});

Deno.test("a call ends at its deadline, its callee is notified, and a late result is dropped", () => {
  const { worker, caller, clock, router } = calling();
  call(caller, "i1", { timeout_ms: 5_000 });
  const [{ invocation_id, timeout_ms }] = handed(worker) as [
    HandedCall,
  ];
  assert.equal(timeout_ms, 5_000);

  clock.tick(4_999);
  assert.deepEqual(results(caller), {});
  clock.tick(1);

  const message = only(caller);
  assert.deepEqual(message.type === "invocationresult" && message.error, {
    code: "timeout",
    message: "Invocation of f timed out after 5000 ms",
  });
  assert.deepEqual(only(worker), { type: "cancelinvocation", invocation_id, reason: "timeout" });
  assert.equal(router.runningCalls, 0);
  answer(worker, invocation_id);
  assert.deepEqual(results(caller), {});
});

Deno.test("a call without a timeout gets the engine's, which is not forwarded", () => {
  const { worker, caller, clock } = calling({ invocation_timeout_ms: 700 });
  call(caller, "i1");
  assert.equal(handed(worker)[0]?.timeout_ms, undefined);

  clock.tick(700);

  assert.deepEqual(results(caller), { i1: "timeout" });
});

Deno.test("a call that was answered has no deadline", () => {
  const { worker, caller, clock } = calling();
  call(caller, "i1", { timeout_ms: 10 });
  answer(worker, handed(worker)[0]!.invocation_id);
  results(caller);

  clock.tick(1_000);

  assert.deepEqual([caller.connection.take(), worker.connection.take()], [[], []]);
});

Deno.test("a cancelled call ends at once, and its callee receives the reason", () => {
  const { worker, caller } = calling();
  call(caller, "i1");
  const [{ invocation_id }] = handed(worker) as [HandedCall];

  caller.say({ type: "cancelinvocation", invocation_id: "i1", reason: "user left" });
  caller.say({ type: "cancelinvocation", invocation_id: "i1" });
  answer(worker, invocation_id);

  assert.deepEqual(only(worker), {
    type: "cancelinvocation",
    invocation_id,
    reason: "user left",
  });
  const message = only(caller);
  assert.deepEqual(message.type === "invocationresult" && message.error, {
    code: "cancelled",
    message: "Invocation cancelled",
  });
});

Deno.test("only the connection that made a call can cancel it", () => {
  const { worker, caller, open } = calling();
  call(caller, "i1");
  const [{ invocation_id }] = handed(worker) as [HandedCall];

  const stranger = open();
  for (const id of ["i1", invocation_id]) {
    stranger.say({ type: "cancelinvocation", invocation_id: id });
    worker.say({ type: "cancelinvocation", invocation_id: id });
  }
  answer(worker, invocation_id);

  assert.deepEqual(results(caller), { i1: "done" });
});

Deno.test("a worker without the capability receives no cancellations", () => {
  const { worker, caller, clock } = calling();
  announce(worker, ["timeout", "teleport"]);
  call(caller, "i1");
  call(caller, "i2", { timeout_ms: 5 });
  handed(worker);

  caller.say({ type: "cancelinvocation", invocation_id: "i1" });
  clock.tick(5);

  assert.deepEqual(worker.connection.take(), []);
});

Deno.test("progress reaches a caller that wants it, in order, under its own id", () => {
  const { worker, caller, open } = calling();
  const deaf = open();
  call(caller, "i1");
  call(deaf, "i2");
  const [first, second] = handed(worker);
  const type = "invocationprogress";

  worker.say(`{"type":"${type}","invocation_id":"${first!.invocation_id}","data": 1.0}`);
  worker.say({ type, invocation_id: first!.invocation_id, data: null });
  worker.say({ type, invocation_id: second!.invocation_id, data: 3 });
  open().say({ type, invocation_id: first!.invocation_id, data: "forged" });
  answer(worker, first!.invocation_id);
  worker.say({ type, invocation_id: first!.invocation_id, data: "late" });

  assert.deepEqual(caller.connection.takeTexts(), [
    '{"type":"invocationprogress","invocation_id":"i1","data":1.0}',
    '{"type":"invocationprogress","invocation_id":"i1","data":null}',
    '{"type":"invocationresult","invocation_id":"i1","function_id":"f","result":"done"}',
  ]);
  assert.deepEqual(deaf.connection.take(), []);
});

const ENQUEUE: Partial<InvokeFunction> = { action: { type: "enqueue", queue: "mails" } };

/** A caller, a worker with `f`, and a built-in worker that provides queues. */
function queueing(): Calling & { readonly queues: FakeWorker } {
  const engine = calling();
  const queues = engine.openBuiltin("engine-queue");
  queues.say({ type: "registerfunction", id: ENQUEUE_FUNCTION_ID });
  return { ...engine, queues };
}

Deno.test("an enqueue is a call of the worker that provides queues, whose receipt is its result", () => {
  const { caller, worker, queues } = queueing();
  const trace = { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`, baggage: "tenant=a" };

  call(caller, "i1", { ...ENQUEUE, ...trace, namespace: "eu", timeout_ms: 500, metadata: 1 });

  const [{ invocation_id, data, ...rest }] = handed(queues) as [HandedCall];
  const { messageReceiptId, ...request } = data as JsonObject;
  assert.deepEqual(request, {
    queue: "mails",
    function_id: "f",
    namespace: "eu",
    data: 1,
    ...trace,
  });
  assert.match(messageReceiptId as string, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  assert.deepEqual(rest, {
    type: "invokefunction",
    function_id: ENQUEUE_FUNCTION_ID,
    caller: caller.worker_id,
    timeout_ms: 500,
    ...trace,
  });
  answer(queues, invocation_id, { messageReceiptId });
  assert.deepEqual(results(caller), { i1: { messageReceiptId } });
  assert.deepEqual(handed(worker), []);
});

Deno.test("an enqueue keeps the bytes of its payload, and has none without one", () => {
  const { caller, queues } = queueing();
  const frame = (data: string) =>
    `{"type":"invokefunction","invocation_id":"${data.length}","function_id":"f",` +
    `"action":{"type":"enqueue","queue":"q"}${data}}`;

  for (const data of [`,"data":{"n": 12345678901234567890}`, ""]) {
    caller.say(frame(data));

    const [sent] = queues.connection.takeTexts();
    assert.ok(sent!.endsWith(`"${data}}}`), sent);
  }
});

Deno.test("the caller gets an error of the worker that provides queues", () => {
  const { caller, queues } = queueing();
  const error = { code: "enqueue_error", message: "Queue 'mails' not found" };

  call(caller, "i1", ENQUEUE);
  const [{ invocation_id }] = handed(queues) as [HandedCall];
  queues.say({ type: "invocationresult", invocation_id, function_id: "f", error });

  const message = only(caller);
  assert.deepEqual(message.type === "invocationresult" && message.error, error);
});

Deno.test("an enqueue is checked against the request_format of its function first", () => {
  const { caller, worker, queues } = queueing();
  const request_format = { type: "object", required: ["sku"] };
  worker.say({ type: "registerfunction", id: "f", request_format });

  call(caller, "i1", { ...ENQUEUE, data: {} });
  call(caller, "i2", { ...ENQUEUE, data: { sku: "A1" } });

  assert.deepEqual(results(caller), { i1: "invalid_payload" });
  assert.equal(handed(queues).length, 1);
});

Deno.test("an enqueue fails again once the worker that provides queues has disconnected", () => {
  const { caller, queues } = queueing();
  call(caller, "i1", ENQUEUE);

  queues.cut();
  call(caller, "i2", ENQUEUE);

  assert.deepEqual(results(caller), { i1: "invocation_stopped", i2: "enqueue_error" });
});

Deno.test("an enqueue without an id reaches the queue and gets no reply", () => {
  const { caller, queues } = queueing();

  caller.say({ type: "invokefunction", function_id: "f", ...ENQUEUE });

  const [{ invocation_id }] = handed(queues) as [HandedCall];
  answer(queues, invocation_id, { messageReceiptId: "r" });
  assert.deepEqual(caller.connection.take(), []);
});
