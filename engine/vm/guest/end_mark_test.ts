import assert from "node:assert/strict";
import { EndMarks } from "./end_mark.ts";

const encode = (text: string) => new TextEncoder().encode(text);

function setup() {
  const pieces: string[] = [];
  const marks = new EndMarks((bytes) => void pieces.push(new TextDecoder().decode(bytes)));
  let ends = 0;
  const next = (mark: string) => void marks.next(mark).then(() => ends++);
  /** Ends are told in a later turn. */
  const seen = async () => {
    await Promise.resolve();
    await Promise.resolve();
    return { text: pieces.join(""), ends };
  };
  return { marks, pieces, next, seen };
}

Deno.test("EndMarks hands on at once what cannot be the mark", async () => {
  const { marks, next, pieces, seen } = setup();
  next("mark");

  marks.add(encode("a line\nhalf a li"));
  marks.add(encode("zero \0 ma"));
  marks.add(encode("\0mar\0"));

  assert.deepEqual(pieces, ["a line\nhalf a li", "zero \0 ma", "\0mar"]);
  assert.equal((await seen()).ends, 0);
});

Deno.test("EndMarks finds the mark wherever the stream is cut", async () => {
  const stream = encode("out\0put \0mark\0mar!\0mark");
  for (let cut = 0; cut <= stream.length; cut++) {
    for (
      const second of [cut, Math.min(cut + 1, stream.length), Math.min(cut + 3, stream.length)]
    ) {
      const { marks, next, seen } = setup();
      next("mark!");
      marks.add(stream.slice(0, cut));
      marks.add(stream.slice(cut, second));
      marks.add(stream.slice(second));
      assert.deepEqual(await seen(), { text: "out\0put \0mark\0mar!", ends: 0 }, `cut at ${cut}`);

      marks.add(encode("!"));

      assert.deepEqual(await seen(), { text: "out\0put \0mark\0mar!", ends: 1 }, `cut at ${cut}`);
    }
  }
});

Deno.test("EndMarks drops what comes between two programs", async () => {
  const { marks, next, seen } = setup();
  marks.add(encode("before"));
  next("one");
  marks.add(encode("first\0one and rest"));
  marks.add(encode("between"));
  next("two");
  marks.add(encode("second\0one\0two"));

  assert.deepEqual(await seen(), { text: "firstsecond\0one", ends: 2 });
});

Deno.test("EndMarks hands on what it held back when the stream ends", async () => {
  const { marks, next, seen } = setup();
  next("mark");
  marks.add(encode("end\0ma"));
  assert.equal((await seen()).text, "end");

  marks.end();

  assert.deepEqual(await seen(), { text: "end\0ma", ends: 1 });
});
