import assert from "node:assert/strict";
import { RestartPolicy } from "./restart_policy.ts";

Deno.test("RestartPolicy waits twice as long each time and gives up after five quick ends", () => {
  const policy = new RestartPolicy();

  const decisions = [1, 2, 3, 4, 5].map(() => policy.ended(0));

  assert.deepEqual(decisions, [
    { type: "wait", ms: 1_000 },
    { type: "wait", ms: 2_000 },
    { type: "wait", ms: 4_000 },
    { type: "wait", ms: 8_000 },
    { type: "give_up", ends: 5 },
  ]);
});

Deno.test("RestartPolicy never waits longer than 30 s and never gives up what was ready", () => {
  const policy = new RestartPolicy();

  const waits = Array.from({ length: 8 }, () => policy.ended(20_000));

  const ms = waits.map((decision) => decision.type === "wait" ? decision.ms : -1);
  assert.deepEqual(ms, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
});

Deno.test("RestartPolicy counts anew after a minute of being ready", () => {
  const policy = new RestartPolicy();
  for (let i = 0; i < 4; i++) policy.ended(0);

  assert.deepEqual(policy.ended(60_000), { type: "wait", ms: 1_000 });
  assert.deepEqual(policy.ended(0), { type: "wait", ms: 2_000 });
});

Deno.test("RestartPolicy counts anew after reset()", () => {
  const policy = new RestartPolicy();
  for (let i = 0; i < 4; i++) policy.ended(0);

  policy.reset();

  assert.deepEqual(policy.ended(0), { type: "wait", ms: 1_000 });
});
