import assert from "node:assert/strict";
import {
  ALL_LOGS,
  countNewer,
  fieldsOf,
  fieldsText,
  levelOf,
  LogTail,
  matchesFilter,
  plainText,
  readLogLine,
  splitAtWord,
} from "./log_lines.ts";

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
    engine: null,
    engineLife: null,
    key: 12,
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

Deno.test("readLogLine() reads any value", () => {
  for (const raw of [null, 5, [], {}, { body: { a: 1 }, attributes: "x" }]) {
    const line = readLogLine(raw);
    assert.equal(typeof line.text, "string");
    assert.equal(line.traceId, null);
  }
});

Deno.test("fieldsOf() leaves out stacks and the name of the output", () => {
  const attributes = { product: "Tea", stack: "E\n at f", stream: "stdout" };
  const fieldsFrom = (source: string) =>
    fieldsOf(readLogLine({ attributes: { ...attributes, "engine.source": source } }));

  assert.deepEqual(fieldsFrom("output"), { product: "Tea" });
  assert.deepEqual(fieldsFrom("logger"), { product: "Tea", stream: "stdout" });
});

Deno.test("fieldsText() has the first fields, cut", () => {
  const text = (attributes: Record<string, string | number[]>) =>
    fieldsText(readLogLine({ attributes }));

  assert.equal(text({ product: "Tea", counts: [1, 2] }), "product=Tea counts=[1,2]");
  assert.equal(text({}), "");
  assert.equal(text({ long: "x".repeat(999) }).length, 300);
  assert.equal(text(Object.fromEntries([..."abcdefgh"].map((name) => [name, "1"]))).length, 23);
});

Deno.test("readLogLine() falls back to the observed time", () => {
  const line = readLogLine({ observed_timestamp_unix_nano: "5000000" });

  assert.equal(line.atMs, 5);
});

Deno.test("levelOf() reads the name, or else OpenTelemetry's number", () => {
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

Deno.test("matchesFilter() needs all conditions to match", () => {
  const line = readLogLine(STORED);
  const fits = (filter: Partial<typeof ALL_LOGS>) =>
    matchesFilter(line, { ...ALL_LOGS, ...filter });

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

Deno.test("splitAtWord() splits at each occurrence, ignoring case", () => {
  const cut = (text: string, word: string) =>
    splitAtWord(text, word).map(({ text, isHit }) => isHit ? `[${text}]` : text).join("|");

  assert.equal(cut("Tea and tea", "TEA"), "[Tea]| and |[tea]");
  assert.equal(cut("coffee", "tea"), "coffee");
  assert.equal(cut("coffee", ""), "coffee");
  assert.equal(cut("", "tea"), "");
  assert.equal(cut("\u0130stanbul", "stan"), "\u0130stanbul");
});

Deno.test("plainText() removes terminal escape sequences", () => {
  assert.equal(plainText("\x1b[1;31mred\x1b[0m and \x1b]0;title\x07rest"), "red and rest");
  assert.equal(plainText("a [b] c"), "a [b] c");
});

Deno.test("LogTail orders lines by number, in whatever order they arrive", () => {
  const tail = new LogTail(10);

  tail.add(lines(5, 6));
  tail.add(lines(3, 4, 5));
  tail.addOlder(lines(2, 1, 2));

  assert.deepEqual(numbers(tail), [1, 2, 3, 4, 5, 6]);
});

Deno.test("LogTail.add() returns how many lines were new", () => {
  const tail = new LogTail(10);

  assert.equal(tail.add(lines(1, 2)), 2);
  assert.equal(tail.add(lines(2, 3, 3)), 1);
  assert.equal(tail.add([]), 0);
});

Deno.test("LogTail.add() pushes out the oldest lines and counts them", () => {
  const tail = new LogTail(3);

  tail.add(lines(1, 2, 3, 4, 5));
  tail.miss(2);

  assert.deepEqual(numbers(tail), [3, 4, 5]);
  assert.equal(tail.dropped, 4);
});

Deno.test("LogTail.addOlder() adds the newest of the older lines, as far as there is room", () => {
  const tail = new LogTail(4);
  tail.add(lines(10, 11));

  assert.equal(tail.addOlder(lines(5, 6, 7)), true);
  assert.deepEqual(numbers(tail), [6, 7, 10, 11]);
  assert.equal(tail.hasRoom, false);
  assert.equal(tail.addOlder(lines(1)), false);
});

Deno.test("LogTail.addOlder() adds no known lines", () => {
  const tail = new LogTail(4);
  tail.add(lines(1, 2));

  assert.equal(tail.addOlder(lines(1, 2)), false);
});

Deno.test("LogTail.lines is a new array after each change", () => {
  const tail = new LogTail(4);
  tail.add(lines(1));
  const before = tail.lines;

  tail.add(lines(1));
  assert.equal(tail.lines, before);
  tail.add(lines(2));
  assert.notEqual(tail.lines, before);
});

Deno.test("LogTail.clear() drops lines and counts", () => {
  const tail = new LogTail(1);
  tail.add(lines(1, 2));

  tail.clear();

  assert.deepEqual([numbers(tail), tail.dropped], [[], 0]);
});

Deno.test("lines of several engines are in the order of time, each once though numbers are equal", () => {
  const line = (seq: number, ms: number, engine?: string) =>
    readLogLine({ seq, timestamp_unix_nano: `${ms}000000`, ...engine && { engine } });
  const tail = new LogTail();

  assert.equal(tail.add([line(1, 100), line(2, 300)]), 2);
  assert.equal(tail.add([line(1, 200, "b"), line(2, 400, "b"), line(2, 250, "c")]), 3);
  assert.equal(tail.add([line(2, 400, "b"), line(2, 300), line(3, 500)]), 1);

  assert.deepEqual(tail.lines.map(({ key }) => key), [1, "b/1", "c/2", 2, "b/2", 3]);
  assert.equal(countNewer(tail.lines, "c/2"), 3);
});

Deno.test("lines of two engines of one name are all held, as are those after a restart", () => {
  const line = (seq: number, ms: number, engine_life: string) =>
    readLogLine({ seq, timestamp_unix_nano: `${ms}000000`, engine: "b", engine_life });
  const tail = new LogTail();

  assert.equal(tail.add([line(1, 100, "life1"), line(1, 150, "life2"), line(2, 300, "life1")]), 3);
  assert.equal(tail.add([line(1, 400, "life3"), line(1, 150, "life2")]), 1);

  const keys = tail.lines.map(({ engine, key }) => `${engine} ${key}`);
  assert.deepEqual(keys, ["b life1/1", "b life2/1", "b life1/2", "b life3/1"]);
});

Deno.test("countNewer() counts the lines after a number, even one that was pushed out", () => {
  assert.equal(countNewer(lines(3, 4, 7), 4), 1);
  assert.equal(countNewer(lines(3, 4, 7), 1), 3);
  assert.equal(countNewer(lines(3, 4, 7), 7), 0);
  assert.equal(countNewer([], 7), 0);
});

function lines(...seqs: number[]) {
  return seqs.map((seq) => readLogLine({ seq, body: `line ${seq}` }));
}

function numbers(tail: LogTail): number[] {
  return tail.lines.map(({ seq }) => seq);
}
