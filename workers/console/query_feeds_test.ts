/**
 * @module
 */
import assert from "node:assert/strict";
import {
  CONSOLE_FEEDS_MAX,
  CONSOLE_QUERY_DEBOUNCE_MS,
  CONSOLE_QUERY_INTERVAL_MS,
} from "./limits.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeConsoleWorker, settle } from "../../tests/fakes/fake_console_worker.ts";
import { EngineLink } from "./engine_link.ts";
import { QueryFeeds } from "./query_feeds.ts";
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
