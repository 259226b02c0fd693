/**
 * Rows of recorded calls are those that `ended()` and `find()` return, and stay while held.
 *
 * @module
 */
import assert from "node:assert/strict";
import { callId, spanOf, writeSpans } from "../../tests/fakes/spans.ts";
import { type CallSpan, traceHeadOf } from "../ports/telemetry.ts";
import { RecordedRows } from "./call_rows.ts";
import { UNOPENED_PLACE } from "./open_spans.ts";
import { SPAN_BYTES, SpanPage } from "./span_page.ts";
import { SpanRing } from "./span_ring.ts";

/** A ring of several pages, with some spans written. */
function ringOf(count: number, first = 1): SpanRing {
  const ring = new SpanRing(16 * 120 * SPAN_BYTES);
  for (let seq = first; seq < first + count; seq++) write(ring, seq);
  return ring;
}

function write(ring: SpanRing, seq: number): void {
  const error = seq % 3 === 0 ? { error: "oops" } : {};
  const sent = seq % 2 === 0 ? { sent: seq } : {};
  const span = spanOf({ seq, trace: seq, parent: seq % 5, ended: seq + 1, ...error, ...sent });
  ring.write(span, UNOPENED_PLACE, 1_000);
}

function running(...seqs: number[]): SpanPage {
  const page = new SpanPage(seqs.length);
  for (const seq of seqs) writeSpans(page, 0, { seq });
  return page;
}

function seqsOf(rows: RecordedRows): number[] {
  return Array.from({ length: rows.size }, (_, row) => rows.seqAt(row));
}

/** All values that a row has by itself. */
function columns(rows: RecordedRows, row: number) {
  const { function_id, namespace } = rows.functionAt(row);
  return {
    function_id,
    namespace,
    seq: rows.seqAt(row),
    trace_id: rows.traceAt(row),
    span_id: rows.spanAt(row),
    parent_span_id: rows.parentAt(row),
    start_ms: rows.startAt(row),
    end_ms: rows.endAt(row),
    error_code: rows.errorCodeAt(row),
    caller: rows.callerNameAt(row),
    callee: rows.calleeNameAt(row),
  };
}

function expected(call: CallSpan): ReturnType<typeof columns> {
  const { function_id, namespace, seq, trace_id, span_id, parent_span_id } = call;
  const { start_ms, end_ms, error_code, caller, callee } = call;
  const ids = { function_id, namespace, seq, trace_id, span_id, parent_span_id };
  const names = { caller: caller.name, callee: callee?.name ?? null };
  return { ...ids, start_ms, end_ms, error_code, ...names };
}

Deno.test("running calls come first, the newest first, then the last ones that ended", () => {
  const ring = ringOf(100);
  assert.ok(ring.spans === 100 && ring.pages.length > 2, `${ring.pages.length} pages`);

  for (const limit of [1, 2, 39, 40, 41, 100, 1_000, Infinity]) {
    using rows = new RecordedRows(running(201, 203, 202), ring.pages, limit, callId);
    const count = Math.min(limit, 100);
    assert.deepEqual(seqsOf(rows), [
      ...[203, 202, 201].slice(0, limit),
      ...Array.from({ length: count }, (_, n) => 101 - count + n),
    ], `limit ${limit}`);
  }
  using none = new RecordedRows(running(), [], 10, callId);
  assert.equal(none.size, 0);
});

Deno.test("the values of a row are those of its call", () => {
  const ring = ringOf(100);
  using rows = new RecordedRows(running(201), ring.pages, 50, callId);
  const calls = ring.after(50, 50, callId).spans;

  assert.equal(rows.endAt(0), null);
  calls.forEach((call, n) => {
    assert.deepEqual(rows.read(n + 1), call);
    assert.deepEqual(columns(rows, n + 1), expected(call));
    assert.ok(rows.mayBeOf(n + 1, new Set([traceHeadOf(call.trace_id)])));
    assert.ok(!rows.mayBeOf(n + 1, new Set([traceHeadOf("ff".repeat(16)), NaN])));
  });
  assert.deepEqual(columns(rows, 7), expected(calls[6]!), "in any order");
});

Deno.test("rows stay as they are while the ring goes on, and pages are reused afterwards", () => {
  const ring = ringOf(100);
  const rows = new RecordedRows(running(), ring.pages, Infinity, callId);
  const pages = new Set(ring.pages);
  const before = seqsOf(rows);

  for (let seq = 101; seq < 2_000; seq++) write(ring, seq);
  assert.ok(!ring.pages.some((page) => pages.has(page)));
  assert.deepEqual(seqsOf(rows), before);
  assert.equal(rows.read(0).function_id, "a::f");

  rows[Symbol.dispose]();
  rows[Symbol.dispose](); // Once is enough.
  const held = new Set(ring.pages);
  for (let seq = 2_000; seq < 4_000; seq++) write(ring, seq);
  assert.ok(ring.pages.some((page) => held.has(page)));
  assert.ok([...pages].every(({ readers }) => readers === 0));
});

Deno.test("traceHeadOf() is a number for ids only", () => {
  assert.equal(traceHeadOf("0000000f" + "0".repeat(24)), 15);
  assert.ok(Number.isNaN(traceHeadOf("no id")));
  assert.ok(Number.isNaN(traceHeadOf("")));
});
