/**
 * @module
 */
import assert from "node:assert/strict";
import {
  CONSOLE_QUERY_DEBOUNCE_MS,
  CONSOLE_QUERY_INTERVAL_MS,
  CONSOLE_QUERY_RETRIES,
  CONSOLE_QUERY_RETRY_MS,
  CONSOLE_QUERY_WAIT_FACTOR,
  CONSOLE_QUERY_WAIT_MS_MAX,
} from "./limits.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeConsoleWorker, settle } from "../../tests/fakes/fake_console_worker.ts";
import { EngineLink } from "./engine_link.ts";
import { QueryFeed } from "./query_feed.ts";
import { TriggerFeeds } from "./trigger_feeds.ts";

/** A query that is watched, whose function a test can replace. */
async function setup(list: () => Json | Promise<Json> = () => ({ rows: [{ id: 1 }] })) {
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
  const { worker, heard, tick, stop } = await setup();

  await worker.fire("changed");
  await tick(CONSOLE_QUERY_INTERVAL_MS);

  assert.deepEqual([heard, worker.count("list")], [[first], 2]);
  stop();
});

Deno.test("QueryFeed asks four times a second at most while its trigger fires on and on", async () => {
  const { worker, tick, stop } = await setup();

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
  const { worker, tick, stop } = await setup(() => {
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
  const { worker, tick, stop } = await setup(() => answer.promise);

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
  const { heard, ended, stop } = await setup(() => Promise.reject(new Error("broken")));

  assert.deepEqual([heard, ended()], [["invocation_failed broken"], 1]);
  stop();
});

Deno.test("QueryFeed tries again when what has answered fails, and then gives up", async () => {
  let broken = false;
  const { worker, heard, pass, ended, stop } = await setup(() => {
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
  const { worker, heard, pass, stop } = await setup(() => {
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
  const { heard, stop } = await setup(() => ({ other: [] }));

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
  const { worker, heard, tick, ended, stop } = await setup(() => {
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
  const { worker, heard, stop } = await setup();

  worker.become("reconnecting");
  worker.become("connected");
  await settle();

  assert.deepEqual(heard, [first, first]);
  stop();
});

Deno.test("QueryFeed.stop() leaves no timer and tells nothing more", async () => {
  const { clock, worker, heard, feed, stop } = await setup();
  await worker.fire("changed");

  feed.stop();

  assert.deepEqual([clock.waiting, heard], [0, [first]]);
  stop();
});
