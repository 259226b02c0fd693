import assert from "node:assert/strict";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import { STATE_ANSWER_BYTES_MAX } from "../limits.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { StateEntries } from "./entries.ts";
import { listEntries, listScopes, listValues } from "./listing.ts";

function setup() {
  const store = new MemoryStore();
  const clock = new FakeClock(1_000);
  const limits: number[] = [];
  const entries = new StateEntries({
    store: {
      stats: store.stats,
      get: (key) => store.get(key),
      list: (prefix, limit, after) => {
        limits.push(limit);
        return store.list(prefix, limit, after);
      },
      write: (changes) => store.write(changes),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    },
    clock,
    changed: () => {},
    expires: () => {},
  });
  const put = (key: string, value: Json, scope = "s", end?: number) =>
    entries.write({ scope, key }, () => ({ value, expires_at_ms: end }), end);
  return { entries, clock, put, limits };
}

const ALL = { scope: "s", prefix: "", limit: 1_000, cursor: undefined };

Deno.test("listValues() reads a long scope in pages that grow", async () => {
  const { entries, put, limits } = setup();
  for (let i = 0; i < 3_000; i++) await put(`${i}`, i);

  const values = await listValues(entries, "s");

  assert.deepEqual(values, Array.from({ length: 3_000 }, (_, i) => i));
  assert.deepEqual(limits, [16, 64, 256, 1_000, 1_000, 1_000]);
});

Deno.test("listValues() reads large values in pages that shrink", async () => {
  const { entries, put, limits } = setup();
  for (let i = 0; i < 30; i++) await put(`${i}`, "x".repeat(200_000));

  assert.equal((await listValues(entries, "s")).length, 30);
  assert.deepEqual(limits.slice(0, 2), [16, 4]);
});

Deno.test("listValues() refuses a scope that is too large for one answer", async () => {
  const { entries, put } = setup();
  const large = "x".repeat(STATE_ANSWER_BYTES_MAX / 2);
  for (const key of ["a", "b"]) await put(key, large);

  await assert.rejects(listValues(entries, "s"), {
    code: "LIST_ERROR",
    message: "Scope s is too large for one answer; use state::list_entries",
    details: { scope: "s" },
  });
});

Deno.test("listEntries() ends a page early when it is full of bytes, and goes on behind", async () => {
  const { entries, put } = setup();
  const large = "x".repeat(STATE_ANSWER_BYTES_MAX / 2);
  for (const key of ["a", "b", "c"]) await put(key, large);

  const keys: Json[] = [];
  let cursor: string | undefined;
  do {
    const page: JsonObject = await listEntries(entries, { ...ALL, cursor });
    keys.push((page.entries as JsonObject[]).map(({ key }) => key!));
    cursor = page.cursor as string | undefined;
  } while (cursor !== undefined);

  assert.deepEqual(keys, [["a"], ["b"], ["c"]]);
});

Deno.test("listEntries() gives a cursor only when there is more that is alive", async () => {
  const { entries, clock, put } = setup();
  await put("a", 1);
  await put("b", 2, "s", 1_100);
  const two = { ...ALL, limit: 1 };

  assert.equal((await listEntries(entries, two)).cursor, "a");
  clock.tick(100);
  assert.equal((await listEntries(entries, two)).cursor, undefined);
});

Deno.test("listEntries() finds all keys of a prefix, with odd characters behind it", async () => {
  const { entries, put } = setup();
  const keys = ["p", "p\0", "p\0\0", "p1", "p\uffff", "p😀"];
  for (const key of ["o", "q", ...keys]) await put(key, 1);

  const page = await listEntries(entries, { ...ALL, prefix: "p" });

  assert.deepEqual((page.entries as JsonObject[]).map(({ key }) => key), keys);
});

Deno.test("listScopes() names more scopes than one page holds", async () => {
  const { entries, put } = setup();
  const names = Array.from({ length: 1_500 }, (_, i) => String(i).padStart(5, "0"));
  for (const name of names) await put("k", 1, name);

  assert.deepEqual(await listScopes(entries), names);
});
