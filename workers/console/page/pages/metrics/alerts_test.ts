/**
 * @module
 */
import assert from "node:assert/strict";
import { measured } from "./alerts.tsx";

Deno.test("the value of an alert has the unit of its metric, and records are counted", () => {
  assert.deepEqual(
    [
      measured("p99_ms", 975.335),
      measured("memory_bytes", 64 * 1_024 ** 2),
      measured("cpu_percent", 12.3),
      measured("errors_per_s", 0.2),
      measured("in_flight", 12_345),
      measured(null, 5),
      measured("p99_ms", null),
    ],
    ["975 ms", "64.0 MiB", "12 %", "0.20/s", "12.3k", "5", "–"],
  );
});
