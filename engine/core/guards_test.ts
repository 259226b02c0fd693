/**
 * Rate limits, byte budgets and the comparison of secrets.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  isEqualSecret,
  RateWindow,
  readTelemetry,
  TELEMETRY_BYTES_PER_SECOND,
  TelemetryBudget,
} from "./guards.ts";

Deno.test("RateWindow.allow() refuses the event beyond the limit, wherever the window starts", () => {
  const window = new RateWindow(3, 100);

  assert.deepEqual([0, 50, 99, 99].map((now) => window.allow(now)), [true, true, true, false]);
  assert.equal(window.allow(100), true);
  assert.equal(window.allow(149), false);
  assert.equal(window.allow(150), true);
});

Deno.test("RateWindow.allow() does not count refused events", () => {
  const window = new RateWindow(1, 100);
  window.allow(0);
  for (let now = 1; now < 100; now++) assert.equal(window.allow(now), false);

  assert.equal(window.allow(100), true);
});

Deno.test("readTelemetry() splits a frame into kind and content, and ignores other messages", () => {
  const bytesOf = (text: string) => new TextEncoder().encode(text);

  assert.deepEqual(readTelemetry(bytesOf("OTLP{}")), { kind: "OTLP", bytes: bytesOf("{}") });
  assert.deepEqual(readTelemetry(bytesOf("LOGS")), { kind: "LOGS", bytes: bytesOf("") });
  for (const other of ["", "OTL", "otlp{}", '{"type":"x"}']) {
    assert.equal(readTelemetry(bytesOf(other)), undefined);
  }
});

Deno.test("TelemetryBudget.admit() drops bytes beyond the budget until the next second, warning once", () => {
  const budget = new TelemetryBudget();
  const part = TELEMETRY_BYTES_PER_SECOND / 10;

  assert.equal(budget.admit(6 * part, 0), "pass");
  assert.equal(budget.admit(4 * part, 999), "pass");
  assert.equal(budget.admit(1, 999), "warn");
  assert.equal(budget.admit(1, 999), "drop");
  assert.equal(budget.admit(10 * part, 1_000), "pass");
  assert.equal(budget.admit(1, 1_000), "drop");
});

Deno.test("TelemetryBudget.admit() counts dropped bytes: one large frame uses up the second", () => {
  const budget = new TelemetryBudget();

  assert.equal(budget.admit(TELEMETRY_BYTES_PER_SECOND + 1, 5), "warn");
  assert.equal(budget.admit(1, 6), "drop");
  assert.equal(budget.admit(1, 1_005), "pass");
});

for (
  const [known, said, equal] of [
    ["abc", "abc", true],
    ["abc", "abd", false],
    ["abc", "", false],
    ["abc", "abcabc", false],
    ["aaaa", "a", false],
  ] as const
) {
  Deno.test(`isEqualSecret() is ${equal} for "${known}" and "${said}"`, () => {
    assert.equal(isEqualSecret(known, said), equal);
  });
}
