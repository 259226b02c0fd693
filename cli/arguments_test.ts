import assert from "node:assert/strict";
import { absolutePath, looksLikePath, readNumber, readTimeout, shellWord } from "./arguments.ts";
import { UsageError } from "./failure.ts";

Deno.test("readNumber() takes whole numbers within bounds, and nothing else", () => {
  assert.equal(readNumber("--tail", "0", 0, 10), 0);
  assert.equal(readNumber("--tail", "10", 0, 10), 10);
  for (const text of ["11", "-1", "1.5", "1e1", "ten", "", " 1", "0x1"]) {
    assert.throws(() => readNumber("--tail", text, 0, 10), (thrown) => {
      assert.ok(thrown instanceof UsageError);
      assert.equal(
        thrown.message,
        `--tail: expected 0 to 10, received ${JSON.stringify(text)}`,
      );
      return true;
    });
  }
});

for (
  const [text, ms] of [
    ["0", 0],
    ["300", 300_000],
    ["0.5", 500],
    ["90s", 90_000],
    ["2m", 120_000],
    ["1.5m", 90_000],
    ["24h", 86_400_000],
  ] as const
) {
  Deno.test(`--timeout ${text} is ${ms} ms`, () => assert.equal(readTimeout(text), ms));
}

for (const text of ["", "-1", "1d", "2 m", "m", "1e9", "Infinity", "25h", "90S", "0x10"]) {
  Deno.test(`--timeout ${JSON.stringify(text)} is not understood`, () => {
    assert.throws(() => readTimeout(text), (thrown) => {
      assert.ok(thrown instanceof UsageError);
      assert.ok(thrown.message.endsWith(`received ${JSON.stringify(text)}`), thrown.message);
      return true;
    });
  });
}

Deno.test("absolutePath() resolves typed paths", () => {
  const typed = ["a", "./a/", "../b", "/x/../y", ".", "a//b/./c", "../../../.."];

  assert.deepEqual(typed.map((path) => absolutePath("/home/ann", path)), [
    "/home/ann/a",
    "/home/ann/a",
    "/home/b",
    "/y",
    "/home/ann",
    "/home/ann/a/b/c",
    "/",
  ]);
});

Deno.test("looksLikePath() tells a directory from the name of a built-in worker", () => {
  assert.deepEqual(["./a", "a/b", ".", "..", "/x"].map(looksLikePath), Array(5).fill(true));
  assert.equal(looksLikePath("engine-state"), false);
});

Deno.test("shellWord() quotes what a shell would split", () => {
  assert.deepEqual(["a=2", "./x", '{"a":2}', "it's", ""].map(shellWord), [
    "a=2",
    "./x",
    `'{"a":2}'`,
    "'it'\\''s'",
    "''",
  ]);
});
