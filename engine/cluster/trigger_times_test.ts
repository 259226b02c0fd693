import assert from "node:assert/strict";
import { TriggerTimes } from "./trigger_times.ts";

Deno.test("a trigger has the time at which it was asked for first", () => {
  let now = 5;
  const times = new TriggerTimes(() => now);

  assert.equal(times.of("a"), 5);
  now = 9;
  assert.deepEqual([times.of("a"), times.of("b")], [5, 9]);
  times.keep(new Set(["b"]));
  now = 12;
  assert.deepEqual([times.of("a"), times.of("b")], [12, 9]);
});
