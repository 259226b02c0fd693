/**
 * Spans travel as PROTOCOL 5.8 has them.
 *
 * @module
 */
import assert from "node:assert/strict";
import { NOON, storedSpan } from "../../../tests/fakes/spans.ts";
import { attributeOf, attributeText, durationOf, wireSpan } from "./spans_stored.ts";

Deno.test("wireSpan() writes times as nanoseconds and attributes as pairs", () => {
  const span = storedSpan({ start_ms: NOON + 0.5 }, { a: 1 });

  const wire = wireSpan(span, false);

  assert.equal(wire.start_time_unix_nano, (NOON * 1e3 + 500) * 1e3);
  assert.deepEqual(wire.attributes, [["a", 1]]);
  assert.equal(wire.status, "ok");
  assert.equal("pending" in wire, false);
  assert.equal("status_description" in wire, false);
});

Deno.test("wireSpan() marks what still runs", () => {
  const wire = wireSpan(storedSpan({ end_ms: null, status: "unset" }), false);

  assert.equal(wire.end_time_unix_nano, null);
  assert.equal(wire.pending, true);
});

Deno.test("wireSpan() shows payloads to those alone who may see them", () => {
  const span = storedSpan({}, { "engine.request": "1", "engine.response": "2", b: 3 });

  assert.deepEqual(wireSpan(span, false).attributes, [["b", 3]]);
  assert.equal((wireSpan(span, true).attributes as unknown[]).length, 3);
});

Deno.test("durationOf() counts to now while a span runs, and never back", () => {
  assert.equal(durationOf(storedSpan(), NOON + 99), 10);
  assert.equal(durationOf(storedSpan({ end_ms: null }), NOON + 99), 99);
  assert.equal(durationOf(storedSpan({ end_ms: NOON - 5 }), NOON), 0);
});

Deno.test("attributeText() is text or nothing", () => {
  const span = storedSpan({}, { a: 1, b: "x" });

  assert.equal(attributeOf(span, "a"), 1);
  assert.equal(attributeText(span, "a"), undefined);
  assert.equal(attributeText(span, "b"), "x");
  assert.equal(attributeText(span, "c"), undefined);
});
