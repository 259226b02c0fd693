import assert from "node:assert/strict";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  compareKeys,
  type EntryList,
  NO_ENTRIES,
  searchEntries,
  type StateChange,
  withChange,
  withPage,
} from "./entries.ts";
import { briefJson } from "../../kit/json.ts";

function page(keys: string[], cursor?: string): EntryList {
  return withPage(NO_ENTRIES, {
    entries: keys.map((key) => ({ key, value: { of: key }, version: 1 })),
    ...cursor !== undefined && { cursor },
  });
}

function change(
  kind: "created" | "updated" | "deleted",
  key: string,
  value: Json = 9,
): StateChange {
  const event_type = `state:${kind}` as const;
  return { event_type, scope: "s", key, old_value: null, new_value: value };
}

const keys = (list: EntryList) => list.entries.map(({ key }) => key);

Deno.test("withPage() appends pages until there is no cursor", () => {
  const first = page(["a", "b"], "b");
  const both = withPage(first, { entries: [{ key: "c", value: 1, version: 4 }] });

  assert.deepEqual([first.isComplete, first.cursor], [false, "b"]);
  assert.deepEqual([both.isComplete, both.cursor, keys(both)], [true, null, ["a", "b", "c"]]);
});

Deno.test("withChange() replaces the value of a known entry, and drops its version", () => {
  const list = withChange(page(["a", "b"]), change("updated", "b", 7), 123);

  assert.deepEqual(list.entries[1], { key: "b", value: 7, version: null, changed_ms: 123 });
});

Deno.test("withChange() inserts a new entry, unless it is beyond the last page", () => {
  const list = page(["b", "d"], "d");

  assert.deepEqual(keys(withChange(list, change("created", "c"), 1)), ["b", "c", "d"]);
  assert.deepEqual(keys(withChange(list, change("created", "a"), 1)), ["a", "b", "d"]);
  assert.equal(withChange(list, change("created", "e"), 1), list);
  assert.deepEqual(keys(withChange(page(["b"]), change("created", "e"), 1)), ["b", "e"]);
});

Deno.test("withChange() removes a deleted entry, and ignores an unknown one", () => {
  const list = page(["a", "b"]);

  assert.deepEqual(keys(withChange(list, change("deleted", "a"), 1)), ["b"]);
  assert.equal(withChange(list, change("deleted", "x"), 1), list);
});

Deno.test("withPage() skips an entry that a change added before", () => {
  const list = withChange(page(["a", "d"], "d"), change("created", "c"), 1);

  const more = withPage(list, {
    entries: [{ key: "d", value: 1, version: 1 }, { key: "e", value: 1, version: 1 }],
  });

  assert.deepEqual(keys(more), ["a", "c", "d", "e"]);
});

Deno.test("withChange() does not change its argument", () => {
  const list = page(["a"]);

  withChange(list, change("updated", "a"), 1);
  withChange(list, change("deleted", "a"), 1);

  assert.deepEqual(list.entries[0]!.value, { of: "a" });
});

Deno.test("compareKeys() orders by UTF-8, like the store", () => {
  const encode = (text: string) => [...new TextEncoder().encode(text)];
  const byBytes = (a: string, b: string) => {
    const [left, right] = [encode(a), encode(b)];
    const at = left.findIndex((byte, i) => byte !== right[i]);
    return at < 0 ? left.length - right.length : (left[at]! - (right[at] ?? -1));
  };
  const all = ["", "a", "b", "aa", "é", "\uffff", "😀", "😀a", "a😀", "a\uffff", "Z", "10", "9"];

  assert.deepEqual(all.toSorted(compareKeys), all.toSorted(byBytes));
});

Deno.test("searchEntries() searches keys and values", () => {
  const { entries } = page(["Alpha", "beta"]);
  const found = (search: string) => searchEntries(entries, search).map(({ key }) => key);

  assert.deepEqual(found("ALPHA"), ["Alpha"]);
  assert.deepEqual(found('"of"'), ["Alpha", "beta"]);
  assert.deepEqual(found("  "), ["Alpha", "beta"]);
  assert.deepEqual(found("none"), []);
});

Deno.test("briefJson() is short even for a large value", () => {
  assert.equal(briefJson({ a: 1 }), '{"a":1}');
  assert.equal(briefJson("x".repeat(5_000_000), 10), '"xxxxxxxxx…');
  assert.equal(briefJson(null), "null");
});
