/**
 * Pages of a list, and the bounds of queries.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import {
  charsOf,
  checkFilters,
  DESCRIPTION_CHARS_MAX,
  FILTER_VALUES_MAX,
  pageAnswer,
  type PageBounds,
  pageOf,
  type PageQuery,
  SEARCH_CHARS_MAX,
  VALUE_CHARS_MAX,
} from "./pages.ts";

/** A page of entries with these ids. */
function page(ids: readonly string[], query: PageQuery = {}, bounds: PageBounds = {}) {
  const { entries, next_cursor } = pageOf(ids, (id) => [id], (id) => ({ id }), query, bounds);
  return { ids: entries.map(({ id }) => id as string), next_cursor };
}

Deno.test("pageOf() sorts, and has a cursor only if there is more", () => {
  assert.deepEqual(page(["b", "c", "a"]), { ids: ["a", "b", "c"], next_cursor: undefined });
  assert.deepEqual(page(["b", "c", "a"], { limit: 2 }), { ids: ["a", "b"], next_cursor: "b" });
  assert.deepEqual(page([]), { ids: [], next_cursor: undefined });
});

Deno.test("pageOf() goes through a list that changes meanwhile, without repeating an entry", () => {
  const ids = Array.from({ length: 25 }, (_, i) => `id${String(i).padStart(2, "0")}`);
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const { ids: some, next_cursor } = page(ids, { limit: 4, cursor: cursor ?? null });
    seen.push(...some);
    ids.splice(0, 1);
    cursor = next_cursor;
  } while (cursor !== undefined);

  assert.deepEqual(seen, Array.from({ length: 25 }, (_, i) => `id${String(i).padStart(2, "0")}`));
});

Deno.test("pageOf() ends a page that has enough bytes, after one entry at least", () => {
  const ids = ["a", "b", "c"].map((id) => id.repeat(1_000));

  assert.equal(page(ids, {}, { chars: 2_000 }).ids.length, 2);
  assert.equal(page(ids, {}, { chars: 1 }).ids.length, 1);
  assert.equal(page(ids, { limit: 10_000 }, { entries: 2 }).ids.length, 2);
});

Deno.test("pageOf() leaves out values that are too large, and names them", () => {
  const large: Json = Array.from({ length: VALUE_CHARS_MAX }, () => []);
  const description = "d".repeat(DESCRIPTION_CHARS_MAX + 1);
  const views: JsonObject[] = [{ id: "a", metadata: large, description }, {
    id: "b",
    metadata: [],
  }];

  const { entries } = pageOf(views, ({ id }) => [id as string], (view) => view);

  assert.deepEqual(entries, [
    {
      id: "a",
      metadata: null,
      description: `${"d".repeat(DESCRIPTION_CHARS_MAX)}…`,
      truncated: ["metadata", "description"],
    },
    { id: "b", metadata: [] },
  ]);
});

Deno.test("pageOf() cuts a description between two characters", () => {
  const description = `${"d".repeat(DESCRIPTION_CHARS_MAX - 1)}😀😀`;

  const { entries } = pageOf([1], () => ["a"], () => ({ description }));

  assert.equal(entries[0]!.description, `${"d".repeat(DESCRIPTION_CHARS_MAX - 1)}…`);
});

Deno.test("pageAnswer() names the entries, and the cursor only if there is one", () => {
  assert.deepEqual(pageAnswer("functions", { entries: [] }), { functions: [] });
  const more = { entries: [], next_cursor: "c" };
  assert.deepEqual(pageAnswer("workers", more), { workers: [], next_cursor: "c" });
});

Deno.test("checkFilters() names the member that is too long, and the bound", () => {
  const many = Array.from({ length: FILTER_VALUES_MAX + 1 }, () => "w");
  for (
    const [query, what] of [
      [{ search: "s".repeat(SEARCH_CHARS_MAX + 1) }, "search has 201 characters, at most 200"],
      [{ worker: "w".repeat(1_025) }, "worker has 1025 characters, at most 1024"],
      [{ workers: ["w", "w".repeat(2_000)] }, "workers has 2000 characters, at most 1024"],
      [{ workers: many }, "workers has 101 values, at most 100"],
      [{ cursor: "c".repeat(5_000) }, "cursor has 5000 characters, at most 4096"],
    ] as const
  ) {
    assert.throws(() => checkFilters("engine::functions::list", query), {
      code: "invalid_payload",
      message: `Payload of engine::functions::list: ${what} are accepted`,
    });
  }
  checkFilters("f", { search: "s".repeat(200), workers: [], limit: 5, cursor: null });
});

Deno.test("charsOf() is about the length of the JSON, and stops beyond its bound", () => {
  const value: Json = { name: "x".repeat(100), list: [1, null, { a: "b" }] };
  const exact = JSON.stringify(value).length;
  assert.ok(Math.abs(charsOf(value, 10_000) - exact) < 40);
  const long = Array.from({ length: 1_000 }, (_, i) => i);
  assert.ok(charsOf(long, 100) < 120);
});
