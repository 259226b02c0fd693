/**
 * How texts fit what somebody typed.
 *
 * @module
 */
import assert from "node:assert/strict";
import { bestFits, fitOf } from "./palette.tsx";

const NAMES = ["orders::place", "orders::show", "payments::charge", "Workers", "state::set"];
const find = (typed: string, limit = 10) => bestFits(NAMES, typed, (name) => name, limit);

Deno.test("blank fits everything, in the order it comes", () => {
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
  Deno.test(`${typed} finds ${first} first`, () => assert.equal(find(typed)[0], first));
}

for (const typed of ["xyz", "ecalp", "orders::place2"]) {
  Deno.test(`${typed} finds nothing`, () => assert.deepEqual(find(typed), []));
}

Deno.test("the start of the text fits better than the start of a word, and that than its middle", () => {
  const [whole, word, middle] = ["set::a", "a::set", "aset"].map((text) => fitOf(text, "set")!);

  assert.ok(whole! > word! && word! > middle!);
});

Deno.test("a whole word fits better than scattered letters", () => {
  assert.ok(fitOf("a::place", "place")! > fitOf("p.l.a.c.e", "place")!);
});
