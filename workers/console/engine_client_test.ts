/**
 * @module
 */
import assert from "node:assert/strict";
import { EngineError, InvocationError } from "../../sdk/typescript/wire/errors.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeConsoleWorker } from "../../tests/console/fake_console_worker.ts";
import {
  beginTrace,
  canonicalJson,
  EngineClient,
  errorBodyOf,
  memberOf,
  traceIdOf,
} from "./engine_client.ts";

function setup() {
  const clock = new FakeClock();
  const worker = new FakeConsoleWorker();
  return { clock, worker, engine: new EngineClient(worker, clock) };
}

Deno.test("EngineClient reports when the engine is lost and back, and since when", () => {
  const { clock, worker, engine } = setup();
  const received: [boolean, number][] = [];
  const began = clock.wall();
  engine.onChange((connected) => void received.push([connected, engine.sinceMs - began]));

  clock.tick(10);
  worker.become("reconnecting");
  clock.tick(10);
  worker.become("connecting");
  clock.tick(10);
  worker.become("connected");

  assert.deepEqual(received, [[false, 10], [true, 30]]);
});

Deno.test("EngineClient.call() fails at once while the engine is unreachable", async () => {
  const { worker, engine } = setup();
  worker.functions["a::b"] = () => 1;
  assert.equal(await engine.call({ function_id: "a::b" }), 1);

  worker.become("reconnecting");

  await assert.rejects(engine.call({ function_id: "a::b" }), {
    code: "engine_unreachable",
    message: "The engine cannot be reached now, and a::b was not called",
  });
  assert.equal(worker.calls.length, 1);
});

Deno.test("EngineClient.stop() removes all listeners", () => {
  const { worker, engine } = setup();
  let calls = 0;
  engine.onChange(() => void calls++);

  engine.stop();
  worker.become("reconnecting");

  assert.deepEqual([calls, worker.listeners], [0, 0]);
});

Deno.test("EngineClient.onChange() returns what removes the listener", () => {
  const { worker, engine } = setup();
  let calls = 0;
  const stop = engine.onChange(() => void calls++);

  worker.become("reconnecting");
  stop();
  worker.become("connected");

  assert.equal(calls, 1);
});

Deno.test("beginTrace() returns the trace id only if the trace is recorded", () => {
  const recorded = beginTrace(true);
  const hidden = beginTrace(false);

  assert.equal(traceIdOf(recorded.traceparent), recorded.trace_id);
  assert.match(recorded.traceparent, /-01$/);
  assert.match(hidden.traceparent, /^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
  assert.equal(hidden.trace_id, null);
  assert.notEqual(recorded.trace_id, beginTrace(true).trace_id);
});

Deno.test("traceIdOf() is null for what is no traceparent", () => {
  const id = "a".repeat(32);
  const span = "b".repeat(16);
  for (const text of [null, "", "00", `00-${id}-${span}`, `00-${id}x-${span}-01`, "x".repeat(55)]) {
    assert.equal(traceIdOf(text), null);
  }
});

Deno.test("canonicalJson() does not depend on the order of keys", () => {
  assert.equal(canonicalJson({ b: [{ d: 1, c: 2 }], a: null }), '{"a":null,"b":[{"c":2,"d":1}]}');
  assert.notEqual(canonicalJson([1, 2]), canonicalJson([2, 1]));
  assert.equal(canonicalJson({ a: undefined }), canonicalJson({}));
});

Deno.test("errorBodyOf() keeps what the callee sent, and nothing of this process", () => {
  const body = { code: "broken", message: "It broke", stacktrace: "at shop", retryable: true };
  const failure = errorBodyOf(new InvocationError({ ...body, details: { a: 1 } }, "a::b"));

  assert.deepEqual(failure, { ...body, details: { a: 1 } });
  assert.deepEqual(errorBodyOf(new EngineError("x", "y", { cause: new Error("secret") })), {
    code: "x",
    message: "y",
  });
  assert.deepEqual(errorBodyOf(new Error("oh")), { code: "invocation_failed", message: "oh" });
  assert.deepEqual(errorBodyOf("oh"), { code: "invocation_failed", message: "oh" });
  assert.deepEqual(errorBodyOf(null), { code: "invocation_failed", message: "null" });
});

Deno.test("memberOf() returns own members of objects only", () => {
  assert.equal(memberOf({ a: 1 }, "a"), 1);
  for (const value of [undefined, null, 1, "a", [1], {}]) {
    assert.equal(memberOf(value, "length"), undefined);
    assert.equal(memberOf(value, "constructor"), undefined);
  }
});
