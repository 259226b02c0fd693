import assert from "node:assert/strict";
import { textOf } from "../core/wire/bytes.ts";
import { TraceField } from "./trace_field.ts";

const WORDS = Uint32Array.of(
  0x4bf92f35,
  0x77b34da6,
  0xa3ce929d,
  0x0e0e4736,
  0x00f067aa,
  0x0ba902b7,
);

Deno.test("TraceField writes ids as W3C says, and whether the trace is recorded", () => {
  const field = new TraceField();
  const text = (words: Uint32Array, isSampled: boolean): string => {
    const { memory } = field.of(words, words.length - 6, isSampled);
    return textOf(memory, 0, memory.length);
  };
  const expected = ',"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0';

  assert.equal(text(WORDS, true), `${expected}1"`);
  assert.equal(text(WORDS, false), `${expected}0"`);
  assert.equal(text(Uint32Array.of(7, 7, ...WORDS), true), `${expected}1"`, "behind other words");
  assert.equal(
    text(new Uint32Array(6).fill(0xffffffff), true),
    `,"traceparent":"00-${"f".repeat(32)}-${"f".repeat(16)}-01"`,
  );
});
