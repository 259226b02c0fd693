import assert from "node:assert/strict";
import { Expression } from "./expression.ts";
import { CATCH_UP_MAX, dueSlots, LATE_MS } from "./slots.ts";

const NOON = Date.UTC(2026, 10, 23, 12);
const MINUTE = 60_000;
const minutely = new Expression("0 * * * * *", "UTC");

Deno.test("a time that is a little over is on time", () => {
  const due = dueSlots(minutely, NOON, NOON + LATE_MS, "none");

  assert.deepEqual(due, {
    missed: [],
    fresh: [NOON],
    passedOver: 0,
    isMore: false,
    last: NOON,
    next: NOON + MINUTE,
  });
  assert.deepEqual(dueSlots(minutely, NOON, NOON + LATE_MS + 1, "none").fresh, []);
});

for (
  const [catchUp, lateMs, missed, fresh, passedOver] of [
    ["none", 30_000, 0, 0, 3],
    ["none", 0, 0, 1, 2],
    ["last", 30_000, 1, 0, 2],
    ["last", 0, 0, 1, 2],
    ["all", 30_000, 3, 0, 0],
    ["all", 0, 2, 1, 0],
  ] as const
) {
  Deno.test(`of three due times, ${lateMs} ms after the last, catch_up: ${catchUp} fires ${missed + fresh}`, () => {
    const due = dueSlots(minutely, NOON, NOON + 2 * MINUTE + lateMs, catchUp);

    assert.deepEqual([due.missed.length, due.fresh.length, due.passedOver], [
      missed,
      fresh,
      passedOver,
    ]);
    assert.equal(due.last, NOON + 2 * MINUTE);
    if (catchUp === "last" && missed) assert.deepEqual(due.missed, [NOON + 2 * MINUTE]);
  });
}

Deno.test("of a month of seconds the newest thousand are found, with bounded work", () => {
  const everySecond = new Expression("* * * * * *", "UTC");
  const now = NOON + 30 * 24 * 60 * MINUTE;

  const due = dueSlots(everySecond, NOON, now, "all");

  assert.equal(due.missed.length + due.fresh.length, CATCH_UP_MAX);
  assert.equal(due.missed[0], now - (CATCH_UP_MAX - 1) * 1_000);
  assert.equal(due.fresh.at(-1), now);
  assert.equal(due.isMore, true);
  assert.equal(due.next, now + 1_000);
});

Deno.test("an expression that ends has no next time", () => {
  const once = new Expression("0 0 12 23 11 * 2026", "UTC");

  const due = dueSlots(once, NOON, NOON + 365 * 24 * 60 * MINUTE, "last");

  assert.deepEqual([due.missed, due.next], [[NOON], undefined]);
});
