import assert from "node:assert/strict";
import { type Faults, faultyKv, textOf } from "../../tests/fakes/fake_store.ts";
import { StoredEntry } from "./record.ts";
import type { Entry, StoreKey } from "../ports/store.ts";
import { KvRecords, type Put } from "./kv_records.ts";

const encoder = new TextEncoder();

async function setup(faults: Faults = {}) {
  const kv = await faultyKv(faults)(":memory:");
  const records = new KvRecords(kv);
  const read = async (key: StoreKey): Promise<Entry | null> => {
    const [found] = await records.read([key]);
    if (found!.status === "rejected") throw found!.reason;
    return found!.value;
  };
  const count = async (first: string): Promise<number> => {
    let found = 0;
    for await (const _entry of kv.list({ prefix: [first] })) found++;
    return found;
  };
  return { kv, records, read, count, [Symbol.dispose]: () => kv.close() };
}

function putOf(name: string, value: string, version: number, replaced?: Entry): Put {
  const json = encoder.encode(JSON.stringify(value));
  const head = { bytes: json.length, version, created: version };
  const entry = new StoredEntry([name], head, { value });
  return { key: [name], entry, json, replaced };
}

Deno.test("KvRecords gives back small and large values of one commit", async () => {
  using at = await setup();
  const puts = [10, 65_000, 70_000, 300_000].map((size, i) =>
    putOf(`${i}`, textOf(size, i), i + 1)
  );

  await at.records.commit(puts, 9);

  for (const { key, entry } of puts) assert.equal((await at.read(key))?.json, entry!.json);
  assert.equal(await at.read(["none"]), null);
  assert.equal(await at.count("debris"), 0);
});

Deno.test("KvRecords gives back what goes ahead of its commit in parts", async () => {
  using at = await setup();
  const puts = [500_000, 500_000, 3_000_000].map((size, i) =>
    putOf(`${i}`, textOf(size, i), i + 1)
  );

  await at.records.commit(puts, 9);

  for (const { key, entry } of puts) assert.equal((await at.read(key))?.json, entry!.json);
  assert.equal(await at.count("debris"), 0);
});

Deno.test("KvRecords removes the parts of what was replaced or removed, later", async () => {
  using at = await setup();
  const first = putOf("a", textOf(2_000_000, 1), 1);
  const second = putOf("a", textOf(100_000, 2), 2, first.entry);
  await at.records.commit([first], 11);
  assert.equal(await at.count("part"), 33);
  await at.records.commit([second], 12);
  assert.equal(await at.count("part"), 35);
  assert.equal(await at.count("debris"), 1);

  assert.equal(await at.records.deleteSomeParts(), true);
  assert.equal(await at.count("part"), 2);
  const none = new Uint8Array();
  await at.records.commit(
    [{ key: ["a"], entry: undefined, json: none, replaced: second.entry }],
    13,
  );
  while (await at.records.deleteSomeParts());

  assert.deepEqual([await at.count("part"), await at.count("debris")], [0, 0]);
  assert.equal(await at.count("entry"), 0);
});

Deno.test("KvRecords finds a value whole or not at all, wherever a commit is cut off", async () => {
  for (let cut = 0; cut < 8; cut++) {
    const faults: Faults = {};
    using at = await setup(faults);
    const old = putOf("a", textOf(1_000_000, 1), 1);
    await at.records.commit([old], 11);
    let left = cut;
    faults.beforeCommit = () => {
      if (left-- <= 0) throw new Error("cut off");
    };
    const next = putOf("a", textOf(2_500_000, 2), 2, old.entry);
    const isDone = await at.records.commit([next], 12).then(() => true, () => false);
    while (await at.records.deleteSomeParts());

    // The process ends here; the next one finds what is on disk.
    delete faults.beforeCommit;
    const after = new KvRecords(at.kv);
    await after.deleteOrphanParts();
    const [found] = await after.read([["a"]]);

    const expected = isDone ? next : old;
    assert.equal(found!.status, "fulfilled", `cut before commit ${cut}`);
    assert.ok((found as PromiseFulfilledResult<Entry>).value.value === expected.entry!.value);
    assert.equal(await at.count("part"), Math.ceil(expected.json.length / 61_440));
    assert.equal(await at.count("debris"), 0);
  }
});

Deno.test("KvRecords.load() finds nothing when the value was replaced since its record was read", async () => {
  using at = await setup();
  const old = putOf("a", textOf(100_000, 1), 1);
  await at.records.commit([old], 11);
  const found = [];
  for await (const one of at.records.scan([], 10)) found.push(one);
  await at.records.commit([putOf("a", "small", 2, old.entry)], 12);
  while (await at.records.deleteSomeParts());

  assert.equal(await at.records.load(found[0]!), undefined);
});

Deno.test("KvRecords says what is damaged about a record, and reads the others", async () => {
  using at = await setup();
  await at.records.commit([putOf("good", "value", 1), putOf("cut", textOf(200_000, 1), 2)], 9);
  await at.kv.set(["entry", "odd"], Uint8Array.of(9, 9, 9));
  await at.kv.delete(["part", 2, 1]);

  const [good, odd, cut] = await at.records.read([["good"], ["odd"], ["cut"]]);

  assert.equal((good as PromiseFulfilledResult<Entry>).value.value, "value");
  assert.equal(
    (odd as PromiseFulfilledResult<Entry>).value.damaged,
    "its bytes are no record",
  );
  assert.equal(
    (cut as PromiseFulfilledResult<Entry>).value.damaged,
    "parts of its value are missing",
  );
});
