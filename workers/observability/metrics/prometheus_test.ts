import assert from "node:assert/strict";
import { CoarseBuckets, PrometheusText } from "./prometheus.ts";

Deno.test("A family has its head once and a line for each sample", () => {
  const text = new PrometheusText();
  text.add("a_total", "counter", "How many.", [[{ f: "x" }, 1], [{ f: "y" }, 2.5]]);

  assert.equal(
    text.text,
    '# HELP a_total How many.\n# TYPE a_total counter\na_total{f="x"} 1\na_total{f="y"} 2.5\n',
  );
});

Deno.test("A family without a known value is left out", () => {
  const text = new PrometheusText();
  text.add("a", "gauge", "What.", [[{}, null]]);
  text.add("b", "gauge", "What.", []);
  text.addHistograms("c", "What.", []);

  assert.equal(text.text, "");
});

Deno.test("Labels cannot break out of their quotes", () => {
  const text = new PrometheusText();
  text.add("a", "gauge", "Two\nlines.", [[{ f: '"} 1\nb 2\\' }, 1], [{ f: "\ud800" }, 1]]);

  assert.deepEqual(text.text.split("\n"), [
    "# HELP a Two\\nlines.",
    "# TYPE a gauge",
    'a{f="\\"} 1\\nb 2\\\\"} 1',
    'a{f="\ufffd"} 1',
    "",
  ]);
});

Deno.test("Numbers are written as the format has them", () => {
  const text = new PrometheusText();
  const values = [NaN, Infinity, -Infinity, 1e21, 0.000001];
  text.add("a", "gauge", "x", values.map((value) => [{}, value] as const));

  const lines = text.text.trim().split("\n").slice(2);
  assert.deepEqual(lines, ["a NaN", "a +Inf", "a -Inf", "a 1e+21", "a 0.000001"]);
});

Deno.test("A histogram adds its buckets up", () => {
  const text = new PrometheusText();
  const histogram = { labels: { f: "x" }, bounds: [0.1, 1], counts: [2, 3, 4], sum: 9.5 };
  text.addHistograms("t_seconds", "Time.", [histogram, { ...histogram, labels: {} }]);

  assert.deepEqual(text.text.trim().split("\n"), [
    "# HELP t_seconds Time.",
    "# TYPE t_seconds histogram",
    't_seconds_bucket{f="x",le="0.1"} 2',
    't_seconds_bucket{f="x",le="1"} 5',
    't_seconds_bucket{f="x",le="+Inf"} 9',
    't_seconds_sum{f="x"} 9.5',
    't_seconds_count{f="x"} 9',
    't_seconds_bucket{le="0.1"} 2',
    't_seconds_bucket{le="1"} 5',
    't_seconds_bucket{le="+Inf"} 9',
    "t_seconds_sum 9.5",
    "t_seconds_count 9",
  ]);
});

Deno.test("CoarseBuckets keeps the last bound and those at half of the one above", () => {
  const buckets = new CoarseBuckets([1, 1.2, 1.4, 1.7, 2, 2.4, 2.8, 3.4, 4]);

  assert.deepEqual(buckets.bounds, [0.001, 0.002, 0.004]);
});

Deno.test("CoarseBuckets loses no count and moves none below its bound", () => {
  const buckets = new CoarseBuckets([1, 1.2, 1.4, 1.7, 2, 2.4, 2.8, 3.4, 4]);

  assert.deepEqual([...buckets.countsOf([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])], [1, 14, 30, 10]);
});
