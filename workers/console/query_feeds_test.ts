/**
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeConsoleWorker, settle } from "../../tests/fakes/fake_console_worker.ts";
import { EngineLink } from "./engine_client.ts";
import {
  CONSOLE_FEEDS_MAX,
  CONSOLE_QUERY_DEBOUNCE_MS,
  CONSOLE_QUERY_INTERVAL_MS,
  CONSOLE_QUERY_RETRIES,
  CONSOLE_QUERY_RETRY_MS,
  CONSOLE_QUERY_WAIT_FACTOR,
  CONSOLE_QUERY_WAIT_MS_MAX,
} from "./limits.ts";
import { QueryFeed, QueryFeeds } from "./query_feeds.ts";
import { TriggerFeeds } from "./trigger_feeds.ts";

const ASKED = { query: { function_id: "list" }, on: [{ type: "changed" }] };

function setup() {
  const clock = new FakeClock();
  const worker = new FakeConsoleWorker();
  const link = new EngineLink(worker, clock);
  const triggers = new TriggerFeeds(link, worker);
  const queries = new QueryFeeds(link, triggers, clock);
  let value = 0;
  worker.functions["list"] = () => ++value;
  const watch = (asked: Parameters<QueryFeeds["watch"]>[0] = ASKED) => {
    const heard: string[] = [];
    const part = queries.watch(asked, {
      changed: (_change, state) => void heard.push(state.whole(1)),
      failed: ({ code }) => void heard.push(code),
    });
    return { heard, part };
  };
  const stop = (): void => {
    queries.stop();
    triggers.stop();
  };
  return { clock, worker, queries, triggers, watch, stop };
}

const said = (value: number): string => `{"type":"value","id":1,"value":${value}}`;

Deno.test("QueryFeeds asks an equal query once for all who watch it", async () => {
  const { clock, worker, queries, watch, stop } = setup();

  const one = watch();
  const two = watch({ query: { function_id: "list" }, on: [{ type: "changed" }] });
  await settle();
  const late = watch();
  await worker.fire("changed");
  clock.tick(CONSOLE_QUERY_INTERVAL_MS);
  await settle();

  assert.deepEqual([one.heard, two.heard, late.heard], Array(3).fill([said(1), said(2)]));
  assert.deepEqual([queries.size, worker.count("list")], [1, 2]);
  stop();
});

Deno.test("QueryFeeds keeps apart what differs in payload, triggers or view", async () => {
  const { worker, queries, watch, stop } = setup();

  watch();
  watch({ ...ASKED, on: [] });
  watch({ ...ASKED, query: { function_id: "list", payload: { a: 1 } } });
  const less = watch({ ...ASKED, view: { name: "less", apply: () => 0 } });
  await settle();

  assert.deepEqual([queries.size, worker.count("list")], [4, 4]);
  assert.deepEqual(less.heard, [said(0)]);
  stop();
});

Deno.test("QueryFeeds ends a query and its triggers with the last who watches it", async () => {
  const { clock, worker, queries, triggers, watch, stop } = setup();
  const [one, two] = [watch(), watch()];
  await settle();

  one.part.stop();
  assert.equal(queries.size, 1);
  two.part.stop();
  await settle();

  assert.deepEqual([queries.size, triggers.size, worker.triggers.size], [0, 0, 0]);
  clock.tick(60_000);
  assert.equal(worker.count("list"), 1);
  stop();
});

Deno.test("QueryFeeds tells all again to the one who asks for it", async () => {
  const { watch, stop } = setup();
  const [one, two] = [watch(), watch()];
  await settle();

  one.part.again();

  assert.deepEqual([one.heard, two.heard], [[said(1), said(1)], [said(1)]]);
  stop();
});

Deno.test("QueryFeeds asks everything anew when the engine is back", async () => {
  const { clock, worker, watch, stop } = setup();
  const one = watch();
  await settle();

  worker.become("reconnecting");
  clock.tick(10_000);
  await settle();
  assert.equal(worker.count("list"), 1);
  worker.become("connected");
  await settle();

  assert.deepEqual(one.heard, [said(1), said(2)]);
  stop();
});

Deno.test("QueryFeeds lets a query that failed be asked for again", async () => {
  const { worker, queries, watch, stop } = setup();
  const list = worker.functions["list"]!;
  delete worker.functions["list"];
  const first = watch();
  await settle();
  assert.deepEqual([first.heard, queries.size], [["function_not_found"], 0]);

  worker.functions["list"] = list;
  const second = watch();
  await settle();
  first.part.stop();

  assert.deepEqual([second.heard, queries.size], [[said(1)], 1]);
  stop();
});

Deno.test("QueryFeeds refuses more different queries than its bound", async () => {
  const { queries, watch, stop } = setup();
  const on: [] = [];
  for (let n = 0; n < CONSOLE_FEEDS_MAX; n++) {
    watch({ query: { function_id: "list", payload: { n } }, on });
  }

  assert.throws(() => watch(), { code: "overloaded" });
  assert.equal(queries.size, CONSOLE_FEEDS_MAX);
  await settle();
  stop();
});

Deno.test("QueryFeeds keeps nothing of a query whose triggers cannot be watched", async () => {
  const { queries, triggers, watch, stop } = setup();
  const listener = { fired() {}, failed() {} };
  for (let n = 0; n < CONSOLE_FEEDS_MAX - 1; n++) {
    triggers.watch({ type: "log", config: { n } }, listener);
  }

  const asked = { ...ASKED, on: [{ type: "changed" }, { type: "one too many" }] };
  assert.throws(() => watch(asked), { code: "overloaded" });

  assert.deepEqual([queries.size, triggers.size], [0, CONSOLE_FEEDS_MAX - 1]);
  await settle();
  stop();
});

Deno.test("QueryFeeds waits for the rest of a heap before it asks", async () => {
  const { clock, worker, watch, stop } = setup();
  watch();
  await settle();
  clock.tick(CONSOLE_QUERY_INTERVAL_MS);

  for (let i = 0; i < 50; i++) await worker.fire("changed");
  clock.tick(CONSOLE_QUERY_DEBOUNCE_MS - 1);
  await settle();
  assert.equal(worker.count("list"), 1);
  clock.tick(1);
  await settle();

  assert.equal(worker.count("list"), 2);
  stop();
});

/** A query that is watched, whose function a test can replace. */
async function setupOfQueryFeed(list: () => Json | Promise<Json> = () => ({ rows: [{ id: 1 }] })) {
  const clock = new FakeClock();
  const worker = new FakeConsoleWorker();
  worker.functions["list"] = list;
  const link = new EngineLink(worker, clock);
  const triggers = new TriggerFeeds(link, worker);
  let ended = 0;
  const feed = new QueryFeed({
    wanted: {
      query: { function_id: "list", items: "rows", key: ["id"] },
      on: [{ type: "changed" }],
    },
    link,
    triggers,
    clock,
    ended: () => void ended++,
  });
  link.listen((connected) => feed.heardOfLine(connected));
  const heard: string[] = [];
  feed.add({
    changed: (change, state) => void heard.push(`${change.type} ${state.whole(1)}`),
    failed: ({ code, message }) => void heard.push(`${code} ${message}`),
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
  return { clock, worker, feed, heard, tick, pass, stop, ended: () => ended };
}

const first = 'all {"type":"snapshot","id":1,"items":[{"id":1}]}';

Deno.test("QueryFeed tells nothing when an answer is the same as before", async () => {
  const { worker, heard, tick, stop } = await setupOfQueryFeed();

  await worker.fire("changed");
  await tick(CONSOLE_QUERY_INTERVAL_MS);

  assert.deepEqual([heard, worker.count("list")], [[first], 2]);
  stop();
});

Deno.test("QueryFeed asks four times a second at most while its trigger fires on and on", async () => {
  const { worker, tick, stop } = await setupOfQueryFeed();

  for (let ms = 0; ms < 2_000; ms += 10) {
    await worker.fire("changed");
    await tick(10);
  }

  const asked = worker.count("list") - 1;
  assert.ok(asked >= 6 && asked <= 8, `${asked} times in two seconds`);
  stop();
});

Deno.test("QueryFeed leaves a slow query more time, within a bound", async () => {
  const answers: PromiseWithResolvers<Json>[] = [];
  const { worker, tick, stop } = await setupOfQueryFeed(() => {
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
  await tick(200 * CONSOLE_QUERY_WAIT_FACTOR - 1);
  assert.equal(worker.count("list"), 1);
  await tick(1);
  assert.equal(worker.count("list"), 2);

  await answerAfter(60_000);
  await tick(CONSOLE_QUERY_WAIT_MS_MAX);
  assert.equal(worker.count("list"), 3);
  stop();
});

Deno.test("QueryFeed asks once more when its trigger fires while it is being asked", async () => {
  const answer = Promise.withResolvers<Json>();
  const { worker, tick, stop } = await setupOfQueryFeed(() => answer.promise);

  await worker.fire("changed");
  await worker.fire("changed");
  await tick(CONSOLE_QUERY_DEBOUNCE_MS);
  assert.equal(worker.count("list"), 1);
  answer.resolve({ rows: [] });
  await settle();
  await tick(CONSOLE_QUERY_WAIT_MS_MAX);

  assert.equal(worker.count("list"), 2);
  stop();
});

Deno.test("QueryFeed ends with the error of a query that never succeeded", async () => {
  const { heard, ended, stop } = await setupOfQueryFeed(() => Promise.reject(new Error("broken")));

  assert.deepEqual([heard, ended()], [["invocation_failed broken"], 1]);
  stop();
});

Deno.test("QueryFeed tries again when what has answered fails, and then gives up", async () => {
  let broken = false;
  const { worker, heard, pass, ended, stop } = await setupOfQueryFeed(() => {
    if (broken) throw new Error("restarting");
    return { rows: [{ id: 1 }] };
  });

  broken = true;
  await worker.fire("changed");
  await pass(CONSOLE_QUERY_INTERVAL_MS + (CONSOLE_QUERY_RETRIES - 0.5) * CONSOLE_QUERY_RETRY_MS);
  assert.deepEqual([ended(), worker.count("list")], [0, 1 + CONSOLE_QUERY_RETRIES]);
  await pass(CONSOLE_QUERY_RETRY_MS);

  assert.deepEqual([heard, ended()], [[first, "invocation_failed restarting"], 1]);
  stop();
});

Deno.test("QueryFeed forgets failures as soon as an answer comes", async () => {
  let broken = false;
  const { worker, heard, pass, stop } = await setupOfQueryFeed(() => {
    if (broken) throw new Error("restarting");
    return { rows: [{ id: 1 }] };
  });

  for (let round = 0; round < 4; round++) {
    broken = true;
    await worker.fire("changed");
    for (let i = 1; i < CONSOLE_QUERY_RETRIES; i++) await pass(CONSOLE_QUERY_RETRY_MS);
    broken = false;
    await pass(CONSOLE_QUERY_RETRY_MS);
  }

  assert.deepEqual(heard, [first]);
  stop();
});

Deno.test("QueryFeed ends when the answer has no list where one is to be", async () => {
  const { heard, stop } = await setupOfQueryFeed(() => ({ other: [] }));

  assert.deepEqual(heard, ["INVALID_ARGUMENTS The result has no list named rows"]);
  stop();
});

Deno.test("QueryFeed ends with the error of a trigger that is refused", async () => {
  const clock = new FakeClock();
  const worker = new FakeConsoleWorker();
  worker.functions["list"] = () => new Promise<Json>(() => {});
  const link = new EngineLink(worker, clock);
  const triggers = new TriggerFeeds(link, worker);
  const heard: string[] = [];
  const feed = new QueryFeed({
    wanted: { query: { function_id: "list" }, on: [{ type: "refused" }] },
    link,
    triggers,
    clock,
    ended: () => void heard.push("ended"),
  });
  feed.add({ changed() {}, failed: ({ code }) => void heard.push(code) });

  feed.start();
  await settle();

  assert.deepEqual(heard, ["ended", "bad_config"]);
  triggers.stop();
});

Deno.test("QueryFeed is not troubled by an answer of a line that is lost", async () => {
  const answers: PromiseWithResolvers<Json>[] = [];
  const { worker, heard, tick, ended, stop } = await setupOfQueryFeed(() => {
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

  assert.deepEqual([heard, ended()], [[first], 0]);
  stop();
});

Deno.test("QueryFeed tells all after the engine was away, also when nothing has changed", async () => {
  const { worker, heard, stop } = await setupOfQueryFeed();

  worker.become("reconnecting");
  worker.become("connected");
  await settle();

  assert.deepEqual(heard, [first, first]);
  stop();
});

Deno.test("QueryFeed.stop() leaves no timer and tells nothing more", async () => {
  const { clock, worker, heard, feed, stop } = await setupOfQueryFeed();
  await worker.fire("changed");

  feed.stop();

  assert.deepEqual([clock.waiting, heard], [0, [first]]);
  stop();
});
