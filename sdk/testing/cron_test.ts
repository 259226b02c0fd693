import assert from "node:assert/strict";
import { nextTime, parseCron } from "./cron.ts";

const next = (expression: string, after: string): string | undefined => {
  const time = nextTime(parseCron(expression), Date.parse(after));
  return time === undefined ? undefined : new Date(time).toISOString().replace(".000Z", "Z");
};

for (
  const [expression, after, expected] of [
    ["*/5 * * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z"],
    ["0 30 9 * * MON-FRI", "2026-01-02T09:30:00Z", "2026-01-05T09:30:00Z"],
    ["0 0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"],
    ["0 0 0 1 JAN,jul ? 2026", "2026-01-01T00:00:00Z", "2026-07-01T00:00:00Z"],
    ["0 0 0 13 * FRI", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"],
    ["0 0 0 * * 7", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"],
    ["0 10/20 1 * * *", "2026-01-01T01:10:00Z", "2026-01-01T01:30:00Z"],
    ["0 0 0 31 2 *", "2026-01-01T00:00:00Z", undefined],
  ] as const
) {
  Deno.test(`${expression} is next at ${expected} after ${after}`, () => {
    assert.equal(next(expression, after), expected);
  });
}

for (const expression of ["", "* * * * *", "60 * * * * *", "* * * * FOO *", "*/0 * * * * *"]) {
  Deno.test(`${JSON.stringify(expression)} is no schedule`, () => {
    assert.throws(() => parseCron(expression), /Cron/);
  });
}
