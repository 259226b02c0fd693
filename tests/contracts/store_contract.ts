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
import { JsonText } from "../../sdk/typescript/wire/member_text.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import {
  type Check,
  counting,
  increment,
  keysOf,
  type OpenStore,
  put,
  randomFrom,
  refuse,
  shuffled,
  textOf,
} from "../fakes/fake_store.ts";

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

  check(
    "gives back a value that was written as text with the text, and its value",
    async (store) => {
      const text = '{"digits": 12345678901234567890, "n": 1.50}';
      await put(store, ["written"], new JsonText(text));

      const [read, [listed]] = [await store.get(["written"]), await store.list([], 10)];
      for (const entry of [read, listed]) assert.equal(entry?.json, text);
      assert.deepEqual(read?.value, JSON.parse(text));
      assert.equal(read?.bytes, text.length);
    },
  );

  check("tells the length of a value as JSON in UTF-8", async (store) => {
    await put(store, ["a"], { snow: "☃" });

    assert.equal((await store.get(["a"]))?.bytes, '{"snow":"***"}'.length);
  });

  check("takes the entry that a caller knows as the current one", async (store) => {
    const made = await store.write([[["a"], (old) => old ? 0 : 1, null]]);
    const first = made[0]!.new!;

    const changed = await store.write([[["a"], (old) => [old!.value], first]]);

    assert.equal(changed[0]!.old?.version, first.version);
    assert.deepEqual((await store.get(["a"]))?.value, [1]);
    await store.write([[["a"], () => undefined, changed[0]!.new!]]);
    assert.equal(await store.get(["a"]), undefined);
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
    const after = await store.get(["a"]);
    assert.deepEqual([after, after?.value], [before, before.value]);
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

/** Random writes, reads and lists, many at once, against a map that does the same in order. */
export async function compareWithMap(store: Store, seed: number): Promise<void> {
  const random = randomFrom(seed);
  const model = new Map<string, Json>();
  const names = ["", "a", "b", "ab", "\0", "😀"];
  const pick = (): string => names[Math.floor(random() * names.length)]!;
  const randomKey = (): StoreKey => random() < 0.5 ? ["m", pick()] : ["m", pick(), pick()];
  const running: Promise<unknown>[] = [];

  for (let step = 0; step < 150; step++) {
    const what = random();
    if (what < 0.6) running.push(writeBoth(store, model, random, randomKey));
    else if (what < 0.8) {
      const key = randomKey();
      const expected = model.get(JSON.stringify(key));
      // What later writes make of the key may be seen as well, so the reader goes alone.
      await Promise.all(running);
      assert.deepEqual((await store.get(key))?.value, expected, `seed ${seed}, step ${step}`);
    } else if (what < 0.9) await compareLists(store, model, `seed ${seed}, step ${step}`);
    else await Promise.all(running.splice(0));
  }
  await Promise.all(running);
  await compareLists(store, model, `seed ${seed}, at the end`);
}

async function writeBoth(
  store: Store,
  model: Map<string, Json>,
  random: () => number,
  randomKey: () => StoreKey,
): Promise<void> {
  const fails = random() < 0.1;
  const trial = new Map(model);
  const changes = counting(1 + Math.floor(random() * 3)).map((): KeyChange => {
    const key = randomKey();
    const kind = random();
    const size = random() < 0.1 ? Math.floor(random() * 150_000) : Math.floor(random() * 50);
    const change = (old: Json | undefined): Json | undefined =>
      kind < 0.2 ? undefined : kind < 0.3 ? old : [`${old}`.length, "x".repeat(size)];
    const id = JSON.stringify(key);
    const next = change(trial.get(id));
    if (next === undefined) trial.delete(id);
    else trial.set(id, next);
    return [key, (old) => kind >= 0.2 && kind < 0.3 ? old : change(old?.value)];
  });
  if (fails) changes.push([["m", "never"], refuse]);
  else for (const id of new Set([...model.keys(), ...trial.keys()])) copy(trial, model, id);

  const write = store.write(changes);
  if (fails) await assert.rejects(write, { message: "refused" });
  else await write;
}

function copy(from: Map<string, Json>, to: Map<string, Json>, id: string): void {
  const value = from.get(id);
  if (value === undefined) to.delete(id);
  else to.set(id, value);
}

async function compareLists(store: Store, model: Map<string, Json>, at: string): Promise<void> {
  const expected = new Map(model);
  const list = await store.list(["m"], 1_000);

  assert.deepEqual(
    new Map(list.map(({ key, value }) => [JSON.stringify(key), value])),
    expected,
    at,
  );
  const versions = list.map(({ version }) => version);
  assert.equal(new Set(versions).size, versions.length, at);
  assert.ok(list.every(({ created, version }) => created <= version), at);
}

/** Registers the tests of writes. */
export function testWrites(check: Check): void {
  check("makes exactly 1,000 of 1,000 increments at once", async (store) => {
    await Promise.all(Array.from({ length: 1_000 }, () => store.write([increment(["n"])])));

    assert.equal((await store.get(["n"]))?.value, 1_000);
  });

  check("shows each write of a key what the one before left", async (store) => {
    const writes = Array.from({ length: 50 }, (_, i) => store.write([[["k"], () => i]]));

    const all = (await Promise.all(writes)).map(([changed]) => changed!);

    assert.deepEqual(all.map(({ old }) => old?.value), [undefined, ...counting(49)]);
    assert.deepEqual(all.map(({ new: entry }) => entry?.value), counting(50));
  });

  check("answers writes in the order in which they were asked for", async (store) => {
    const answered: number[] = [];
    const note = (i: number): void => void answered.push(i);
    const writes = counting(40).map((i) =>
      i % 5 === 4
        ? store.write([[["k"], refuse]]).catch(() => note(i))
        : store.write([[["k", `${i % 3}`], () => i]]).then(() => note(i))
    );
    await Promise.all(writes);

    assert.deepEqual(answered.toSorted((a, b) => a - b), counting(40));
    const succeeded = answered.filter((i) => i % 5 !== 4);
    assert.deepEqual(succeeded, succeeded.toSorted((a, b) => a - b));
  });

  check("counts what it wrote, and not what it did not", async (store) => {
    await put(store, ["k"], "ab");
    await store.list([], 1); // It waits for the disk, also where a write does not.
    await store.write([[["k"], () => undefined], [["l"], () => 1]]);
    await store.write([[["k"], refuse]]).catch(() => {});
    await store.write([[["l"], (old) => old]]);
    await store.list([], 1);

    const { commits, changes, failed, bytes } = store.stats;
    assert.deepEqual({ commits, changes, failed, bytes }, {
      commits: 2,
      changes: 3,
      failed: 0,
      bytes: 5,
    });
  });

  check("lets a reader wait for the writes of its key", async (store) => {
    await put(store, ["k"], 0);

    const writes = [1, 2, 3].map((i) => store.write([[["k"], () => i]]));
    const [read, list] = await Promise.all([store.get(["k"]), store.list(["k"], 1), ...writes]);

    assert.equal(read?.value, 3);
    assert.deepEqual(list, []);
  });

  check("lets a list wait for the writes before it", async (store) => {
    void store.write([[["l", "b"], () => 2]]);
    void store.write([[["l", "a"], () => 1], [["l", "b"], () => 3]]);

    const list = await store.list(["l"], 10);

    assert.deepEqual(list.map(({ value }) => value), [1, 3]);
  });

  check("changes all keys of a write, and a later change sees an earlier one", async (store) => {
    await put(store, ["from"], 5);

    const changed = await store.write([
      [["from"], () => undefined],
      [["to"], () => 5],
      [["twice"], () => 1],
      [["twice"], (old) => [old!.value, 2]],
    ]);

    assert.deepEqual(changed.map(({ new: entry }) => entry?.value), [undefined, 5, 1, [1, 2]]);
    assert.equal(changed[3]?.old?.value, 1);
    assert.deepEqual(keysOf(await store.list([], 10)), [["to"], ["twice"]]);
    assert.deepEqual((await store.get(["twice"]))?.value, [1, 2]);
  });

  check("undoes a whole write when one change throws, and hands the throw on", async (store) => {
    const before = await put(store, ["a"], 1);
    const thrown = new Error("no");

    const write = store.write([
      [["a"], () => 2],
      [["b"], () => 2],
      [["c"], () => {
        throw thrown;
      }],
    ]);

    await assert.rejects(write, (caught) => caught === thrown);
    const after = await store.get(["a"]);
    assert.deepEqual([after, after?.value], [before, before.value]);
    assert.deepEqual(keysOf(await store.list([], 10)), [["a"]]);
    assert.ok((await put(store, ["a"], 3)).version > before.version);
  });

  check("keeps one write whole whatever its size", async (store) => {
    const large = [100_000, 400_000, 400_000, 900_000].map((size) => textOf(size, size));
    await store.write(large.map((value, i): KeyChange => [["big", `${i}`], () => value]));

    const list = await store.list(["big"], 10);

    assert.ok(list.length === 4 && list.every(({ value }, i) => value === large[i]));
  });
}

/** Registers the tests of closing. */
export function testClosing(name: string, open: OpenStore): void {
  Deno.test(`${name} finishes the writes on their way before it is disposed`, async () => {
    const store = await open();
    let done = 0;
    const writes = counting(100).map((i) =>
      store.write([[["k", `${i}`], () => "x".repeat(i * 100)]]).then(() => done++)
    );
    const list = store.list(["k"], 1_000);

    await Promise.all([store[Symbol.asyncDispose](), store[Symbol.asyncDispose]()]);

    assert.equal(done, 100);
    assert.equal((await list).length, 100);
    await Promise.all(writes);
  });

  Deno.test(`${name} refuses everything once it is disposed`, async () => {
    const store = await open();
    await store[Symbol.asyncDispose]();

    const refusal = { name: "EngineError", code: "store_unavailable" };
    await assert.rejects(store.get(["a"]), refusal);
    await assert.rejects(store.list([], 1), refusal);
    await assert.rejects(store.write([[["a"], () => 1]]), refusal);
  });
}
