/**
 * @module
 */
import assert from "node:assert/strict";
import { createMemoryBudget } from "../../engine/platform/memory_budget.ts";
import { type MemoryBudget, UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";
import { QueryTurns } from "./query_turns.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeConsoleWorker, settle } from "../../tests/console/fake_console_worker.ts";
import { EngineClient } from "./engine_client.ts";
import {
  DEBOUNCE_MS,
  GUEST_QUERIES_MAX,
  INTERVAL_MS,
  QUERIES_MAX,
  QUERY_CHARS_MAX,
  QueryFeed,
  QueryFeeds,
  RETRIES_MAX,
  RETRY_MS,
  WAIT_FACTOR,
  WAIT_MS_MAX,
} from "./query_feeds.ts";
import { GUEST_TRIGGERS_MAX, TriggerFeeds } from "./trigger_feeds.ts";

const ASKED = { query: { function_id: "list" }, on: [{ type: "changed" }] };

function setup(memory: MemoryBudget = UNLIMITED_MEMORY) {
  const clock = new FakeClock();
  const worker = new FakeConsoleWorker();
  const engine = new EngineClient(worker, clock);
  const triggers = new TriggerFeeds(engine, worker);
  const queries = new QueryFeeds(engine, triggers, clock, memory);
  let value = 0;
  worker.functions["list"] = () => ++value;
  const watch = (asked: Parameters<QueryFeeds["watch"]>[0] = ASKED) => {
    const received: string[] = [];
    const watching = queries.watch(asked, {
      changed: (_change, state) => void received.push(state.wholeMessage(1)),
      failed: ({ code }) => void received.push(code),
    });
    return { received, watching };
  };
  const stop = (): void => {
    queries.stop();
    triggers.stop();
  };
  return { clock, worker, queries, triggers, watch, stop };
}

const message = (value: number): string => `{"type":"value","id":1,"value":${value}}`;

Deno.test("QueryFeeds asks an equal query once for all listeners", async () => {
  const { clock, worker, queries, watch, stop } = setup();

  const one = watch();
  const two = watch({ query: { function_id: "list" }, on: [{ type: "changed" }] });
  await settle();
  const late = watch();
  await worker.fire("changed");
  clock.tick(INTERVAL_MS);
  await settle();

  assert.deepEqual(
    [one.received, two.received, late.received],
    Array(3).fill([message(1), message(2)]),
  );
  assert.deepEqual([queries.size, worker.count("list")], [1, 2]);
  stop();
});

Deno.test("QueryFeeds separates queries that differ in payload, triggers or view", async () => {
  const { worker, queries, watch, stop } = setup();

  watch();
  watch({ ...ASKED, on: [] });
  watch({ ...ASKED, query: { function_id: "list", payload: { a: 1 } } });
  const less = watch({ ...ASKED, view: { name: "less", apply: () => 0 } });
  await settle();

  assert.deepEqual([queries.size, worker.count("list")], [4, 4]);
  assert.deepEqual(less.received, [message(0)]);
  stop();
});

Deno.test("QueryFeeds ends a query and its triggers with its last listener", async () => {
  const { clock, worker, queries, triggers, watch, stop } = setup();
  const [one, two] = [watch(), watch()];
  await settle();

  one.watching.stop();
  assert.equal(queries.size, 1);
  two.watching.stop();
  await settle();

  assert.deepEqual([queries.size, triggers.size, worker.triggers.size], [0, 0, 0]);
  clock.tick(60_000);
  assert.equal(worker.count("list"), 1);
  stop();
});

Deno.test("QueryWatch.sendAll() reports to one listener only", async () => {
  const { watch, stop } = setup();
  const [one, two] = [watch(), watch()];
  await settle();

  one.watching.sendAll();

  assert.deepEqual([one.received, two.received], [[message(1), message(1)], [message(1)]]);
  stop();
});

Deno.test("QueryFeeds asks again when the engine is back", async () => {
  const { clock, worker, watch, stop } = setup();
  const one = watch();
  await settle();

  worker.become("reconnecting");
  clock.tick(10_000);
  await settle();
  assert.equal(worker.count("list"), 1);
  worker.become("connected");
  await settle();

  assert.deepEqual(one.received, [message(1), message(2)]);
  stop();
});

Deno.test("QueryFeeds starts a failed query anew with the next watch", async () => {
  const { worker, queries, watch, stop } = setup();
  const list = worker.functions["list"]!;
  delete worker.functions["list"];
  const first = watch();
  await settle();
  assert.deepEqual([first.received, queries.size], [["function_not_found"], 0]);

  worker.functions["list"] = list;
  const second = watch();
  await settle();
  first.watching.stop();

  assert.deepEqual([second.received, queries.size], [[message(1)], 1]);
  stop();
});

Deno.test("QueryFeeds refuses different queries beyond its bound", async () => {
  const { queries, watch, stop } = setup();
  const on: [] = [];
  const ask = (n: number, isOperator = false) =>
    watch({ query: { function_id: "list", payload: { n } }, on, isOperator });
  for (let n = 0; n < GUEST_QUERIES_MAX; n++) ask(n);

  assert.throws(() => ask(-1), { code: "overloaded" });
  for (let n = GUEST_QUERIES_MAX; n < QUERIES_MAX; n++) ask(n, true);
  assert.throws(() => ask(-1, true), { code: "overloaded" });
  assert.equal(queries.size, QUERIES_MAX);
  await settle();
  stop();
});

Deno.test("QueryFeeds refuses a query that is too long", () => {
  const { watch, queries, stop } = setup();
  const payload = { search: "x".repeat(QUERY_CHARS_MAX) };

  assert.throws(() => watch({ query: { function_id: "list", payload }, on: [] }), {
    code: "INVALID_ARGUMENTS",
  });

  assert.equal(queries.size, 0);
  stop();
});

Deno.test("QueryFeeds takes memory for results, and returns it", async () => {
  const memory = createMemoryBudget(10_000, queueMicrotask);
  const { worker, watch, stop } = setup(memory);
  worker.functions["small"] = () => "x".repeat(5_000);
  worker.functions["large"] = () => "x".repeat(6_000);

  const small = watch({ query: { function_id: "small" }, on: [] });
  await settle();
  const large = watch({ query: { function_id: "large" }, on: [] });
  await settle();

  assert.equal(memory.used("bodies"), 5_002);
  assert.deepEqual(large.received, ["overloaded"]);
  small.watching.stop();
  assert.equal(memory.usedBytes, 0);
  stop();
});

Deno.test("QueryFeeds drops a query whose triggers cannot be watched", async () => {
  const { queries, triggers, watch, stop } = setup();
  const listener = { fired() {}, failed() {} };
  for (let n = 0; n < GUEST_TRIGGERS_MAX - 1; n++) {
    triggers.watch({ type: "log", config: { n } }, listener);
  }

  const asked = { ...ASKED, on: [{ type: "changed" }, { type: "one too many" }] };
  assert.throws(() => watch(asked), { code: "overloaded" });

  assert.deepEqual([queries.size, triggers.size], [0, GUEST_TRIGGERS_MAX - 1]);
  await settle();
  stop();
});

Deno.test("QueryFeeds joins firings that follow each other closely", async () => {
  const { clock, worker, watch, stop } = setup();
  watch();
  await settle();
  clock.tick(INTERVAL_MS);

  for (let i = 0; i < 50; i++) await worker.fire("changed");
  clock.tick(DEBOUNCE_MS - 1);
  await settle();
  assert.equal(worker.count("list"), 1);
  clock.tick(1);
  await settle();

  assert.equal(worker.count("list"), 2);
  stop();
});

/** A query that is watched, whose function a test can replace. */
async function setupFeed(list: () => Json | Promise<Json> = () => ({ rows: [{ id: 1 }] })) {
  const clock = new FakeClock();
  const worker = new FakeConsoleWorker();
  worker.functions["list"] = list;
  const engine = new EngineClient(worker, clock);
  const triggers = new TriggerFeeds(engine, worker);
  let ended = 0;
  const feed = new QueryFeed({
    wanted: {
      query: { function_id: "list", items: "rows", key: ["id"] },
      on: [{ type: "changed" }],
    },
    engine,
    triggers,
    clock,
    turns: new QueryTurns(clock),
    memory: UNLIMITED_MEMORY,
    ended: () => void ended++,
  });
  engine.onChange((connected) => feed.connectionChanged(connected));
  const received: string[] = [];
  feed.add({
    changed: (change, state) => void received.push(`${change.type} ${state.wholeMessage(1)}`),
    failed: ({ code, message }) => void received.push(`${code} ${message}`),
  });
  feed.start();
  await settle();
  const tick = async (ms: number): Promise<void> => {
    clock.tick(ms);
    await settle();
  };
  /** Lets time pass in steps, so that answers come when they are asked for. */
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 50) await tick(50);
  };
  const stop = (): void => {
    feed.stop();
    triggers.stop();
  };
  return { clock, worker, feed, received, tick, pass, stop, ended: () => ended };
}

const first = 'all {"type":"snapshot","id":1,"items":[{"id":1}]}';

Deno.test("QueryFeed reports nothing when the result is unchanged", async () => {
  const { worker, received, tick, stop } = await setupFeed();

  await worker.fire("changed");
  await tick(INTERVAL_MS);

  assert.deepEqual([received, worker.count("list")], [[first], 2]);
  stop();
});

Deno.test("QueryFeed asks at most four times a second while its trigger keeps firing", async () => {
  const { worker, tick, stop } = await setupFeed();

  for (let ms = 0; ms < 2_000; ms += 10) {
    await worker.fire("changed");
    await tick(10);
  }

  const asked = worker.count("list") - 1;
  assert.ok(asked >= 6 && asked <= 8, `${asked} times in two seconds`);
  stop();
});

Deno.test("QueryFeed waits longer after a slow query, within a bound", async () => {
  const answers: PromiseWithResolvers<Json>[] = [];
  const { worker, tick, stop } = await setupFeed(() => {
    const answer = Promise.withResolvers<Json>();
    answers.push(answer);
    return answer.promise;
  });
  const answerAfter = async (ms: number): Promise<void> => {
    await tick(ms);
    answers.at(-1)!.resolve({ rows: [] });
    await settle();
    await worker.fire("changed");
  };

  await answerAfter(200);
  await tick(200 * WAIT_FACTOR - 1);
  assert.equal(worker.count("list"), 1);
  await tick(1);
  assert.equal(worker.count("list"), 2);

  await answerAfter(60_000);
  await tick(WAIT_MS_MAX);
  assert.equal(worker.count("list"), 3);
  stop();
});

Deno.test("QueryFeed asks once more when its trigger fires during a query", async () => {
  const answer = Promise.withResolvers<Json>();
  const { worker, tick, stop } = await setupFeed(() => answer.promise);

  await worker.fire("changed");
  await worker.fire("changed");
  await tick(DEBOUNCE_MS);
  assert.equal(worker.count("list"), 1);
  answer.resolve({ rows: [] });
  await settle();
  await tick(WAIT_MS_MAX);

  assert.equal(worker.count("list"), 2);
  stop();
});

Deno.test("QueryFeed ends with the error of a query that never succeeded", async () => {
  const { received, ended, stop } = await setupFeed(() => Promise.reject(new Error("broken")));

  assert.deepEqual([received, ended()], [["invocation_failed broken"], 1]);
  stop();
});

Deno.test("QueryFeed retries a query that has succeeded before, up to its bound", async () => {
  let broken = false;
  const { worker, received, pass, ended, stop } = await setupFeed(() => {
    if (broken) throw new Error("restarting");
    return { rows: [{ id: 1 }] };
  });

  broken = true;
  await worker.fire("changed");
  await pass(INTERVAL_MS + (RETRIES_MAX - 0.5) * RETRY_MS);
  assert.deepEqual([ended(), worker.count("list")], [0, 1 + RETRIES_MAX]);
  await pass(RETRY_MS);

  assert.deepEqual([received, ended()], [[first, "invocation_failed restarting"], 1]);
  stop();
});

Deno.test("QueryFeed counts failures from zero after a success", async () => {
  let broken = false;
  const { worker, received, pass, stop } = await setupFeed(() => {
    if (broken) throw new Error("restarting");
    return { rows: [{ id: 1 }] };
  });

  for (let round = 0; round < 4; round++) {
    broken = true;
    await worker.fire("changed");
    for (let i = 1; i < RETRIES_MAX; i++) await pass(RETRY_MS);
    broken = false;
    await pass(RETRY_MS);
  }

  assert.deepEqual(received, [first]);
  stop();
});

Deno.test("QueryFeed ends when the result has no list where the query says", async () => {
  const { received, stop } = await setupFeed(() => ({ other: [] }));

  assert.deepEqual(received, ["INVALID_ARGUMENTS The result has no list named rows"]);
  stop();
});

Deno.test("QueryFeed ends with the error of a trigger that is refused", async () => {
  const clock = new FakeClock();
  const worker = new FakeConsoleWorker();
  worker.functions["list"] = () => new Promise<Json>(() => {});
  const engine = new EngineClient(worker, clock);
  const triggers = new TriggerFeeds(engine, worker);
  const received: string[] = [];
  const feed = new QueryFeed({
    wanted: { query: { function_id: "list" }, on: [{ type: "refused" }] },
    engine,
    triggers,
    clock,
    turns: new QueryTurns(clock),
    memory: UNLIMITED_MEMORY,
    ended: () => void received.push("ended"),
  });
  feed.add({ changed() {}, failed: ({ code }) => void received.push(code) });

  feed.start();
  await settle();

  assert.deepEqual(received, ["ended", "bad_config"]);
  triggers.stop();
});

Deno.test("QueryFeed ignores results from before a reconnect", async () => {
  const answers: PromiseWithResolvers<Json>[] = [];
  const { worker, received, tick, ended, stop } = await setupFeed(() => {
    const answer = Promise.withResolvers<Json>();
    answers.push(answer);
    return answer.promise;
  });

  worker.become("reconnecting");
  answers[0]!.reject(new Error("Invocation stopped"));
  await tick(10_000);
  worker.become("connected");
  await settle();
  answers[1]!.resolve({ rows: [{ id: 1 }] });
  await settle();

  assert.deepEqual([received, ended()], [[first], 0]);
  stop();
});

Deno.test("QueryFeed reports the whole result after a reconnect, even if unchanged", async () => {
  const { worker, received, stop } = await setupFeed();

  worker.become("reconnecting");
  worker.become("connected");
  await settle();

  assert.deepEqual(received, [first, first]);
  stop();
});

Deno.test("QueryFeed.stop() leaves no timer and reports nothing more", async () => {
  const { clock, worker, received, feed, stop } = await setupFeed();
  await worker.fire("changed");

  feed.stop();

  assert.deepEqual([clock.waiting, received], [0, [first]]);
  stop();
});
