import assert from "node:assert/strict";
import { Literal, plainWordsAt } from "./literal.ts";
import { bytesOf, viewOf } from "./text_bytes.ts";

const TEXT = '{"type":"invoke';

Deno.test("a Literal stands where all its bytes do, of whatever length it is", () => {
  for (let length = 4; length <= TEXT.length; length++) {
    const text = TEXT.slice(0, length);
    const literal = new Literal(text);
    assert.equal(literal.length, length);
    for (let at = 0; at < 5; at++) {
      const memory = bytesOf(`${"-".repeat(at)}${text}--`);
      const view = viewOf(memory);
      const end = at + length;

      assert.equal(literal.standsAt(view, at, end), true);
      assert.equal(literal.standsAt(view, at, end + 2), true);
      assert.equal(literal.standsAt(view, at, end - 1), false, "cut");
      assert.equal(literal.standsAt(view, at + 1, end + 2), false, "elsewhere");
      for (let i = at; i < end; i++) {
        memory[i]! ^= 1;
        assert.equal(literal.standsAt(view, at, end), false, `byte ${i - at} of ${length}`);
        memory[i]! ^= 1;
      }
    }
  }
});

Deno.test("a Literal does not stand in memory that ends before it", () => {
  const literal = new Literal("type");

  for (const text of ["", "t", "typ"]) {
    assert.equal(literal.standsAt(viewOf(bytesOf(text)), 0, text.length), false, text);
  }
});

Deno.test("a text shorter than a word is no Literal", () => {
  for (const text of ["", "t", "typ"]) assert.throws(() => new Literal(text), RangeError, text);
});

Deno.test("plainWordsAt() stops in front of the word of each byte that is not plain", () => {
  for (let byte = 0; byte < 256; byte++) {
    const isPlain = byte >= 0x20 && byte !== 0x22 && byte !== 0x5c;
    for (let at = 0; at < 8; at++) {
      const memory = new Uint8Array(24).fill(0x61);
      memory[3 + at] = byte;
      const plain = plainWordsAt(viewOf(memory), 3, 3 + 13);

      assert.equal(plain, isPlain ? 12 : at & ~3, `${byte} at ${at}`);
    }
  }
});

Deno.test("plainWordsAt() looks at nothing behind the end", () => {
  const view = viewOf(bytesOf('abcdefg"'));

  assert.deepEqual([0, 3, 4, 7, 8].map((end) => plainWordsAt(view, 0, end)), [0, 0, 4, 4, 4]);
  assert.equal(plainWordsAt(view, 8, 8), 0);
});

Deno.test("plainWordsAt() takes all plain bytes together as plain", () => {
  const plain = Array.from({ length: 256 }, (_, byte) => byte)
    .filter((byte) => byte >= 0x20 && byte !== 0x22 && byte !== 0x5c);
  let seed = 1;
  const memory = Uint8Array.from({ length: 40_000 }, () => {
    seed = seed * 48_271 % 0x7fffffff;
    return plain[seed % plain.length]!;
  });

  assert.equal(plainWordsAt(viewOf(memory), 0, memory.length), memory.length);
});
