import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import type { InvocationError } from "./wire/errors.ts";
import { TIMEOUT_GRACE_MS } from "./wire/limits.ts";
import type { Json } from "./wire/protocol.ts";
import { type OpenCall, Waiting } from "./pending_calls.ts";

function setup() {
  const clock = new FakeClock();
  const expired: string[] = [];
  const waiting = new Waiting(clock, ({ invocation_id }) => expired.push(invocation_id));
  const ended: Record<string, Json | string | undefined> = {};
  let count = 0;
  const add = (
    invocation_id: string,
    timeoutMs: number,
    sent = true,
    signal?: OpenCall["signal"],
  ): OpenCall => {
    const call: OpenCall = {
      count: ++count,
      invocation_id,
      function_id: "a::b",
      quotedFunctionId: '"a::b"',
      timeoutMs,
      deadline: clock.now() + timeoutMs,
      sent,
      resolve: (value) => ended[invocation_id] = value,
      reject: (error: InvocationError) => ended[invocation_id] = error.message,
      onProgress: undefined,
      signal,
      aborted: signal && (() => {}),
    };
    waiting.add(call);
    return call;
  };
  return { clock, expired, waiting, ended, add };
}

Deno.test("Waiting.resolve() ends the call with its result", () => {
  const { waiting, ended, add } = setup();
  const { count } = add("1", 100);

  waiting.resolve(count, { c: 5 });

  assert.deepEqual(ended, { "1": { c: 5 } });
  assert.equal(waiting.size, 0);
});

Deno.test("Waiting.fail() ends the call with its error", () => {
  const { waiting, ended, add } = setup();
  const { count } = add("1", 100);

  waiting.fail(count, { code: "out_of_stock", message: "Only 2 left" });

  assert.deepEqual(ended, { "1": "out_of_stock: Only 2 left" });
});

Deno.test("Waiting ignores results that nobody waits for, and second ones", () => {
  const { waiting, ended, add } = setup();
  const { count } = add("1", 100);

  waiting.resolve(count + 1, 1);
  waiting.resolve(count, 2);
  waiting.resolve(count, 3);

  assert.deepEqual(ended, { "1": 2 });
});

Deno.test("Waiting ends calls at their deadlines, whatever their order, with one timer", () => {
  const { clock, waiting, ended, expired, add } = setup();
  add("late", 500);
  add("early", 100);
  add("middle", 300);
  assert.equal(clock.waiting, 1);

  clock.tick(99);
  assert.deepEqual(expired, []);
  clock.tick(1);
  assert.deepEqual(expired, ["early"]);
  clock.tick(200);
  assert.deepEqual(expired, ["early", "middle"]);
  assert.equal(clock.waiting, 1);
  clock.tick(200);

  assert.equal(ended.late, "TIMEOUT: invocation timed out after 500ms");
  assert.equal(waiting.size, 0);
  assert.equal(clock.waiting, 0);
});

Deno.test("Waiting needs no timer of its own for a thousand calls that are answered", () => {
  const { clock, waiting, add } = setup();
  for (let i = 0; i < 1_000; i++) {
    const { count } = add(`${i}`, 30_000);
    waiting.fail(count, { code: "x", message: "x" });
  }

  assert.equal(clock.waiting, 1);
  clock.tick(30_000);
  assert.equal(clock.waiting, 0);
});

Deno.test("Waiting gives an engine that ends calls itself time to do so", () => {
  const { clock, waiting, expired, add } = setup();
  waiting.engineEndsCalls = true;
  add("sent", 100);
  add("queued", 100, false);

  clock.tick(100);
  assert.deepEqual(expired, ["queued"]);
  clock.tick(TIMEOUT_GRACE_MS - 1);
  assert.deepEqual(expired, ["queued"]);
  clock.tick(1);
  assert.deepEqual(expired, ["queued", "sent"]);
});

Deno.test("Waiting.failAll() ends all calls, or those that were sent", () => {
  const { waiting, ended, add } = setup();
  add("sent", 100);
  add("queued", 100, false);

  waiting.failAll({ code: "invocation_stopped", message: "Invocation stopped" }, "sent");
  assert.deepEqual(Object.keys(ended), ["sent"]);

  waiting.failAll({ code: "SHUTDOWN", message: "bye" }, "all");
  assert.equal(ended.queued, "SHUTDOWN: bye");
});

Deno.test("Waiting lets go of the abort signal however a call ends", () => {
  const { clock, waiting, add } = setup();
  const released: string[] = [];
  const [settled, failed] = ["settled", "failed", "expired"].map((id) => {
    const heard: unknown[] = [];
    const signal = {
      aborted: false,
      reason: undefined,
      addEventListener() {},
      removeEventListener: (_type: "abort", listener: unknown) => {
        heard.push(listener);
        released.push(id);
        assert.deepEqual(heard, [call.aborted]);
      },
    };
    const call = add(id, 100, true, signal);
    return call.count;
  });

  waiting.resolve(settled!, undefined);
  waiting.fail(failed!, { code: "x", message: "x" });
  clock.tick(100);

  assert.deepEqual(released, ["settled", "failed", "expired"]);
});

Deno.test("Waiting.stop() leaves no timer behind", () => {
  const { clock, waiting, add } = setup();
  add("1", 100);

  waiting.stop();

  assert.equal(clock.waiting, 0);
});
