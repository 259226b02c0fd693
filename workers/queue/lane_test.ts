/**
 * A lane in memory and its rest on disk are one order, whatever comes when.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { StoredJob } from "./job_store.ts";
import { Lane } from "./lane.ts";

const ROOM = { lengthMax: 8, take: () => true, release: () => {} };

function stored(order: number): StoredJob {
  const job = {
    id: `${order}`,
    payload: null,
    lane: "a",
    priority: 0,
    attempts: 0,
    enqueued_at_ms: 0,
    failures: [],
  };
  const entry = { key: [], value: null, json: "null", bytes: 1, version: 1, created: 1 };
  return { order: String(order).padStart(4, "0"), job, bytes: 1, entry };
}

/** The jobs behind an order, as a store reads them. */
function reader(disk: Map<string, StoredJob>) {
  return (_lane: string, limit: number, after: string) => {
    const behind = [...disk.values()].filter(({ order }) => order > after)
      .sort((a, b) => a.order < b.order ? -1 : 1);
    return Promise.resolve({
      jobs: behind.slice(0, limit),
      isLast: behind.length < limit,
    });
  };
}

Deno.test("a lane gives all jobs out in their order, at any order of arrival", async () => {
  for (let seed = 1; seed <= 300; seed++) {
    let state = seed;
    const random = (n: number): number => {
      state = (state * 48_271) % 2_147_483_647;
      return state % n;
    };
    const disk = new Map<string, StoredJob>();
    const lane = new Lane("a", ROOM, true);
    const taken: string[] = [];
    const given = new Set<string>();
    let next = 500;
    for (let step = 0; step < 200; step++) {
      const add = (order: number): void => {
        const job = stored(order);
        if (given.has(job.order)) return;
        given.add(job.order);
        disk.set(job.order, job);
        lane.arrive(job);
      };
      switch (random(5)) {
        case 0:
        case 1:
          add(next++);
          break;
        case 2:
          add(random(500));
          break;
        case 3: {
          const job = lane.shift();
          if (!job) break;
          const first = [...disk.keys()].sort()[0]!;
          assert.equal(job.order, first, `seed ${seed}`);
          taken.push(job.order);
          disk.delete(job.order);
          lane.forget(job);
          break;
        }
        case 4:
          if (lane.isShort) {
            const filling = lane.fill(reader(disk));
            if (random(2) === 0) add(next++);
            if (random(2) === 0) add(random(500));
            await filling;
          }
      }
      if (lane.length === 0 && lane.isShort) await lane.fill(reader(disk));
    }
    while (!lane.isEmpty) {
      if (lane.isShort) await lane.fill(reader(disk));
      for (let job = lane.shift(); job; job = lane.shift()) {
        taken.push(job.order);
        disk.delete(job.order);
        lane.forget(job);
        if (lane.isShort) await lane.fill(reader(disk));
      }
    }
    assert.equal(taken.length, given.size, `seed ${seed}`);
    assert.equal(new Set(taken).size, taken.length, `seed ${seed}`);
    assert.equal(disk.size, 0);
  }
});

Deno.test("a job that comes while the page with it is read is given once", async () => {
  const lane = new Lane("a", ROOM, false);

  await lane.fill(() => {
    lane.arrive(stored(1));
    return Promise.resolve({ jobs: [stored(1)], isLast: true });
  });

  assert.equal(lane.shift()?.order, stored(1).order);
  assert.equal(lane.shift(), undefined);
});

Deno.test("jobs of which too many come during a read are read later", async () => {
  const disk = new Map<string, StoredJob>();
  const lane = new Lane("a", { ...ROOM, lengthMax: 2_000 }, false);
  await lane.fill(() => {
    for (let i = 0; i < 1_500; i++) {
      disk.set(stored(i).order, stored(i));
      lane.arrive(stored(i));
    }
    return Promise.resolve({ jobs: [], isLast: true });
  });

  const taken: string[] = [];
  while (!lane.isEmpty) {
    if (lane.isShort) await lane.fill(reader(disk));
    const job = lane.shift();
    if (!job) continue;
    taken.push(job.order);
    disk.delete(job.order);
    lane.forget(job);
  }

  assert.deepEqual(taken, Array.from({ length: 1_500 }, (_, i) => stored(i).order));
});

Deno.test("a lane returns the memory of every job once", async () => {
  let held = 0;
  const room = {
    lengthMax: 8,
    take: () => {
      if (held >= 5) return false;
      held++;
      return true;
    },
    release: () => void held--,
  };
  const disk = new Map<string, StoredJob>();
  const lane = new Lane("a", room, true);
  for (let i = 0; i < 30; i++) {
    const job = stored(i);
    disk.set(job.order, job);
    lane.arrive(job);
  }
  assert.equal(held, 5);

  const taken: string[] = [];
  while (!lane.isEmpty) {
    const job = lane.shift();
    if (!job) {
      await lane.fill(reader(disk));
      continue;
    }
    taken.push(`${Number(job.order)}`);
    disk.delete(job.order);
    lane.forget(job);
  }
  assert.deepEqual(taken, Array.from({ length: 30 }, (_, i) => `${i}`));
  assert.equal(held, 0);
});

Deno.test("a job that was put back is first again, and is not read a second time", async () => {
  const disk = new Map<string, StoredJob>([1, 2].map((i) => [stored(i).order, stored(i)]));
  const lane = new Lane("a", ROOM, false);
  await lane.fill(reader(disk));
  const job = lane.shift()!;
  lane.putBack(job);
  assert.equal(lane.head, job);

  lane.shift();
  lane.clear();
  await lane.fill(reader(disk));
  assert.equal(lane.head!.order, "0002");
});
