/**
 * The newest spans are stored within a bound in bytes.
 *
 * @module
 */
import assert from "node:assert/strict";
import { idOf, NOON, storedSpan } from "../../../tests/fakes/spans.ts";
import { Redactor } from "../redact.ts";
import { bytesOf, SpanRing, SPANS_UNINDEXED_MAX } from "./ring.ts";
import { spanOfWork } from "./span.ts";

const span = (n: number, trace = n) =>
  storedSpan({ trace_id: idOf(trace, 32), span_id: idOf(n, 16), start_ms: NOON + n });
const ids = (spans: Iterable<{ start_ms: number }>) => [...spans].map((s) => s.start_ms - NOON);
const BYTES = bytesOf(span(1));

Deno.test("SpanRing drops the oldest spans beyond its bound", () => {
  const ring = new SpanRing(3 * BYTES);

  for (let n = 0; n < 5; n++) assert.ok(ring.add(span(n)));

  assert.deepEqual(ids(ring.find(() => true, 10)), [4, 3, 2]);
  assert.equal(ring.size, 3);
  assert.equal(ring.bytes, 3 * BYTES);
  assert.equal(ring.oldestMs, NOON + 2);
  assert.deepEqual(ring.trace(idOf(0, 32)), []);
  assert.equal(ring.span(idOf(4, 32), idOf(4, 16))!.start_ms, NOON + 4);
});

Deno.test("SpanRing rejects duplicates and spans larger than its bound", () => {
  const ring = new SpanRing(2 * BYTES);

  assert.ok(ring.add(span(1)));
  assert.equal(ring.add(span(1)), false);
  assert.equal(ring.add(storedSpan({ span_id: idOf(2, 16), name: "x".repeat(10_000) })), false);
  assert.equal(ring.size, 1);
});

Deno.test("SpanRing finds the spans of a trace after many evictions", () => {
  const ring = new SpanRing(2 * BYTES);
  const trace = idOf(1, 32);

  for (let n = 1; n < 5; n++) {
    ring.add(span(n, 1));
    assert.equal(ring.add(span(n, 1)), false);
    assert.deepEqual(ids(ring.trace(trace)), n === 1 ? [1] : [n - 1, n]);
    assert.equal(ring.span(trace, idOf(n, 16))!.start_ms, NOON + n);
    assert.equal(ring.span(trace, idOf(9, 16)), undefined);
  }
  ring.add(span(5));
  ring.add(span(6));
  assert.deepEqual(ring.trace(trace), []);
  assert.equal(ring.span(trace, idOf(4, 16)), undefined);
});

Deno.test("SpanRing.since() continues at a number, also past dropped spans", () => {
  const ring = new SpanRing(3 * BYTES);
  ring.add(span(0));
  const cursor = ring.seq;

  for (let n = 1; n < 3; n++) ring.add(span(n));
  assert.deepEqual(ids(ring.since(cursor)), [1, 2]);

  for (let n = 3; n < 9; n++) ring.add(span(n));
  assert.deepEqual(ids(ring.since(cursor)), [6, 7, 8]);
  assert.deepEqual(ids(ring.since(ring.seq)), []);
});

Deno.test("SpanRing.resize() drops spans at once", () => {
  const ring = new SpanRing(10 * BYTES);
  for (let n = 0; n < 10; n++) ring.add(span(n));

  ring.resize(2 * BYTES);

  assert.deepEqual(ids(ring.find(() => true, 10)), [9, 8]);
  ring.clear();
  assert.equal(ring.size, 0);
  assert.equal(ring.oldestMs, null);
  assert.ok(ring.add(span(9)));
});

Deno.test("SpanRing stays fast and bounded for one trace of many spans", () => {
  const ring = new SpanRing(5_000 * BYTES);

  for (let n = 0; n < 50_000; n++) ring.add(span(n, 1));

  assert.ok(ring.bytes <= 5_000 * BYTES);
  assert.equal(ring.trace(idOf(1, 32)).length, ring.size);
});

Deno.test("SpanRing releases a span when it drops it", () => {
  const ring = new SpanRing(2 * BYTES);
  for (let n = 0; n < 3_000; n++) ring.add(span(n));

  assert.equal(ring.size, 2);
  assert.equal(ring.bytes, 2 * BYTES);
  assert.deepEqual(ids(ring.since(0)), [2_998, 2_999]);
  assert.deepEqual(ids(ring.since(ring.seq - 1)), [2_999]);
  assert.deepEqual(ids(ring.since(ring.seq)), []);
  ring.clear();
  assert.deepEqual(ids(ring.since(0)), []);
});

/**
 * The engine's own span of an HTTP request; indexed by trace only on lookup.
 */
const ownSpan = (n: number, trace = n) =>
  spanOfWork({
    traceparent: `00-${idOf(trace, 32)}-${idOf(n, 16)}-01`,
    parent: null,
    name: "GET /",
    service: "engine-http",
    start_ms: NOON + n,
    end_ms: NOON + n,
    error: null,
    attributes: {},
  }, new Redactor([]))!;

Deno.test("SpanRing finds spans added since the last lookup, of the engine and of workers", () => {
  const ring = new SpanRing(100 * BYTES);
  for (const n of [1, 2]) ring.add(ownSpan(n, 7));
  const before = ids(ring.trace(idOf(7, 32)));
  ring.add(ownSpan(3, 7));
  ring.add(span(4, 7));

  const isTaken = ring.add(span(3, 7));

  assert.deepEqual(before, [1, 2]);
  assert.equal(isTaken, false);
  assert.deepEqual(ids(ring.trace(idOf(7, 32))), [1, 2, 3, 4]);
  assert.equal(ring.span(idOf(7, 32), idOf(3, 16))!.start_ms, NOON + 3);
});

Deno.test("SpanRing drops indexed and unindexed spans alike", () => {
  const own = bytesOf(ownSpan(1));
  for (const askedAt of [[], [2], [4], [2, 4, 5_000], [4_999]]) {
    const ring = new SpanRing(5 * own);
    for (let n = 1; n <= 5_000; n++) {
      ring.add(ownSpan(n));
      if (askedAt.includes(n)) assert.deepEqual(ids(ring.trace(idOf(n, 32))), [n]);
    }

    for (const gone of [1, 2, 4, 4_995]) assert.deepEqual(ring.trace(idOf(gone, 32)), []);
    for (const kept of [4_996, 5_000]) assert.deepEqual(ids(ring.trace(idOf(kept, 32))), [kept]);
    assert.equal(ring.size, 5);
  }
});

Deno.test("SpanRing finds every span beyond the bound of unindexed spans", () => {
  const ring = new SpanRing(Infinity);
  for (let n = 1; n <= SPANS_UNINDEXED_MAX + 10; n++) ring.add(ownSpan(n));

  for (const n of [1, 10, 11, SPANS_UNINDEXED_MAX + 10]) {
    assert.deepEqual(ids(ring.trace(idOf(n, 32))), [n]);
  }
});

Deno.test("SpanRing bounds the spans that one lookup indexes", () => {
  const ring = new SpanRing(Infinity);
  const read = new Set<number>();
  const watched = (n: number) => {
    const trace_id = idOf(n, 32);
    const get = () => {
      read.add(n);
      return trace_id;
    };
    return Object.defineProperty(ownSpan(n), "trace_id", { get });
  };
  for (let n = 1; n <= SPANS_UNINDEXED_MAX + 10; n++) ring.add(watched(n));
  const early = read.size;
  read.clear();

  ring.trace(idOf(1, 32));

  assert.equal(early, 10);
  assert.equal(read.size, SPANS_UNINDEXED_MAX);
});
