/**
 * Who is counted.
 *
 * @module
 */
import assert from "node:assert/strict";
import { METERED_FUNCTIONS_MAX } from "../../sdk/typescript/wire/limits.ts";
import { FunctionMeters } from "./function_meters.ts";

Deno.test("FunctionMeters.functionOf() is the same for the same name in the same namespace", () => {
  const meters = new FunctionMeters();
  const first = meters.functionOf("default", "f");

  assert.equal(meters.functionOf("default", "f"), first);
  assert.notEqual(meters.functionOf("eu", "f"), first);
  assert.equal([...meters.meters()].length, 2);
});

Deno.test("FunctionMeters.strangerOf() counts unknown functions together and makes no meters", () => {
  const meters = new FunctionMeters();
  const known = meters.functionOf("default", "f");

  assert.equal(meters.strangerOf("default", "f"), known);
  const stranger = meters.strangerOf("default", "x".repeat(5_000));
  assert.equal(stranger.meter, meters.other);
  assert.ok(stranger.function_id.length < 2_000);
  assert.equal([...meters.meters()].length, 1);
  assert.equal(meters.other.function_id, "(other)");
});

Deno.test("FunctionMeters.functionOf() counts functions beyond the bound together", () => {
  const meters = new FunctionMeters();
  for (let i = 0; i < METERED_FUNCTIONS_MAX; i++) meters.functionOf(`n${i % 3}`, `f${i}`);
  const late = meters.functionOf("default", "late");

  assert.equal([...meters.meters()].length, METERED_FUNCTIONS_MAX);
  assert.equal(late.meter, meters.other);
  assert.equal(late.function_id, "late", "its spans still say its name");
});
