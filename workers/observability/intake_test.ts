/**
 * Telemetry from untrusted senders: malformed frames are counted, and the budget holds.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { TelemetryFrame } from "../../engine/ports/telemetry.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import { NOON } from "../../tests/fakes/spans.ts";
import {
  cut,
  IntakeBudget,
  type ItemOrigin,
  readAttributes,
  readItems,
  readNanos,
  readValue,
  TELEMETRY_ATTRIBUTES_CHARS_MAX,
  TELEMETRY_FRAME_BYTES_MAX,
  TELEMETRY_FRAME_ITEMS_MAX,
  TELEMETRY_INTAKE_BYTES_PER_SECOND,
  TELEMETRY_INTAKE_MS_PER_SECOND,
  TelemetryIntake,
} from "./intake.ts";
import { Redactor } from "./redact.ts";

function setup() {
  const clock = new FakeClock();
  const lines: LogLine[] = [];
  const taken: [kind: string, frame: unknown][] = [];
  const reader = (kind: string) => ({
    take(frame: unknown) {
      if (frame === null) throw new Error("it is none\nat all");
      taken.push([kind, frame]);
      return { taken: 2, dropped: 1 };
    },
  });
  const log = recordingLog(lines);
  const intake = new TelemetryIntake({ clock, log, spans: reader("spans"), logs: reader("logs") });
  const receive = (kind: TelemetryFrame["kind"], text: string | Uint8Array) =>
    intake.receive({
      kind,
      bytes: typeof text === "string" ? new TextEncoder().encode(text) : text,
      worker_id: "w-1",
      address: null,
    });
  return { clock, lines, taken, intake, receive };
}

Deno.test("TelemetryIntake passes spans and logs to their readers and ignores metrics", () => {
  const { receive, taken, intake } = setup();

  receive("OTLP", "{}");
  receive("LOGS", "[1]");
  receive("MTRC", "{");

  assert.deepEqual(taken, [["spans", {}], ["logs", [1]]]);
  assert.deepEqual(intake.stats, { frames: 2, broken: 0, refused: 0, taken: 4, dropped: 2 });
});

Deno.test("TelemetryIntake counts malformed frames and warns at a limited rate", () => {
  const { receive, lines, clock, intake } = setup();

  for (const text of ["", "{", "null", "OTLP"]) receive("OTLP", text);
  receive("LOGS", new Uint8Array([0xff, 0xfe]));
  assert.equal(intake.stats.broken, 5);
  assert.equal(lines.length, 1);
  clock.tick(60_000);
  receive("LOGS", "null");

  assert.equal(lines.length, 2);
  assert.equal(lines[1]!.fields.id, "w-1");
  assert.equal(lines[1]!.fields.broken, 6);
  assert.equal(lines[1]!.fields.reason, "Error: it is none");
});

Deno.test("TelemetryIntake limits the bytes it reads per second", () => {
  const { receive, taken, intake, clock, lines } = setup();
  const frame = `"${"x".repeat(1024 * 1024)}"`;

  for (let i = 0; i < 20; i++) receive("LOGS", frame);
  assert.deepEqual([taken.length, intake.stats.refused], [15, 5]);
  clock.tick(1_000);
  receive("LOGS", frame);

  assert.equal(taken.length, 16);
  assert.match(lines[0]!.text, /exceeds the intake budget/);
});

for (
  const [name, text, reason] of [
    ["deeply nested", "[".repeat(4_000_000), /nested deeper than 128 levels/],
    ["very large", `"${"x".repeat(TELEMETRY_FRAME_BYTES_MAX)}"`, /the most is 4194304/],
  ] as const
) {
  Deno.test(`TelemetryIntake drops a ${name} frame without parsing it`, () => {
    const { receive, taken, intake, lines } = setup();

    receive("LOGS", text);
    receive("LOGS", "[1]");

    assert.equal(taken.length, 1);
    assert.equal(intake.stats.broken, 1);
    assert.match(JSON.stringify(lines), reason);
  });
}

Deno.test("readAttributes() leaves out what makes a record large", () => {
  const stringValue = "x".repeat(30_000);
  const list = Array.from({ length: 100 }, (_, i) => ({ key: `k${i}`, value: { stringValue } }));
  const values = Array.from({ length: 100 }, () => ({ stringValue }));
  const nested = { key: "nested", value: { arrayValue: { values } } };

  const attributes = readAttributes([nested, ...list], new Redactor());

  const chars = JSON.stringify([...attributes]).length;
  assert.ok(chars < 2 * TELEMETRY_ATTRIBUTES_CHARS_MAX, `${chars} characters`);
  assert.ok(!attributes.has("nested"));
});

Deno.test("TelemetryIntake survives random bytes", () => {
  const { receive, intake } = setup();

  for (let i = 0; i < 500; i++) {
    receive(i % 2 ? "OTLP" : "LOGS", crypto.getRandomValues(new Uint8Array(i % 40)));
  }

  assert.equal(intake.stats.frames, 500);
});

function setupBudget() {
  const clock = new FakeClock();
  const budget = new IntakeBudget(clock);
  const spend = (ms = 0, bytes = 1) => budget.spend(bytes, () => clock.tick(ms));
  return { clock, budget, spend };
}

Deno.test("IntakeBudget limits the bytes per second", () => {
  const { clock, spend } = setupBudget();

  assert.ok(spend(0, TELEMETRY_INTAKE_BYTES_PER_SECOND));
  assert.equal(spend(), false);
  clock.tick(1_000);
  assert.ok(spend());
});

Deno.test("IntakeBudget deducts overspent time from the following seconds", () => {
  const { clock, spend } = setupBudget();

  assert.ok(spend(1_000));
  const wait = 1_000 / TELEMETRY_INTAKE_MS_PER_SECOND * 1_000;
  clock.tick(wait - 1_001);
  assert.equal(spend(), false);
  clock.tick(1);

  assert.ok(spend());
});

Deno.test("IntakeBudget counts the time of a task that throws", () => {
  const { clock, budget, spend } = setupBudget();

  assert.throws(() =>
    budget.spend(1, () => {
      clock.tick(TELEMETRY_INTAKE_MS_PER_SECOND);
      throw new Error("broken");
    }), /broken/);

  assert.equal(spend(), false);
});

const LISTS = ["groups", "scopes", "items"] as const;

function read(frame: unknown) {
  const origins: ItemOrigin[] = [];
  let looked = 0;
  const result = readItems(frame, LISTS, (origin) => void origins.push(origin), (record) => {
    looked++;
    return typeof record === "string" ? { record, of: origins.length } : undefined;
  });
  return { ...result, origins, looked };
}

Deno.test("readItems() reports the resource and scope of each record", () => {
  const { items, dropped, origins } = read({
    groups: [
      {
        resource: { attributes: [1] },
        scopes: [{ scope: { name: "a", version: "2" }, items: ["x", 5] }, { items: ["y"] }],
      },
      { scopes: [{ scope: { name: 5 }, items: ["z"] }, 7, { items: "no list" }] },
    ],
  });

  assert.deepEqual(items.map(({ record, of }) => [record, of]), [["x", 1], ["y", 2], ["z", 3]]);
  assert.equal(dropped, 1);
  const none = { scope_name: null, scope_version: null };
  assert.deepEqual(origins.slice(0, 3), [
    { resource: [1], scope_name: "a", scope_version: "2" },
    { resource: [1], ...none },
    { resource: [], ...none },
  ]);
});

for (const [what, record] of [["whole", "x"], ["broken", 5]] as const) {
  Deno.test(`readItems() reads a bounded number of ${what} records and counts the rest`, () => {
    const items = Array(TELEMETRY_FRAME_ITEMS_MAX + 10).fill(record);

    const { looked, dropped } = read({ groups: [{ scopes: [{ items }, { items }] }] });

    assert.equal(looked, TELEMETRY_FRAME_ITEMS_MAX);
    assert.equal(dropped, 2 * items.length - (what === "whole" ? looked : 0));
  });
}

const redactor = new Redactor();

Deno.test("cut() does not keep the original text alive", () => {
  const bytes = new Uint8Array(1024 * 1024).fill(0x78);
  const before = Deno.memoryUsage().heapUsed;

  const texts = Array.from({ length: 500 }, () => {
    const large = new TextDecoder().decode(bytes);
    return [cut(large, 100), cut(large.slice(0, 50), 100)];
  });

  assert.ok(Deno.memoryUsage().heapUsed - before < 250 * 1024 * 1024);
  assert.equal(texts.length, 500);
});

Deno.test("readAttributes() bounds the number of names and returns the last value of each", () => {
  const list = Array.from({ length: 1_000 }, (_, i) => ({
    key: `k${i}`,
    value: { boolValue: true },
  }));

  assert.equal(readAttributes(list, redactor).size, 128);
  assert.deepEqual(
    [...readAttributes([{ key: "a", value: { intValue: 1 } }, {
      key: "a",
      value: { intValue: 2 },
    }], redactor)],
    [["a", 2]],
  );
});

Deno.test("readValue() reads every kind of value, and inexact integers as text", () => {
  const values = [
    { intValue: "9007199254740993" },
    { intValue: 5 },
    { doubleValue: 1.5 },
    { doubleValue: "NaN" },
    { doubleValue: "2.5" },
    { boolValue: false },
    { bytesValue: "AA==" },
    { arrayValue: { values: [{ stringValue: "a" }, {}] } },
    { kvlistValue: { values: [{ key: "k", value: { intValue: 1 } }, 5] } },
    { stringValue: 5 },
    {},
  ];

  assert.deepEqual(values.map((value) => readValue(value, 0)), [
    "9007199254740993",
    5,
    1.5,
    null,
    2.5,
    false,
    "AA==",
    ["a", null],
    { k: 1 },
    null,
    null,
  ]);
});

Deno.test("readValue() bounds the nesting", () => {
  let value: unknown = { stringValue: "deep" };
  for (let i = 0; i < 5_000; i++) value = { arrayValue: { values: [value] } };

  assert.doesNotMatch(JSON.stringify(readValue(value, 0)), /deep/);
});

Deno.test("readNanos() rejects invalid times", () => {
  assert.equal(readNanos(`${NOON}000000`), NOON);
  for (const none of [null, undefined, "", "x", 0, "0", -1, Infinity]) {
    assert.equal(readNanos(none), undefined);
  }
});
