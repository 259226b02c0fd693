import assert from "node:assert/strict";
import { TELEMETRY_FRAME_CHARS_MAX } from "./wire/limits.ts";
import { TelemetryQueue } from "./telemetry_queue.ts";

Deno.test("TelemetryQueue gives records oldest first, by service", () => {
  const queue = new TelemetryQueue();
  queue.add("shop", "1");
  queue.add("mail", "2");
  queue.add("shop", "3");

  assert.deepEqual(queue.takeFrame(), [
    { service: "shop", records: ["1", "3"] },
    { service: "mail", records: ["2"] },
  ]);
  assert.ok(queue.isEmpty);
  assert.deepEqual(queue.takeFrame(), []);
});

Deno.test("TelemetryQueue counts what finds no room, once", () => {
  const queue = new TelemetryQueue(10);

  assert.deepEqual(["12345", "67890", "x"].map((text) => queue.add("shop", text)), [
    true,
    true,
    false,
  ]);
  assert.deepEqual([queue.takeDropped(), queue.takeDropped()], [1, 0]);
  queue.takeFrame();
  assert.ok(queue.add("shop", "1234567890"));
});

Deno.test("TelemetryQueue cuts frames by size, but never keeps a record for its own", () => {
  const queue = new TelemetryQueue(10 * TELEMETRY_FRAME_CHARS_MAX);
  const half = "x".repeat(TELEMETRY_FRAME_CHARS_MAX / 2);
  const large = "y".repeat(2 * TELEMETRY_FRAME_CHARS_MAX);
  for (const text of [half, half, half, large, "z"]) queue.add("shop", text);

  const frames = [];
  while (!queue.isEmpty) frames.push(queue.takeFrame()[0]!.records.map((text) => text[0]));

  assert.deepEqual(frames, [["x", "x"], ["x"], ["y"], ["z"]]);
});
