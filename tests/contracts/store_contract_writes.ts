/**
 * The part of the store contract about writes: order, waiting, whole or not at all, and the end.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { KeyChange } from "../../engine/ports/store.ts";
import {
  type Check,
  counting,
  increment,
  keysOf,
  type OpenStore,
  put,
  refuse,
  textOf,
} from "../fakes/store_values.ts";

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
    await store.write([[["k"], () => undefined], [["l"], () => 1]]);
    await store.write([[["k"], refuse]]).catch(() => {});
    await store.write([[["l"], (old) => old]]);

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
    assert.deepEqual(await store.get(["a"]), before);
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
