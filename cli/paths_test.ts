import assert from "node:assert/strict";
import { absolutePath, looksLikePath, shellWord } from "./paths.ts";

Deno.test("absolutePath() resolves what people type", () => {
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

Deno.test("shellWord() quotes what a shell would take apart", () => {
  assert.deepEqual(["a=2", "./x", '{"a":2}', "it's", ""].map(shellWord), [
    "a=2",
    "./x",
    `'{"a":2}'`,
    "'it'\\''s'",
    "''",
  ]);
});
