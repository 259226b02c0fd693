import assert from "node:assert/strict";
import { Expression, EXPRESSION_CHARS_MAX, readExpression, ReadExpressions } from "./expression.ts";

const NOW = Date.UTC(2026, 10, 23, 12);

function times(text: string, timezone: string, from: string, count: number): string[] {
  const found = new Expression(text, timezone).nextTimes(Date.parse(from), count);
  return found.map((ms) => new Date(ms).toISOString().replace(".000Z", "Z"));
}

Deno.test("an expression has seconds, and a year if it wants", () => {
  assert.deepEqual(times("*/5 * * * * *", "UTC", "2025-11-21T12:00:05Z", 2), [
    "2025-11-21T12:00:10Z",
    "2025-11-21T12:00:15Z",
  ]);
  assert.deepEqual(times("0 0 9 * * MON-FRI", "America/New_York", "2026-01-02T20:00:00Z", 1), [
    "2026-01-05T14:00:00Z",
  ]);
  assert.deepEqual(times("0 0 0 1 1 * 2030", "UTC", "2026-01-01T00:00:00Z", 2), [
    "2030-01-01T00:00:00Z",
  ]);
});

Deno.test("a time that the clock leaves out in spring fires once, when the hour is over", () => {
  assert.deepEqual(times("0 30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3), [
    "2026-03-28T01:30:00Z",
    "2026-03-29T01:00:00Z",
    "2026-03-30T00:30:00Z",
  ]);
  assert.deepEqual(times("0 */30 * * * *", "Europe/Berlin", "2026-03-29T00:10:00Z", 3), [
    "2026-03-29T00:30:00Z",
    "2026-03-29T01:00:00Z",
    "2026-03-29T01:30:00Z",
  ]);
});

Deno.test("a time that the clock repeats in autumn fires once, an interval goes on", () => {
  assert.deepEqual(times("0 30 2 * * *", "Europe/Berlin", "2026-10-24T00:00:00Z", 3), [
    "2026-10-24T00:30:00Z",
    "2026-10-25T00:30:00Z",
    "2026-10-26T01:30:00Z",
  ]);
  assert.deepEqual(times("0 */30 * * * *", "Europe/Berlin", "2026-10-25T00:10:00Z", 4), [
    "2026-10-25T00:30:00Z",
    "2026-10-25T01:00:00Z",
    "2026-10-25T01:30:00Z",
    "2026-10-25T02:00:00Z",
  ]);
});

Deno.test("the last times include the time itself, the oldest first", () => {
  const expression = new Expression("*/10 * * * * *", "UTC");

  assert.deepEqual(expression.lastTimes(NOW, 3), [NOW - 20_000, NOW - 10_000, NOW]);
  assert.deepEqual(expression.lastTimes(NOW + 9_999, 1), [NOW]);
  assert.equal(expression.next(NOW), NOW + 10_000);
  assert.equal(expression.next(NOW), NOW + 10_000);
  assert.equal(expression.next(NOW - 1), NOW);
});

for (
  const [text, problem] of [
    ["", /^Cron expression is required$/],
    ["  ", /^Cron expression is required$/],
    ["* * * * *", /has 5 fields, expected 6 or 7; seconds come first: "0 \* \* \* \* \*"/],
    ["@daily", /has 1 fields, expected 6 or 7$/],
    ["* * * * * * * *", /has 8 fields/],
    ["0 61 * * * *", /field 2 \(minute, 0 to 59\) at character 3 is not valid: "61"/],
    ["0  0 24 * * *", /field 3 \(hour, 0 to 23\) at character 6 is not valid: "24"/],
    ["0 0 0 32 * *", /field 4 \(day of month, 1 to 31\) at character 7/],
    ["0 0 0 * 13 *", /field 5 \(month.* at character 9/],
    ["0 0 0 * * MOM", /field 6 \(day of week.* at character 11 is not valid: "MOM"/],
    ["0 0 0 * * * x", /field 7 \(year.* at character 13/],
    ["*/0 * * * * *", /field 1 .* at character 1 is not valid: "\*\/0"/],
    ["0 0 9-5 * * *", /field 3 .* at character 5/],
    ["? * * * * *", /field 1 .* is not valid: "\?"/],
    ["0 0 0 30 2 *", /"0 0 0 30 2 \*" never fires/],
    ["0 0 9 31 4,6,9,11 *", /never fires/],
    ["0 0 0 1 1 * 2020", /never fires/],
    ["*".repeat(EXPRESSION_CHARS_MAX + 1), /at most 256 characters, received 257/],
    ["\0\n\u202e * * * * *", /field 1/],
    ["1e1 * * * * *", /field 1/],
  ] as const
) {
  Deno.test(`the expression ${JSON.stringify(text.slice(0, 30))} is refused`, () => {
    assert.throws(() => readExpression(text, "UTC", NOW), {
      code: "INVALID_ARGUMENTS",
      message: problem,
    });
  });
}

Deno.test("an unknown time zone is refused with the most similar one", () => {
  for (
    const [zone, hint] of [
      ["Europe/Berln", "did you mean Europe/Berlin?"],
      ["berlin", "did you mean Europe/Berlin?"],
      ["New York", "did you mean America/New_York?"],
      ["UCT1", "did you mean UTC?"],
      ["Mars/Olympus_Mons", "such as Europe/Berlin"],
      ["", "such as Europe/Berlin"],
      ["x".repeat(1_000_000), "such as Europe/Berlin"],
    ] as const
  ) {
    assert.throws(() => readExpression("* * * * * *", zone, NOW), (error: Error) => {
      assert.ok(error.message.endsWith(hint), error.message);
      assert.ok(error.message.length < 200);
      return true;
    });
  }
});

Deno.test("expressions that are used last are kept, others are read again", () => {
  const known = new ReadExpressions(2);
  const hourly = Array.from({ length: 5 }, (_, hour) => {
    return new Expression(`0 0 ${hour} * * *`, "UTC", known);
  });

  assert.equal(known.size, 2);
  const now = Date.UTC(2026, 10, 23);
  const times = hourly.map((expression) => new Date(expression.next(now)!).toISOString());
  assert.deepEqual(times.map((text) => text.slice(8, 13)), [
    "24T00",
    "23T01",
    "23T02",
    "23T03",
    "23T04",
  ]);
  assert.equal(known.size, 2);
  assert.equal(known.read("0 0 4 * * *", "UTC"), known.read("0 0 4 * * *", "UTC"));
});

Deno.test("Expression.next() of a later moment before the next time is that time", () => {
  const expression = new Expression("0 0 9 * * *", "UTC");
  const nine = Date.UTC(2026, 10, 23, 9);

  assert.equal(expression.next(nine - 2), nine);
  assert.equal(expression.next(nine - 1), nine);
  assert.equal(expression.next(nine), nine + 86_400_000);
  assert.equal(expression.next(nine - 1), nine);
});
