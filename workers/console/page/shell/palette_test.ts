/**
 * @module
 */
import assert from "node:assert/strict";
import { bestMatches, matchScore } from "./palette.tsx";

const NAMES = ["orders::place", "orders::show", "payments::charge", "Workers", "state::set"];
const find = (typed: string, limit = 10) => bestMatches(NAMES, typed, (name) => name, limit);

Deno.test("bestMatches() of a blank are all items in their order", () => {
  assert.deepEqual(find("  "), NAMES);
  assert.deepEqual(find("", 2), NAMES.slice(0, 2));
});

for (
  const [typed, first] of [
    ["orders::s", "orders::show"],
    ["PLACE", "orders::place"],
    ["opl", "orders::place"],
    ["pc", "payments::charge"],
    ["work", "Workers"],
    ["set", "state::set"],
  ] as const
) {
  Deno.test(`bestMatches() of ${typed} begin with ${first}`, () =>
    assert.equal(find(typed)[0], first));
}

for (const typed of ["xyz", "ecalp", "orders::place2"]) {
  Deno.test(`bestMatches() of ${typed} are none`, () => assert.deepEqual(find(typed), []));
}

Deno.test("matchScore() prefers the start of the text to the start of a word, and that to its middle", () => {
  const [whole, word, middle] = ["set::a", "a::set", "aset"].map((text) =>
    matchScore(text, "set")!
  );

  assert.ok(whole! > word! && word! > middle!);
});

Deno.test("matchScore() prefers a whole word to scattered letters", () => {
  assert.ok(matchScore("a::place", "place")! > matchScore("p.l.a.c.e", "place")!);
});
