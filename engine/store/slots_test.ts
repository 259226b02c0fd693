import assert from "node:assert/strict";
import { randomFrom } from "../../tests/fakes/fake_store.ts";
import type { StoreKey } from "../ports/store.ts";
import type { Known } from "./record.ts";
import { Cache, type Slot, Slots } from "./slots.ts";
import { keyId } from "./store_key.ts";

/** Slots over a disk that answers when the test says so. */
function setup(cacheBytes = 100_000) {
  const cache = new Cache(cacheBytes);
  const disk = new Map<string, Known>();
  const reads: { keys: readonly StoreKey[]; go(failure?: Error): Promise<void> }[] = [];
  let loaded = 0;
  const slots = new Slots(cache, (keys) => {
    const answer = Promise.withResolvers<PromiseSettledResult<Known>[]>();
    const found = keys.map((key): PromiseSettledResult<Known> => {
      return { status: "fulfilled", value: disk.get(keyId(key)) ?? null };
    });
    reads.push({
      keys,
      go: async (failure) => {
        if (failure) answer.reject(failure);
        else answer.resolve(found);
        for (let i = 0; i < 20; i++) await Promise.resolve();
      },
    });
    return answer.promise;
  }, () => void loaded++);
  const put = (name: string, version: number): Known => {
    const known = { key: [name], value: name, json: "", bytes: 10, version, created: 1 };
    disk.set(keyId([name]), known);
    return known;
  };
  return { slots, cache, reads, put, loads: () => loaded };
}

Deno.test("Slots reads keys that are asked for in one turn together, ten at once", async () => {
  const { slots, reads, loads } = setup();
  const held = Array.from({ length: 25 }, (_, i) => slots.hold([`${i}`]));
  const loading = Promise.all(held.map((slot) => slots.load(slot)));
  void slots.load(held[0]!);
  await Promise.resolve();

  assert.deepEqual(reads.map(({ keys }) => keys.length), [10, 10, 5]);
  for (const read of reads) await read.go();
  await loading;
  await slots.idle();

  assert.ok(held.every(({ committed, state }) => committed === null && state === null));
  assert.equal(loads(), 3);
});

Deno.test("Slots throws a reading away that a commit has overtaken", async () => {
  const { slots, cache, reads, put } = setup();
  put("a", 1);
  const slot = slots.hold(["a"]);
  const loading = slots.load(slot);
  await Promise.resolve();
  const newer = put("a", 2);
  slots.apply(slot, newer, false);
  slots.settle(slot, newer);

  await reads[0]!.go();
  await loading;

  assert.equal(slot.committed, newer);
  assert.equal(cache.get(slot.id), newer);
});

Deno.test("Slots knows nothing after a failed write, and reads again", async () => {
  const { slots, cache, reads, put } = setup();
  const old = put("a", 1);
  const slot = slots.hold(["a"]);
  slots.apply(slot, null, false);
  slots.settle(slot, undefined);
  assert.equal(slot.state, undefined);
  assert.equal(cache.get(slot.id), undefined);

  void slots.load(slot);
  await Promise.resolve();
  await reads[0]!.go();

  assert.equal(slot.state, old);
});

Deno.test("Slots says why nothing could be read, and tries anew when asked", async () => {
  const { slots, reads, put } = setup();
  put("a", 1);
  const slot = slots.hold(["a"]);
  const loading = slots.load(slot);
  await Promise.resolve();
  await reads[0]!.go(new Error("disk gone"));
  await loading;
  assert.equal((slot.failure as Error).message, "disk gone");

  void slots.load(slot);
  await Promise.resolve();
  await reads[1]!.go();

  assert.equal(slot.failure, undefined);
  assert.ok(slot.committed);
});

Deno.test("A slot shows the newest applied write until all of its key are settled", () => {
  const { slots, put } = setup();
  const slot = slots.hold(["a"]);
  const [first, second] = [put("a", 1), put("a", 2)];
  slots.apply(slot, first, false);
  slots.apply(slot, second, false);
  slots.settle(slot, first);
  assert.deepEqual([slot.state, slot.committed], [second, first]);

  slots.settle(slot, second);

  assert.deepEqual([slot.newest, slot.committed], [undefined, second]);
});

Deno.test("A held key is known however small the cache is, and forgotten after the last release", () => {
  const { slots, put } = setup(0);
  const slot: Slot = slots.hold(["a"]);
  const same = slots.hold(["a"]);
  slots.apply(slot, put("a", 1), false);
  slots.settle(slot, put("a", 1));
  assert.equal(same, slot);
  assert.equal(slots.atRest(slot.id), undefined);

  slots.release(slot);
  assert.ok(slots.get(slot.id)?.committed);
  slots.release(slot);

  assert.equal(slots.get(slot.id), undefined);
  assert.equal(slots.hold(["a"]).committed, undefined);
});

function entry(bytes: number) {
  return { key: ["k"], value: null, json: "null", bytes, version: 1, created: 1 };
}

Deno.test("Cache forgets what was used longest ago when it is full", () => {
  const cache = new Cache(3_000);
  for (const id of ["a", "b", "c"]) cache.set(id, entry(300));

  cache.get("a");
  cache.set("d", entry(300));

  assert.deepEqual(["a", "b", "c", "d"].filter((id) => cache.get(id)), ["a", "c", "d"]);
});

Deno.test("Cache.peek() does not count as a use", () => {
  const cache = new Cache(3_000);
  for (const id of ["a", "b", "c"]) cache.set(id, entry(300));

  cache.peek("a");
  cache.set("d", entry(300));

  assert.equal(cache.peek("a"), undefined);
});

Deno.test("Cache tells that a key has no entry from not knowing", () => {
  const cache = new Cache(1_000);
  cache.set("a", null);

  assert.equal(cache.get("a"), null);
  assert.equal(cache.get("b"), undefined);
});

Deno.test("Cache does not take what is larger than itself, and forgets what it had", () => {
  const cache = new Cache(1_000);
  cache.set("a", entry(1));
  cache.set("b", entry(1));

  cache.set("a", entry(1_000));

  assert.equal(cache.get("a"), undefined);
  assert.ok(cache.get("b"));
});

Deno.test("Cache stays within its bytes and comes back to none", () => {
  const cache = new Cache(50_000);
  for (let i = 0; i < 1_000; i++) {
    cache.set(`${i % 70}`, i % 5 === 0 ? null : entry(i % 900));
    assert.ok(cache.bytes <= 50_000);
  }

  for (let i = 0; i < 70; i++) cache.delete(`${i}`);
  cache.delete("never there");

  assert.equal(cache.bytes, 0);
});

Deno.test("Cache keeps what a list in the order of use would keep, over random lives", () => {
  for (let seed = 1; seed <= 20; seed++) {
    const random = randomFrom(seed);
    const cache = new Cache(20_000);
    let model: { id: string; bytes: number }[] = []; // The newest last.
    const idAt = () => `${Math.floor(random() * 40)}`;
    for (let step = 0; step < 500; step++) {
      const id = idAt();
      const known = model.find((each) => each.id === id);
      const others = model.filter((each) => each.id !== id);
      if (random() < 0.5) {
        assert.equal(cache.get(id) !== undefined, known !== undefined, `seed ${seed}, ${step}`);
        if (known) model = [...others, known];
      } else {
        const bytes = Math.floor(random() * 2_000);
        cache.set(id, entry(bytes));
        model = [...others, { id, bytes: 256 + 2 * (id.length + bytes) }];
        while (sum(model) > 20_000) model.shift();
      }
      assert.equal(cache.bytes, sum(model), `seed ${seed}, ${step}`);
    }
  }
});

function sum(kept: readonly { bytes: number }[]): number {
  return kept.reduce((total, { bytes }) => total + bytes, 0);
}
