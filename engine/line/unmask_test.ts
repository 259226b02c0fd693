import assert from "node:assert/strict";
import { unmask } from "./unmask.ts";

Deno.test("unmask() gives back what was masked, wherever it lies, and touches nothing else", () => {
  for (let start = 0; start < 8; start++) {
    for (let length = 0; length < 20; length++) {
      const mask = [0x37, 0xfa, 0x21, 0x83];
      const plain = Uint8Array.from({ length }, (_, i) => i * 37);
      const memory = memoryOf(plain.map((byte, i) => byte ^ mask[i % 4]!), start);

      const isAscii = unmask(memory, start, start + length, number(mask));

      assert.deepEqual(memory.bytes.slice(start, start + length), plain);
      assert.equal(isAscii, plain.every((byte) => byte < 128));
      assert.ok(memory.bytes.subarray(0, start).every((byte) => byte === 0xee));
      assert.ok(memory.bytes.subarray(start + length).every((byte) => byte === 0xee));
    }
  }
});

Deno.test("unmask() sees a byte beyond ASCII at every place of a text", () => {
  for (let place = 0; place < 23; place++) {
    const plain = new Uint8Array(23).fill(0x61);
    plain[place] = 0x80;
    const memory = memoryOf(plain, 5);

    assert.equal(unmask(memory, 5, 28, 0), false);
  }
});

/** Something else lies before and behind. */
function memoryOf(payload: Uint8Array, start: number): { bytes: Uint8Array; words: Int32Array } {
  const buffer = new ArrayBuffer(64);
  const bytes = new Uint8Array(buffer).fill(0xee);
  bytes.set(payload, start);
  return { bytes, words: new Int32Array(buffer) };
}

function number([a, b, c, d]: number[]): number {
  return a! | b! << 8 | c! << 16 | d! << 24;
}
