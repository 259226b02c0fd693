/**
 * @module
 */
import assert from "node:assert/strict";
import { beginTrace, randomHex, traceIdOf } from "./trace_ids.ts";

Deno.test("beginTrace() names a trace that somebody can find, if it is recorded", () => {
  const recorded = beginTrace(true);
  const hidden = beginTrace(false);

  assert.equal(traceIdOf(recorded.traceparent), recorded.trace_id);
  assert.match(recorded.traceparent, /-01$/);
  assert.match(hidden.traceparent, /^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
  assert.equal(hidden.trace_id, null);
  assert.notEqual(recorded.trace_id, beginTrace(true).trace_id);
});

Deno.test("traceIdOf() names nothing for what is no traceparent", () => {
  const id = "a".repeat(32);
  const span = "b".repeat(16);
  for (const text of [null, "", "00", `00-${id}-${span}`, `00-${id}x-${span}-01`, "x".repeat(55)]) {
    assert.equal(traceIdOf(text), null);
  }
});

Deno.test("randomHex() gives two digits for each byte", () => {
  assert.match(randomHex(6), /^[0-9a-f]{12}$/);
  assert.notEqual(randomHex(16), randomHex(16));
});
