/**
 * Recorded calls in arrays of numbers.
 *
 * @module
 */
import assert from "node:assert/strict";
import { callId, type SpanFields, spanOf, writeSpans } from "../../tests/fakes/spans.ts";
import type { CallFilter, CallSpan } from "../ports/telemetry.ts";
import { UNOPENED_PLACE } from "./open_spans.ts";
import { firstValue, prepareFilter, SPAN_BYTES, SpanPage } from "./span_page.ts";

const UUID = "7d0e4b1e-9f0a-4f1b-8f4f-0123456789ab";

function pageOf(...spans: SpanFields[]): SpanPage {
  const page = new SpanPage(spans.length);
  writeSpans(page, 1_000, ...spans);
  return page;
}

function read(span: SpanFields): CallSpan {
  return pageOf({ seq: 9 }, span).read(1, callId);
}

/** The sequence numbers of the matching spans. */
function found(page: SpanPage, filter: CallFilter): number[] {
  const prepared = prepareFilter(filter);
  if (!prepared) return [];
  const places = Array.from({ length: page.count }, (_, at) => at);
  return places.filter((at) => page.fits(at, prepared, callId)).map((at) => page.seqAt(at));
}

Deno.test("SpanPage.read() returns what was written, with wall clock times", () => {
  const span = read({
    seq: 3,
    trace: 0xa,
    span: 0xb,
    parent: 0xc,
    slot: 5,
    uses: 7,
    callerId: UUID,
    since: 10,
    sent: 12,
    ended: 15.5,
    request: '{"a":1}',
  });

  assert.deepEqual(span, {
    seq: 3,
    trace_id: "0000000a000000000000000000000000",
    span_id: "0000000b00000000",
    parent_span_id: "0000000c00000000",
    function_id: "a::f",
    namespace: "default",
    invocation_id: callId(5, 7),
    caller_invocation_id: UUID,
    caller: { worker_id: "caller-1", name: "shop" },
    callee: { worker_id: "callee-1", name: "a" },
    start_ms: 1_010,
    sent_ms: 1_012,
    end_ms: 1_015.5,
    error_code: null,
    error_message: null,
    stacktrace: null,
    ended_by: null,
    timeout_ms: 1_000,
    request_chars: 7,
    response_chars: null,
    request: '{"a":1}',
    response: null,
    baggage: null,
    candidates: null,
  });
});

Deno.test("SpanPage.read() returns null for missing values", () => {
  const span = read({ seq: 3 });

  assert.equal(span.invocation_id, "");
  for (
    const name of ["parent_span_id", "caller_invocation_id", "callee", "sent_ms", "end_ms"] as const
  ) assert.equal(span[name], null, name);
  assert.equal(span.request_chars, null);
});

Deno.test("SpanPage.read() returns a caller's id as the caller wrote it", () => {
  assert.equal(read({ seq: 1, callerId: 'a\\"b' }).caller_invocation_id, 'a"b');
});

Deno.test("SpanPage.read() returns only the value of a payload, and none that is not JSON", () => {
  assert.equal(read({ seq: 1, request: "nonsense" }).request, null);
  const { request, request_chars } = read({ seq: 1, request: '[1],"secret":2' });
  assert.deepEqual([request, request_chars], ["[1]", 3]);
});

Deno.test("SpanPage.fits() finds a call by each of its ids", () => {
  const page = pageOf(
    { seq: 1, trace: 1, span: 11, slot: 1, uses: 1, callerId: UUID },
    { seq: 2, trace: 2, span: 12, slot: 1, uses: 2, callerId: "i2" },
    { seq: 3, trace: 2, span: 13 },
    { seq: 4, slot: 0xfffffffe, uses: 1, callerId: `ffffffff${UUID.slice(8)}` },
  );

  assert.deepEqual(found(page, { trace_id: `00000002${"0".repeat(24)}` }), [2, 3]);
  assert.deepEqual(found(page, { span_id: `0000000c${"0".repeat(8)}` }), [2]);
  assert.deepEqual(found(page, { invocation_id: UUID }), [1]);
  assert.deepEqual(found(page, { invocation_id: "i2" }), [2]);
  assert.deepEqual(found(page, { invocation_id: callId(1, 2) }), [2]);
  assert.deepEqual(found(page, { invocation_id: callId(1, 1) }), [1]);
  assert.deepEqual(found(page, { invocation_id: `ffffffff${UUID.slice(8)}` }), [4]);
  assert.deepEqual(found(page, { invocation_id: callId(0xffffffff, 0) }), []);
});

Deno.test("SpanPage.fits() requires all conditions", () => {
  const page = pageOf(
    { seq: 1, since: 5, function_id: "a" },
    { seq: 2, since: 6, function_id: "b" },
    { seq: 3, since: 7, function_id: "a" },
  );

  assert.deepEqual(found(page, {}), [1, 2, 3]);
  assert.deepEqual(found(page, { function_id: "a" }), [1, 3]);
  assert.deepEqual(found(page, { since_ms: 1_006 }), [2, 3]);
  assert.deepEqual(found(page, { until_ms: 1_006 }), [1, 2]);
  assert.deepEqual(found(page, { function_id: "a", since_ms: 1_006 }), [3]);
});

for (
  const filter of [
    { trace_id: "x" },
    { trace_id: "0".repeat(32) },
    { span_id: "abc" },
    { invocation_id: "" },
  ]
) {
  Deno.test(`prepareFilter() rejects ${JSON.stringify(filter)}`, () => {
    assert.equal(prepareFilter(filter), undefined);
  });
}

Deno.test("a page counts the details of its spans, and shared objects once", () => {
  const page = new SpanPage(4);
  page.reuse(1);
  const plain = spanOf({ seq: 1 });
  page.write(plain, UNOPENED_PLACE, 0);
  const shared = page.extraBytes;
  page.write(plain, UNOPENED_PLACE, 0);
  assert.equal(page.extraBytes, shared);
  assert.ok(shared > 0);

  writeSpans(page, 0, { seq: 2, request: "1".repeat(500) });
  assert.ok(page.extraBytes > shared + 500);
  assert.ok(SPAN_BYTES > 100);
});

Deno.test("SpanPage.reuse() removes everything", () => {
  const page = pageOf({ seq: 1 });
  page.reuse(2);

  assert.deepEqual([page.number, page.count, page.extraBytes], [2, 0, 0]);
});

for (
  const [text, value] of [
    ["1", "1"],
    [' {"a":[1, 2]} ', '{"a":[1, 2]}'],
    ['12345678901234567890,"colour":"red"', "12345678901234567890"],
    ['{"a":",}"},"action":{"type":"enqueue"}', '{"a":",}"}'],
    ['"a\\",b" ,"c":1', '"a\\",b"'],
    ["[1,2", null],
    ['"open', null],
    ["}{,1", null],
    [",", null],
    ["", null],
    ["nonsense", null],
  ] as const
) {
  Deno.test(`firstValue() finds ${value} in ${JSON.stringify(text)}`, () => {
    assert.equal(firstValue(text), value);
  });
}
