/**
 * A call while it is being recorded.
 *
 * @module
 */
import assert from "node:assert/strict";
import { spanOf } from "../../tests/fakes/open_spans.ts";
import { Party, Subject } from "./open_span.ts";
import { CountingMeter } from "./function_meter.ts";

Deno.test("OpenSpan.more is made once", () => {
  const span = spanOf({ seq: 1 });
  assert.equal(span.detail, undefined);
  span.more.request = "1";

  assert.equal(span.more.request, "1");
});

Deno.test("OpenSpan.clear() leaves nothing to keep alive", () => {
  const span = spanOf({ seq: 1, sent: 2, request: "1" });
  span.isSampled = span.isDetailed = true;
  span.charged = 9;
  span.clear();

  const { subject, caller, callee, detail, isSampled, isDetailed, charged, uses } = span;
  assert.deepEqual({ subject, caller, callee, detail, isSampled, isDetailed, charged, uses }, {
    subject: undefined,
    caller: undefined,
    callee: undefined,
    detail: undefined,
    isSampled: false,
    isDetailed: false,
    charged: 0,
    uses: -1,
  });
});

Deno.test("what spans share costs as much as its names are long", () => {
  const meter = new CountingMeter("default", "f");

  assert.ok(new Party("w", "x".repeat(100)).bytes >= new Party("w", "").bytes + 100);
  assert.ok(
    new Subject("d", "x".repeat(100), meter).bytes >= new Subject("d", "", meter).bytes + 100,
  );
});
