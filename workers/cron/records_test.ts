import assert from "node:assert/strict";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import {
  CronRecords,
  type JobIdentity,
  keyOf,
  RECORD_KEPT_MS,
  RUNS_KEPT,
  shortError,
} from "./records.ts";

const JOB: JobIdentity = {
  function_id: "f::a",
  namespace: undefined,
  expression: "* * * * * *",
  timezone: "UTC",
  metadata: undefined,
};
const HOUR = 3_600_000;

function setup() {
  const store = new MemoryStore();
  return { store, records: new CronRecords(store) };
}

Deno.test("a job is known by what it does", () => {
  const keys = [
    keyOf(JOB),
    keyOf({ ...JOB }),
    keyOf({ ...JOB, function_id: "f::b" }),
    keyOf({ ...JOB, namespace: "eu" }),
    keyOf({ ...JOB, expression: "0 * * * * *" }),
    keyOf({ ...JOB, timezone: "Europe/Berlin" }),
    keyOf({ ...JOB, metadata: { tenant: 1 } }),
  ];

  assert.equal(keys[0], keys[1]);
  assert.equal(new Set(keys).size, 6);
  assert.ok(keys.every((key) => /^[0-9a-f]{64}$/.test(key)));
});

Deno.test("a new job counts from now, a known one from its last time", async () => {
  const { records } = setup();

  assert.deepEqual(await records.open("k", JOB, 1_000), { slot_ms: 1_000, runs: [] });
  assert.deepEqual(await records.open("k", JOB, 9_000), { slot_ms: 1_000, runs: [] });
});

Deno.test("a record is written again when it was not used for a day, and not before", async () => {
  const { store, records } = setup();
  const version = async () => (await store.get(["cron", "k"]))!.version;
  await records.open("k", JOB, HOUR);
  const first = await version();

  await records.open("k", JOB, 24 * HOUR);
  assert.equal(await version(), first);
  await records.open("k", JOB, 25 * HOUR);
  const second = await version();
  assert.notEqual(second, first);
  await records.open("k", JOB, 20 * HOUR);
  assert.notEqual(await version(), second, "the clock went back");
});

Deno.test("a run without an end was interrupted", async () => {
  const { records } = setup();
  const run = { scheduled_ms: 2_000, started_ms: 2_001, outcome: "running" } as const;
  const runs = Array.from({ length: 9 }, () => run);

  await records.save("k", JOB, { slot_ms: 2_000, runs }, 2_000);
  const read = await records.open("k", JOB, 9_000);

  assert.equal(read.slot_ms, 2_000);
  assert.deepEqual(read.runs, Array(RUNS_KEPT).fill({ ...run, outcome: "interrupted" }));
});

Deno.test("a last time far ahead, or a record that says nothing, counts from now", async () => {
  const { store, records } = setup();
  await records.save("k", JOB, { slot_ms: 10 * HOUR, runs: [] }, 10 * HOUR);
  assert.equal((await records.open("k", JOB, 9.5 * HOUR)).slot_ms, 10 * HOUR);
  assert.equal((await records.open("k", JOB, HOUR)).slot_ms, HOUR);

  await store.write([[["cron", "k"], () => ({ runs: 5 })]]);
  assert.equal((await records.open("k", JOB, 7)).slot_ms, 7);
});

Deno.test("records that were not used for more than a year are removed", async () => {
  const { store, records } = setup();
  for (let i = 0; i < 700; i++) {
    await records.save(`old${i}`, JOB, { slot_ms: 0, runs: [] }, 0);
    await records.save(`new${i}`, JOB, { slot_ms: 0, runs: [] }, 1_000);
  }

  await records.sweep(RECORD_KEPT_MS + 500);

  const left = await store.list(["cron"], 2_000);
  assert.equal(left.length, 700);
  assert.ok(left.every(({ key }) => key[1]!.startsWith("new")));
});

Deno.test("the error of a run is cut", () => {
  assert.equal(shortError("short"), "short");
  assert.ok(shortError("x".repeat(1_000_000)).length < 400);
});
