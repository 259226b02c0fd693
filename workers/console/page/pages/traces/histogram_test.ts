/**
 * @module
 */
import assert from "node:assert/strict";
import { barAt, barsOf, countsOf, rangeOf, readHistogram } from "./histogram.ts";

const ANSWER = {
  since_ms: 1_000,
  before_ms: 5_000,
  bucket_ms: 1_000,
  counts: [0, 100, 10, 1],
  errors: [0, 0, 5, 1],
  total: 111,
};

Deno.test("readHistogram() reads an answer, and any other value", () => {
  assert.deepEqual(readHistogram(ANSWER), {
    fromMs: 1_000,
    toMs: 5_000,
    barMs: 1_000,
    counts: [0, 100, 10, 1],
    errors: [0, 0, 5, 1],
    total: 111,
  });
  for (const raw of [null, 5, {}, { counts: "x" }]) assert.deepEqual(readHistogram(raw).counts, []);
  assert.deepEqual(readHistogram({ counts: [1, 2], errors: [1] }).errors, [1, 0]);
});

Deno.test("barsOf() shows a single trace among many, and a single failure", () => {
  assert.deepEqual(barsOf(readHistogram(ANSWER)), [
    { height: 0, failed: 0 },
    { height: 1, failed: 0 },
    { height: 0.1, failed: 0.05 },
    { height: 0.05, failed: 0.05 },
  ]);
});

Deno.test("barAt() is the bar at a place, within the bars", () => {
  const histogram = readHistogram(ANSWER);

  assert.deepEqual([-1, 0, 0.3, 0.99, 1, 7].map((place) => barAt(histogram, place)), [
    0,
    0,
    1,
    3,
    3,
    3,
  ]);
});

Deno.test("rangeOf() has whole bars, selected in either direction", () => {
  const histogram = readHistogram(ANSWER);

  assert.deepEqual(rangeOf(histogram, { first: 1, last: 2 }), { from: 2_000, to: 4_000 });
  assert.deepEqual(rangeOf(histogram, { first: 2, last: 1 }), { from: 2_000, to: 4_000 });
  assert.deepEqual(rangeOf(histogram, { first: 3, last: 3 }), { from: 4_000, to: 5_000 });
});

Deno.test("rangeOf() does not divide a millisecond", () => {
  const histogram = readHistogram({ ...ANSWER, bucket_ms: 1 });

  assert.equal(rangeOf(histogram, { first: 0, last: 3 }), null);
});

Deno.test("countsOf() adds up bars", () => {
  const histogram = readHistogram(ANSWER);

  assert.deepEqual(countsOf(histogram, { first: 3, last: 2 }), { count: 11, failed: 6 });
});
