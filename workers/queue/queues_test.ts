/**
 * How jobs are given out: order, lanes, attempts, restarts, and more jobs than are in memory.
 *
 * @module
 */
import assert from "node:assert/strict";
import { createMemoryBudget } from "../../engine/platform/memory_budget.ts";
import { type MemoryBudget, UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";
import type {
  Job,
  JobInput,
  QueueRunner,
  Queues,
  QueueSettings,
  Verdict,
} from "../../engine/ports/queue.ts";
import type { Changed, KeyChange } from "../../engine/ports/store.ts";
import { HELD_BYTES_MAX } from "./job_queue.ts";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { recordingLog } from "../../tests/fakes/fake_http.ts";
import { openQueues } from "./queues.ts";

const SETTINGS: QueueSettings = {
  fifo: false,
  concurrency: 10,
  max_attempts: 3,
  backoff_ms: 1_000,
  backoff_max_ms: 60_000,
  jitter: 0,
};

/** A job that runs until the test decides. */
interface Run {
  readonly job: Job;
  end(verdict: Verdict): Promise<void>;
}

/** A store whose writes fail while a test says so. */
class FailingStore extends MemoryStore {
  fails = false;

  override write(changes: readonly KeyChange[]): Promise<Changed[]> {
    return this.fails ? Promise.reject(new Error("disk full")) : super.write(changes);
  }
}

interface Options {
  readonly settings?: Partial<QueueSettings>;
  readonly store?: MemoryStore;
  readonly memory?: MemoryBudget;
  readonly clock?: FakeClock;
}

async function setup({ settings, store = new MemoryStore(), memory, clock }: Options = {}) {
  const time = clock ?? new FakeClock();
  const runs: Run[] = [];
  const closed = new Set<string>();
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 300; i++) await Promise.resolve();
  };
  const runner: QueueRunner = {
    gate: ({ lane }) => closed.has(lane) ? lane : undefined,
    run: (job) =>
      new Promise((resolve) => {
        runs.push({
          job,
          end: async (verdict) => {
            resolve(verdict);
            await settle();
          },
        });
      }),
  };
  const open = async (): Promise<Queues> => {
    const queues = await openQueues({
      store,
      clock: time,
      log: recordingLog([]),
      memory: memory ?? UNLIMITED_MEMORY,
      random: () => 0.5,
    });
    await queues.serve("q", { ...SETTINGS, ...settings }, runner);
    await settle();
    return queues;
  };
  const queues = await open();
  return {
    queues,
    runs,
    closed,
    clock: time,
    settle,
    put: async (id: string, more: Partial<JobInput> = {}) => {
      const put = queues.put("q", { id, payload: null, lane: "a", ...more });
      put.catch(() => {});
      await settle();
      return await put;
    },
    /** Ids of the jobs that began, in their order. */
    get begun(): string[] {
      return runs.map(({ job }) => job.id);
    },
    pass: async (ms: number) => {
      time.tick(ms);
      await settle();
    },
    /** Ends all runs as they begin, until none begins any more. */
    finish: async () => {
      for (let at = 0; at < runs.length; at++) await runs[at]!.end({ done: true });
    },
    [Symbol.asyncDispose]: () => queues[Symbol.asyncDispose](),
  };
}

const failed = (message: string): Verdict => {
  return { retry: { at_ms: 0, code: "broken", message } };
};

Deno.test("jobs begin in their order, as many at once as the queue says", async () => {
  await using at = await setup({ settings: { concurrency: 2 } });
  for (const id of ["1", "2", "3", "4"]) await at.put(id);
  assert.deepEqual(at.begun, ["1", "2"]);

  await at.runs[1]!.end({ done: true });
  assert.deepEqual(at.begun, ["1", "2", "3"]);
  const { waiting, running } = at.queues.counts("q");
  assert.deepEqual({ waiting, running }, { waiting: 1, running: 2 });
});

Deno.test("a higher priority begins first, over all lanes", async () => {
  await using at = await setup({ settings: { concurrency: 1 } });
  await at.put("first");
  await at.put("low");
  await at.put("high", { priority: 9, lane: "b" });
  await at.put("higher", { priority: 10 });
  await at.finish();

  assert.deepEqual(at.begun, ["first", "higher", "high", "low"]);
});

Deno.test("a fifo lane runs one job at a time, and a failed one keeps its place", async () => {
  await using at = await setup({ settings: { fifo: true } });
  for (const id of ["a1", "a2"]) await at.put(id);
  for (const id of ["b1", "b2"]) await at.put(id, { lane: "b" });
  assert.deepEqual(at.begun, ["a1", "b1"]);

  await at.runs[0]!.end(failed("once"));
  await at.runs[1]!.end({ done: true });
  assert.deepEqual(at.begun, ["a1", "b1", "b2"]);

  await at.pass(1_000);
  assert.deepEqual(at.begun, ["a1", "b1", "b2", "a1"]);
  await at.runs[3]!.end({ done: true });
  assert.deepEqual(at.begun, ["a1", "b1", "b2", "a1", "a2"]);
});

Deno.test("100 lanes of which one hangs: the others go on", async () => {
  await using at = await setup({ settings: { fifo: true, concurrency: 10 } });
  for (let i = 0; i < 20; i++) {
    for (let lane = 0; lane < 100; lane++) await at.put(`${lane}/${i}`, { lane: `${lane}` });
  }
  for (let run = 0; run < at.runs.length; run++) {
    if (at.runs[run]!.job.lane !== "7") await at.runs[run]!.end({ done: true });
  }

  const { done_total, running, waiting } = at.queues.counts("q");
  assert.deepEqual({ done_total, running, waiting }, {
    done_total: 1_980,
    running: 1,
    waiting: 19,
  });
  for (let lane = 0; lane < 100; lane++) {
    const begun = at.runs.filter(({ job }) => job.lane === `${lane}`).map(({ job }) => job.id);
    const expected = Array.from({ length: lane === 7 ? 1 : 20 }, (_, i) => `${lane}/${i}`);
    assert.deepEqual(begun, expected);
  }
});

Deno.test("a lane that is longer than what is in memory keeps its order, job by job", async () => {
  await using at = await setup({ settings: { concurrency: 3 } });
  const ids = Array.from({ length: 1_500 }, (_, i) => `${i}`);
  await Promise.all(ids.map((id) => at.queues.put("q", { id, payload: id, lane: "a" })));
  await at.settle();
  await at.finish();

  assert.deepEqual(at.begun, ids);
  assert.equal(at.queues.counts("q").waiting, 0);
});

Deno.test("jobs that come while a long lane is read are neither lost nor run twice", async () => {
  await using at = await setup({ settings: { concurrency: 1 } });
  for (let i = 0; i < 700; i++) void at.queues.put("q", { id: `${i}`, payload: 0, lane: "a" });
  await at.settle();
  let next = 700;
  for (let run = 0; run < at.runs.length; run++) {
    if (next < 1_400) void at.queues.put("q", { id: `${next++}`, payload: 0, lane: "a" });
    await at.runs[run]!.end({ done: true });
  }

  assert.deepEqual(at.begun, Array.from({ length: 1_400 }, (_, i) => `${i}`));
});

Deno.test("a lane whose gate is closed rests alone, and begins when it is opened", async () => {
  await using at = await setup();
  at.closed.add("b");
  await at.put("b1", { lane: "b" });
  await at.put("a1");
  assert.deepEqual(at.begun, ["a1"]);

  at.closed.clear();
  at.queues.wake("q", "b");
  await at.settle();
  assert.deepEqual(at.begun, ["a1", "b1"]);
  assert.equal(at.runs[1]!.job.attempts, 0);
});

Deno.test("an attempt that did not begin is none, and its lane waits", async () => {
  await using at = await setup();
  await at.put("1");
  await at.runs[0]!.end({ wait_ms: 100 });
  assert.equal(at.runs.length, 1);

  await at.pass(100);
  assert.equal(at.runs.length, 2);
  assert.equal(at.runs[1]!.job.attempts, 0);
});

Deno.test("delays grow with the attempts, up to a bound", async () => {
  const settings = { max_attempts: 5, backoff_max_ms: 3_000 };
  await using at = await setup({ settings });
  await at.put("1");
  for (const ms of [1_000, 2_000, 3_000, 3_000]) {
    await at.runs.at(-1)!.end(failed("again"));
    const count = at.runs.length;
    await at.pass(ms - 1);
    assert.equal(at.runs.length, count);
    await at.pass(1);
    assert.equal(at.runs.length, count + 1);
  }
  await at.runs.at(-1)!.end(failed("last"));

  const [dead] = await at.queues.dead("q", 10);
  assert.equal(dead!.attempts, 5);
  assert.equal(dead!.failures.at(-1)!.message, "last");
  const { failed_total, dead_total, waiting, delayed } = at.queues.counts("q");
  assert.deepEqual(
    { failed_total, dead_total, waiting, delayed },
    { failed_total: 5, dead_total: 1, waiting: 0, delayed: 0 },
  );
});

Deno.test("a delayed job begins at its time, also when the clock is set forward", async () => {
  const clock = new FakeClock();
  let shift = 0;
  const wall = clock.wall.bind(clock);
  clock.wall = () => wall() + shift;
  await using at = await setup({ clock });
  await at.put("day", { at_ms: clock.wall() + 86_400_000 });
  await at.put("hour", { at_ms: clock.wall() + 3_600_000 });
  assert.equal(at.queues.counts("q").delayed, 2);

  shift = 3_600_000;
  await at.pass(60_000);
  assert.deepEqual(at.begun, ["hour"]);

  shift = 0;
  await at.pass(60_000);
  assert.deepEqual(at.begun, ["hour"]);
  await at.pass(86_400_000);
  assert.deepEqual(at.begun, ["hour", "day"]);
});

Deno.test("a job that has not begun by its time is dead", async () => {
  await using at = await setup({ settings: { concurrency: 1 } });
  await at.put("1");
  await at.put("2", { expires_at_ms: at.clock.wall() + 1_000 });
  await at.pass(1_000);
  await at.runs[0]!.end({ done: true });

  assert.deepEqual(at.begun, ["1"]);
  const [dead] = await at.queues.dead("q", 10);
  assert.equal(dead!.id, "2");
  assert.equal(dead!.failures[0]!.code, "expired");
  assert.equal(dead!.attempts, 0);
});

Deno.test("a rate lets its jobs begin and then one after another", async () => {
  await using at = await setup({ settings: { rate: { jobs: 2, per_ms: 1_000 } } });
  for (let i = 0; i < 5; i++) await at.put(`${i}`);
  assert.equal(at.runs.length, 2);
  await at.pass(500);
  assert.equal(at.runs.length, 3);
  await at.pass(1_000);
  assert.equal(at.runs.length, 5);
});

Deno.test("a new life gives out what was not done, and counts what there is", async () => {
  const store = new MemoryStore();
  const clock = new FakeClock();
  {
    await using at = await setup({ store, clock, settings: { concurrency: 2, max_attempts: 1 } });
    for (let i = 0; i < 1_200; i++) {
      void at.queues.put("q", { id: `${i}`, payload: 0, lane: `${i % 7}` });
    }
    await at.settle();
    await at.put("later", { at_ms: clock.wall() + 5_000 });
    await at.runs[0]!.end({ done: true });
    await at.runs[1]!.end(failed("dead"));
    assert.equal(at.queues.counts("q").running, 2);
  }
  await using at = await setup({ store, clock, settings: { concurrency: 2 } });
  for (let i = 0; i < 10; i++) await at.pass(20);

  const { waiting, running, delayed, dead, is_counting } = at.queues.counts("q");
  assert.deepEqual(
    { waiting, running, delayed, dead, is_counting },
    { waiting: 1_196, running: 2, delayed: 1, dead: 1, is_counting: false },
  );
  await at.finish();
  assert.equal(new Set(at.begun).size, 1_198);
  assert.equal(at.begun.length, 1_198);
});

Deno.test("while the disk fails, a job that is done keeps running and runs only once", async () => {
  const store = new FailingStore();
  await using at = await setup({ store });
  await at.put("1");
  store.fails = true;
  await at.runs[0]!.end({ done: true });
  assert.equal(at.queues.counts("q").running, 1);
  await assert.rejects(at.put("2"), { message: "disk full" });

  store.fails = false;
  await at.pass(1_000);
  const { running, waiting, done_total } = at.queues.counts("q");
  assert.deepEqual({ running, waiting, done_total }, { running: 0, waiting: 0, done_total: 1 });
  assert.deepEqual(at.begun, ["1"]);
});

Deno.test("purge deletes what waits; what runs and what comes later stays", async () => {
  await using at = await setup({ settings: { concurrency: 1 } });
  for (let i = 0; i < 800; i++) {
    void at.queues.put("q", { id: `${i}`, payload: 0, lane: `${i % 3}` });
  }
  await at.settle();
  await at.put("later", { at_ms: at.clock.wall() + 5_000 });

  const purging = at.queues.purge("q");
  for (let i = 0; i < 10; i++) await at.settle();
  assert.equal(await purging, 800);
  const { waiting, running, delayed } = at.queues.counts("q");
  assert.deepEqual({ waiting, running, delayed }, { waiting: 0, running: 1, delayed: 0 });

  await at.put("next");
  await at.finish();
  assert.deepEqual(at.begun, ["0", "next"]);
});

Deno.test("jobs take memory while they are here, and all of it is returned", async () => {
  const memory = createMemoryBudget(1024 * 1024);
  await using at = await setup({ memory, settings: { concurrency: 1 } });
  const payload = "x".repeat(100_000);
  for (let i = 0; i < 30; i++) await at.put(`${i}`, { payload });
  assert.ok(memory.usedBytes > 100_000 && memory.usedBytes <= 1024 * 1024);

  for (let run = 0; run < 30; run++) {
    if (!at.runs[run]) await at.pass(1_000);
    await at.runs[run]!.end({ done: true });
  }
  assert.equal(new Set(at.begun).size, 30);
  assert.equal(memory.usedBytes, 0);
});

Deno.test("of many large jobs a bounded number of bytes is in memory, and all run in order", async () => {
  const memory = createMemoryBudget(1024 * 1024 * 1024);
  await using at = await setup({ memory, settings: { concurrency: 1 } });
  const payload = "x".repeat(2_000_000);
  for (let i = 0; i < 20; i++) await at.put(`${i}`, { payload });
  assert.ok(memory.usedBytes > 10_000_000, `${memory.usedBytes} bytes`);
  assert.ok(memory.usedBytes <= HELD_BYTES_MAX, `${memory.usedBytes} bytes`);

  for (let run = 0; run < 20; run++) {
    if (!at.runs[run]) await at.pass(1_000);
    await at.runs[run]!.end({ done: true });
  }
  assert.deepEqual(at.begun, Array.from({ length: 20 }, (_, i) => `${i}`));
  assert.equal(memory.usedBytes, 0);
});

Deno.test("a queue without memory goes on when there is some", async () => {
  const memory = createMemoryBudget(1024 * 1024);
  await using at = await setup({ memory });
  const taken = memory.limitBytes;
  memory.take("buffers", taken);
  await at.put("1");
  await at.pass(5_000);
  assert.deepEqual(at.begun, []);

  memory.release("buffers", taken);
  await at.pass(1_000);
  assert.deepEqual(at.begun, ["1"]);
});

Deno.test("drain begins nothing more, and ends when nothing runs", async () => {
  await using at = await setup({ settings: { concurrency: 1 } });
  for (const id of ["1", "2"]) await at.put(id);
  let isDrained = false;
  void at.queues.drain().then(() => isDrained = true);
  await at.settle();
  assert.equal(isDrained, false);

  await at.runs[0]!.end({ done: true });
  assert.equal(isDrained, true);
  assert.deepEqual(at.begun, ["1"]);
});
