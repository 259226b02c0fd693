/**
 * @module
 */
import assert from "node:assert/strict";
import { matchesSearch, type QueueRow, QueueSamples, titleOf } from "./queue_rows.ts";

const row = (more: Partial<QueueRow> = {}): QueueRow => ({
  name: "mail",
  waiting: 0,
  running: 0,
  delayed: 0,
  dead: 0,
  is_counting: false,
  enqueued_total: 0,
  done_total: 0,
  failed_total: 0,
  oldest_age_ms: null,
  paused: false,
  config: {},
  ...more,
});

Deno.test("samples have the rates between two listings, however long they are apart", () => {
  const samples = new QueueSamples();
  samples.add(1_000, [row({ enqueued_total: 10, done_total: 4 })]);
  samples.add(3_000, [row({ enqueued_total: 30, done_total: 9, failed_total: 1, waiting: 7 })]);

  const { window } = samples;
  assert.deepEqual(window.series("mail", "in_per_s"), [null, 10]);
  assert.deepEqual(window.series("mail", "done_per_s"), [null, 2.5]);
  assert.deepEqual(window.series("mail", "failed_per_s"), [null, 0.5]);
  assert.deepEqual(window.series("mail", "waiting"), [0, 7]);
});

Deno.test("an engine that started again is a gap in the rates, no negative number", () => {
  const samples = new QueueSamples();
  samples.add(1_000, [row({ enqueued_total: 10 })]);
  samples.add(2_000, [row({ enqueued_total: 2 })]);
  samples.add(3_000, [row({ enqueued_total: 5 })]);

  assert.deepEqual(samples.window.series("mail", "in_per_s"), [null, null, 3]);
});

Deno.test("a listing at a time that has been is left out", () => {
  const samples = new QueueSamples();
  samples.add(2_000, [row({ enqueued_total: 1 })]);
  samples.add(2_000, [row({ enqueued_total: 9 })]);
  samples.add(3_000, [row({ enqueued_total: 9 })]);

  assert.deepEqual(samples.window.series("mail", "in_per_s"), [null, 8]);
});

Deno.test("the queue of a subscriber is found by its topic and its function", () => {
  const subscriber = row({ name: "topic/a/b", topic: "users.created", function_id: "mail::hi" });

  assert.equal(titleOf(subscriber), "users.created → mail::hi");
  assert.equal(titleOf(row()), "mail");
  assert.ok(matchesSearch(subscriber, "USERS mail"));
  assert.ok(!matchesSearch(row(), "users"));
});
