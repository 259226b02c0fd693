import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { DataDisk, DISK_FREE_MIN_BYTES, DISK_LOOK_DEADLINE_MS, DISK_LOOK_MS } from "./data_disk.ts";

function setup(free: () => number | null = () => DISK_FREE_MIN_BYTES) {
  const clock = new FakeClock();
  const it = { isBroken: false, probes: 0, isHanging: false };
  const status = {
    path: "/data/state",
    failure: null as { at_ms: number; message: string } | null,
    damaged: [],
    queued_bytes: 0,
    cache_bytes: 0,
    freeBytes: free,
  };
  const write = () => {
    it.probes++;
    if (it.isHanging) return new Promise<never>(() => {});
    if (it.isBroken) return Promise.reject(new Error("No space left"));
    status.failure = null;
    return Promise.resolve([]);
  };
  const disk = new DataDisk({ clock, store: { status, write } });
  const problem = async () => {
    clock.tick(DISK_LOOK_MS);
    return (await disk.read()).problem;
  };
  return { clock, status, it, disk, problem };
}

Deno.test("A disk with room that takes writes has no problem, and is not written to", async () => {
  const { disk, it } = setup();

  assert.deepEqual(await disk.read(), { free_bytes: DISK_FREE_MIN_BYTES, problem: null });
  assert.equal(it.probes, 0);
});

Deno.test("A full disk is a problem until it has room again", async () => {
  let free = 1024 * 1024;
  const { problem } = setup(() => free);

  const full = (mib: string): string =>
    `the disk of the data directory is full: ${mib} MiB are free, 16 are needed; free space on it`;
  assert.equal(await problem(), full("1"));
  free = DISK_FREE_MIN_BYTES - 1;
  assert.equal(await problem(), full("15.9"));
  free = DISK_FREE_MIN_BYTES;
  assert.equal(await problem(), null);
});

Deno.test("A small disk needs an eighth of its size", async () => {
  const mib = 1024 * 1024;
  let free = 8 * mib - 1;
  const { problem, status } = setup(() => free);
  Object.assign(status, { diskBytes: () => 64 * mib });

  assert.match((await problem())!, /7\.9 MiB are free, 8 are needed/);
  free = 8 * mib;
  assert.equal(await problem(), null);
});

Deno.test("A disk of unknown size needs what a large one does", async () => {
  let free = DISK_FREE_MIN_BYTES - 1;
  const { problem, status } = setup(() => free);
  Object.assign(status, { diskBytes: () => null });

  assert.match((await problem())!, /15\.9 MiB are free, 16 are needed/);
  free = DISK_FREE_MIN_BYTES;
  assert.equal(await problem(), null);
});

Deno.test("A failed commit is a problem until a write succeeds, if only that of a look", async () => {
  const { problem, it, status } = setup();
  assert.equal(await problem(), null);

  status.failure = { at_ms: 0, message: "No space left" };
  it.isBroken = true;
  assert.equal(await problem(), "the store cannot write to its disk");
  assert.equal(await problem(), "the store cannot write to its disk");
  it.isBroken = false;
  assert.equal(await problem(), null);
  const { probes } = it;
  assert.equal(await problem(), null);
  assert.equal(it.probes, probes);
});

Deno.test("A write that does not return is a problem; an unknown amount is none", async () => {
  const { it, status, disk, clock } = setup();
  status.failure = { at_ms: 0, message: "Input/output error" };
  it.isHanging = true;
  const look = disk.read();
  clock.tick(DISK_LOOK_DEADLINE_MS);

  assert.equal((await look).problem, "the store cannot write to its disk");
  assert.deepEqual(await setup(() => null).disk.read(), { free_bytes: null, problem: null });
});

Deno.test("Looks in one second share their result", async () => {
  let looks = 0;
  const { disk, clock } = setup(() => DISK_FREE_MIN_BYTES + looks++);

  await Promise.all([disk.read(), disk.read()]);
  clock.tick(DISK_LOOK_MS - 1);
  await disk.read();

  assert.equal(looks, 1);
});
