/**
 * @module
 */
import assert from "node:assert/strict";
import { EngineError, InvocationError } from "../../sdk/typescript/wire/errors.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeConsoleWorker } from "../../tests/fakes/fake_console_worker.ts";
import {
  beginTrace,
  canonical,
  EngineLink,
  failureOf,
  memberOf,
  randomHex,
  traceIdOf,
} from "./engine_client.ts";

function setup() {
  const clock = new FakeClock();
  const worker = new FakeConsoleWorker();
  return { clock, worker, link: new EngineLink(worker, clock) };
}

Deno.test("EngineLink tells whenever the engine goes and comes, and since when", () => {
  const { clock, worker, link } = setup();
  const heard: [boolean, number][] = [];
  const began = clock.wall();
  link.listen((connected) => void heard.push([connected, link.sinceMs - began]));

  clock.tick(10);
  worker.become("reconnecting");
  clock.tick(10);
  worker.become("connecting");
  clock.tick(10);
  worker.become("connected");

  assert.deepEqual(heard, [[false, 10], [true, 30]]);
});

Deno.test("EngineLink.call() fails at once while there is no line", async () => {
  const { worker, link } = setup();
  worker.functions["a::b"] = () => 1;
  assert.equal(await link.call({ function_id: "a::b" }), 1);

  worker.become("reconnecting");

  await assert.rejects(link.call({ function_id: "a::b" }), {
    code: "engine_unreachable",
    message: "The engine cannot be reached now, and a::b was not called",
  });
  assert.equal(worker.calls.length, 1);
});

Deno.test("EngineLink.stop() listens no more, and nobody hears of it", () => {
  const { worker, link } = setup();
  let heard = 0;
  link.listen(() => void heard++);

  link.stop();
  worker.become("reconnecting");

  assert.deepEqual([heard, worker.listeners], [0, 0]);
});

Deno.test("EngineLink lets a listener stop to listen", () => {
  const { worker, link } = setup();
  let heard = 0;
  const stop = link.listen(() => void heard++);

  worker.become("reconnecting");
  stop();
  worker.become("connected");

  assert.equal(heard, 1);
});

Deno.test("beginTrace() names a trace that somebody can find, if it is recorded", () => {
  const recorded = beginTrace(true);
  const hidden = beginTrace(false);

  assert.equal(traceIdOf(recorded.traceparent), recorded.trace_id);
  assert.match(recorded.traceparent, /-01$/);
  assert.match(hidden.traceparent, /^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
  assert.equal(hidden.trace_id, null);
  assert.notEqual(recorded.trace_id, beginTrace(true).trace_id);
});

Deno.test("traceIdOf() names nothing for what is no traceparent", () => {
  const id = "a".repeat(32);
  const span = "b".repeat(16);
  for (const text of [null, "", "00", `00-${id}-${span}`, `00-${id}x-${span}-01`, "x".repeat(55)]) {
    assert.equal(traceIdOf(text), null);
  }
});

Deno.test("randomHex() gives two digits for each byte", () => {
  assert.match(randomHex(6), /^[0-9a-f]{12}$/);
  assert.notEqual(randomHex(16), randomHex(16));
});

Deno.test("canonical() is the same for equal values, whatever the order of their keys", () => {
  assert.equal(canonical({ b: [{ d: 1, c: 2 }], a: null }), '{"a":null,"b":[{"c":2,"d":1}]}');
  assert.notEqual(canonical([1, 2]), canonical([2, 1]));
  assert.equal(canonical({ a: undefined }), canonical({}));
});

Deno.test("failureOf() keeps what the callee said, and nothing of this process", () => {
  const body = { code: "broken", message: "It broke", stacktrace: "at shop", retryable: true };
  const failure = failureOf(new InvocationError({ ...body, details: { a: 1 } }, "a::b"));

  assert.deepEqual(failure, { ...body, details: { a: 1 } });
  assert.deepEqual(failureOf(new EngineError("x", "y", { cause: new Error("secret") })), {
    code: "x",
    message: "y",
  });
  assert.deepEqual(failureOf(new Error("oh")), { code: "invocation_failed", message: "oh" });
  assert.deepEqual(failureOf("oh"), { code: "invocation_failed", message: "oh" });
  assert.deepEqual(failureOf(null), { code: "invocation_failed", message: "null" });
});

Deno.test("memberOf() finds members of objects only", () => {
  assert.equal(memberOf({ a: 1 }, "a"), 1);
  for (const value of [undefined, null, 1, "a", [1], {}]) {
    assert.equal(memberOf(value, "length"), undefined);
    assert.equal(memberOf(value, "constructor"), undefined);
  }
});
