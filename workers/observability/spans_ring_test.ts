/**
 * The newest spans stay, within their bytes.
 *
 * @module
 */
import assert from "node:assert/strict";
import { idOf, NOON, storedSpan } from "../../tests/fakes/spans.ts";
import { bytesOf, SpanRing } from "./spans_ring.ts";

const span = (n: number, trace = n) =>
  storedSpan({ trace_id: idOf(trace, 32), span_id: idOf(n, 16), start_ms: NOON + n });
const ids = (spans: Iterable<{ start_ms: number }>) => [...spans].map((s) => s.start_ms - NOON);
const BYTES = bytesOf(span(1));

Deno.test("SpanRing forgets the oldest when its bytes are used up", () => {
  const ring = new SpanRing(3 * BYTES);

  for (let n = 0; n < 5; n++) assert.ok(ring.add(span(n)));

  assert.deepEqual(ids(ring.find(() => true, 10)), [4, 3, 2]);
  assert.equal(ring.size, 3);
  assert.equal(ring.bytes, 3 * BYTES);
  assert.equal(ring.oldestMs, NOON + 2);
  assert.deepEqual(ring.trace(idOf(0, 32)), []);
  assert.equal(ring.span(idOf(4, 32), idOf(4, 16))!.start_ms, NOON + 4);
});

Deno.test("SpanRing keeps a span once, and none that is larger than all its memory", () => {
  const ring = new SpanRing(2 * BYTES);

  assert.ok(ring.add(span(1)));
  assert.equal(ring.add(span(1)), false);
  assert.equal(ring.add(storedSpan({ span_id: idOf(2, 16), name: "x".repeat(10_000) })), false);
  assert.equal(ring.size, 1);
});

Deno.test("SpanRing knows each span of a trace, however many have come and gone", () => {
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

Deno.test("SpanRing.since() goes on where somebody stopped, also past what is gone", () => {
  const ring = new SpanRing(3 * BYTES);
  ring.add(span(0));
  const cursor = ring.seq;

  for (let n = 1; n < 3; n++) ring.add(span(n));
  assert.deepEqual(ids(ring.since(cursor)), [1, 2]);

  for (let n = 3; n < 9; n++) ring.add(span(n));
  assert.deepEqual(ids(ring.since(cursor)), [6, 7, 8]);
  assert.deepEqual(ids(ring.since(ring.seq)), []);
});

Deno.test("SpanRing gives up at once what a smaller size has no room for", () => {
  const ring = new SpanRing(10 * BYTES);
  for (let n = 0; n < 10; n++) ring.add(span(n));

  ring.resize(2 * BYTES);

  assert.deepEqual(ids(ring.find(() => true, 10)), [9, 8]);
  ring.clear();
  assert.equal(ring.size, 0);
  assert.equal(ring.oldestMs, null);
  assert.ok(ring.add(span(9)));
});

Deno.test("SpanRing stays quick and in bounds for one trace of very many spans", () => {
  const ring = new SpanRing(5_000 * BYTES);

  for (let n = 0; n < 50_000; n++) ring.add(span(n, 1));

  assert.ok(ring.bytes <= 5_000 * BYTES);
  assert.equal(ring.trace(idOf(1, 32)).length, ring.size);
});

Deno.test("SpanRing lets go of a span as soon as it is forgotten", () => {
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
