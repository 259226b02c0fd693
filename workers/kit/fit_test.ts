import assert from "node:assert/strict";
import * as v from "./schema.ts";
import { fit } from "./fit.ts";

const Shape = v.object({
  scope: v.string(),
  count: v.nullish(v.int(1)),
  ops: v.optional(v.array(v.object({ path: v.string() })), []),
});

Deno.test("fit() returns a payload that fits, without unknown fields", () => {
  const fitting = fit("group::name", Shape, { scope: "a", count: null, other: 1 });

  assert.deepEqual(fitting, { scope: "a", count: null, ops: [] });
});

Deno.test("fit() names the path of everything that does not fit", () => {
  const payload = { scope: 1, count: 1.5, ops: [{ path: "a" }, {}] };

  assert.throws(() => fit("group::name", Shape, payload), {
    name: "EngineError",
    code: "deserialization_error",
    message: "Failed to deserialize input for group::name: scope: expected string, received 1; " +
      "count: expected int, received 1.5; ops[1].path: expected string, received nothing",
    details: { received: payload },
  });
});

for (
  const [name, payload, problem] of [
    ["nothing", undefined, "expected object, received nothing"],
    ["null", null, "expected object, received null"],
    ["a string", "a", "expected object, received string"],
    ["a list", [], "expected object, received array"],
    ["too small a number", { scope: "a", count: 0 }, "count: Too small: expected number to be >=1"],
  ] as const
) {
  Deno.test(`fit() reports what is wrong with ${name}`, () => {
    assert.throws(() => fit("a::b", Shape, payload), {
      message: `Failed to deserialize input for a::b: ${problem}`,
      details: { received: payload ?? null },
    });
  });
}

Deno.test("fit() does not send a long payload back whole, nor a long list of problems", () => {
  const payload = { scope: "a", ops: Array.from({ length: 5_000 }, () => ({})) };

  assert.throws(() => fit("a::b", Shape, payload), (error: Error & { details: object }) => {
    assert.match(error.message, /ops\[9\]\.path: .*; and 4990 more$/);
    assert.ok(JSON.stringify(error.details).length < 5_000);
    return true;
  });
});

Deno.test("fit() looks at the start only of a payload of millions of items", () => {
  const items = Array.from({ length: 4_000_000 }, () => 1);
  const List = v.object({ ops: v.list(v.number(), 1_000) });
  const began = performance.now();

  assert.throws(() => fit("a::b", List, { ops: items, text: "x" }), {
    message: "Failed to deserialize input for a::b: " +
      "ops: Too big: expected array to have <=1000 items",
    details: { received: `{"ops":[${"1,".repeat(1_000)}`.slice(0, 2_000) + "…" },
  });
  assert.ok(performance.now() - began < 100, `${performance.now() - began} ms`);
});

Deno.test("fit() cuts a long text of a payload that does not fit", () => {
  const payload = { scope: 1, text: '"'.repeat(3_000) };

  assert.throws(() => fit("a::b", Shape, payload), ({ details }: { details: object }) => {
    const { received } = details as { received: string };
    return received.length === 2_001 && received.startsWith('{"scope":1,"text":"\\"');
  });
});
