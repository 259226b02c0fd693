import assert from "node:assert/strict";
import { ALL_LOGS, fitsFilter, levelOf, partsOf, plainText, readLogLine } from "./log_record.ts";

const STORED = {
  seq: 12,
  timestamp_unix_nano: "1700000000000500000",
  severity_number: 13,
  severity_text: "WARN",
  body: "Stock is low",
  attributes: {
    "engine.worker": "shop",
    "engine.replica": 2,
    "engine.source": "logger",
    "engine.function_id": "shop::buy",
    product: "Tea",
  },
  trace_id: "abc",
  span_id: "def",
  service_name: "shop-service",
};

Deno.test("readLogLine() reads a stored record", () => {
  assert.deepEqual(readLogLine(STORED), {
    seq: 12,
    atMs: 1700000000000.5,
    level: "warn",
    text: "Stock is low",
    worker: "shop",
    replica: 2,
    source: "logger",
    functionId: "shop::buy",
    traceId: "abc",
    spanId: "def",
    attributes: { product: "Tea" },
  });
});

Deno.test("readLogLine() makes something to show of anything", () => {
  for (const raw of [null, 5, [], {}, { body: { a: 1 }, attributes: "x" }]) {
    const line = readLogLine(raw);
    assert.equal(typeof line.text, "string");
    assert.equal(line.traceId, null);
  }
});

Deno.test("readLogLine() takes the time of arrival when a record says none", () => {
  const line = readLogLine({ observed_timestamp_unix_nano: "5000000" });

  assert.equal(line.atMs, 5);
});

Deno.test("levelOf() goes by name, else by OpenTelemetry's number", () => {
  assert.deepEqual(["INFO", "warning", "Error", "FATAL", "info2"].map((name) => levelOf(name)), [
    "info",
    "warn",
    "error",
    "error",
    "info",
  ]);
  assert.deepEqual([0, 1, 5, 9, 13, 17, 21].map((number) => levelOf("", number)), [
    "info",
    "trace",
    "debug",
    "info",
    "warn",
    "error",
    "error",
  ]);
});

Deno.test("fitsFilter() wants all that is given to fit", () => {
  const line = readLogLine(STORED);
  const fits = (filter: Partial<typeof ALL_LOGS>) => fitsFilter(line, { ...ALL_LOGS, ...filter });

  assert.ok(fits({}));
  assert.ok(fits({ level: "warn", worker: "shop", functionId: "shop::buy", traceId: "abc" }));
  assert.ok(fits({ text: "STOCK" }) && fits({ text: "tea" }) && fits({ source: "logger" }));
  for (
    const other of [
      { level: "error" },
      { worker: "sho" },
      { functionId: "shop" },
      { traceId: "x" },
      { text: "coffee" },
      { source: "output" },
    ] as const
  ) assert.equal(fits(other), false, JSON.stringify(other));
});

Deno.test("partsOf() cuts a text where a word stands in it, whatever the case", () => {
  const cut = (text: string, word: string) =>
    partsOf(text, word).map(({ text, isHit }) => isHit ? `[${text}]` : text).join("|");

  assert.equal(cut("Tea and tea", "TEA"), "[Tea]| and |[tea]");
  assert.equal(cut("coffee", "tea"), "coffee");
  assert.equal(cut("coffee", ""), "coffee");
  assert.equal(cut("", "tea"), "");
  assert.equal(cut("\u0130stanbul", "stan"), "\u0130stanbul");
});

Deno.test("plainText() takes out what tells a terminal about colours and titles", () => {
  assert.equal(plainText("\x1b[1;31mred\x1b[0m and \x1b]0;title\x07rest"), "red and rest");
  assert.equal(plainText("a [b] c"), "a [b] c");
});
