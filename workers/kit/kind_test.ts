import assert from "node:assert/strict";
import { anyOf, hasLength, narrow, outside } from "./kind.ts";

Deno.test("anyOf() lists types that say nothing else, each once", () => {
  const bare = anyOf([{ type: ["string", "null"] }, { type: "null" }]);
  const rich = anyOf([{ type: "string", minLength: 1 }, { type: "null" }]);

  assert.deepEqual(bare, { type: ["string", "null"] });
  assert.deepEqual(rich, { anyOf: [{ type: "string", minLength: 1 }, { type: "null" }] });
});

Deno.test("narrow() keeps the narrower bound", () => {
  const schema = {};
  for (const bound of [1, 3, 2]) narrow(schema, "minimum", bound);
  for (const bound of [5, 7, 6]) narrow(schema, "maxLength", bound);

  assert.deepEqual(schema, { minimum: 3, maxLength: 5 });
});

Deno.test("outside() has the bound in its words and beside them", () => {
  assert.deepEqual(outside("too_big", "array", 2), {
    code: "too_big",
    message: "Too big: expected array to have <=2 items",
    maximum: 2,
  });
  assert.equal(outside("too_small", "int", 2, "expected more").message, "expected more");
});

Deno.test("texts and lists have a length, nothing else has", () => {
  assert.deepEqual(["", [], 5, null, undefined, {}].map(hasLength), [
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
});
