import assert from "node:assert/strict";
import { readOptions, UsageError } from "./options.ts";

const SECTIONS = ["relay", "http"];

Deno.test("readOptions() of nothing measures all, in 5 rounds of half a second", () => {
  const { json, compare, only, rounds, seconds, tree } = readOptions([], SECTIONS);

  assert.deepEqual([json, compare, only, rounds, seconds], ["bench.json", undefined, [], 5, 0.5]);
  assert.ok(tree.endsWith("/"));
});

Deno.test("readOptions() takes every option", () => {
  const words = "--json a.json --compare b.json --only http --only relay --rounds 3 --seconds 2";

  const options = readOptions([...words.split(" "), "--tree", "/elsewhere"], SECTIONS);

  assert.deepEqual(options, {
    json: "a.json",
    compare: "b.json",
    only: ["http", "relay"],
    rounds: 3,
    seconds: 2,
    tree: "/elsewhere/",
  });
});

const WRONG: Readonly<Record<string, RegExp>> = {
  "--only nothing": /no section nothing; there are relay, http/,
  "--rounds 0": /--rounds has to be a whole number from 1 to 99, not 0/,
  "--rounds 2.5": /whole number/,
  "--rounds many": /not many/,
  "--rounds=": /--rounds/,
  "--seconds 0": /--seconds has to be a number from 0.1 to 10, not 0/,
  "--seconds 1e9": /from 0.1 to 10/,
  "--seconds": /--seconds/,
  "--json": /--json/,
  "--fast": /--fast/,
  "relay": /relay/,
};

for (const [words, message] of Object.entries(WRONG)) {
  Deno.test(`readOptions() refuses ${words}`, () => {
    const read = () => readOptions(words.split(" "), SECTIONS);

    assert.throws(read, (error) => error instanceof UsageError && message.test(error.message));
  });
}
