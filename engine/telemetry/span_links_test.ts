/**
 * What recorded calls refer to and share.
 *
 * @module
 */
import assert from "node:assert/strict";
import { CountingMeter } from "./function_meter.ts";
import { Party, Subject } from "./span_links.ts";

Deno.test("what spans share costs as much as its names are long", () => {
  const meter = new CountingMeter("default", "f");

  assert.ok(new Party("w", "x".repeat(100)).bytes >= new Party("w", "").bytes + 100);
  assert.ok(
    new Subject("d", "x".repeat(100), meter).bytes >= new Subject("d", "", meter).bytes + 100,
  );
});
