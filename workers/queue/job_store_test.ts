/**
 * A job is in one place of the store at any time, and each thing that happens is one write.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { JobInput } from "../../engine/ports/queue.ts";
import type { Entry, KeyChange, Store } from "../../engine/ports/store.ts";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import { forgetIds, JobStore, openNumbers, orderOf, positionOf } from "./job_store.ts";

const INPUT: JobInput = { id: "x", payload: { n: 1 }, lane: "a" };

async function keysOf(store: MemoryStore): Promise<string[]> {
  const areas = ["queue_ready", "queue_later", "queue_dead", "queue_dead_ids", "queue_ids"];
  const found = await Promise.all(areas.map((area) => store.list([area], 100)));
  return found.flat().map(({ key }) => key.join(" "));
}

Deno.test("a job moves from later to ready to the dead, and back", async () => {
  const store = new MemoryStore();
  const jobs = new JobStore(store, "q");
  const later = await jobs.add({ ...INPUT, at_ms: 2_000 }, "1", 1_000);
  assert.deepEqual(await keysOf(store), ["queue_later q 000000000002000 1"]);
  assert.equal(positionOf("queue_later", later!), "000000000002000\0" + "1");

  const [ready] = await jobs.promote([later!, later!]);
  assert.deepEqual(await keysOf(store), ["queue_ready q a 1"]);
  assert.deepEqual((await jobs.lane("a", 10, "")).jobs.map(({ job }) => job.payload), [{ n: 1 }]);

  const failures = [{ at_ms: 1, code: "c", message: "m" }];
  await jobs.bury(ready!, { ...ready!.job, attempts: 1, failures });
  assert.deepEqual(await keysOf(store), ["queue_dead q 1", "queue_dead_ids q x"]);

  const [dead] = await jobs.deadById(["y", "x"]);
  assert.deepEqual(dead!.job.failures, failures);
  assert.ok(await jobs.redrive(dead!, dead!.job, "2"));
  assert.equal(await jobs.redrive(dead!, dead!.job, "3"), undefined);
  assert.deepEqual(await keysOf(store), ["queue_ready q a 2"]);
});

Deno.test("a job that is purged is not brought back when its time comes", async () => {
  const store = new MemoryStore();
  const jobs = new JobStore(store, "q");
  const stored = (await jobs.add({ ...INPUT, at_ms: 5 }, "1", 0))!;
  assert.equal((await jobs.delete([stored], "queue_later")).length, 1);

  assert.deepEqual(await jobs.promote([stored]), []);
  assert.deepEqual(await keysOf(store), []);
});

Deno.test("what became of a job that ran needs no read of its record", async () => {
  const known: (Entry | null | undefined)[] = [];
  const memory = new MemoryStore();
  const write = (changes: readonly KeyChange[]) => {
    known.push(...changes.map(([, , entry]) => entry));
    return memory.write(changes);
  };
  const jobs = new JobStore({ write } as unknown as Store, "q");

  const added = (await jobs.add(INPUT, "1", 0))!;
  const again = await jobs.rewrite(added, { ...added.job, attempts: 1 });
  const later = await jobs.postpone(again, { ...again.job, due_at_ms: 5 });
  const [ready] = await jobs.promote([later]);
  await jobs.done(ready!);

  assert.deepEqual(known, [
    null, // Added.
    added.entry,
    again.entry,
    null, // Later,
    undefined, // which a purge may have deleted,
    null, // and ready.
    ready!.entry,
  ]);
});

Deno.test("an id is kept for a day and then forgotten", async () => {
  const store = new MemoryStore();
  const jobs = new JobStore(store, "q");
  const unique = { ...INPUT, isUnique: true };
  assert.ok(await jobs.add(unique, "1", 0));
  assert.equal(await jobs.add(unique, "2", 10), undefined);
  assert.ok(await jobs.add(unique, "3", 86_400_000));

  assert.equal(await forgetIds(store, 86_400_000), 172_800_000);
  assert.equal(await jobs.add(unique, "4", 86_400_001), undefined);
  assert.equal(await forgetIds(store, 172_800_000), undefined);
  assert.deepEqual((await store.list(["queue_ids"], 10)).length, 0);
});

Deno.test("numbers grow, also over lives, and priority comes before them", async () => {
  const store = new MemoryStore();
  const first = await openNumbers(store);
  const numbers = [first(), first()];
  const second = await openNumbers(store);
  numbers.push(second());
  assert.deepEqual(numbers.toSorted(), numbers);

  const orders = [orderOf(255, "9"), orderOf(10, "1"), orderOf(0, "1"), orderOf(0, "2")];
  assert.deepEqual(orders.toSorted(), orders);
});

Deno.test("pages follow lanes, and positions are those of the keys", async () => {
  const store = new MemoryStore();
  const jobs = new JobStore(store, "q");
  for (const [lane, order] of [["a", "1"], ["a", "3"], ["b", "2"]] as const) {
    await jobs.add({ ...INPUT, lane }, order, 0);
  }
  const all = await jobs.lanes(10, undefined);
  assert.deepEqual(all.jobs.map(({ order }) => order), ["1", "3", "2"]);
  assert.equal(all.isLast, true);
  assert.deepEqual((await jobs.lanes(10, "a")).jobs.map(({ order }) => order), ["2"]);
  assert.equal((await jobs.lanes(1, undefined)).isLast, false);
  const positions = all.jobs.map((stored) => positionOf("queue_ready", stored));
  assert.deepEqual(await jobs.positions("queue_ready", 10, ""), positions);
  assert.deepEqual(await jobs.positions("queue_ready", 10, positions[0]!), positions.slice(1));
});
