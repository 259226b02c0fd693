/**
 * Payloads of `engine::queue::*` that do not fit are refused, each with its member.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { fit } from "../kit/fit.ts";
import { EnqueueRequest, FORMATS, MessagesRequest, readEnqueue } from "./payloads.ts";

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
    ["an empty receipt", { messageReceiptId: "" }, /messageReceiptId: Too small/],
    ["a long receipt", { messageReceiptId: "x".repeat(201) }, /messageReceiptId: Too big/],
    ["half a receipt", { messageReceiptId: "\ud800" }, /messageReceiptId: expected well-formed/],
    ["an empty function", { function_id: "" }, /function_id: Too small/],
    ["a long function", { function_id: "x".repeat(1_025) }, /function_id: Too big/],
    ["a long trace", { traceparent: "0".repeat(513) }, /traceparent: Too big/],
    [
      "a misspelled option",
      { delayMs: 5 },
      /"delayMs" is not an option of a job; did you mean delay_ms/,
    ],
  ] as const
) {
  Deno.test(`engine::queue::enqueue refuses ${name}`, () => {
    const job = { queue: "default", function_id: "a::b", ...payload };

    assert.throws(() => readEnqueue(job as JsonObject), {
      code: "deserialization_error",
      message: problem,
    });
  });
}

Deno.test("a job is read as its schema reads it, whatever its members are", () => {
  const job = { queue: "default", function_id: "a::b" };
  const outcome = (read: () => object): unknown => {
    try {
      return Object.entries(read()).filter(([, value]) => value !== undefined).sort();
    } catch (thrown) {
      return (thrown as Error).message;
    }
  };
  const texts = [
    "",
    "x",
    "\ud800",
    ...[200, 201, 512, 513, 1_024, 1_025].map((n) => "x".repeat(n)),
  ];
  const names = ["queue", "function_id", "messageReceiptId", "traceparent", "namespace", "data"];
  const members = names.flatMap((name) =>
    [...texts, undefined, null, 7, true, [], {}].map((value) => ({ [name]: value }))
  );

  const whole = members.map((member) => ({ ...job, ...member }));
  const parts = [{}, { queue: "q" }, { function_id: "f" }, null, [], "text", [job]];
  const payloads = [...whole, ...parts];
  for (const payload of payloads as Json[]) {
    assert.deepEqual(
      outcome(() => readEnqueue(payload)),
      outcome(() => fit("engine::queue::enqueue", EnqueueRequest, payload)),
    );
  }
});

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
