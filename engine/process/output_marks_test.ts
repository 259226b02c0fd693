import assert from "node:assert/strict";
import { OUTPUT_LINE_CHARS_MAX } from "../supervisor/limits.ts";
import { OutputMarks, withoutMarks } from "./output_marks.ts";

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

Deno.test("OutputMarks.read() believes a mark more than the line before", () => {
  const marks = new OutputMarks();
  marks.read({ stream, text: MARK.padEnd(OUTPUT_LINE_CHARS_MAX, "x") });

  const line = marks.read({ stream, text: "\u001b]engine;;logger\u0007hello" });

  assert.deepEqual(line, { stream, text: "hello", trace: null, isLogger: true });
});

Deno.test("OutputMarks.read() lets no text that a program shows hide a line", () => {
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

Deno.test("withoutMarks() asks for none, and keeps the rest of an environment", () => {
  assert.deepEqual(withoutMarks({ A: "1", ENGINE_OUTPUT_MARKS: "1" }), { A: "1" });
});
