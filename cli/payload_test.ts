import assert from "node:assert/strict";
import { UsageError } from "./failure.ts";
import { type PayloadSources, readPayload, withFields } from "./payload.ts";

function sources(fields: string[], payload?: string): PayloadSources {
  return {
    fields,
    payload,
    readFile: (path) =>
      path === "two.json"
        ? Promise.resolve('{"a":2}')
        : Promise.reject(new Error("No such file or directory")),
    readInput: () => Promise.resolve('{"a":3}'),
  };
}

Deno.test("a field is JSON if it parses as such", () => {
  const payload = withFields({}, ["n=2", "half=0.5", "yes=true", "none=null", 'list=[1,"b"]']);

  assert.deepEqual(payload, { n: 2, half: 0.5, yes: true, none: null, list: [1, "b"] });
});

Deno.test("a field that is not JSON is text", () => {
  const payload = withFields({}, ["a=hello", "b=", "c==x", "d=NaN", "e={", "f=a=b", 'g="5"']);

  assert.deepEqual(payload, { a: "hello", b: "", c: "=x", d: "NaN", e: "{", f: "a=b", g: "5" });
});

Deno.test("dots in a key nest, and an escaped dot does not", () => {
  const payload = withFields({}, ["user.name=Ann", "user.age=3", "a\\.b=1"]);

  assert.deepEqual(payload, { user: { name: "Ann", age: 3 }, "a.b": 1 });
});

Deno.test("a nested field is added to an object that another field set", () => {
  assert.deepEqual(withFields({}, ['a={"x":1}', "a.y=2"]), { a: { x: 1, y: 2 } });
});

Deno.test("__proto__ is a key like any other", () => {
  const payload = withFields({}, ["__proto__.polluted=1", "constructor=2"]);

  assert.equal(JSON.stringify(payload), '{"__proto__":{"polluted":1},"constructor":2}');
  assert.equal(({} as { polluted?: number }).polluted, undefined);
});

Deno.test("without fields and --payload the payload is an empty object", async () => {
  assert.deepEqual(await readPayload(sources([])), {});
});

Deno.test("--payload takes JSON, a file and standard input", async () => {
  assert.deepEqual(await readPayload(sources([], "[1]")), [1]);
  assert.deepEqual(await readPayload(sources([], "null")), null);
  assert.deepEqual(await readPayload(sources([], "@two.json")), { a: 2 });
  assert.deepEqual(await readPayload(sources([], "-")), { a: 3 });
});

Deno.test("fields are set on top of --payload", async () => {
  assert.deepEqual(await readPayload(sources(["b=1", "a=9"], "-")), { a: 9, b: 1 });
});

for (
  const [what, fields, message] of [
    ["without =", ["abc"], /Not a field: abc; write key=value/],
    ["with an empty key", ["=1"], /a part of its key is empty/],
    ["with an empty part", ["a..b=1"], /a part of its key is empty/],
    ["given twice", ["a=1", "a=2"], /Given twice: a/],
    ["below a number", ["a=1", "a.b=2"], /a\.b=2 has no place: a is not an object/],
    ["over its own parts", ["a.b=2", "a=1"], /would replace fields/],
    ["with more digits than a number holds", ["id=12345678901234567890"], /would lose digits/],
    ["beyond all numbers", ["n=1e999"], /would lose digits/],
  ] as const
) {
  Deno.test(`a field ${what} is refused`, () => {
    assert.throws(() => withFields({}, fields), (thrown) => {
      assert.ok(thrown instanceof UsageError);
      assert.match(thrown.message, message);
      return true;
    });
  });
}

for (
  const [what, payload, fields, message] of [
    ["that is not JSON", "{a:2}", [], /^--payload is not JSON: .*--payload='\{"a":2\}'/],
    ["from a file that is missing", "@x.json", [], /x\.json cannot be read: No such file/],
    ["that is a list, with fields", "[1]", ["a=1"], /Fields such as a=1 need a --payload/],
    ["that would lose digits", '{"a":{"b":12345678901234567890}}', [], /would lose digits/],
    ["that is empty", "", [], /is not JSON/],
  ] as const
) {
  Deno.test(`a --payload ${what} is refused`, async () => {
    await assert.rejects(() => readPayload(sources([...fields], payload)), (thrown) => {
      assert.ok(thrown instanceof UsageError);
      assert.match(thrown.message, message);
      return true;
    });
  });
}
