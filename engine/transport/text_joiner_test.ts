import assert from "node:assert/strict";
import { TextJoiner } from "./text_joiner.ts";

const encoder = new TextEncoder();

function join(joiner: TextJoiner, head: string, text: string): string {
  const [headBytes, memory] = [encoder.encode(`${head}???`), encoder.encode(`ä${text}ö`)];
  return joiner.join(headBytes, headBytes.length - 3, memory, 2, memory.length - 2);
}

Deno.test("TextJoiner makes one text of two parts, and of nothing around them", () => {
  const joiner = new TextJoiner();

  for (const head of ["", "head ", "größe ", "😀"]) {
    for (const text of ["", "x", "東京", "\u0000\u007f", "x".repeat(1_000), "é".repeat(1_000)]) {
      assert.equal(join(joiner, head, text), head + text);
    }
  }
});

Deno.test("TextJoiner joins a character whose bytes are in both parts", () => {
  const joiner = new TextJoiner();
  const bytes = encoder.encode("a😀ü");

  for (let cut = 0; cut <= bytes.length; cut++) {
    assert.equal(joiner.join(bytes, cut, bytes, cut, bytes.length), "a😀ü");
  }
});

Deno.test("TextJoiner takes texts around the size of the memory that it keeps, and beyond", () => {
  const joiner = new TextJoiner();

  for (const bytes of [65_535, 65_536, 65_537, 1_000_000]) {
    for (const character of ["x", "ü"]) {
      const text = character.repeat(bytes / encoder.encode(character).length);

      assert.equal(join(joiner, "", text), text);
      assert.equal(join(joiner, "h", text), `h${text}`);
      assert.equal(join(joiner, text, "t"), `${text}t`);
    }
  }
  assert.equal(join(joiner, "short", " again"), "short again");
});

Deno.test("a text stays what it was when the next one is joined", () => {
  const joiner = new TextJoiner();
  const texts = Array.from({ length: 100 }, (_, i) => join(joiner, `${i}:`, i % 2 ? "ü" : "u"));

  assert.deepEqual(texts, Array.from({ length: 100 }, (_, i) => `${i}:${i % 2 ? "ü" : "u"}`));
});

Deno.test("a byte order mark is a character like others", () => {
  const joiner = new TextJoiner();

  assert.equal(join(joiner, "\ufeff", "a"), "\ufeffa");
  assert.equal(join(joiner, "a", "\ufeffb"), "a\ufeffb");
});
