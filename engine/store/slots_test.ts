import assert from "node:assert/strict";
import type { StoreKey } from "../ports/store.ts";
import { Cache, type Known } from "./cache.ts";
import { type Slot, Slots } from "./slots.ts";
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
    const known = { key: [name], value: name, bytes: 10, version, created: 1 };
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
  slots.apply(slot, newer);
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
  slots.apply(slot, null);
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
  slots.apply(slot, first);
  slots.apply(slot, second);
  slots.settle(slot, first);
  assert.deepEqual([slot.state, slot.committed], [second, first]);

  slots.settle(slot, second);

  assert.deepEqual([slot.newest, slot.committed], [undefined, second]);
});

Deno.test("A held key is known however small the cache is, and forgotten after the last release", () => {
  const { slots, put } = setup(0);
  const slot: Slot = slots.hold(["a"]);
  const same = slots.hold(["a"]);
  slots.apply(slot, put("a", 1));
  slots.settle(slot, put("a", 1));
  assert.equal(same, slot);
  assert.equal(slots.atRest(slot.id), undefined);

  slots.release(slot);
  assert.ok(slots.get(slot.id)?.committed);
  slots.release(slot);

  assert.equal(slots.get(slot.id), undefined);
  assert.equal(slots.hold(["a"]).committed, undefined);
});
