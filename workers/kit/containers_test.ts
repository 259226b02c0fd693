import assert from "node:assert/strict";
import * as containers from "./containers.ts";
import { int, literal, string, unknown } from "./scalars.ts";

/** Paths of what is wrong. */
function paths(
  of: {
    safeParse(value: unknown): { error?: { issues: readonly { path: readonly unknown[] }[] } };
  },
  value: unknown,
): string[] {
  return (of.safeParse(value).error?.issues ?? []).map(({ path }) => path.join("."));
}

Deno.test("objects in lists in objects say where what is wrong is", () => {
  const of = containers.object({
    rows: containers.array(containers.object({ cells: containers.record(int()) })),
  });

  assert.deepEqual(paths(of, { rows: [{ cells: { a: 1 } }, { cells: { b: "x" } }, {}] }), [
    "rows.1.cells.b",
    "rows.2.cells",
  ]);
});

Deno.test("a union names places inside the whole", () => {
  const of = containers.object({ a: containers.union([string().min(3), int()]) });

  assert.deepEqual(paths(of, { a: "x" }), ["a"]);
  assert.deepEqual(paths(of, { a: true }), ["a"]);
});

Deno.test("a tagged union reads by its tag alone, and refuses what has none", () => {
  const of = containers.taggedUnion("type", [
    containers.object({ type: literal("a"), n: int() }),
    containers.object({ type: literal("b"), t: string() }),
  ], { error: "expected a or b" });

  assert.deepEqual(of.parse({ type: "b", t: "x", n: 1 }), { type: "b", t: "x" });
  assert.deepEqual(paths(of, { type: "a", t: "x" }), ["n"]);
  assert.deepEqual(paths(of, {}), ["type"]);
  assert.deepEqual(paths(of, null), [""]);
  assert.equal((of.schema("input").oneOf as unknown[]).length, 2);
});

Deno.test("a list gives on what its items become, and leaves the given one as it is", () => {
  const given = [1, 2];

  const read = containers.array(int().transform((n) => n * 2)).parse(given);

  assert.deepEqual(read, [2, 4]);
  assert.deepEqual(given, [1, 2]);
});

Deno.test("schemas of lists and records describe their items", () => {
  assert.deepEqual(containers.tuple([int(), unknown()]).schema("input"), {
    type: "array",
    prefixItems: [int().schema("input"), {}],
    items: false,
    minItems: 2,
    maxItems: 2,
  });
  assert.deepEqual(containers.record(string()).schema("input"), {
    type: "object",
    propertyNames: { type: "string" },
    additionalProperties: { type: "string" },
  });
});
