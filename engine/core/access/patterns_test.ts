/**
 * Patterns against a simple model, and rules as they are written.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Random } from "../../../tests/fakes/random.ts";
import { isExposed, Pattern, PATTERN_CHARS_MAX, readExposeRule, readPattern } from "./patterns.ts";

/** The model: letter by letter, with every way that a `*` could end. */
function model(pattern: string, text: string): boolean {
  let ends = new Set([0]);
  for (const letter of pattern.split("")) {
    const next = new Set<number>();
    for (const at of ends) {
      if (letter === "*") { for (let to = at; to <= text.length; to++) next.add(to); }
      else if (text[at] === letter) next.add(at + 1);
    }
    ends = next;
  }
  return ends.has(text.length);
}

Deno.test("Pattern.matches() agrees with a simple model on random patterns and texts", () => {
  const random = new Random(14);
  const letters = ["a", "b", ":", "*", "*", ".", "\\", "[", "\n", "é", "\u{1f511}", "?", "+", "("];
  const word = (most: number, from: readonly string[]): string =>
    Array.from({ length: random.below(most + 1) }, () => from[random.below(from.length)]).join("");
  let matched = 0;

  for (let i = 0; i < 20_000; i++) {
    const few = random.below(2) === 0 ? ["a", "b", "*"] : letters;
    const pattern = word(7, few);
    const text = word(9, few.filter((letter) => letter !== "*"));
    const expected = model(pattern, text);
    assert.equal(Pattern.glob(pattern).matches(text), expected, JSON.stringify([pattern, text]));
    if (expected) matched++;
  }

  assert.ok(matched > 500, `${matched} matches`);
});

Deno.test("a pattern with many stars takes no longer than its text allows", () => {
  const pattern = Pattern.glob("*a".repeat(500) + "*b");

  assert.equal(pattern.matches("a".repeat(100_000)), false);
  assert.equal(pattern.matches("a".repeat(100_000) + "b"), true);
});

Deno.test("characters of regular expressions, paths and other alphabets stand for themselves", () => {
  for (const id of [".", "a?c", "[a-z]::x", "^a$", "a\\d", "ключ::{}", "a/../b", "a b", "\u0000"]) {
    assert.equal(Pattern.glob(id).matches(id), true, id);
    assert.equal(Pattern.glob(`${id}*`).matches(`${id}::more`), true, id);
  }
  assert.equal(Pattern.glob("a?c").matches("abc"), false);
  assert.equal(Pattern.glob("orders::*").matches("Orders::x"), false);
  assert.equal(Pattern.glob("orders::*").matches("x::orders::y"), false);
  assert.equal(Pattern.glob("a*a").matches("a"), false);
});

Deno.test("readPattern() takes an id or match(), and no star outside of match()", () => {
  const read = (text: string) => {
    const pattern = readPattern(text);
    return typeof pattern === "string" ? pattern : pattern.text;
  };

  assert.equal(read("orders::create"), "orders::create");
  assert.equal(read('match("orders::*")'), "orders::*");
  assert.equal(read("match('orders::*')"), "orders::*");
  assert.equal(read('match( "a\\"b*" )'), 'a"b*');
  assert.equal(read("orders::*"), 'match("orders::*")');
  assert.equal(read('match("a") or match("b*")'), 'match("match(\\"a\\") or match(\\"b*\\")")');
  assert.equal(read('match("\\x*")'), 'a valid text inside match("…")');
  assert.match(read("") as string, /^1 to/);
  assert.match(read(`match("${"x".repeat(PATTERN_CHARS_MAX + 1)}")`) as string, /^1 to/);
});

Deno.test("an expose rule is for one namespace, that of metadata for all or the named one", () => {
  const rule = (value: Parameters<typeof readExposeRule>[0]) => {
    const read = readExposeRule(value);
    assert.ok(typeof read !== "string", read as string);
    return (id: string, namespace: string, ...metadata: (object | undefined)[]) =>
      isExposed(read, id, namespace, metadata as never);
  };

  assert.equal(rule('match("a::*")')("a::b", "default"), true);
  assert.equal(rule('match("a::*")')("a::b", "other"), false);
  assert.equal(rule({ match: "a::*", namespace: "other" })("a::b", "other"), true);
  assert.equal(rule({ match: 'match("a::*")' })("a::b", "default"), true);
  assert.equal(rule({ metadata: { public: true } })("x", "other", { public: true }), true);
  assert.equal(rule({ metadata: { public: true } })("x", "other", { public: "true" }), false);
  assert.equal(
    rule({ metadata: { team: 'match("sh*")' } })("x", "default", { team: "shop" }),
    true,
  );
  assert.equal(rule({ metadata: { team: "sh" } })("x", "default", { team: "shop" }), false);
  assert.equal(rule({ metadata: { a: 1 }, namespace: "n" })("x", "default", { a: 1 }), false);
  assert.equal(rule({ metadata: { constructor: 1 } as never })("x", "default", {}), false);
});

Deno.test("metadata of one replica opens nothing that another one keeps closed", () => {
  const rule = readExposeRule({ metadata: { public: true } });
  assert.ok(typeof rule !== "string");

  assert.equal(isExposed(rule, "x", "default", [{ public: true }, undefined]), false);
  assert.equal(isExposed(rule, "x", "default", [{ public: true }, { public: true }]), true);
  assert.equal(isExposed(rule, "x", "default", []), false);
});

Deno.test("an expose rule of another shape is refused with what was expected", () => {
  for (
    const value of [
      3,
      null,
      [],
      {},
      { match: 3 },
      { match: "a", metadata: { a: 1 } },
      {
        metadata: {},
      },
      { match: "a", other: 1 },
      { match: "a", namespace: "" },
      { metadata: { a: "x*" } },
    ]
  ) {
    assert.equal(typeof readExposeRule(value as never), "string", JSON.stringify(value));
  }
});
