import assert from "node:assert/strict";
import { OUTPUT_LINE_CHARS_MAX } from "../supervisor/limits.ts";
import { LineSplitter } from "./output_lines.ts";

/** The lines that come out when some bytes go in. */
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

Deno.test("LineSplitter joins what came in pieces and keeps empty lines", () => {
  assert.deepEqual(split("on", "e\n\ntw", "o\r\n", "three"), ["one", "", "two", "three"]);
});

Deno.test("LineSplitter puts a character together that was cut in two", () => {
  assert.deepEqual(split([0xc3], [0xa4, 0x0a]), ["ä"]);
});

Deno.test("LineSplitter replaces what is no UTF-8", () => {
  assert.deepEqual(split([0x61, 0xff, 0x0a, 0xc3]), ["a\ufffd", "\ufffd"]);
});

Deno.test("LineSplitter cuts a line that has no end", () => {
  const long = "x".repeat(OUTPUT_LINE_CHARS_MAX);

  assert.deepEqual(split(long, long, "y\nz"), [long, long, "y", "z"]);
  assert.deepEqual(split(long + "\n"), [long]);
});
