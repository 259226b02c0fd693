import assert from "node:assert/strict";
import { count, duration, median, medians, percent, ratio, size, table } from "./figures.ts";
import type { Figures } from "./load.ts";

Deno.test("median() is the middle, or the mean of the two in the middle", () => {
  assert.equal(median([9, 1, 5]), 5);
  assert.equal(median([10, 1, 3, 2]), 2.5);
});

Deno.test("medians() takes each figure by itself", () => {
  const rounds = [figures(1, 30), figures(3, 10), figures(2, 20)];

  assert.deepEqual(medians(rounds), figures(2, 20));
});

Deno.test("ratio() compares within each round", () => {
  const fast = [figures(100), figures(10), figures(50)];
  const slow = [figures(200), figures(20), figures(50)];

  assert.equal(ratio(fast, slow, "rate"), 0.5);
  assert.equal(ratio(fast, slow, "p50_us"), 1);
});

Deno.test("figures are written for people", () => {
  assert.equal(count(45_349), "45,300");
  assert.equal(count(870.4), "870");
  assert.equal(duration(849.6), "850 µs");
  assert.equal(duration(1_240), "1.2 ms");
  assert.equal(percent(0.834), "83 %");
  assert.deepEqual([100, 10_240, 2 ** 20].map(size), ["100 B", "10 KiB", "1 MiB"]);
  assert.equal(table(["a", "b"], [["x", "1"]]), "| a | b |\n| --- | ---: |\n| x | 1 |");
});

function figures(rate: number, p50_us = 1): Figures {
  return { rate, p50_us, p99_us: 5, cpu_s: 1, rss_mb: 40 };
}
