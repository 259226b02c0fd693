/**
 * What every {@linkcode Store} promises, as tests that each implementation runs.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  type Entry,
  type KeyChange,
  type Store,
  type StoreKey,
  VALUE_BYTES_MAX,
} from "../../engine/ports/store.ts";
import { STORE_KEY_BYTES_MAX } from "../../engine/store/store_key.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import {
  type Check,
  counting,
  keysOf,
  type OpenStore,
  put,
  shuffled,
  textOf,
} from "../fakes/store_values.ts";
import { compareWithMap } from "./store_contract_model.ts";
import { testClosing, testWrites } from "./store_contract_writes.ts";

/** Registers the tests of the contract for one implementation. */
export function testStore(name: string, open: OpenStore): void {
  const check = (what: string, body: (store: Store) => Promise<void>): void =>
    Deno.test(`${name} ${what}`, async () => {
      await using store = await open();
      await body(store);
    });

  testEntries(check);
  testOrder(check);
  testWrites(check);
  testLimits(check);
  testClosing(name, open);
  for (let seed = 1; seed <= 20; seed++) {
    check(
      `behaves like a plain map in random use, seed ${seed}`,
      (store) => compareWithMap(store, seed),
    );
  }
}

function testEntries(check: Check): void {
  check("has nothing at a key that was never written", async (store) => {
    assert.equal(await store.get(["a", "b"]), undefined);
    assert.deepEqual(await store.list([], 10), []);
  });

  const values: Json[] = [null, false, true, 0, -0.5, 1e300, "", "\ud800 \u0000 ☃ 😀", [], {}];
  values.push([[null], { a: [{}] }], { "": 1, "__proto__": 2, "a.b": [3] });
  check("gives back every kind of JSON value", async (store) => {
    for (const [i, value] of values.entries()) await put(store, ["value", `${i}`], value);

    for (const [i, value] of values.entries()) {
      assert.deepEqual((await store.get(["value", `${i}`]))?.value, value);
    }
  });

  check("tells the length of a value as JSON in UTF-8", async (store) => {
    await put(store, ["a"], { snow: "☃" });

    assert.equal((await store.get(["a"]))?.bytes, '{"snow":"***"}'.length);
  });

  check("removes an entry when the change returns undefined", async (store) => {
    await put(store, ["a"], 1);

    const [changed] = await store.write([[["a"], () => undefined]]);

    assert.equal(changed?.old?.value, 1);
    assert.equal(changed?.new, undefined);
    assert.equal(await store.get(["a"]), undefined);
    assert.deepEqual(await store.list([], 10), []);
  });

  check("does nothing when nothing becomes nothing", async (store) => {
    assert.deepEqual(await store.write([[["a"], () => undefined]]), [
      { old: undefined, new: undefined },
    ]);
  });

  check("leaves an entry alone when the change returns it", async (store) => {
    const before = await put(store, ["a"], { n: 1 });

    const [changed] = await store.write([[["a"], (old) => old]]);

    assert.equal(changed?.new?.version, before.version);
    assert.deepEqual(await store.get(["a"]), before);
  });

  check("gives each write a larger version, also after a removal", async (store) => {
    const first = await put(store, ["a"], 1);
    const other = await put(store, ["b"], 1);
    const second = await put(store, ["a"], 1);
    await store.write([[["a"], () => undefined]]);
    const third = await put(store, ["a"], 1);

    const versions = [first, other, second, third].map(({ version }) => version);
    assert.ok(versions[0]! > 0 && versions.every(Number.isSafeInteger));
    assert.deepEqual(versions, versions.toSorted((a, b) => a - b));
    assert.equal(new Set(versions).size, 4);
    assert.equal(second.created, first.version);
    assert.equal(third.created, third.version);
  });

  for (const bytes of [65_518, 65_519, 65_520, 61_440 * 3, 716_800, 1_000_000, 5_000_001]) {
    check(`keeps a value of ${bytes} bytes, replaces and removes it`, async (store) => {
      const large = textOf(bytes - 2, bytes);
      await put(store, ["large"], large);
      const found = await store.get(["large"]);
      assert.ok(found?.value === large && found.bytes === bytes);

      const again = textOf(bytes - 2, 7);
      await put(store, ["large"], again);
      assert.ok((await store.list([], 2))[0]?.value === again);

      await store.write([[["large"], () => "small"]]);
      assert.equal((await store.get(["large"]))?.value, "small");
    });
  }
}

/** Keys in the order in which every store lists them. */
const SORTED: readonly StoreKey[] = [
  ["", ""],
  ["", "x"],
  ["\0"],
  ["\0", "\0\0"],
  ["\u0001"],
  [" "],
  ["1"],
  ["10"],
  ["2"],
  ["A"],
  ["a"],
  ["a", ""],
  ["a", "\0"],
  ["a", "\0b"],
  ["a", "b"],
  ["a", "b", "c"],
  ["a", "bb"],
  ["a", "\x7f"],
  ["a", "é"],
  ["a", "☃"],
  ["a", "\uffff"],
  ["a", "😀"],
  ["a\0"],
  ["a\0", "b"],
  ["aa"],
  ["b"],
  ["\u{10ffff}"],
];

function testOrder(check: Check): void {
  check("lists keys part by part, each by its code points", async (store) => {
    for (const key of shuffled(SORTED, 7)) await put(store, key, 1);

    assert.deepEqual(keysOf(await store.list([], 100)), SORTED);
  });

  check("lists only what is below a prefix", async (store) => {
    for (const key of SORTED) await put(store, key, 1);

    for (const prefix of [...SORTED, ["none"], ["a", "none"]]) {
      const below = SORTED.filter((key) =>
        key.length > prefix.length && prefix.every((part, i) => part === key[i])
      );
      assert.deepEqual(keysOf(await store.list(prefix, 100)), below);
    }
  });

  check("goes on behind a key, whether it is there or not", async (store) => {
    const there = SORTED.filter((_, i) => i % 2 === 0);
    for (const key of there) await put(store, key, 1);

    for (const [i, after] of SORTED.entries()) {
      const behind = SORTED.filter((_, at) => at > i && at % 2 === 0);
      assert.deepEqual(keysOf(await store.list([], 100, after)), behind);
      const below = behind.filter((key) => key[0] === "a" && key.length > 1);
      assert.deepEqual(keysOf(await store.list(["a"], 100, after)), below);
    }
  });

  check("lists no more than asked for, and pages without gaps", async (store) => {
    const keys = Array.from({ length: 25 }, (_, i) => ["page", String(i).padStart(3, "0")]);
    await store.write(keys.map((key): KeyChange => [key, () => 1]));

    const pages: string[][] = [];
    let after: StoreKey | undefined;
    for (;;) {
      const page: Entry[] = await store.list(["page"], 10, after);
      if (page.length === 0) break;
      pages.push(page.map(({ key }) => key[1]!));
      after = page.at(-1)!.key;
    }

    assert.deepEqual(pages.map((page) => page.length), [10, 10, 5]);
    assert.deepEqual(pages.flat(), keys.map(([, name]) => name));
    assert.deepEqual(await store.list(["page"], 0), []);
  });
}

function testLimits(check: Check): void {
  const refusedKeys: Record<string, StoreKey> = {
    "without parts": [],
    "with half a surrogate pair": ["a", "\ud800"],
    "that is too long": ["a", "x".repeat(STORE_KEY_BYTES_MAX)],
    "that is too long in UTF-8": ["a", "☃".repeat(STORE_KEY_BYTES_MAX / 2)],
  };
  for (const [what, key] of Object.entries(refusedKeys)) {
    check(`refuses a key ${what}`, async (store) => {
      const refusal = { name: "EngineError", code: "INVALID_ARGUMENTS" };
      await assert.rejects(store.get(key), refusal);
      await assert.rejects(store.write([[["ok"], () => 1], [key, () => 1]]), refusal);
      assert.equal(await store.get(["ok"]), undefined);
    });
  }

  check("takes the longest key, of any characters", async (store) => {
    for (const sign of ["x", "\0", "☃", "😀"]) {
      const cost = sign === "\0" ? 2 : new TextEncoder().encode(sign).length;
      const key = ["", sign.repeat(Math.floor((STORE_KEY_BYTES_MAX - 4) / cost))];
      await put(store, key, sign);
      assert.equal((await store.get(key))?.value, sign);
      assert.deepEqual(await store.list(["", key[1]!], 1), []);
      assert.deepEqual(await store.list([""], 1, key.with(1, `${key[1]!.slice(0, -1)}`)), [
        await store.get(key),
      ]);
      await store.write([[key, () => undefined]]);
    }
  });

  check("refuses a value that is too large, and what was there stays", async (store) => {
    await put(store, ["a"], "here");
    const tooLarge = "x".repeat(VALUE_BYTES_MAX - 1);

    await assert.rejects(store.write([[["a"], () => tooLarge]]), {
      code: "VALUE_TOO_LARGE",
      details: { bytes: VALUE_BYTES_MAX + 1, bytes_max: VALUE_BYTES_MAX },
    });
    assert.equal((await store.get(["a"]))?.value, "here");
  });

  check("refuses small values that are too large together", async (store) => {
    const value = "x".repeat(60_000);
    const changes = counting(12).map((i): KeyChange => [[`${i}`], () => value]);

    await assert.rejects(store.write(changes), { code: "VALUE_TOO_LARGE" });
    assert.deepEqual(await store.list([], 1), []);
  });

  check("refuses more changes than one commit holds", async (store) => {
    const changes = counting(501).map((i): KeyChange => [[`${i}`], () => i]);

    await assert.rejects(store.write(changes), { code: "INVALID_ARGUMENTS" });
    assert.equal((await store.write(changes.slice(1))).length, 500);
  });

  check("refuses a value that JSON cannot hold", async (store) => {
    const cycle: Json[] = [];
    cycle.push(cycle);
    for (const value of [cycle, 1n, () => 1]) {
      await assert.rejects(store.write([[["a"], () => value as Json]]), { code: "SET_ERROR" });
    }
    assert.equal(await store.get(["a"]), undefined);
  });
}
