import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { OfflineQueue, OutboundCalls } from "./calls.ts";
import { TriggerAction } from "./options.ts";
import { CallScopes } from "./trace_context.ts";
import type { EngineError } from "./wire/errors.ts";
import type { Json } from "./wire/protocol.ts";

const QUEUE_BYTES_MAX = 64 * 1024 * 1024;

function setup() {
  const clock = new FakeClock();
  const scopes = new CallScopes();
  const reports: EngineError[] = [];
  const texts: string[] = [];
  const connection = {
    isOpen: true,
    isFull: false,
    queuedBytes: 0,
    send: (text: string) => void texts.push(text),
  };
  const state = { online: true, failsNow: false };
  const calls = new OutboundCalls({
    clock,
    scopes,
    timeoutMs: 30_000,
    connection: () => state.online ? connection : undefined,
    failsNow: () => state.failsNow,
    report: (error) => reports.push(error),
  });
  const take = (): Record<string, Json>[] => texts.splice(0).map((text) => JSON.parse(text));
  return { calls, clock, connection, reports, scopes, state, take, texts };
}

const ADD = { function_id: "math::add", payload: { a: 2, b: 3 } };
const STOPPED = { name: "InvocationError", code: "invocation_stopped" };

function result(id: Json | undefined, value: Json) {
  return {
    type: "invocationresult",
    invocation_id: id as string,
    function_id: "math::add",
    result: value,
  } as const;
}

Deno.test("OutboundCalls.call() sends a canonical frame and resolves with the result", async () => {
  const { calls, texts, take } = setup();

  const call = calls.call({ ...ADD, metadata: { m: 1 }, namespace: "n", timeout_ms: 500 });
  assert.match(
    texts[0]!,
    /^\{"type":"invokefunction","invocation_id":"[^"]+","function_id":"math::add",/,
  );
  assert.ok(texts[0]!.endsWith(',"data":{"a":2,"b":3}}'));
  const [frame] = take();
  calls.settle(result(frame!.invocation_id, { c: 5 }));

  assert.deepEqual([frame!.namespace, frame!.timeout_ms, frame!.metadata], ["n", 500, { m: 1 }]);
  assert.deepEqual(await call, { c: 5 });
  assert.equal(calls.size, 0);
});

Deno.test("OutboundCalls.call() omits data for an undefined payload", async () => {
  const { calls, take } = setup();

  const call = calls.call({ function_id: "a::b" });
  const [frame] = take();
  calls.settle({ ...result(frame!.invocation_id, 0), result: undefined as unknown as Json });

  assert.equal("data" in frame!, false);
  assert.equal(await call, undefined);
});

Deno.test("a void call has no id and resolves at once", async () => {
  const { calls, take } = setup();

  assert.equal(await calls.call({ ...ADD, action: TriggerAction.Void() }), undefined);

  assert.deepEqual(take(), [{
    type: "invokefunction",
    function_id: "math::add",
    action: { type: "void" },
    data: ADD.payload,
  }]);
  assert.equal(calls.size, 0);
});

Deno.test("an enqueued call resolves with its receipt", async () => {
  const { calls, take } = setup();

  const call = calls.call({ ...ADD, action: TriggerAction.Enqueue({ queue: "mail" }) });
  const [frame] = take();
  calls.settle(result(frame!.invocation_id, { messageReceiptId: "r" }));

  assert.deepEqual(frame!.action, { type: "enqueue", queue: "mail" });
  assert.deepEqual(await call, { messageReceiptId: "r" });
});

Deno.test("a call fails with the error of its result", async () => {
  const { calls, take } = setup();
  const call = calls.call(ADD);
  const id = take()[0]!.invocation_id as string;
  const error = { code: "out", message: "No", details: { left: 2 }, stacktrace: "at x" };

  calls.settle({ ...result(id, 0), error });

  await assert.rejects(call, {
    name: "InvocationError",
    code: "out",
    message: "out: No",
    details: { left: 2 },
    stacktrace: "at x",
    function_id: "math::add",
    invocation_id: id,
  });
});

Deno.test("a call fails at its timeout and is cancelled at the engine", async () => {
  const { calls, clock, take } = setup();
  calls.useCapabilities(["cancel"]);
  const call = calls.call({ ...ADD, timeoutMs: 100 });
  const id = take()[0]!.invocation_id;

  clock.tick(100);

  await assert.rejects(call, {
    code: "TIMEOUT",
    message: "TIMEOUT: invocation timed out after 100ms",
  });
  assert.deepEqual(take(), [{ type: "cancelinvocation", invocation_id: id, reason: "timeout" }]);
});

Deno.test("a call keeps its own traceparent and baggage inside a handler", () => {
  const { calls, scopes, take } = setup();
  const scope = { deadline: undefined, traceparent: "t", baggage: "b" };

  scopes.run(scope, () => {
    calls.call({ ...ADD, traceparent: "own" }).catch(() => {});
    calls.call({ ...ADD, baggage: "own" }).catch(() => {});
  });

  assert.deepEqual(take().map(({ traceparent, baggage }) => [traceparent, baggage]), [
    ["own", "b"],
    ["t", "own"],
  ]);
  calls.end({ code: "SHUTDOWN", message: "over" });
});

Deno.test("the timeout of a call inside a handler is at most what is left of that of the handler", async () => {
  const { calls, clock, scopes, take } = setup();
  const scope = { deadline: 1_000, traceparent: "t", baggage: "b" };
  clock.tick(400);

  scopes.run(scope, () => {
    calls.call({ ...ADD, timeout_ms: 5_000 }).catch(() => {});
    calls.call({ ...ADD, timeout_ms: 50 }).catch(() => {});
  });

  const frames = take();
  assert.deepEqual(frames.map(({ timeout_ms }) => timeout_ms), [600, 50]);
  assert.deepEqual([frames[0]!.traceparent, frames[0]!.baggage], ["t", "b"]);

  clock.tick(600);
  const late = scopes.run(scope, () => calls.call(ADD));
  await assert.rejects(late, { code: "TIMEOUT" });
  assert.deepEqual(take(), []);
});

Deno.test("queued calls are sent in order, with their remaining time", async () => {
  const { calls, clock, connection, state, take } = setup();
  state.online = false;
  const first = calls.call({ ...ADD, timeout_ms: 1_000 });
  await calls.call({ function_id: "a::void", action: TriggerAction.Void() });
  const late = calls.call({ ...ADD, timeout_ms: 100 });
  clock.tick(300);
  await assert.rejects(late, { code: "TIMEOUT" });
  assert.deepEqual(take(), []);

  state.online = true;
  calls.sendQueued(connection);

  const frames = take();
  assert.deepEqual(frames.map(({ function_id }) => function_id), ["math::add", "a::void"]);
  assert.equal(frames[0]!.timeout_ms, 700);
  calls.settle(result(frames[0]!.invocation_id, 1));
  assert.equal(await first, 1);
});

Deno.test("a queued call has the payload and trace of the time it was made", () => {
  const { calls, connection, scopes, state, take } = setup();
  const payload = { n: 1 };
  state.online = false;
  scopes.run({ deadline: undefined, traceparent: "t", baggage: undefined }, () => {
    calls.call({ function_id: "a::b", payload }).catch(() => {});
  });
  payload.n = 2;

  calls.sendQueued(connection);

  const [frame] = take();
  assert.deepEqual([frame!.data, frame!.traceparent], [{ n: 1 }, "t"]);
});

Deno.test("calls that were sent fail when the connection is lost, queued ones do not", async () => {
  const { calls, connection, state, take } = setup();
  const sent = calls.call(ADD);
  take();
  state.online = false;
  const queued = calls.call(ADD);

  calls.connectionLost("code 1006");

  await assert.rejects(sent, STOPPED);
  state.online = true;
  calls.sendQueued(connection);
  calls.settle(result(take()[0]!.invocation_id, 1));
  assert.equal(await queued, 1);
});

Deno.test("a call that does not fit into the queue fails with overloaded", async () => {
  const { calls, state } = setup();
  state.online = false;
  const payload = "x".repeat(QUEUE_BYTES_MAX - 1_000);
  const fits = calls.call({ function_id: "a::b", payload });

  const overloaded = { name: "InvocationError", code: "overloaded", retryable: true };
  await assert.rejects(calls.call({ ...ADD, payload: "x".repeat(1_000) }), overloaded);
  const action = TriggerAction.Void();
  await assert.rejects(calls.call({ ...ADD, payload: "x".repeat(1_000), action }), overloaded);

  assert.equal(calls.size, 1);
  calls.end({ code: "SHUTDOWN", message: "bye" });
  await assert.rejects(fits, { code: "SHUTDOWN" });
});

Deno.test("10,000 calls fit into the queue; the next one fails with overloaded", async () => {
  const { calls, state, take } = setup();
  state.online = false;
  const queued = Array.from({ length: 10_000 }, () => calls.call(ADD));

  await assert.rejects(calls.call(ADD), { code: "overloaded", message: /10000 calls/ });

  state.online = true;
  calls.sendQueued({ isOpen: true, send() {} });
  assert.deepEqual(take(), []);
  calls.end({ code: "SHUTDOWN", message: "bye" });
  await Promise.allSettled(queued);
});

const UNREACHABLE = { name: "InvocationError", code: "engine_unreachable", retryable: true };

Deno.test("a call without a connection fails at once if it does not wait", async () => {
  const { calls, clock, state, take } = setup();
  Object.assign(state, { online: false, failsNow: true });

  await assert.rejects(calls.call(ADD), UNREACHABLE);
  await assert.rejects(calls.call({ ...ADD, action: TriggerAction.Void() }), UNREACHABLE);
  state.online = true;
  calls.sendQueued({ isOpen: true, send: () => assert.fail("nothing is queued") });

  assert.deepEqual([take(), calls.size, clock.waiting], [[], 0, 0]);
});

Deno.test("OutboundCalls.failQueued() fails the calls of the first attempt to connect", async () => {
  const { calls, state } = setup();
  state.online = false;
  const call = calls.call(ADD);

  calls.failQueued();

  await assert.rejects(call, UNREACHABLE);
  calls.sendQueued({ isOpen: true, send: () => assert.fail("nothing is queued") });
});

Deno.test("a call fails with overloaded while the engine does not read", async () => {
  const { calls, connection, take } = setup();
  Object.assign(connection, { isFull: true, queuedBytes: 70_000_000 });

  const overloaded = { code: "overloaded", retryable: true, message: /70000000 bytes/ };
  await assert.rejects(calls.call(ADD), overloaded);

  assert.deepEqual([take(), calls.size], [[], 0]);
});

/** An array in arrays, `depth` levels in all. */
function nested(depth: number): Json {
  return depth === 1 ? [] : [nested(depth - 1)];
}

Deno.test("a payload of 128 levels is sent; one of 129 fails before it is sent, with its path", async () => {
  const { calls, take } = setup();
  calls.call({ ...ADD, payload: nested(128) }).catch(() => {});
  assert.equal(take().length, 1);

  const error = await calls.call({ ...ADD, payload: { rows: [1, nested(127)] } })
    .then(() => undefined, (thrown: EngineError) => thrown);

  assert.equal(error?.code, "serialization_error");
  assert.match(
    error!.message,
    /payload for math::add is nested .* 128 levels, at \.rows\[1\]\[0\]/,
  );
  assert.deepEqual(take(), []);
  calls.end({ code: "SHUTDOWN", message: "bye" });
});

Deno.test("a call over 64 MiB of UTF-8 fails before it is sent or queued", async () => {
  const { calls, state, take } = setup();
  const payload = "é".repeat(QUEUE_BYTES_MAX / 2);

  for (const online of [true, false]) {
    state.online = online;
    await assert.rejects(calls.call({ ...ADD, payload }), {
      code: "serialization_error",
      details: { bytes: 67_108_999, limit_bytes: QUEUE_BYTES_MAX },
    });
  }
  assert.deepEqual([take(), calls.size], [[], 0]);
});

Deno.test("a timeout removes the call from the queue", async () => {
  const { calls, clock, state } = setup();
  state.online = false;
  const payload = "x".repeat(QUEUE_BYTES_MAX - 1_000);
  for (let i = 0; i < 3; i++) {
    const call = calls.call({ function_id: "a::b", payload, timeout_ms: 10 });
    clock.tick(10);
    await assert.rejects(call, { code: "TIMEOUT" });
  }
});

Deno.test("an abort signal fails the call and cancels it at an engine that can", async () => {
  const { calls, take } = setup();
  calls.useCapabilities(["cancel"]);
  const controller = new AbortController();
  const call = calls.call({ ...ADD, signal: controller.signal });
  const id = take()[0]!.invocation_id;

  controller.abort(new Error("page closed"));

  await assert.rejects(call, { code: "cancelled", message: "cancelled: Invocation cancelled" });
  const reason = "page closed";
  assert.deepEqual(take(), [{ type: "cancelinvocation", invocation_id: id, reason }]);
});

Deno.test("an abort signal only fails the call at an engine that cannot cancel", async () => {
  const { calls, take } = setup();
  const controller = new AbortController();
  const call = calls.call({ ...ADD, signal: controller.signal });
  take();

  controller.abort();

  await assert.rejects(call, { code: "cancelled" });
  assert.deepEqual(take(), []);
});

Deno.test("the capabilities of the engine are forgotten when the connection is lost", async () => {
  const { calls, take } = setup();
  calls.useCapabilities(["cancel", "timeout"]);
  calls.connectionLost("code 1006");
  const controller = new AbortController();
  const call = calls.call({ ...ADD, signal: controller.signal });
  take();

  controller.abort();

  await assert.rejects(call, { code: "cancelled" });
  assert.deepEqual(take(), []);
});

Deno.test("a call that was aborted before it was sent is not sent", async () => {
  const { calls, connection, state, take } = setup();
  await assert.rejects(calls.call({ ...ADD, signal: AbortSignal.abort() }), { code: "cancelled" });
  const controller = new AbortController();
  state.online = false;
  const queued = calls.call({ ...ADD, signal: controller.signal });

  controller.abort();
  calls.sendQueued(connection);

  await assert.rejects(queued, { code: "cancelled" });
  assert.deepEqual(take(), []);
});

Deno.test("progress reaches onProgress in order; its errors are reported", async () => {
  const { calls, reports, take } = setup();
  const seen: Json[] = [];
  const call = calls.call({
    ...ADD,
    onProgress(data) {
      seen.push(data);
      if (data === 2) throw new Error("no");
    },
  });
  const invocation_id = take()[0]!.invocation_id as string;

  for (const data of [1, 2, 3]) calls.progress({ type: "invocationprogress", invocation_id, data });
  calls.settle(result(invocation_id, "done"));
  calls.progress({ type: "invocationprogress", invocation_id, data: 4 });

  assert.equal(await call, "done");
  assert.deepEqual(seen, [1, 2, 3]);
  assert.match(reports[0]!.message, /^onProgress of a call to math::add failed: no$/);
});

Deno.test("OutboundCalls.end() fails all calls, also later ones, and leaves no timer", async () => {
  const { calls, clock, state } = setup();
  const sent = calls.call(ADD);
  state.online = false;
  const queued = calls.call(ADD);

  calls.end({ code: "SHUTDOWN", message: "engine client is shutting down" });

  const down = { code: "SHUTDOWN", message: "SHUTDOWN: engine client is shutting down" };
  await assert.rejects(sent, down);
  await assert.rejects(queued, down);
  await assert.rejects(calls.call(ADD), down);
  await assert.rejects(calls.call({ ...ADD, action: TriggerAction.Void() }), down);
  assert.equal(clock.waiting, 0);
});

const bad: Record<string, Record<string, unknown>> = {
  "no function id": { function_id: undefined },
  "an empty function id": { function_id: "" },
  "a timeout of 0": { timeout_ms: 0 },
  "a timeout of text": { timeoutMs: "5" },
  "an empty namespace": { namespace: "" },
  "an empty queue": { action: { type: "enqueue", queue: "" } },
  "an onProgress that is not a function": { onProgress: 5 },
};
for (const [name, fields] of Object.entries(bad)) {
  Deno.test(`OutboundCalls.call() rejects ${name}`, async () => {
    const { calls, take } = setup();

    const call = calls.call({ ...ADD, ...fields } as typeof ADD);

    await assert.rejects(call, { name: "EngineError", code: "INVALID_ARGUMENTS" });
    assert.deepEqual(take(), []);
    assert.equal(calls.size, 0);
  });
}

Deno.test("OutboundCalls.call() rejects values that JSON cannot represent", async () => {
  const { calls, take } = setup();

  for (const fields of [{ payload: 1n }, { metadata: 1n as unknown as Json }]) {
    await assert.rejects(calls.call({ ...ADD, ...fields }), { code: "serialization_error" });
  }

  assert.deepEqual(take(), []);
  assert.equal(calls.size, 0);
});

Deno.test("later changes to payload and metadata do not affect a queued call", async () => {
  const { calls, connection, state, take } = setup();
  const payload: Record<string, Json> = { a: 1 };
  const metadata: Record<string, Json> = { m: 1 };
  state.online = false;
  const call = calls.call({ function_id: "a::b", payload, metadata });

  payload.a = 2;
  metadata.self = metadata; // JSON cannot represent this.
  calls.sendQueued(connection);

  const [frame] = take();
  assert.deepEqual([frame!.data, frame!.metadata], [{ a: 1 }, { m: 1 }]);
  calls.settle(result(frame!.invocation_id, 1));
  assert.equal(await call, 1);
});

Deno.test("ids of calls are UUIDs and unique, also among workers", () => {
  const [one, other] = [setup(), setup()];

  for (const { calls } of [one, one, other]) void calls.call(ADD).catch(() => {});

  const ids = [...one.take(), ...other.take()].map((frame) => frame.invocation_id as string);
  for (const id of ids) assert.match(id, /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-/);
  assert.deepEqual(ids.map((id) => id.length), [36, 36, 36]);
  assert.equal(new Set(ids).size, 3);
  one.calls.end({ code: "SHUTDOWN", message: "over" });
  other.calls.end({ code: "SHUTDOWN", message: "over" });
});

Deno.test("settleFrame() settles results in the usual form and returns false for others", async () => {
  const { calls, take } = setup();
  const call = calls.call(ADD);
  const id = take()[0]!.invocation_id as string;
  const frame = (more: string, { of = id, named = "math::add" } = {}) =>
    `{"type":"invocationresult","invocation_id":"${of}","function_id":"${named}"${more}}`;

  const failure = { code: "x", message: "y" };
  const others = [
    frame(',"result":1', { of: crypto.randomUUID().slice(0, 24) + id.slice(24) }),
    frame(',"result":1', { of: id.replace(/.$/, "f") }),
    frame(',"result":1', { named: "math::sub" }),
    frame(',"result":1', { named: "math::add2" }),
    frame(`,"error":${JSON.stringify(failure)}`),
    frame(',"result":'),
    `{"invocation_id":"${id}","type":"invocationresult","function_id":"math::add"}`,
    "",
  ];
  assert.deepEqual(others.map((each) => calls.settleFrame(each)), others.map(() => false));
  assert.equal(calls.size, 1);
  assert.equal(calls.settleFrame(frame(',"result":{"c":5}')), true);
  assert.equal(calls.settleFrame(frame(',"result":{"c":5}')), false);

  assert.deepEqual(await call, { c: 5 });
});

function frame(invocation_id: string | undefined, bytes = 10) {
  return { invocation_id, bytes, write: () => `frame ${invocation_id}` };
}

Deno.test("OfflineQueue.takeAll() removes and returns frames in order", () => {
  const queue = new OfflineQueue(100, 4);
  for (const id of ["a", undefined, "b", undefined]) assert.ok(queue.add(frame(id)));

  const taken = queue.takeAll().map(({ invocation_id }) => invocation_id);

  assert.deepEqual(taken, ["a", undefined, "b", undefined]);
  assert.deepEqual(queue.takeAll(), []);
  assert.equal(queue.bytes, 0);
});

Deno.test("OfflineQueue.add() rejects a frame above the limit and keeps the others", () => {
  const queue = new OfflineQueue(25, 9);

  assert.deepEqual([queue.add(frame("a")), queue.add(frame("b")), queue.add(frame("c"))], [
    true,
    true,
    false,
  ]);
  assert.ok(queue.add(frame("d", 5)));
  assert.equal(queue.bytes, 25);
});

Deno.test("OfflineQueue.remove() frees the size of a frame, once", () => {
  const queue = new OfflineQueue(20, 9);
  queue.add(frame("a"));
  queue.add(frame("b"));

  queue.remove("a");
  queue.remove("a");
  queue.remove("unknown");

  assert.equal(queue.bytes, 10);
  assert.deepEqual(queue.takeAll().map(({ invocation_id }) => invocation_id), ["b"]);
});
