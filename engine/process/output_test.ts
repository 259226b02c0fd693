import assert from "node:assert/strict";
import {
  LineSplitter,
  OUTPUT_LINE_CHARS_MAX,
  OutputLog,
  OutputMarks,
  TAIL_LINES_MAX,
  withoutMarks,
} from "./output.ts";

/** The lines in some pieces of output. */
function split(...pieces: (string | number[])[]): string[] {
  const lines: string[] = [];
  const splitter = new LineSplitter((line) => void lines.push(line));
  for (const piece of pieces) {
    splitter.add(
      typeof piece === "string" ? new TextEncoder().encode(piece) : Uint8Array.from(piece),
    );
  }
  splitter.end();
  return lines;
}

Deno.test("LineSplitter joins pieces and keeps empty lines", () => {
  assert.deepEqual(split("on", "e\n\ntw", "o\r\n", "three"), ["one", "", "two", "three"]);
});

Deno.test("LineSplitter joins a character that was cut in two", () => {
  assert.deepEqual(split([0xc3], [0xa4, 0x0a]), ["ä"]);
});

Deno.test("LineSplitter replaces bytes that are not UTF-8", () => {
  assert.deepEqual(split([0x61, 0xff, 0x0a, 0xc3]), ["a\ufffd", "\ufffd"]);
});

Deno.test("LineSplitter cuts a line that has no end", () => {
  const long = "x".repeat(OUTPUT_LINE_CHARS_MAX);

  assert.deepEqual(split(long, long, "y\nz"), [long, long, "y", "z"]);
  assert.deepEqual(split(long + "\n"), [long]);
});

const TRACE = { trace_id: "0af7651916cd43dd8448eb211c80319c", span_id: "b7ad6b7169203331" };
const IDS = `${TRACE.trace_id}-${TRACE.span_id}`;
const MARK = `\u001b]engine;${IDS}\u0007`;
const stream = "stdout";

const READ = {
  "a line without one": ["hello", "hello", null, false],
  "a line that a handler printed": [`${MARK}hello`, "hello", TRACE, false],
  "a line of a logger in a handler": [`\u001b]engine;${IDS};logger\u0007x`, "x", TRACE, true],
  "a line of a logger outside": ["\u001b]engine;;logger\u0007x", "x", null, true],
  "a line that is indented": [`    ${MARK}hello`, "    hello", TRACE, false],
  "a line with several": [`a ${MARK}b ${MARK}c`, "a b c", TRACE, false],
  "an empty line": [MARK, "", TRACE, false],
} as const;
for (const [name, [text, expected, trace, isLogger]] of Object.entries(READ)) {
  Deno.test(`OutputMarks.read() reads the mark of ${name}`, () => {
    const line = new OutputMarks().read({ stream, text });

    assert.deepEqual(line, { stream, text: expected, trace, isLogger });
  });
}

const BROKEN = {
  "without an end": `\u001b]engine;${IDS}hello`,
  "without ids": "\u001b]engine;\u0007hello",
  "with a short id": `\u001b]engine;${IDS.slice(1)}\u0007hello`,
  "with capitals": `\u001b]engine;${IDS.toUpperCase()}\u0007hello`,
  "with something else": `\u001b]engine;${IDS};admin\u0007hello`,
  "of another program": `\u001b]0;title\u0007hello`,
  "without ESC": `]engine;${IDS}\u0007hello`,
};
for (const [name, text] of Object.entries(BROKEN)) {
  Deno.test(`OutputMarks.read() leaves a mark ${name} where it is`, () => {
    const line = new OutputMarks().read({ stream, text });

    assert.deepEqual(line, { stream, text, trace: null, isLogger: false });
  });
}

Deno.test("OutputMarks.read() gives the rest of a line that was cut to the same call", () => {
  const marks = new OutputMarks();
  const read = (text: string, of: "stdout" | "stderr" = stream) =>
    marks.read({ stream: of, text }).trace;
  const full = (start: string): string => start.padEnd(OUTPUT_LINE_CHARS_MAX, "x");

  const traces = [
    read(full(MARK)),
    read("of another stream", "stderr"),
    read(full("")),
    read("the end"),
    read("another line"),
  ];

  assert.deepEqual(traces, [TRACE, null, TRACE, TRACE, null]);
});

Deno.test("OutputMarks.read() prefers a mark to the cut line before", () => {
  const marks = new OutputMarks();
  marks.read({ stream, text: MARK.padEnd(OUTPUT_LINE_CHARS_MAX, "x") });

  const line = marks.read({ stream, text: "\u001b]engine;;logger\u0007hello" });

  assert.deepEqual(line, { stream, text: "hello", trace: null, isLogger: true });
});

Deno.test("OutputMarks.read() does not let a payload that a program prints hide a line", () => {
  const [forged, hidden] = [MARK.replaceAll("a", "b"), "\u001b]engine;;logger\u0007"];
  const read = (text: string) => {
    const { trace, isLogger } = new OutputMarks().read({ stream, text });
    return [trace, isLogger];
  };

  assert.deepEqual(read(`got ${hidden}`), [null, false]);
  assert.deepEqual(read(`${MARK}got ${forged}${hidden}`), [TRACE, false]);
  const marks = new OutputMarks();
  marks.read({ stream, text: MARK.padEnd(OUTPUT_LINE_CHARS_MAX, "x") });
  const rest = marks.read({ stream, text: `x${hidden}` });
  assert.deepEqual(rest, { stream, text: "x", trace: TRACE, isLogger: false });
});

Deno.test("withoutMarks() removes its variable and keeps the rest of an environment", () => {
  assert.deepEqual(withoutMarks({ A: "1", ENGINE_OUTPUT_MARKS: "1" }), { A: "1" });
});

const TIME = Date.UTC(2026, 10, 21, 13, 0, 0, 123);

async function setup(maxBytes?: number) {
  const directory = await Deno.makeTempDir();
  const log = new OutputLog(`${directory}/logs/w.log`, () => TIME, maxBytes);
  const print = (text: string) => log.write({ stream: "stdout", text });
  const remove = () => Deno.remove(directory, { recursive: true });
  return { directory, log, print, [Symbol.asyncDispose]: remove };
}

Deno.test("OutputLog writes lines with their time and stream", async () => {
  await using there = await setup();
  const { log, print } = there;

  print("hello");
  log.write({ stream: "stderr", text: "oh" });
  await log.close();

  const lines = ["2026-11-21T13:00:00.123Z out hello", "2026-11-21T13:00:00.123Z err oh"];
  assert.equal(await Deno.readTextFile(log.path), `${lines.join("\n")}\n`);
  assert.deepEqual(await log.tail(10), lines);
  assert.deepEqual(await log.tail(1), lines.slice(1));
  assert.deepEqual(await log.tail(0), []);
});

Deno.test("OutputLog keeps one older file and reads both", async () => {
  await using there = await setup(1_000);
  const { log, print, directory } = there;

  for (let i = 0; i < 300; i++) {
    print(`line ${i}`);
    if (i % 10 === 0) await log.close();
  }
  await log.close();

  const files = [...Deno.readDirSync(`${directory}/logs`)].map(({ name }) => name).sort();
  assert.deepEqual(files, ["w.log", "w.log.1"]);
  assert.ok((await Deno.stat(log.path)).size <= 1_000);
  const later = new OutputLog(log.path, () => TIME);
  const tail = await later.tail(40);
  const kept = tail.map((line) => Number(line.split(" ").at(-1)));
  assert.deepEqual(kept, Array.from({ length: kept.length }, (_, i) => 300 - kept.length + i));
  assert.ok(kept.length > 20);
});

Deno.test("OutputLog keeps the last lines in memory and reads more from the file", async () => {
  await using there = await setup();
  const { log, print } = there;

  for (let i = 0; i < TAIL_LINES_MAX * 20; i++) print(`line ${i} ${"x".repeat(50)}`);

  assert.equal((await log.tail(TAIL_LINES_MAX)).length, TAIL_LINES_MAX);
  const all = await log.tail(1_000_000);
  assert.equal(all.length, TAIL_LINES_MAX * 20);
  assert.match(all[0]!, /line 0 /);
  assert.equal((await log.tail(TAIL_LINES_MAX + 5)).length, TAIL_LINES_MAX + 5);
});

Deno.test("OutputLog drops lines that the disk cannot take in time and writes how many", async () => {
  await using there = await setup();
  const { log, print } = there;
  const long = "x".repeat(256 * 1024);

  for (let i = 0; i < 10; i++) print(long);
  await log.close();
  print("after");
  await log.close();

  const lines = (await Deno.readTextFile(log.path)).trimEnd().split("\n");
  assert.match(lines.at(-2)!, /^… \d+ lines were dropped here$/);
  assert.match(lines.at(-1)!, /out after$/);
});

Deno.test("OutputLog keeps the last lines when it cannot write", async () => {
  const log = new OutputLog("/proc/nowhere/w.log", () => TIME);

  log.write({ stream: "stdout", text: "kept" });
  await log.close();

  assert.match((await log.tail(5))[0]!, / kept$/);
});
