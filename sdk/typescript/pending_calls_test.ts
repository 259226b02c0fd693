import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { type PendingCall, PendingCalls } from "./pending_calls.ts";
import type { InvocationError } from "./wire/errors.ts";
import type { Json } from "./wire/protocol.ts";

function setup() {
  const clock = new FakeClock();
  const expired: string[] = [];
  const pending = new PendingCalls(clock, ({ invocation_id }) => expired.push(invocation_id));
  const ended: Record<string, Json | string | undefined> = {};
  let count = 0;
  const add = (
    invocation_id: string,
    timeoutMs: number,
    sent = true,
    signal?: PendingCall["signal"],
  ): PendingCall => {
    const call: PendingCall = {
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
    pending.add(call);
    return call;
  };
  return { clock, expired, pending, ended, add };
}

Deno.test("PendingCalls.resolve() resolves the call with its result", () => {
  const { pending, ended, add } = setup();
  const { count } = add("1", 100);

  pending.resolve(count, { c: 5 });

  assert.deepEqual(ended, { "1": { c: 5 } });
  assert.equal(pending.size, 0);
});

Deno.test("PendingCalls.fail() rejects the call with its error", () => {
  const { pending, ended, add } = setup();
  const { count } = add("1", 100);

  pending.fail(count, { code: "out_of_stock", message: "Only 2 left" });

  assert.deepEqual(ended, { "1": "out_of_stock: Only 2 left" });
});

Deno.test("PendingCalls ignores results of unknown calls, and second ones", () => {
  const { pending, ended, add } = setup();
  const { count } = add("1", 100);

  pending.resolve(count + 1, 1);
  pending.resolve(count, 2);
  pending.resolve(count, 3);

  assert.deepEqual(ended, { "1": 2 });
});

Deno.test("PendingCalls fails calls at their deadlines in any order, with one timer", () => {
  const { clock, pending, ended, expired, add } = setup();
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
  assert.equal(pending.size, 0);
  assert.equal(clock.waiting, 0);
});

Deno.test("PendingCalls sets one timer for a thousand calls that are settled", () => {
  const { clock, pending, add } = setup();
  for (let i = 0; i < 1_000; i++) {
    const { count } = add(`${i}`, 30_000);
    pending.fail(count, { code: "x", message: "x" });
  }

  assert.equal(clock.waiting, 1);
  clock.tick(30_000);
  assert.equal(clock.waiting, 0);
});

Deno.test("PendingCalls waits for the timeout error of an engine that ends calls", () => {
  const { clock, pending, expired, add } = setup();
  pending.engineEndsCalls = true;
  add("sent", 100);
  add("queued", 100, false);

  clock.tick(100);
  assert.deepEqual(expired, ["queued"]);
  clock.tick(999);
  assert.deepEqual(expired, ["queued"]);
  clock.tick(1);
  assert.deepEqual(expired, ["queued", "sent"]);
});

Deno.test("PendingCalls.failAll() rejects all calls, or those that were sent", () => {
  const { pending, ended, add } = setup();
  add("sent", 100);
  add("queued", 100, false);

  pending.failAll({ code: "invocation_stopped", message: "Invocation stopped" }, "sent");
  assert.deepEqual(Object.keys(ended), ["sent"]);

  pending.failAll({ code: "SHUTDOWN", message: "bye" }, "all");
  assert.equal(ended.queued, "SHUTDOWN: bye");
});

Deno.test("PendingCalls removes the listener of the abort signal however a call ends", () => {
  const { clock, pending, add } = setup();
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

  pending.resolve(settled!, undefined);
  pending.fail(failed!, { code: "x", message: "x" });
  clock.tick(100);

  assert.deepEqual(released, ["settled", "failed", "expired"]);
});

Deno.test("PendingCalls.stop() cancels the timer", () => {
  const { clock, pending, add } = setup();
  add("1", 100);

  pending.stop();

  assert.equal(clock.waiting, 0);
});
