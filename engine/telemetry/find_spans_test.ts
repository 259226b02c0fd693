/**
 * The newest spans that fit.
 *
 * @module
 */
import assert from "node:assert/strict";
import { callId, writeSpans } from "../../tests/fakes/open_spans.ts";
import { Random } from "../../tests/fakes/random.ts";
import { findSpans } from "./find_spans.ts";
import { SpanPage } from "./span_page.ts";

/** Pages with these numbers, in the order of endings. */
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

Deno.test("findSpans() puts what started last first, wherever it ended", () => {
  const pages = pagesOf([9, 1], [4, 8, 5], [3, 2]);

  assert.deepEqual(find(pages, 100), [9, 8, 5, 4, 3, 2, 1]);
  assert.deepEqual(find(pages, 3), [9, 8, 5]);
  assert.deepEqual(find(pages, 2, "even"), [8, 4]);
});

for (const limit of [0, -1, NaN]) {
  Deno.test(`findSpans() finds nothing when ${limit} are wanted`, () => {
    assert.deepEqual(find(pagesOf([1]), limit), []);
  });
}

Deno.test("findSpans() finds the same as sorting everything would", () => {
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

Deno.test("findSpans() looks no further than the span whose id is asked for", () => {
  const [newer, older] = pagesOf([1], [2]);
  const span_id = newer!.read(0, callId).span_id;
  let looks = 0;
  const fits = older!.fits.bind(older);
  older!.fits = (...args) => (looks++, fits(...args));

  const found = findSpans([newer!, older!], { span_id }, 10, callId);

  assert.deepEqual(found.map(({ seq }) => seq), [1]);
  assert.equal(looks, 0);
});
