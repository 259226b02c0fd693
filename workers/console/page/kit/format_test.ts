/**
 * @module
 */
import assert from "node:assert/strict";
import {
  formatAgo,
  formatBytes,
  formatCount,
  formatDateTime,
  formatDuration,
  formatLimit,
  formatPercent,
  formatRate,
  formatSpan,
  formatTime,
  NONE,
  trimZeros,
} from "./format.tsx";

for (
  const [ms, text] of [
    [0, "0 ms"],
    [0.417, "0.42 ms"],
    [18.34, "18.3 ms"],
    [999.4, "999 ms"],
    [1_200, "1.20 s"],
    [59_999, "60.0 s"],
    [252_000, "4 m 12 s"],
    [7_500_000, "2 h 5 m"],
    [273_600_000, "3 d 4 h"],
    [-5, "-5.00 ms"],
    [null, NONE],
    [undefined, NONE],
    [NaN, NONE],
    [Infinity, NONE],
  ] as const
) {
  Deno.test(`formatDuration(${ms}) is ${text}`, () => assert.equal(formatDuration(ms), text));
}

for (
  const [bytes, text] of [
    [0, "0 B"],
    [512, "512 B"],
    [1_536, "1.50 KiB"],
    [50_541_363, "48.2 MiB"],
    [1_024 ** 5 * 3, "3,072 TiB"],
    [null, NONE],
    [NaN, NONE],
  ] as const
) {
  Deno.test(`formatBytes(${bytes}) is ${text}`, () => assert.equal(formatBytes(bytes), text));
}

for (
  const [ms, text] of [
    [600_000, "10 min"],
    [90_000, "1.5 min"],
    [20_000, "20 s"],
    [1_500, "1.5 s"],
    [1_234, "1234 ms"],
    [250, "250 ms"],
    [86_400_000, "1 d"],
    [0, "0 ms"],
  ] as const
) {
  Deno.test(`formatLimit(${ms}) is ${text}`, () => assert.equal(formatLimit(ms), text));
}

for (
  const [text, short] of [
    ["64.0 MiB", "64 MiB"],
    ["1.50 GiB", "1.5 GiB"],
    ["5.00 ms", "5 ms"],
    ["0.25 ms", "0.25 ms"],
    ["100 ms", "100 ms"],
    ["1,000/s", "1,000/s"],
    ["10 m 0 s", "10 m 0 s"],
    ["10.0/s", "10/s"],
  ] as const
) {
  Deno.test(`trimZeros() of ${text} is ${short}`, () => assert.equal(trimZeros(text), short));
}

for (
  const [rate, text] of [
    [0, "0/s"],
    [0.2, "0.20/s"],
    [9.996, "10.0/s"],
    [12.54, "12.5/s"],
    [99.96, "100/s"],
    [1_204, "1,204/s"],
    [18_300, "18.3k/s"],
    [null, NONE],
  ] as const
) {
  Deno.test(`formatRate(${rate}) is ${text}`, () => assert.equal(formatRate(rate), text));
}

for (
  const [count, text] of [
    [0, "0"],
    [1_204, "1,204"],
    [18_300, "18.3k"],
    [2_410_000, "2.41M"],
    [undefined, NONE],
  ] as const
) {
  Deno.test(`formatCount(${count}) is ${text}`, () => assert.equal(formatCount(count), text));
}

Deno.test("formatPercent() has one decimal below 10", () => {
  assert.deepEqual([0.42, 9.96, 12.3, null].map(formatPercent), ["0.4 %", "10 %", "12 %", NONE]);
});

Deno.test("formatSpan() and formatAgo() use the largest unit", () => {
  assert.deepEqual([-1, 12_900, 240_000, 11_000_000, 2e8].map(formatSpan), [
    "0 s",
    "12 s",
    "4 m",
    "3 h",
    "2 d",
  ]);
  assert.deepEqual([formatAgo(1_000, 1_500), formatAgo(1_000, 13_000)], ["now", "12 s ago"]);
});

Deno.test("formatTime() and formatDateTime() are local", () => {
  const at = new Date(2026, 2, 1, 4, 3, 7, 81).getTime();

  assert.equal(formatTime(at), "04:03:07");
  assert.equal(formatTime(at, true), "04:03:07.081");
  assert.equal(formatDateTime(at), "2026-03-01 04:03:07");
});
