/**
 * Settings of queues: what is refused, and what the defaults are.
 *
 * @module
 */
import assert from "node:assert/strict";
import { fitConfig } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import { Config, isQueueName, QueueConfig, settingsOf } from "./settings.ts";

for (
  const [config, problem] of [
    [{ queues: { "a b": {} } }, /queues: expected names of 1 to 128 letters/],
    [{ queues: { ["x".repeat(129)]: {} } }, /queues: expected names/],
    [{ queues: { a: { type: "fifo" } } }, /message_group_field: expected the member/],
    [{ queues: { a: { concurrency: 0 } } }, /concurrency: expected at least 1/],
    [{ queues: { a: { backoff_ms: -1 } } }, /backoff_ms: expected at least 0/],
    [{ queues: { a: { color: 1 } } }, /color: expected a known key/],
    [{ queues: { a: { rate: { jobs: 0 } } } }, /jobs: expected at least 1/],
    [{ queue: {} }, /queue: expected a known key/],
  ] as const
) {
  Deno.test(`a configuration is refused: ${problem.source}`, () => {
    assert.throws(() => fitConfig(Config, config), { message: problem });
  });
}

Deno.test("a queue without settings has those of the protocol", () => {
  assert.deepEqual(settingsOf(v.parse(QueueConfig, {})), {
    fifo: false,
    concurrency: 10,
    max_attempts: 3,
    backoff_ms: 1_000,
    backoff_max_ms: 3_600_000,
    jitter: 0.1,
    rate: undefined,
  });
});

Deno.test("isQueueName() takes letters, digits and a few marks", () => {
  for (const name of ["a", "mail", "a.b:c-d_e", "0"]) assert.ok(isQueueName(name), name);
  for (const name of ["", "-a", "a b", "a/b", "ü", "x".repeat(129)]) {
    assert.ok(!isQueueName(name), name);
  }
});
