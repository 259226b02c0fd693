import assert from "node:assert/strict";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { type CronJob, isJobOf, isSubscriptionOf, toneOf } from "./schedule_rows.ts";
import type { TriggerItem } from "./trigger_rows.ts";

const JOB: CronJob = {
  job_id: "1",
  function_id: "f::a",
  expression: "0 0 9 * * *",
  timezone: "UTC",
  running: 0,
  skipped: 0,
  missed: 0,
  next: [],
  last: [],
};

function item(id: string, config: Json, function_id = "f::a"): TriggerItem {
  return { id, trigger_type: "x", function_id, worker_name: "w", config, config_summary: "" };
}

Deno.test("a job belongs to its trigger, and to those that do the same", () => {
  const expression = " 0 0  9 * * * ";

  assert.equal(isJobOf(JOB, item("1", null)), true);
  assert.equal(isJobOf(JOB, item("2", { expression })), true);
  assert.equal(isJobOf(JOB, item("2", { expression, timezone: "UTC" })), true);
  assert.equal(isJobOf(JOB, item("2", { expression, timezone: "CET" })), false);
  assert.equal(isJobOf(JOB, item("2", { expression: "0 0 8 * * *" })), false);
  assert.equal(isJobOf(JOB, item("2", { expression }, "f::b")), false);
  assert.equal(isJobOf(JOB, item("2", ["x"])), false);
});

Deno.test("a subscription belongs to its trigger, and to those of the same function and topic", () => {
  const found = { trigger_id: "1", topic: "t", function_id: "f::a", sent: 0, dropped: 0 };

  assert.equal(isSubscriptionOf(found, item("1", null)), true);
  assert.equal(isSubscriptionOf(found, item("2", { topic: "t" })), true);
  assert.equal(isSubscriptionOf(found, item("2", { topic: "u" })), false);
  assert.equal(isSubscriptionOf(found, item("2", { topic: "t" }, "f::b")), false);
});

Deno.test("outcomes have colours", () => {
  const tones = ["ok", "failed", "interrupted", "running"].map((outcome) =>
    toneOf({ outcome, scheduled_time: "", started_time: "" })
  );

  assert.deepEqual(tones, ["ok", "bad", "warn", undefined]);
});
