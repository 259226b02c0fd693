import assert from "node:assert/strict";
import type { KeyChange, Store } from "../../engine/ports/store.ts";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import { JsonText } from "../../sdk/typescript/json_text.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import {
  listEntries,
  listScopes,
  listText,
  listValues,
  SCOPES_MAX,
  STATE_ANSWER_BYTES_MAX,
  StateEntries,
  type StateEvent,
} from "./entries.ts";

function setup() {
  const clock = new FakeClock(1_000);
  const store = new MemoryStore();
  const events: StateEvent[] = [];
  const days: number[] = [];
  const provided = {
    stats: store.stats,
    status: store.status,
    get: (key) => store.get(key),
    list: (...query) => store.list(...query),
    write: (changes: readonly KeyChange[]) => store.write(changes),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  } satisfies Store;
  const entries = new StateEntries({
    store: provided,
    clock,
    changed: (event) => void events.push(event()),
    expires: (atMs) => void days.push(atMs),
  });
  return { clock, store, provided, entries, events, days };
}

const PLACE = { scope: "s", key: "k" };
const forever = { value: 1, expires_at_ms: undefined };

Deno.test("StateEntries.write() changes value, scope count and expiry record in one write", async () => {
  const { store, provided, entries, days } = setup();
  let writes = 0;
  provided.write = (changes) => {
    writes++;
    return store.write(changes);
  };

  await entries.write(PLACE, () => ({ value: { a: 1 }, expires_at_ms: 5_000 }), 5_000);

  assert.equal(writes, 1);
  assert.deepEqual((await store.list([], 10)).map(({ key, value }) => [key.join("/"), value]), [
    ["state/s/k", { value: { a: 1 }, updated_at_ms: 1_000, expires_at_ms: 5_000 }],
    ["state_expiry/000000000005000/s/k", true],
    ["state_scopes/s", 1],
  ]);
  assert.deepEqual(days, [5_000]);
});

Deno.test("StateEntries.get() has the stored text of a value, whatever the value contains", async () => {
  const { store, entries } = setup();
  const texts = ['{"n": 1.50, "digits": 12345678901234567890}', '"}"', "null", "[]"];
  texts.push('{"updated_at_ms":1,"expires_at_ms":2}', '"\\",\\"updated_at_ms\\":3"');

  for (const text of texts) {
    for (const [times, expiry] of [["7", undefined], ['7,"expires_at_ms":9000', 9_000]] as const) {
      const record = `{"value":${text},"updated_at_ms":${times}}`;
      await store.write([[["state", "s", "k"], () => new JsonText(record)]]);

      const found = (await entries.get(PLACE))!;

      assert.deepEqual([found.json, found.updated_at_ms, found.expires_at_ms], [text, 7, expiry]);
      assert.deepEqual(found.value, JSON.parse(text));
    }
  }
  assert.equal((await listValues(entries, "s", Infinity, add))?.text, `[${texts.at(-1)}]`);
});

Deno.test("StateEntries.write() passes on what the change throws, and writes nothing", async () => {
  const { store, entries, events, days } = setup();
  const thrown = new Error("no");

  const write = entries.write(PLACE, () => {
    throw thrown;
  }, 5_000);

  await assert.rejects(write, (caught) => caught === thrown);
  assert.deepEqual([await store.list([], 10), events, days], [[], [], []]);
});

Deno.test("StateEntries.write() over an expired entry reports its removal and the new entry", async () => {
  const { clock, entries, events } = setup();
  await entries.write(PLACE, () => ({ value: "old", expires_at_ms: 1_100 }), 1_100);
  clock.tick(100);
  let seen: unknown = "nothing asked";

  const changed = await entries.write(PLACE, (old) => {
    seen = old;
    return forever;
  });

  assert.equal(seen, undefined);
  assert.equal(changed.old, undefined);
  assert.deepEqual(events.map(({ event_type, old_value }) => [event_type, old_value]), [
    ["state:created", null],
    ["state:deleted", "old"],
    ["state:created", null],
  ]);
  assert.deepEqual(await entries.scopes(10), ["s"]);
});

Deno.test("StateEntries.expire() leaves an entry that was renewed meanwhile", async () => {
  const { clock, store, provided, entries, events } = setup();
  await entries.write(PLACE, () => ({ value: 1, expires_at_ms: 1_100 }), 1_100);
  clock.tick(100);
  provided.get = async (key) => {
    const seen = await store.get(key);
    provided.get = (key) => store.get(key);
    // The value is set between reading and removing.
    await entries.write(PLACE, () => ({ value: 2, expires_at_ms: 9_000 }), 9_000);
    return seen;
  };

  await entries.expire({ ...PLACE, at_ms: 1_100 });

  assert.equal((await entries.get(PLACE))?.value, 2);
  assert.deepEqual(await entries.expiries(10), [{ ...PLACE, at_ms: 9_000 }]);
  assert.deepEqual(events.map(({ event_type }) => event_type), [
    "state:created",
    "state:deleted",
    "state:created",
  ]);
});

Deno.test("StateEntries.expire() removes a record without an entry or an expiry", async () => {
  const { entries, events } = setup();
  const gone = { ...PLACE, key: "gone" };
  for (const place of [PLACE, gone]) {
    await entries.write(place, () => ({ value: 1, expires_at_ms: 1_000 }), 1_000);
  }
  await entries.write(PLACE, () => forever);
  await entries.write(gone, () => undefined);
  const before = events.length;

  for (const record of await entries.expiries(10)) await entries.expire(record);

  assert.deepEqual(await entries.expiries(10), []);
  assert.equal((await entries.get(PLACE))?.value, 1);
  assert.equal(events.length, before);
});

Deno.test("StateEntries.expire() passes on what the store throws", async () => {
  const { provided, entries } = setup();
  await entries.write(PLACE, () => ({ value: 1, expires_at_ms: 1_000 }), 1_000);
  provided.write = () => Promise.reject(new Error("disk full"));

  await assert.rejects(entries.expire({ ...PLACE, at_ms: 1_000 }), { message: "disk full" });
});

Deno.test("StateEntries counts keys correctly in any order of writes", async () => {
  const { store, entries } = setup();
  const set = (key: string) => entries.write({ scope: "s", key }, () => forever);
  const drop = (key: string) => entries.write({ scope: "s", key }, () => undefined);

  await Promise.all([set("a"), set("b"), drop("b"), set("a"), drop("c"), set("b"), set("c")]);
  assert.equal((await store.get(["state_scopes", "s"]))?.value, 3);
  await Promise.all(["a", "b", "c", "a"].map(drop));

  assert.equal(await store.get(["state_scopes", "s"]), undefined);
});

function setupOfListing() {
  const store = new MemoryStore();
  const clock = new FakeClock(1_000);
  const limits: number[] = [];
  const entries = new StateEntries({
    store: {
      stats: store.stats,
      status: store.status,
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

/** Memory that is not counted. */
const add = (): Promise<void> => Promise.resolve();

Deno.test("listValues() reads a long scope in pages that grow", async () => {
  const { entries, put, limits } = setupOfListing();
  for (let i = 0; i < 3_000; i++) await put(`${i}`, i);

  const values = await listValues(entries, "s", Infinity, add);

  assert.deepEqual(JSON.parse(values!.text), Array.from({ length: 3_000 }, (_, i) => i));
  assert.deepEqual(limits, [16, 64, 256, 1_000, 1_000, 1_000]);
});

Deno.test("listValues() reads large values in pages that shrink", async () => {
  const { entries, put, limits } = setupOfListing();
  for (let i = 0; i < 30; i++) await put(`${i}`, "x".repeat(200_000));

  const { text } = (await listValues(entries, "s", Infinity, add))!;
  assert.equal(JSON.parse(text).length, 30);
  assert.deepEqual(limits.slice(0, 2), [16, 4]);
});

Deno.test("listValues() gives up beyond its bytes, before it takes their memory", async () => {
  const { entries, put } = setupOfListing();
  for (let i = 0; i < 5; i++) await put(`${i}`, "x".repeat(1_000));
  let taken = 0;
  const count = (bytes: number): Promise<void> => Promise.resolve(void (taken += bytes));

  assert.equal(await listValues(entries, "s", 4_000, count), undefined);
  assert.ok(taken > 3_000 && taken <= 4_000, `${taken}`);
  const { text } = (await listValues(entries, "s", 6_000, count))!;
  assert.equal(JSON.parse(text).length, 5);
});

Deno.test("listText() is the JSON of the same values, and gives way to others", async () => {
  const { entries, put } = setupOfListing();
  for (let i = 29; i >= 0; i--) await put(`${i}`, { i, text: "é".repeat(200_000) });
  let turns = 0;
  const giveWay = (): Promise<void> => Promise.resolve(void turns++);

  const { text } = await listText(entries, "s", add, giveWay);

  assert.equal(text, (await listValues(entries, "s", Infinity, add))!.text);
  assert.equal(turns, 5); // 12 MB in parts of 2 MiB.
});

Deno.test("listText() rejects a scope that is too large for one answer", async () => {
  const { entries, put } = setupOfListing();
  const large = "x".repeat(STATE_ANSWER_BYTES_MAX / 2);
  for (const key of ["a", "b"]) await put(key, large);

  await assert.rejects(listText(entries, "s", add, add as () => Promise<void>), {
    code: "LIST_ERROR",
    message: "Scope s is too large for one answer; use state::list_entries",
    details: { scope: "s" },
  });
});

Deno.test("listEntries() ends a page early at its byte limit, and continues with the cursor", async () => {
  const { entries, put } = setupOfListing();
  const large = "x".repeat(STATE_ANSWER_BYTES_MAX / 2);
  for (const key of ["a", "b", "c"]) await put(key, large);

  const keys: Json[] = [];
  let cursor: string | undefined;
  do {
    const page: JsonObject = await listEntries(entries, { ...ALL, cursor }, add);
    keys.push((page.entries as JsonObject[]).map(({ key }) => key!));
    cursor = page.cursor as string | undefined;
  } while (cursor !== undefined);

  assert.deepEqual(keys, [["a"], ["b"], ["c"]]);
});

Deno.test("listEntries() returns a cursor only if more unexpired entries follow", async () => {
  const { entries, clock, put } = setupOfListing();
  await put("a", 1);
  await put("b", 2, "s", 1_100);
  const two = { ...ALL, limit: 1 };

  assert.equal((await listEntries(entries, two, add)).cursor, "a");
  clock.tick(100);
  assert.equal((await listEntries(entries, two, add)).cursor, undefined);
});

Deno.test("listEntries() finds all keys with a prefix, whatever characters follow", async () => {
  const { entries, put } = setupOfListing();
  const keys = ["p", "p\0", "p\0\0", "p1", "p\uffff", "p😀"];
  for (const key of ["o", "q", ...keys]) await put(key, 1);

  const page = await listEntries(entries, { ...ALL, prefix: "p" }, add);

  assert.deepEqual((page.entries as JsonObject[]).map(({ key }) => key), keys);
});

Deno.test("listScopes() returns more scopes than fit into one page", async () => {
  const { entries, put } = setupOfListing();
  const names = Array.from({ length: 1_500 }, (_, i) => String(i).padStart(5, "0"));
  for (const name of names) await put("k", 1, name);

  assert.deepEqual(await listScopes(entries), { names });
  const first = await listScopes(entries, { limit: 1_200 });
  assert.deepEqual(first, { names: names.slice(0, 1_200), cursor: names[1_199] });
  const rest = await listScopes(entries, { limit: 300, cursor: first.cursor });
  assert.deepEqual(rest, { names: names.slice(1_200) });
});

Deno.test("listScopes() ends a page before too many scopes, and says where to continue", async () => {
  const names = (from: number): string[] =>
    Array.from({ length: 1_000 }, (_, i) => `s${String(from + i).padStart(9, "0")}`);
  const entries = {
    scopes: (_limit: number, after?: string) =>
      Promise.resolve(names(after === undefined ? 0 : Number(after.slice(1)) + 1)),
  } as unknown as StateEntries;

  for (const limit of [undefined, 1_000_000]) {
    const page = await listScopes(entries, { limit });
    assert.equal(page.names.length, SCOPES_MAX);
    assert.equal(page.cursor, page.names.at(-1));
  }
});
