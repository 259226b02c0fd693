import assert from "node:assert/strict";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { recordingLog } from "../../tests/fakes/fake_http.ts";
import { Expression } from "./expression.ts";
import { Job, type JobSettings, RUNS_AT_ONCE_MAX, timeText } from "./job.ts";
import { CronRecords } from "./records.ts";
import { CATCH_UP_MAX } from "./slots.ts";

const NOON = Date.UTC(2026, 10, 23, 12);
const SETTINGS: JobSettings = {
  catchUp: "none",
  overlap: "skip",
  jitterMs: 0,
  timeoutMs: 1_000,
  condition: undefined,
};

function setup(settings: Partial<JobSettings> = {}, text = "* * * * * *") {
  const clock = new FakeClock(NOON);
  const ends: (() => void)[] = [];
  const worker = {
    trigger: (() => new Promise<Json>((resolve) => ends.push(() => resolve(null)))) as never,
  };
  const records = new CronRecords(new MemoryStore());
  const expression = new Expression(text, "UTC");
  const identity = {
    function_id: "f::a",
    namespace: undefined,
    expression: text,
    timezone: "UTC",
    metadata: undefined,
  };
  const it = new Job(
    { worker, records, clock, log: recordingLog([]), random: () => 0 },
    "key",
    identity,
    expression,
    { ...SETTINGS, ...settings },
    { slot_ms: NOON, runs: [] },
  );
  it.triggers.set("t1", true);
  const settle = async () => {
    for (let i = 0; i < 20_000; i++) await Promise.resolve();
  };
  return { it, clock, ends, settle };
}

Deno.test("runs at once are bounded, and times that wait are bounded", async () => {
  const { it, ends, settle } = setup({ overlap: "allow", catchUp: "all" });

  it.advance(NOON + 3_600_000);
  await settle();
  assert.equal(ends.length, RUNS_AT_ONCE_MAX);
  it.advance(NOON + 7_200_000);
  await settle();

  assert.equal(it.running, RUNS_AT_ONCE_MAX);
  assert.equal(it.skipped, CATCH_UP_MAX - RUNS_AT_ONCE_MAX);
  ends.splice(0, 10).forEach((end) => end());
  await settle();
  assert.equal(it.running, RUNS_AT_ONCE_MAX);
});

Deno.test("a job without triggers fires nothing, and its run ends by itself", async () => {
  const { it, ends, settle } = setup({ overlap: "queue" });
  it.advance(NOON + 2_000);
  await settle();
  assert.equal(it.running, 1);

  it.triggers.delete("t1");
  it.stop();
  it.advance(NOON + 3_000);
  assert.equal(it.isIdle, false);
  ends[0]!();
  await settle();

  assert.equal(ends.length, 1);
  assert.equal(it.isIdle, true);
  assert.equal(it.runs[0]!.outcome, "ok");
});

Deno.test("a closed job writes nothing any more", async () => {
  const { it, ends, settle } = setup();
  it.advance(NOON + 1_000);
  await settle();

  await it.close();
  ends[0]!();
  await settle();
  it.advance(NOON + 2_000);

  assert.equal(it.runs.length, 1);
});

Deno.test("a job that starts again at a time has no time before it", () => {
  const { it } = setup({}, "0 * * * * *");
  assert.equal(it.next, NOON + 60_000);

  it.restartAt(NOON - 3_600_000);

  assert.equal(it.next, NOON - 3_540_000);
});

Deno.test("times are written as the protocol has them", () => {
  assert.equal(timeText(NOON), "2026-11-23T12:00:00+00:00");
  assert.equal(timeText(NOON + 3), "2026-11-23T12:00:00.003+00:00");
});
