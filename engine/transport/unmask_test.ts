import assert from "node:assert/strict";
import { BEYOND_ASCII, NOT_PLAIN, unmask, unmaskBinary } from "./unmask.ts";

const MASK = [0x37, 0xfa, 0x21, 0x83];

Deno.test("unmask() gives back what was masked, wherever it lies, and touches nothing else", () => {
  for (let start = 0; start < 8; start++) {
    for (let length = 0; length < 20; length++) {
      const plain = Uint8Array.from({ length }, (_, i) => i * 37);
      const memory = memoryOf(plain, start, MASK);

      const seen = unmask(memory, start, start + length, number(MASK));

      assert.deepEqual(memory.bytes.slice(start, start + length), plain);
      assert.equal(seen, kindsOf(plain));
      assert.ok(memory.bytes.subarray(0, start).every((byte) => byte === 0xee));
      assert.ok(memory.bytes.subarray(start + length).every((byte) => byte === 0xee));
    }
  }
});

Deno.test("unmask() sees a byte of each kind at every place of a text", () => {
  for (let byte = 0; byte < 256; byte++) {
    for (let place = 0; place < 23; place++) {
      for (const around of [0x61, 0x20, 0x5b, 0x5d, 0x7f]) {
        const plain = new Uint8Array(23).fill(around);
        plain[place] = byte;
        const memory = memoryOf(plain, 5, MASK);

        const seen = unmask(memory, 5, 28, number(MASK));
        assert.equal(seen, kindsOf(plain), `${byte} at ${place} among ${around}`);
      }
    }
  }
});

Deno.test("unmask() says of both kinds that they are there, wherever each of them is", () => {
  for (let place = 0; place < 17; place++) {
    for (let other = 0; other < 17; other++) {
      if (place === other) continue;
      for (const beyond of [0x80, 0xdc, 0xff]) {
        const plain = new Uint8Array(17).fill(0x7d);
        plain[place] = 0x5c;
        plain[other] = beyond;
        const memory = memoryOf(plain, 3, MASK);

        assert.equal(unmask(memory, 3, 20, number(MASK)), BEYOND_ASCII | NOT_PLAIN);
      }
    }
  }
});

Deno.test("unmask() is right about any two neighbours, so that no borrow of one misleads it", () => {
  const memory = memoryOf(new Uint8Array(4), 4, MASK);
  for (let first = 0; first < 256; first++) {
    for (let second = 0; second < 256; second++) {
      const plain = Uint8Array.of(0x61, first, second, 0x7e);
      memory.bytes.set(plain, 4);

      const seen = unmask(memory, 4, 8, 0);
      if (seen !== kindsOf(plain)) assert.fail(`${seen} of ${plain}`);
    }
  }
});

Deno.test("unmask() does not see what lies before and behind", () => {
  for (const around of [0x5c, 0x00, 0x80, 0xff]) {
    for (let start = 0; start < 8; start++) {
      for (let length = 0; length < 12; length++) {
        const memory = memoryOf(new Uint8Array(length).fill(0x61), start, MASK, around);

        assert.equal(unmask(memory, start, start + length, number(MASK)), 0);
      }
    }
  }
});

Deno.test("unmaskBinary() gives back what was masked, wherever it lies, and touches nothing else", () => {
  for (const mask of [MASK, [0, 0, 0, 0], [0, 0, 7, 0]]) {
    for (let start = 0; start < 8; start++) {
      for (let length = 0; length < 20; length++) {
        const plain = Uint8Array.from({ length }, (_, i) => i * 37);
        const memory = memoryOf(plain, start, mask);

        unmaskBinary(memory, start, start + length, number(mask));

        assert.deepEqual(memory.bytes.slice(start, start + length), plain);
        assert.ok(memory.bytes.subarray(0, start).every((byte) => byte === 0xee));
        assert.ok(memory.bytes.subarray(start + length).every((byte) => byte === 0xee));
      }
    }
  }
});

/** What is to be said of such bytes, found one by one. */
function kindsOf(plain: Uint8Array): number {
  const isBeyond = plain.some((byte) => byte >= 0x80);
  const isSpecial = plain.includes(0x5c);
  return (isBeyond ? BEYOND_ASCII : 0) | (isSpecial ? NOT_PLAIN : 0);
}

/** A payload under its mask; something else lies before and behind. */
function memoryOf(
  payload: Uint8Array,
  start: number,
  mask: readonly number[],
  around = 0xee,
): { bytes: Uint8Array; words: Int32Array } {
  const buffer = new ArrayBuffer(64);
  const bytes = new Uint8Array(buffer).fill(around);
  bytes.set(payload.map((byte, i) => byte ^ mask[i % 4]!), start);
  return { bytes, words: new Int32Array(buffer) };
}

function number([a, b, c, d]: readonly number[]): number {
  return a! | b! << 8 | c! << 16 | d! << 24;
}
