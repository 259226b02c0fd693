/**
 * Payloads of `engine::queue::*` that do not fit are refused, each with its member.
 *
 * @module
 */
import assert from "node:assert/strict";
import { fit } from "../kit/fit.ts";
import { EnqueueRequest, FORMATS, MessagesRequest } from "./payloads.ts";

for (
  const [name, payload, problem] of [
    ["a negative delay", { delay_ms: -1 }, /delay_ms: Too small: expected number to be >=0/],
    ["a priority beyond the last", { priority: 256 }, /priority: Too big/],
    ["a time in the far future", { run_at_ms: 1e300 }, /run_at_ms/],
    ["two times", { run_at_ms: 1, delay_ms: 1 }, /expected delay_ms or run_at_ms/],
    ["an empty id", { id: "" }, /id: Too small/],
    ["an id of a megabyte", { id: "x".repeat(1_000_000) }, /id: Too big/],
    ["half a surrogate", { id: "\ud800" }, /id: expected well-formed Unicode/],
    ["no function", { function_id: undefined }, /function_id: expected string/],
    ["a queue that is no text", { queue: 7 }, /queue: expected string, received 7/],
    ["a timeout of nothing", { timeout_ms: 0 }, /timeout_ms: Too small/],
    ["an expiry before now", { expires_ms: -5 }, /expires_ms: Too small/],
  ] as const
) {
  Deno.test(`engine::queue::enqueue refuses ${name}`, () => {
    const job = { queue: "default", function_id: "a::b", ...payload };

    assert.throws(() => fit("engine::queue::enqueue", EnqueueRequest, job), {
      code: "deserialization_error",
      message: problem,
    });
  });
}

Deno.test("members that are null count as left out", () => {
  const job = { queue: "q", function_id: "a::b", delay_ms: null, id: null, namespace: null };
  const read = fit("engine::queue::enqueue", EnqueueRequest, job);

  assert.deepEqual([read.delay_ms, read.id, read.namespace], [undefined, undefined, undefined]);
});

Deno.test("a call names a thousand jobs at most", () => {
  const message_ids = Array.from({ length: 1_001 }, () => "x");

  assert.throws(() => fit("f", MessagesRequest, { queue: "q", message_ids }), {
    message: /message_ids: Too big: expected array to have <=1000 items/,
  });
});

Deno.test("every function says what it does and takes", () => {
  for (const { description, request_format } of Object.values(FORMATS)) {
    assert.ok(description.length > 10);
    assert.equal(request_format.type, "object");
  }
});
