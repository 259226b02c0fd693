/**
 * The calls that ended, within a memory limit, and the search in them.
 *
 * @module
 */
import assert from "node:assert/strict";
import { callId, spanOf, writeSpans } from "../../tests/fakes/spans.ts";
import { Random } from "../../tests/fakes/random.ts";
import { UNOPENED_PLACE } from "./open_spans.ts";
import { SPAN_BYTES, SpanPage } from "./span_page.ts";
import { findSpans, SpanRing } from "./span_ring.ts";

const KIB = 1024;

/** Adds calls of one function with consecutive numbers. */
function fill(ring: SpanRing, count: number, request?: string): void {
  const span = spanOf({ seq: 0, ...request === undefined ? {} : { request } });
  for (let i = 0; i < count; i++) {
    span.sample(UNOPENED_PLACE, ring.recorded + 1);
    ring.write(span, UNOPENED_PLACE, 0);
  }
}

/** Memory of its pages. */
function bytesOf(ring: SpanRing): number {
  return ring.pages.reduce((sum, { size, extraBytes }) => sum + size * SPAN_BYTES + extraBytes, 0);
}

function seqs(ring: SpanRing): number[] {
  return ring.after(0, 1e6, callId).spans.map(({ seq }) => seq);
}

Deno.test("SpanRing.after() continues from its cursor, oldest first", () => {
  const ring = new SpanRing(64 * KIB);
  fill(ring, 50);

  const first = ring.after(0, 20, callId);
  assert.deepEqual(first.spans.map(({ seq }) => seq), Array.from({ length: 20 }, (_, i) => i + 1));
  assert.equal(first.cursor, 20);
  const rest = ring.after(first.cursor, 100, callId);
  assert.deepEqual([rest.spans.length, rest.spans[0]!.seq, rest.cursor], [30, 21, 50]);
  assert.deepEqual(ring.after(rest.cursor, 100, callId), { spans: [], cursor: 50 });
});

Deno.test("SpanRing.after() skips overwritten spans, and corrects a cursor beyond the newest", () => {
  const ring = new SpanRing(64 * KIB);
  fill(ring, 10_000);

  const { spans, cursor } = ring.after(5, 1e6, callId);
  assert.equal(spans.length, ring.spans);
  assert.equal(spans.at(-1)!.seq, 10_000);
  assert.equal(cursor, 10_000);
  assert.deepEqual(ring.after(99_999, 10, callId), { spans: [], cursor: 10_000 });
});

for (const bytes of [16 * KIB, 64 * KIB, 1024 * KIB]) {
  Deno.test(`a ring of ${bytes} bytes never uses more, whatever details its spans have`, () => {
    const ring = new SpanRing(bytes);
    const most = "x".repeat(ring.detailBytesMax / 2);
    for (const request of [undefined, "short", most, undefined]) {
      for (let i = 0; i < 40; i++) {
        fill(ring, 50, request);
        assert.ok(bytesOf(ring) <= bytes, `${bytesOf(ring)} bytes`);
      }
    }

    assert.ok(ring.spans > 0);
    assert.equal(ring.overwritten + ring.spans, ring.recorded);
    assert.ok(ring.spans <= ring.capacity, `${ring.spans} of ${ring.capacity}`);
    const held = seqs(ring);
    assert.equal(held.at(-1), ring.recorded);
    assert.equal(held[0], ring.recorded - ring.spans + 1, "the newest are held, without a gap");
  });
}

Deno.test("a ring fills most of its capacity with spans without details", () => {
  const ring = new SpanRing(1024 * KIB);
  fill(ring, 3 * ring.capacity);

  assert.ok(ring.spans > ring.capacity * 0.85, `${ring.spans} of ${ring.capacity}`);
});

Deno.test("a ring without memory counts and holds nothing", () => {
  const ring = new SpanRing(0);
  fill(ring, 3);

  assert.deepEqual([ring.spans, ring.recorded, ring.overwritten, ring.capacity], [0, 3, 3, 0]);
  assert.deepEqual(ring.after(0, 10, callId), { spans: [], cursor: 3 });
});

Deno.test("SpanRing.resized() to a smaller ring drops the oldest spans, and keeps the counters", () => {
  const large = new SpanRing(256 * KIB);
  fill(large, 1_000);
  const small = large.resized(64 * KIB);

  assert.ok(bytesOf(small) <= 64 * KIB);
  assert.ok(small.spans > 0 && small.spans < 1_000);
  assert.equal(small.recorded, 1_000);
  assert.equal(small.overwritten, 1_000 - small.spans);
  fill(small, 1_000);
  assert.ok(bytesOf(small) <= 64 * KIB);
  assert.equal(seqs(small).at(-1), 2_000);
});

Deno.test("SpanRing.resized() to a larger ring keeps all spans", () => {
  const small = new SpanRing(64 * KIB);
  fill(small, 100);
  const large = small.resized(256 * KIB);

  assert.equal(large.spans, 100);
  assert.equal(large.after(90, 100, callId).spans.length, 10);
});

Deno.test("SpanRing.resized() to zero drops all spans, and counts them as overwritten", () => {
  const ring = new SpanRing(64 * KIB);
  fill(ring, 10);
  const none = ring.resized(0);

  assert.deepEqual([none.spans, none.recorded, none.overwritten], [0, 10, 10]);
});

Deno.test("SpanRing.clear() removes the spans and keeps the count, so that cursors stay valid", () => {
  const ring = new SpanRing(64 * KIB);
  fill(ring, 10);
  ring.clear();

  assert.deepEqual([ring.spans, ring.recorded], [0, 10]);
  fill(ring, 2);
  assert.deepEqual(ring.after(10, 10, callId).cursor, 12);
  assert.deepEqual(seqs(ring), [11, 12]);
});

/** Pages with these sequence numbers, in the order in which the calls ended. */
function pagesOf(...all: number[][]): SpanPage[] {
  return all.map((seqs) => {
    const page = new SpanPage(seqs.length);
    const spans = seqs.map((seq) => ({ seq, function_id: seq % 2 ? "odd" : "even" }));
    writeSpans(page, 0, ...spans);
    return page;
  });
}

function find(pages: SpanPage[], limit: number, function_id?: string): number[] {
  const filter = function_id === undefined ? {} : { function_id };
  return findSpans(pages, filter, limit, callId).map(({ seq }) => seq);
}

Deno.test("findSpans() returns the newest start first, in whatever order calls ended", () => {
  const pages = pagesOf([9, 1], [4, 8, 5], [3, 2]);

  assert.deepEqual(find(pages, 100), [9, 8, 5, 4, 3, 2, 1]);
  assert.deepEqual(find(pages, 3), [9, 8, 5]);
  assert.deepEqual(find(pages, 2, "even"), [8, 4]);
});

for (const limit of [0, -1, NaN]) {
  Deno.test(`findSpans() finds nothing for a limit of ${limit}`, () => {
    assert.deepEqual(find(pagesOf([1]), limit), []);
  });
}

Deno.test("findSpans() finds the same as sorting all spans", () => {
  const random = new Random(3);
  for (let round = 0; round < 200; round++) {
    const seqs = Array.from({ length: 1 + random.below(60) }, (_, i) => i + 1)
      .sort(() => random.below(3) - 1);
    const cut = random.below(seqs.length);
    const limit = 1 + random.below(20);
    const expected = seqs.toSorted((a, b) => b - a).slice(0, limit);

    assert.deepEqual(find(pagesOf(seqs.slice(0, cut), seqs.slice(cut)), limit), expected);
  }
});

Deno.test("findSpans() stops at the span whose id was requested", () => {
  const [newer, older] = pagesOf([1], [2]);
  const span_id = newer!.read(0, callId).span_id;
  let looks = 0;
  const fits = older!.fits.bind(older);
  older!.fits = (...args) => (looks++, fits(...args));

  const found = findSpans([newer!, older!], { span_id }, 10, callId);

  assert.deepEqual(found.map(({ seq }) => seq), [1]);
  assert.equal(looks, 0);
});
