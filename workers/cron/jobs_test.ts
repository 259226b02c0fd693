import assert from "node:assert/strict";
import type { Store } from "../../engine/ports/store.ts";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import type { CallRequest, TriggerInstance } from "../../sdk/typescript/options.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import { CronJobs, JOBS_MAX } from "./jobs.ts";
import { BACK_MS_MAX, CronRecords } from "./records.ts";

const NOON = Date.UTC(2026, 10, 23, 12);
const MINUTE = 60_000;

/** A clock whose wall can jump while its durations go on. */
class JumpingClock extends FakeClock {
  jumpMs = 0;
  override wall(): number {
    return super.wall() + this.jumpMs;
  }
}

interface Setup {
  readonly store?: Store;
  readonly at?: number;
  readonly random?: number;
}

function views(jobs: CronJobs): JsonObject[] {
  return jobs.live().map((job) => jobs.viewOf(job));
}

async function setup({ store = new MemoryStore(), at = NOON, random = 0 }: Setup = {}) {
  const clock = new JumpingClock(at);
  const lines: LogLine[] = [];
  const calls: CallRequest<JsonObject>[] = [];
  /** How a call ends; by default at once. */
  const answers = new Map<string, () => Promise<Json>>();
  const worker = {
    trigger: ((request: CallRequest<JsonObject>) => {
      calls.push(request);
      return answers.get(request.function_id)?.() ?? Promise.resolve(null);
    }) as never,
  };
  const jobs = new CronJobs({
    worker,
    records: new CronRecords(store),
    clock,
    log: recordingLog(lines),
    random: () => random,
    timezone: "UTC",
  });
  const keeper = new AbortController();
  void jobs.fireUntil(keeper.signal);
  const settle = async () => {
    for (let i = 0; i < 100; i++) await Promise.resolve();
  };
  const pass = async (ms: number) => {
    // In steps, so that what a call causes happens at its time.
    for (let left = ms; left > 0; left -= 500) {
      clock.tick(Math.min(500, left));
      await settle();
    }
  };
  const add = async (config: JsonObject, id = "t1", function_id = "f::a") => {
    const trigger: TriggerInstance = {
      id,
      trigger_type: "cron",
      function_id,
      config,
      metadata: undefined,
      namespace: undefined,
    };
    await jobs.add(trigger);
    await settle();
  };
  const times = () => calls.map(({ payload }) => String(payload!.scheduled_time).slice(11, 19));
  await settle();
  return { jobs, keeper, clock, lines, calls, answers, store, add, pass, settle, times };
}

const MINUTELY = { expression: "0 * * * * *" };

Deno.test("a trigger fires at each of its times, with the payload of the protocol", async () => {
  const { add, pass, calls, times, jobs } = await setup();
  await add(MINUTELY);

  await pass(2 * MINUTE + 500);

  assert.deepEqual(times(), ["12:01:00", "12:02:00"]);
  assert.deepEqual(calls[0]!.payload, {
    trigger: "cron",
    job_id: "t1",
    scheduled_time: "2026-11-23T12:01:00+00:00",
    actual_time: "2026-11-23T12:01:00+00:00",
  });
  assert.equal(calls[0]!.timeout_ms, 600_000);
  jobs.remove("t1");
  await pass(2 * MINUTE);
  assert.equal(calls.length, 2);
});

Deno.test("two jobs fire each at their times, and equal triggers share one job", async () => {
  const { add, pass, calls, times, jobs } = await setup();
  await add({ expression: "30 * * * * *" }, "t1");
  await add(MINUTELY, "t2", "f::b");
  await add(MINUTELY, "t3", "f::b");

  await pass(MINUTE);

  assert.deepEqual(times(), ["12:00:30", "12:01:00", "12:01:00"]);
  assert.deepEqual(calls.map(({ payload }) => payload!.job_id), ["t1", "t2", "t3"]);
  assert.equal(views(jobs).length, 2);
});

Deno.test("a job goes on with a trigger that comes just before its only one leaves", async () => {
  const { jobs, calls, add, pass } = await setup();
  await add(MINUTELY);

  const added = add(MINUTELY, "t2");
  jobs.remove("t1");
  await added;
  await pass(MINUTE);

  assert.deepEqual(calls.map(({ payload }) => payload!.job_id), ["t2"]);
});

Deno.test("of jobs that are opened at once no more than allowed are", async () => {
  const { jobs } = await setup();
  const add = (i: number, function_id: string) =>
    jobs.add({
      id: `t${i}`,
      trigger_type: "cron",
      function_id,
      config: MINUTELY,
      metadata: undefined,
      namespace: undefined,
    });

  const added = Array.from({ length: JOBS_MAX + 5 }, (_, i) => add(i, `f::${i}`));
  const shared = add(JOBS_MAX + 5, "f::0");
  const ended = await Promise.allSettled(added);
  await shared;

  const refused = ended.filter(({ status }) => status === "rejected");
  assert.deepEqual([jobs.live().length, refused.length], [JOBS_MAX, 5]);
  assert.equal(jobs.live("f::0")[0]!.triggers.size, 2);
});

for (const [overlap, expected] of [["skip", 1], ["queue", 1], ["allow", 3]] as const) {
  Deno.test(`while a run lasts, overlap: ${overlap} starts ${expected - 1} more`, async () => {
    const { add, pass, answers, times, jobs } = await setup();
    const end = Promise.withResolvers<Json>();
    answers.set("f::a", () => end.promise);
    await add({ ...MINUTELY, overlap });

    await pass(3 * MINUTE);
    assert.equal(times().length, expected);
    answers.clear();
    end.resolve(null);
    await pass(30_000);

    assert.deepEqual(
      times(),
      overlap === "skip" ? ["12:01:00"] : ["12:01:00", "12:02:00", "12:03:00"],
    );
    const [job] = views(jobs);
    assert.equal(job!.skipped, overlap === "skip" ? 2 : 0);
    await pass(30_000);
    assert.equal(times().at(-1), "12:04:00");
  });
}

for (
  const [catch_up, expected] of [
    ["none", ["12:06:00"]],
    ["last", ["12:05:00", "12:06:00"]],
    ["all", ["12:02:00", "12:03:00", "12:04:00", "12:05:00", "12:06:00"]],
  ] as const
) {
  Deno.test(`after a sleep of four minutes, catch_up: ${catch_up} fires what it says`, async () => {
    const { add, pass, clock, calls, times, lines } = await setup();
    await add({ ...MINUTELY, catch_up });
    await pass(MINUTE + 500);
    calls.length = 0;

    clock.jumpMs += 4 * MINUTE + 30_000;
    await pass(29_500);

    assert.deepEqual(times(), expected);
    assert.equal(lines.some(({ text }) => /missed/.test(text)), catch_up !== "all");
  });
}

Deno.test("a job goes on after a restart: what was missed, and nothing twice", async () => {
  const first = await setup();
  await first.add({ ...MINUTELY, catch_up: "all" });
  await first.pass(2 * MINUTE);
  assert.deepEqual(first.times(), ["12:01:00", "12:02:00"]);
  await first.jobs[Symbol.asyncDispose]();

  const second = await setup({ store: first.store, at: NOON + 4 * MINUTE + 30_000 });
  await second.add({ ...MINUTELY, catch_up: "all" }, "another id");
  await second.pass(30_000);

  assert.deepEqual(second.times(), ["12:03:00", "12:04:00", "12:05:00"]);
});

Deno.test("a restart within the second of a time fires it once", async () => {
  const first = await setup();
  await first.add(MINUTELY);
  await first.pass(MINUTE);
  const second = await setup({ store: first.store, at: NOON + MINUTE + 300 });
  await second.add(MINUTELY);
  const third = await setup({ store: first.store, at: NOON + 2 * MINUTE + 300 });
  await third.add(MINUTELY);

  assert.deepEqual([first.times(), second.times(), third.times()], [
    ["12:01:00"],
    [],
    ["12:02:00"],
  ]);
});

Deno.test("a run that the end of the engine interrupted is shown, and does not fire again", async () => {
  const first = await setup();
  first.answers.set("f::a", () => new Promise(() => {}));
  await first.add({ ...MINUTELY, catch_up: "all" });
  await first.pass(MINUTE);

  const second = await setup({ store: first.store, at: NOON + MINUTE + 30_000 });
  await second.add({ ...MINUTELY, catch_up: "all" });

  assert.deepEqual(second.times(), []);
  const [run] = views(second.jobs)[0]!.last as JsonObject[];
  assert.equal(run!.outcome, "interrupted");
});

Deno.test("a clock that goes back a little fires no time twice", async () => {
  const { add, pass, clock, times } = await setup();
  await add(MINUTELY);
  await pass(2 * MINUTE);

  clock.jumpMs -= 90_000;
  await pass(2 * MINUTE);

  assert.deepEqual(times(), ["12:01:00", "12:02:00"]);
  await pass(30_000);
  assert.equal(times().at(-1), "12:03:00");
});

Deno.test("a clock that goes back far counts again", async () => {
  const { add, pass, clock, times, lines } = await setup();
  await add(MINUTELY);
  await pass(MINUTE);

  clock.jumpMs -= BACK_MS_MAX + 10 * MINUTE;
  await pass(MINUTE + 5_000);

  assert.deepEqual(times(), ["12:01:00", "10:52:00"]);
  assert.ok(lines.some(({ text }) => /went back/.test(text)));
});

Deno.test("a time that cannot be stored waits, and fires once when it can", async () => {
  const store = new MemoryStore();
  const it = await setup({ store });
  await it.add(MINUTELY);
  const write = store.write.bind(store);
  store.write = () => Promise.reject(new Error("disk full"));

  await it.pass(MINUTE + 2_000);
  assert.deepEqual(it.times(), []);
  store.write = write;
  await it.pass(8_000);

  assert.deepEqual(it.times(), ["12:01:00"]);
  assert.match(String(it.lines[0]!.fields?.reason), /disk full/);
});

Deno.test("an engine without the role fires nothing, and what came due when it gets it back", async () => {
  const { add, pass, jobs, keeper, times, settle } = await setup();
  await add({ ...MINUTELY, catch_up: "all" });
  await pass(MINUTE);

  keeper.abort();
  await settle();
  await pass(2 * MINUTE);
  assert.deepEqual(times(), ["12:01:00"]);
  assert.equal(views(jobs).length, 1);
  void jobs.fireUntil(new AbortController().signal);
  await settle();

  assert.deepEqual(times(), ["12:01:00", "12:02:00", "12:03:00"]);
});

Deno.test("an engine that gets its role back fires nothing that another one has fired", async () => {
  const store = new MemoryStore();
  const first = await setup({ store });
  const config = { ...MINUTELY, catch_up: "all" };
  const end = Promise.withResolvers<Json>();
  first.answers.set("f::a", () => end.promise);
  await first.add(config);
  await first.pass(MINUTE);
  first.keeper.abort();

  const second = await setup({ store, at: NOON + MINUTE + 500 });
  await second.add(config, "t2");
  await second.pass(2 * MINUTE);
  second.keeper.abort();
  end.resolve(null);
  first.answers.clear();
  await first.pass(2 * MINUTE + 500);
  const third = await setup({ store, at: NOON + 3 * MINUTE + 500 });
  await third.add(config, "t3");
  third.keeper.abort();
  void first.jobs.fireUntil(new AbortController().signal);
  await first.settle();
  await first.pass(MINUTE);

  assert.deepEqual(first.times(), ["12:01:00", "12:04:00"]);
  assert.deepEqual(second.times(), ["12:02:00", "12:03:00"]);
  // The end of the first run, which was written last, did not bring its time back.
  assert.deepEqual(third.times(), []);
});

Deno.test("jitter delays a time by up to its milliseconds", async () => {
  const { add, pass, calls } = await setup({ random: 0.5 });
  await add({ ...MINUTELY, jitter_ms: 20_000 });

  await pass(MINUTE + 9_500);
  assert.equal(calls.length, 0);
  await pass(500);

  assert.equal(calls[0]!.payload!.actual_time, "2026-11-23T12:01:10+00:00");
});

Deno.test("a condition that says false, or fails, suppresses a run", async () => {
  const { add, pass, answers, calls, jobs } = await setup();
  const condition_function_id = "may::run";
  await add({ ...MINUTELY, condition_function_id });
  const outcomes: unknown[] = [];
  for (
    const answer of [
      () => Promise.resolve(false),
      () => Promise.reject(Object.assign(new Error("no"), { code: "broken" })),
      () => Promise.resolve(null),
    ]
  ) {
    answers.set("may::run", answer);
    await pass(MINUTE);
    outcomes.push((views(jobs)[0]!.last as JsonObject[])[0]!.outcome);
  }

  assert.deepEqual(outcomes, ["suppressed", "failed", "ok"]);
  assert.equal(calls.filter(({ function_id }) => function_id === "f::a").length, 1);
});

Deno.test("a job can be run by hand, by trigger or function, besides its times", async () => {
  const { add, jobs, calls, answers, settle, pass } = await setup();
  await add(MINUTELY, "t1");
  answers.set("f::a", () => Promise.reject(Object.assign(new Error("oh"), { code: "my_code" })));

  const { run } = await jobs.run("f::a");
  assert.equal(run.outcome, "failed");
  assert.equal(run.error, "my_code: oh");
  assert.equal(calls[0]!.payload!.manual, true);
  answers.clear();
  assert.equal((await jobs.run("t1")).run.outcome, "ok");
  await add({ expression: "0 0 * * * *" }, "t2");
  await assert.rejects(jobs.run("f::a"), { code: "INVALID_ARGUMENTS", message: /t1, t2/ });
  await assert.rejects(jobs.run("none"), { code: "NOT_FOUND", message: /none/ });
  await settle();
  await pass(MINUTE);

  assert.equal(calls.length, 3);
});

Deno.test("a wrong config is refused with what is wrong, and where", async () => {
  const { add } = await setup();
  const code = "trigger_registration_failed";
  for (
    const [config, message] of [
      [{}, /^Cron expression is required$/],
      [{ expression: "" }, /^Cron expression is required$/],
      [{ expression: 5 }, /expression: expected string, received 5/],
      [{ expression: "0 61 * * * *" }, /at character 3/],
      [{ expression: "0 0 0 30 2 *" }, /never fires/],
      [{ ...MINUTELY, timezone: "Europe/Berln" }, /did you mean Europe\/Berlin/],
      [{ ...MINUTELY, catch_up: "some" }, /catch_up: expected .*"last"/],
      [{ ...MINUTELY, overlap: 1 }, /overlap/],
      [{ ...MINUTELY, jitter_ms: -1 }, /jitter_ms.*>=0/],
      [{ ...MINUTELY, timeout_ms: 0 }, /timeout_ms.*>=1/],
      [{ ...MINUTELY, condition_function_id: "" }, /condition_function_id/],
    ] as const
  ) {
    await assert.rejects(add(config as JsonObject), { code, message });
  }
});
