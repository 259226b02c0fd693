/**
 * Ids of traces, spans and calls, as text and as words.
 *
 * @module
 */
import assert from "node:assert/strict";
import { bytesOf, textOf } from "../core/wire/bytes.ts";
import {
  fourDigits,
  IdSource,
  idText,
  PARENT_WORDS,
  readId,
  readTraceparent,
  TraceField,
  traceparentOf,
  UUID_WORDS,
  uuidText,
  writeUuid,
} from "./trace_ids.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

/** Digits and dashes before and behind must have no influence. */
function read(text: string, start = 0, end = bytesOf(text).length): [number, string, string] {
  const words = new Uint32Array(PARENT_WORDS + 2).fill(7);
  const memory = bytesOf(`00-${text}-01`);
  const flags = readTraceparent(memory, start + 3, end + 3, words, 1);
  assert.deepEqual([words[0], words.at(-1)], [7, 7]);
  return [flags, idText(words, 1, 5), idText(words, 5, 7)];
}

for (
  const [name, text, flags] of [
    ["one that is sampled", `00-${TRACE}-${SPAN}-01`, 1],
    ["one that is not", `00-${TRACE}-${SPAN}-00`, 0],
    ["flags beside the one that counts", `00-${TRACE}-${SPAN}-03`, 1],
    ["flags without the one that counts", `00-${TRACE}-${SPAN}-fe`, 0],
    ["a later version", `01-${TRACE}-${SPAN}-01`, 1],
    ["a later version that goes on", `cc-${TRACE}-${SPAN}-01-what-else`, 1],
  ] as const
) {
  Deno.test(`readTraceparent() accepts ${name}`, () => {
    assert.deepEqual(read(text), [flags, TRACE, SPAN]);
  });
}

Deno.test("readTraceparent() reads at any offset", () => {
  const text = `{"traceparent":"00-${TRACE}-${SPAN}-01","data":1}`;

  assert.deepEqual(read(text, 16, 71), [1, TRACE, SPAN]);
});

for (
  const [name, text] of [
    ["nothing", ""],
    ["what is too short", `00-${TRACE}-${SPAN}-0`],
    ["this version with more behind", `00-${TRACE}-${SPAN}-01-x`],
    ["a later version that runs on", `01-${TRACE}-${SPAN}-01x`],
    ["version ff", `ff-${TRACE}-${SPAN}-01`],
    ["a version that is no number", `0x-${TRACE}-${SPAN}-01`],
    ["capital digits", `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ["a trace id of zeros", `00-${"0".repeat(32)}-${SPAN}-01`],
    ["a span id of zeros", `00-${TRACE}-${"0".repeat(16)}-01`],
    ["flags that are no number", `00-${TRACE}-${SPAN}-0g`],
    ["other marks than dashes", `00_${TRACE}_${SPAN}_01`],
    ["one letter in the trace id", `00-${TRACE.replace("b", "g")}-${SPAN}-01`],
    ["one letter in the span id", `00-${TRACE}-${SPAN.replace("f", "g")}-01`],
    ["text", "the quick brown fox jumps over the lazy dog and goes on"],
  ]
) {
  Deno.test(`readTraceparent() rejects ${name}`, () => {
    assert.equal(read(text!)[0], -1);
  });
}

Deno.test("readTraceparent() reads nothing beyond the end", () => {
  const text = `00-${TRACE}-${SPAN}-01`;

  for (let end = 0; end < text.length; end++) assert.equal(read(text, 0, end)[0], -1, `${end}`);
  assert.equal(read(text, 1, text.length)[0], -1);
});

Deno.test("fourDigits() accepts lower-case digits only", () => {
  const memory = bytesOf("0000ffff001a");

  assert.deepEqual([0, 4, 8].map((at) => fourDigits(memory, at)), [0, 0xffff, 0x1a]);
  for (const text of ["000g", "00G0", "0-00", "A000", "é00"]) {
    assert.ok(fourDigits(bytesOf(text), 0) < 0, text);
  }
});

Deno.test("traceparentOf() is the inverse of readTraceparent()", () => {
  assert.equal(traceparentOf(TRACE, SPAN, true), `00-${TRACE}-${SPAN}-01`);
  assert.deepEqual(read(traceparentOf(TRACE, SPAN, false)), [0, TRACE, SPAN]);
});

Deno.test("readId() accepts ids of the exact length only", () => {
  const words = new Uint32Array(2);

  assert.equal(readId(SPAN, words, 0, 2), true);
  assert.equal(idText(words, 0, 2), SPAN);
  assert.equal(readId(TRACE, words, 0, 2), false);
  assert.equal(readId("", words, 0, 2), false);
  assert.equal(readId("00F067AA0BA902B7", words, 0, 2), false);
});

Deno.test("idText() keeps leading zeros", () => {
  assert.equal(idText(Uint32Array.of(1, 0xffffffff), 0, 2), "00000001ffffffff");
});

function roundTrip(text: string): string | null {
  const words = new Uint32Array(UUID_WORDS + 2).fill(7);
  const memory = bytesOf(`0123456789${text}abcdef`);
  const isWritten = writeUuid(memory, 10, memory.length - 6, words, 1);
  assert.deepEqual([words[0], words.at(-1)], [7, 7]);
  assert.equal(isWritten, uuidText(words, 1) !== null);
  return uuidText(words, 1);
}

for (
  const text of [
    "00000000-1111-4000-8000-0000000000ff",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
    "00000000-0000-0000-0000-000000000001",
    "7d0e4b1e-9f0a-4f1b-8f4f-0123456789ab",
  ]
) {
  Deno.test(`writeUuid() stores ${text}`, () => assert.equal(roundTrip(text), text));
}

for (
  const text of [
    "",
    "i1",
    "00000000-0000-0000-0000-000000000000",
    "7D0E4B1E-9F0A-4F1B-8F4F-0123456789AB",
    "7d0e4b1e-9f0a-4f1b-8f4f-0123456789a",
    "7d0e4b1e-9f0a-4f1b-8f4f-0123456789abc",
    "7d0e4b1e09f0a-4f1b-8f4f-0123456789ab",
    "00000001-0001-000x-8f4f-0123456789ab",
    "00000001-0001-0001-000x-0123456789ab",
    "00000001-0001-0001-0001-x123456789ab",
    "00000001-0001-0001-0001-0123456789ax",
    "x0000001-0001-0001-0001-0123456789ab",
    "{7d0e4b1e-9f0a-4f1b-8f4f-0123456789}",
  ]
) {
  Deno.test(`writeUuid() rejects "${text}"`, () => assert.equal(roundTrip(text), null));
}

const WORDS = Uint32Array.of(
  0x4bf92f35,
  0x77b34da6,
  0xa3ce929d,
  0x0e0e4736,
  0x00f067aa,
  0x0ba902b7,
);

Deno.test("TraceField contains the ids and the sampling flag as W3C defines", () => {
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

function counting() {
  let fills = 0;
  const source = new IdSource((bytes) => {
    fills++;
    const view = new DataView(bytes.buffer);
    for (let at = 0; at < bytes.length; at += 4) view.setUint32(at, fills * 10_000 + at);
  });
  return { source, fills: () => fills };
}

Deno.test("IdSource.text() and word() return the same bytes", () => {
  const { source } = counting();
  source.take(8);
  const at = source.take(16);
  const words = Uint32Array.from([0, 4, 8, 12], (more) => source.word(at + more));

  assert.equal(source.text(at, 16), idText(words, 0, 4));
});

Deno.test("IdSource.take() returns no byte twice, and requests random bytes in blocks", () => {
  const { source, fills } = counting();
  assert.equal(fills(), 0);
  const ids = Array.from({ length: 340 }, () => source.text(source.take(24), 24));

  assert.equal(new Set(ids).size, 340);
  assert.equal(fills(), 2);
});
