/**
 * UTF-8 text as bytes.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  bytesEqual,
  bytesOf,
  copyWords,
  hashOf,
  Literal,
  matchesAt,
  NO_BYTES,
  passingBytesOf,
  Pieces,
  plainWordsAt,
  textOf,
  viewOf,
} from "./bytes.ts";

const TEXTS = ["", "a", "größe", "東京", "😀", "\ufeffa", "a\u0000b", "\u2028", "x".repeat(5_000)];

Deno.test("textOf() is the inverse of bytesOf(), at any offset", () => {
  for (const text of TEXTS) {
    const memory = bytesOf(`ä${text}ö`);

    assert.equal(textOf(memory, 2, memory.length - 2), text);
    assert.equal(textOf(bytesOf(text), 0, bytesOf(text).length), text);
  }
  assert.deepEqual([...bytesOf("é")], [0xc3, 0xa9]);
  assert.equal(textOf(NO_BYTES, 0, 0), "");
});

Deno.test("passingBytesOf() gives each text memory of its own, over the ends of pieces", () => {
  const texts = Array.from({ length: 300 }, (_, i) => `${i} 東京 ${"é".repeat(i * 7)}`);

  const memories = [...TEXTS, ...texts].map(passingBytesOf);

  assert.deepEqual(memories.map((each) => textOf(each, 0, each.length)), [...TEXTS, ...texts]);
});

Deno.test("Pieces share memory among short texts, and give a long one its own", () => {
  const pieces = new Pieces(32, 5);

  const [first, second, third, long] = ["abcd", "東é", "efghi", "abcdef"].map((text) =>
    pieces.encode(text)
  );

  assert.deepEqual([first!.byteOffset, second!.byteOffset, third!.byteOffset], [0, 4, 9]);
  assert.equal(first!.buffer, third!.buffer);
  assert.notEqual(long!.buffer, first!.buffer);
  assert.notEqual(pieces.encode("jklmn").buffer, pieces.encode("opqrs").buffer);
  assert.equal(textOf(second!, 0, second!.length), "東é");
});

Deno.test("bytesOf() allocates new memory each time", () => {
  const [one, other] = [bytesOf("same"), bytesOf("same")];
  one.fill(0);

  assert.equal(textOf(other, 0, 4), "same");
});

Deno.test("a half surrogate becomes the replacement character", () => {
  const memory = bytesOf("a\ud83d");

  assert.equal(textOf(memory, 0, memory.length), "a\ufffd");
});

Deno.test("matchesAt() finds a text at its offset only", () => {
  const memory = bytesOf("an ant");
  const ant = bytesOf("ant");

  const places = [...memory.keys()].filter((at) => matchesAt(memory, at, memory.length, ant));

  assert.deepEqual(places, [3]);
  assert.equal(matchesAt(memory, 0, memory.length, NO_BYTES), true);
});

Deno.test("matchesAt() does not match beyond the end", () => {
  const memory = bytesOf("ant");
  const ant = bytesOf("ant");

  assert.deepEqual([0, 1, 2, 3].map((end) => matchesAt(memory, 0, end, ant)), [
    false,
    false,
    false,
    true,
  ]);
  assert.equal(matchesAt(memory, 0, 9, bytesOf("ants")), false, "beyond the memory");
});

Deno.test("hashOf() depends on the bytes only, not on their offset", () => {
  for (const text of TEXTS) {
    const memory = bytesOf(`--${text}--`);
    const own = bytesOf(text);

    assert.equal(hashOf(viewOf(memory), 2, memory.length - 2), hashOf(viewOf(own), 0, own.length));
  }
});

Deno.test("hashOf() is an integer of 30 bits, and spreads counting ids", () => {
  const seen = new Set<number>();
  const low = new Set<number>();
  for (let i = 0; i < 10_000; i++) {
    const id = bytesOf(`7d0e4b1e-9f0a-2f1b-6f4f-${String(i).padStart(12, "0")}`);
    const hash = hashOf(viewOf(id), 0, id.length);
    assert.ok(Number.isInteger(hash) && hash >= 0 && hash < 2 ** 30, `${hash}`);
    seen.add(hash);
    low.add(hash & 0xfff);
  }

  // Random hashes would have a twentieth of a collision.
  assert.ok(seen.size > 9_990, `${seen.size}`);
  assert.ok(low.size > 3_500, `${low.size} of 4,096`);
});

Deno.test("bytesEqual() and copyWords() handle any length and offset", () => {
  const from = Uint8Array.from({ length: 60 }, (_, i) => i + 1);
  for (let bytes = 0; bytes < 20; bytes++) {
    for (const [at, fromAt] of [[0, 0], [1, 3], [3, 1], [7, 40], [5, 6]] as const) {
      const memory = new Uint8Array(40);
      copyWords(viewOf(memory), at, viewOf(from), fromAt, bytes);

      const expected = new Uint8Array(40);
      expected.set(from.subarray(fromAt, fromAt + bytes), at);
      assert.deepEqual(memory, expected, `${bytes} from ${fromAt} to ${at}`);
      assert.equal(bytesEqual(viewOf(memory), at, viewOf(from), fromAt, bytes), true);
      for (let i = 0; i < bytes; i++) {
        memory[at + i]! ^= 0x80;
        assert.equal(
          bytesEqual(viewOf(memory), at, viewOf(from), fromAt, bytes),
          false,
          `byte ${i}`,
        );
        memory[at + i]! ^= 0x80;
      }
    }
  }
});

Deno.test("copyWords() moves bytes to the front by any distance", () => {
  for (let bytes = 0; bytes < 20; bytes++) {
    for (let by = 1; by < 10; by++) {
      const memory = Uint8Array.from({ length: 40 }, (_, i) => i);
      const expected = memory.slice().copyWithin(10 - by, 10, 10 + bytes);
      copyWords(viewOf(memory), 10 - by, viewOf(memory), 10, bytes);

      assert.deepEqual(memory, expected, `${bytes} by ${by}`);
    }
  }
});

Deno.test("viewOf() is the same memory, also for a part of a buffer", () => {
  const all = bytesOf("abcdef");
  const view = viewOf(all.subarray(2, 5));
  view.setUint8(0, 0x58);

  assert.deepEqual([view.byteLength, textOf(all, 0, 6)], [3, "abXdef"]);
});

Deno.test("hashOf() differs for texts that differ in one byte or in length", () => {
  const text = bytesOf("orders::validate-all");
  const seen = new Set<number>();
  for (let end = 0; end <= text.length; end++) seen.add(hashOf(viewOf(text), 0, end));
  for (let at = 0; at < text.length; at++) {
    for (let bit = 0; bit < 8; bit++) {
      const other = text.slice();
      other[at]! ^= 1 << bit;
      seen.add(hashOf(viewOf(other), 0, other.length));
    }
  }

  assert.equal(seen.size, text.length * 9 + 1);
});

const TEXT = '{"type":"invoke';

Deno.test("a Literal of any length matches where all its bytes are equal", () => {
  for (let length = 4; length <= TEXT.length; length++) {
    const text = TEXT.slice(0, length);
    const literal = new Literal(text);
    assert.equal(literal.length, length);
    for (let at = 0; at < 5; at++) {
      const memory = bytesOf(`${"-".repeat(at)}${text}--`);
      const view = viewOf(memory);
      const end = at + length;

      assert.equal(literal.matchesAt(view, at, end), true);
      assert.equal(literal.matchesAt(view, at, end + 2), true);
      assert.equal(literal.matchesAt(view, at, end - 1), false, "cut");
      assert.equal(literal.matchesAt(view, at + 1, end + 2), false, "elsewhere");
      for (let i = at; i < end; i++) {
        memory[i]! ^= 1;
        assert.equal(literal.matchesAt(view, at, end), false, `byte ${i - at} of ${length}`);
        memory[i]! ^= 1;
      }
    }
  }
});

Deno.test("a Literal does not match beyond the end", () => {
  const literal = new Literal("type");

  for (const text of ["", "t", "typ"]) {
    assert.equal(literal.matchesAt(viewOf(bytesOf(text)), 0, text.length), false, text);
  }
});

Deno.test("a Literal needs at least four bytes", () => {
  for (const text of ["", "t", "typ"]) assert.throws(() => new Literal(text), RangeError, text);
});

Deno.test("plainWordsAt() stops before a word with a byte that is not plain", () => {
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

Deno.test("plainWordsAt() reads nothing behind the end", () => {
  const view = viewOf(bytesOf('abcdefg"'));

  assert.deepEqual([0, 3, 4, 7, 8].map((end) => plainWordsAt(view, 0, end)), [0, 0, 4, 4, 4]);
  assert.equal(plainWordsAt(view, 8, 8), 0);
});

Deno.test("plainWordsAt() accepts all plain bytes", () => {
  const plain = Array.from({ length: 256 }, (_, byte) => byte)
    .filter((byte) => byte >= 0x20 && byte !== 0x22 && byte !== 0x5c);
  let seed = 1;
  const memory = Uint8Array.from({ length: 40_000 }, () => {
    seed = seed * 48_271 % 0x7fffffff;
    return plain[seed % plain.length]!;
  });

  assert.equal(plainWordsAt(viewOf(memory), 0, memory.length), memory.length);
});
