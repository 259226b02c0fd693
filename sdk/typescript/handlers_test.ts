import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import type { LateMessage } from "./connection.ts";
import { encodeFailure, handlerOfText, Handlers } from "./handlers.ts";
import type { CallContext, Handler } from "./options.ts";
import { CallScopes } from "./trace_context.ts";
import { EngineError, errorBody, InvocationError } from "./wire/errors.ts";
import type { InvokeFunction, Json } from "./wire/protocol.ts";

function setup(functions: Record<string, Handler> = {}) {
  const clock = new FakeClock();
  const scopes = new CallScopes();
  const reports: EngineError[] = [];
  const sent: Record<string, Json>[] = [];
  const failed: string[] = [];
  const connection = {
    isOpen: true,
    isFull: false,
    send: (text: string) => sent.push(JSON.parse(text)),
    sendLate(_message: LateMessage): void {},
  };
  const handlers = new Handlers({
    clock,
    scopes,
    find: (namespace = "default", id) => namespace === "default" ? functions[id] : undefined,
    report: (error) => reports.push(error),
    failed: (function_id, stacktrace) => {
      failed.push(`${function_id} ${scopes.current()?.traceparent} ${stacktrace}`);
    },
  });
  const call = (fields: Partial<InvokeFunction> = {}) =>
    handlers.run(
      { type: "invokefunction", invocation_id: "1", function_id: "a::b", ...fields },
      connection,
    );
  return { call, clock, handlers, connection, reports, scopes, sent, failed };
}

const RESULT = { type: "invocationresult", invocation_id: "1", function_id: "a::b" };

Deno.test("Handlers.run() passes payload and metadata and sends the result", async () => {
  const { call, sent, handlers } = setup({
    "a::b": (payload, metadata) => ({ payload, metadata }),
  });

  await call({ data: { n: 1 }, metadata: { m: 2 }, traceparent: "t", baggage: "b" });

  const result = { payload: { n: 1 }, metadata: { m: 2 } };
  assert.deepEqual(sent, [{ ...RESULT, traceparent: "t", baggage: "b", result }]);
  assert.deepEqual(Object.keys(sent[0]!).at(-1), "result");
  assert.equal(handlers.size, 0);
});

Deno.test("Handlers.load() names the functions that run past their deadline, the latest first", async () => {
  const ended = Promise.withResolvers<void>();
  const waits = () => ended.promise;
  const { call, clock, handlers } = setup({
    "a::slow": waits,
    "a::later": waits,
    "a::none": waits,
  });
  const run = (invocation_id: string, function_id: string, timeout_ms?: number) =>
    call({ invocation_id, function_id, ...timeout_ms !== undefined && { timeout_ms } });
  const calls = [
    run("1", "a::later", 9_000),
    run("2", "a::slow", 8_000),
    run("3", "a::slow", 500),
    run("4", "a::none"),
  ];
  const overdue = () =>
    handlers.load().map(({ name, value, functionId }) => [name, value, functionId]);
  const waiting = ["engine.handlers.waiting", 0, undefined];
  clock.tick(500);
  assert.deepEqual(overdue(), [waiting]);

  clock.tick(9_500);
  handlers.cancel({ type: "cancelinvocation", invocation_id: "3", reason: "timeout" });

  assert.deepEqual(overdue(), [
    waiting,
    ["engine.handlers.overdue", 9.5, "a::slow"],
    ["engine.handlers.overdue", 1, "a::later"],
  ]);
  ended.resolve();
  await Promise.all(calls);
  assert.deepEqual(overdue(), [waiting]);
});

Deno.test("Handlers.load() names 20 functions at most", async () => {
  const ended = Promise.withResolvers<void>();
  const ids = Array.from({ length: 25 }, (_, i) => `a::f${i}`);
  const { call, clock, handlers } = setup(
    Object.fromEntries(ids.map((id) => [id, () => ended.promise])),
  );
  const calls = ids.map((function_id, i) => {
    return call({ invocation_id: function_id, function_id, timeout_ms: 100 - i });
  });
  clock.tick(200);

  const named = handlers.load().slice(1).map(({ functionId }) => functionId);

  assert.deepEqual([named.length, named[0], named.at(-1)], [20, "a::f24", "a::f5"]);
  ended.resolve();
  await Promise.all(calls);
});

Deno.test("a handler of text gets members of the payload as the frame has them", async () => {
  const own = handlerOfText((payload, textOf) => [payload, textOf("n"), textOf("none") ?? null]);
  const { handlers, connection, sent } = setup({ "a::b": own });
  const data = '{"n":12345678901234567890}';
  const message = {
    type: "invokefunction",
    invocation_id: "1",
    function_id: "a::b",
    data: JSON.parse(data),
  } as const;

  await handlers.run(message, connection, `{"data":${data},"function_id":"a::b"}`);
  await handlers.run(message, connection);
  await handlers.run({ ...message, data: null }, connection, '{"function_id":"a::b"}');

  const lost = JSON.stringify(JSON.parse(data).n);
  assert.deepEqual(sent.map(({ result }) => (result as Json[]).slice(1)), [
    ["12345678901234567890", null],
    [lost, null],
    [null, null],
  ]);
});

Deno.test("Handlers.run() passes null for absent data and sends no result for undefined", async () => {
  const payloads: Json[] = [];
  const { call, sent } = setup({ "a::b": (payload) => void payloads.push(payload) });

  await call();

  assert.deepEqual(payloads, [null]);
  assert.deepEqual(sent, [RESULT]);
});

Deno.test("the stack of an unexpected error is shown in the scope of its call, not of one meant", async () => {
  const { call, failed } = setup({
    "a::b": (payload) => {
      throw payload === 1 ? new TypeError("no such thing") : new EngineError("sold_out", "No");
    },
  });

  await call({ data: 1, traceparent: "t" });
  await call({ data: 1, traceparent: "t", invocation_id: undefined } as never);
  await call({ data: 2 });

  assert.equal(failed.length, 2);
  for (const text of failed) assert.match(text, /^a::b t TypeError: no such thing\n\s+at /);
});

/** An array in arrays, `depth` levels in all. */
function nested(depth: number): Json {
  return depth === 1 ? [] : [nested(depth - 1)];
}

for (
  const [what, result] of [
    ["takes over 64 MiB", "é".repeat(32 * 1024 * 1024)],
    ["is nested more deeply than 128 levels", nested(129)],
  ] as const
) {
  Deno.test(`a result that ${what} fails its call alone`, async () => {
    const { call, sent } = setup({ "a::b": (payload) => payload === 1 ? result : "short" });

    await call({ data: 1 });
    await call({ data: 2, invocation_id: "2" });

    const [failed, next] = sent;
    const { code, message } = failed!.error as Record<string, string>;
    assert.equal(code, "serialization_error");
    assert.match(message!, /^The result of a::b (takes 67\d+ bytes|is nested more deeply)/);
    assert.deepEqual(next, { ...RESULT, invocation_id: "2", result: "short" });
  });
}

Deno.test("a result waits while the connection is full, unless its call is cancelled", async () => {
  const { call, connection, handlers, sent } = setup({ "a::b": () => 1 });
  const late: LateMessage[] = [];
  connection.isFull = true;
  connection.sendLate = (message) => void late.push(message);

  const calls = ["1", "2"].map((invocation_id) => call({ invocation_id }));
  while (late.length < 2) await Promise.resolve();
  assert.deepEqual([sent, handlers.size], [[], 2]);
  handlers.cancel({ type: "cancelinvocation", invocation_id: "2" });
  const before = sent.length;
  connection.isFull = false;
  for (const { send } of late) send();
  await Promise.all(calls);

  assert.deepEqual(sent.slice(before), [{ ...RESULT, result: 1 }]);
  assert.equal(handlers.size, 0);
});

Deno.test("a result fails with overloaded, not retryable, when the engine does not read", async () => {
  const { call, connection, sent } = setup({ "a::b": () => 1 });
  connection.isFull = true;
  connection.sendLate = ({ fail }) => fail();

  await call();

  const { code, retryable } = sent[0]!.error as Record<string, Json>;
  assert.deepEqual([code, retryable], ["overloaded", undefined]);
});

Deno.test("encodeFailure() leaves out details that are too deep or too large", () => {
  const message = { type: "invokefunction", invocation_id: "1", function_id: "a::b" } as const;
  const short = { code: "broken", message: "It broke" };

  for (const value of [nested(127), "x".repeat(64 * 1024 * 1024)]) {
    const frame = encodeFailure(message, { ...short, details: { value } });
    assert.deepEqual(JSON.parse(frame).error, short);
  }
});

Deno.test("Handlers.run() sends null as a result", async () => {
  const { call, sent } = setup({ "a::b": () => Promise.resolve(null) });

  await call();

  assert.deepEqual(sent, [{ ...RESULT, result: null }]);
});

Deno.test("Handlers.run() fails an unknown function with function_not_found", async () => {
  const { call, sent } = setup({ "a::b": () => 1 });

  await call({ function_id: "no::such" });
  await call({ namespace: "other" });

  const error = { code: "function_not_found", message: "Function not found" };
  assert.deepEqual(sent.map(({ error }) => code(error)), [error, error]);
});

function code(error: Json | undefined): Json {
  const { code, message } = error as Record<string, Json>;
  return { code: code!, message: message! };
}

Deno.test("Handlers.run() fails with the message and stack of an error", async () => {
  const { call, sent } = setup({
    "a::b": () => {
      throw new TypeError("no such thing");
    },
  });

  await call();

  const { code, message, stacktrace } = sent[0]!.error as Record<string, string>;
  assert.equal(code, "invocation_failed");
  assert.equal(message, "no such thing");
  assert.match(stacktrace!, /TypeError: no such thing\n\s+at /);
});

for (const thrown of ["text", 5, null, undefined, { a: 1 }]) {
  Deno.test(`Handlers.run() fails with a thrown ${JSON.stringify(thrown)}`, async () => {
    const { call, sent } = setup({ "a::b": () => Promise.reject(thrown) });

    await call();

    const error = { code: "invocation_failed", message: String(thrown) };
    assert.deepEqual(sent, [{ ...RESULT, error }]);
  });
}

Deno.test("Handlers.run() keeps code, details and retryable of an EngineError", async () => {
  const details = { left: 2 };
  const { call, sent } = setup({
    "a::b": () => Promise.reject(new EngineError("out", "No", { details, retryable: true })),
  });

  await call();

  const { stacktrace: _, ...error } = sent[0]!.error as Record<string, Json>;
  assert.deepEqual(error, { code: "out", message: "No", details, retryable: true });
});

Deno.test("Handlers.run() passes on an InvocationError without repeating its code", async () => {
  const inner = new InvocationError({ code: "out", message: "No" }, "c::d", "2");
  const { call, sent } = setup({ "a::b": () => Promise.reject(inner) });

  await call();

  const { code, message } = sent[0]!.error as Record<string, Json>;
  assert.deepEqual([code, message], ["out", "No"]);
});

const cycle: Record<string, unknown> = {};
cycle.self = cycle;
for (const [name, value] of Object.entries({ BigInt: 1n, cycle, function: () => {} })) {
  Deno.test(`Handlers.run() fails a result of ${name} with serialization_error`, async () => {
    const { call, sent } = setup({ "a::b": () => value });

    await call();

    const { code, message } = sent[0]!.error as Record<string, string>;
    assert.equal(code, "serialization_error");
    assert.match(message!, /^The result of a::b cannot be written as JSON: /);
  });
}

Deno.test("encodeFailure() drops details that JSON cannot represent", () => {
  const body = errorBody("out", "No", { left: 1n as unknown as Json });
  const call = { type: "invokefunction", invocation_id: "1", function_id: "a::b" } as const;

  const error = { code: "out", message: "No" };
  assert.deepEqual(JSON.parse(encodeFailure(call, body)), { ...RESULT, error });
});

Deno.test("Handlers.run() sends nothing for a call without id, and reports its error", async () => {
  const { call, sent, reports } = setup({
    "a::b": () => 1,
    "a::bad": () => Promise.reject(new Error("broken")),
  });
  const invocation_id = undefined as unknown as string;

  await call({ invocation_id });
  await call({ invocation_id, function_id: "a::bad" });

  assert.deepEqual(sent, []);
  assert.deepEqual(reports.map(({ message }) => message), ["a::bad failed: broken"]);
});

Deno.test("Handlers.run() passes a context with the fields of the call", async () => {
  let seen: CallContext | undefined;
  const { call } = setup({ "a::b": (_payload, _metadata, context) => void (seen = context) });

  await call({ timeout_ms: 50, caller: "w-1", traceparent: "t", baggage: "b" });

  assert.ok(seen);
  const { invocation_id, function_id, timeout_ms, caller, traceparent, baggage } = seen;
  assert.deepEqual(
    { invocation_id, function_id, timeout_ms, caller, traceparent, baggage },
    {
      invocation_id: "1",
      function_id: "a::b",
      timeout_ms: 50,
      caller: "w-1",
      traceparent: "t",
      baggage: "b",
    },
  );
});

Deno.test("Handlers.run() sets the deadline for calls of the handler", async () => {
  const deadlines: (number | undefined)[] = [];
  const { call, clock, scopes } = setup({
    "a::b": async () => {
      await Promise.resolve();
      deadlines.push(scopes.current()?.deadline);
    },
  });
  clock.tick(100);

  await Promise.all([call({ timeout_ms: 50 }), call({ invocation_id: "2" })]);

  assert.deepEqual(deadlines, [150, undefined]);
});

Deno.test("Handlers.cancel() aborts the signal and drops the result", async () => {
  const gate = Promise.withResolvers<void>();
  const reasons: string[] = [];
  const { call, handlers, sent } = setup({
    "a::b": async (_payload, _metadata, { signal }) => {
      signal.addEventListener("abort", () => reasons.push(signal.reason.message));
      await gate.promise;
      return 1;
    },
  });
  const running = call();

  handlers.cancel({ type: "cancelinvocation", invocation_id: "1", reason: "page closed" });
  handlers.cancel({ type: "cancelinvocation", invocation_id: "unknown" });
  gate.resolve();
  await running;

  assert.deepEqual(reasons, ["page closed"]);
  assert.deepEqual(sent, []);
});

Deno.test("a signal that is first used after the cancellation is aborted", async () => {
  const gate = Promise.withResolvers<void>();
  let aborted = false;
  const { call, handlers } = setup({
    "a::b": async (_payload, _metadata, context) => {
      await gate.promise;
      aborted = context.signal.aborted;
    },
  });
  const running = call();

  handlers.cancel({ type: "cancelinvocation", invocation_id: "1" });
  gate.resolve();
  await running;

  assert.ok(aborted);
});

Deno.test("Handlers.abortAll() aborts all signals", async () => {
  const codes: string[] = [];
  const { call, handlers } = setup({
    "a::b": (_payload, _metadata, { signal }) =>
      new Promise<void>((resolve) => {
        signal.onabort = () => {
          codes.push(signal.reason.code);
          resolve();
        };
      }),
  });
  const running = [call(), call({ invocation_id: "2" })];

  handlers.abortAll("The connection to the engine is lost");
  await Promise.all(running);

  assert.deepEqual(codes, ["invocation_stopped", "invocation_stopped"]);
  assert.equal(handlers.size, 0);
});

Deno.test("progress is sent before the result, and not after it", async () => {
  let context: CallContext | undefined;
  const { call, handlers, sent } = setup({
    "a::b": (_payload, _metadata, given) => {
      context = given;
      given.progress({ done: 1 });
      given.progress(null);
      return 2;
    },
  });
  handlers.engineForwardsProgress = true;

  await call();
  context?.progress("late");

  const progress = { type: "invocationprogress", invocation_id: "1" };
  assert.deepEqual(sent, [
    { ...progress, data: { done: 1 } },
    { ...progress, data: null },
    { ...RESULT, result: 2 },
  ]);
});

Deno.test("progress is not sent to an engine without the capability", async () => {
  const { call, sent } = setup({
    "a::b": (_payload, _metadata, context) => context.progress(1),
  });

  await call();

  assert.deepEqual(sent, [RESULT]);
});

Deno.test("Handlers.run() fails with any thrown value, also one without a text", async () => {
  const thrown: unknown[] = [
    Object.create(null),
    Object.assign(new Error(), { message: 5n }),
    Object.assign(new Error("m"), { stack: 5n, details: { a: 5n } }),
    Symbol("s"),
    undefined,
  ];
  const { call, sent, handlers } = setup({
    "a::b": () => {
      throw thrown[sent.length];
    },
  });

  for (const _ of thrown) await call();

  const failures = sent.map(({ error }) => error as { code: string; message: string });
  assert.deepEqual(failures.map(({ code }) => code), thrown.map(() => "invocation_failed"));
  assert.deepEqual(failures.map(({ message }) => message), [
    "a value without a text was thrown",
    "5",
    "m",
    "Symbol(s)",
    "undefined",
  ]);
  assert.equal(handlers.size, 0);
});
