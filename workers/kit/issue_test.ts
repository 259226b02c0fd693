import assert from "node:assert/strict";
import { Found, listed, say, ShapeError } from "./issue.ts";

Deno.test("Found notes where the reading is, and counts what is grave", () => {
  const found = new Found();
  found.path.push("a", 0);

  found.add({ code: "custom", message: "one" }, ["b"]);
  found.addGrave({ code: "custom", message: "two" });

  assert.deepEqual(found.issues.map(({ path }) => path), [["a", 0, "b"], ["a", 0]]);
  assert.equal(found.grave, 1);
});

Deno.test("Found takes over what another reading of the same value found", () => {
  const [found, other] = [new Found(), new Found(["a"])];
  other.addType("string", null);

  found.take(other);

  assert.equal(found.grave, 1);
  assert.deepEqual(found.issues.map(({ path, expected }) => [path, expected]), [[["a"], "string"]]);
});

for (
  const [input, name] of [[null, "null"], [[], "array"], [{}, "object"], [Infinity, "Infinity"], [
    undefined,
    "undefined",
  ]] as const
) {
  Deno.test(`a value of another type is called ${name}`, () => {
    const found = new Found();

    found.addType("string", input);

    assert.equal(found.issues[0]?.message, `Invalid input: expected string, received ${name}`);
  });
}

Deno.test("ShapeError says all that is wrong in one line", () => {
  const issue = { code: "custom", path: ["a", 0], message: "odd" } as const;

  assert.equal(new ShapeError([issue, { ...issue, path: ["b"] }]).message, "a.0: odd; b: odd");
});

Deno.test("a shape's own words may look at the value", () => {
  assert.equal(say(({ input }) => `not ${input}`, 5), "not 5");
  assert.equal(say("plain", 5), "plain");
  assert.equal(say(undefined, 5), undefined);
  assert.equal(listed(["a", 1], "|"), '"a"|1');
});
