/**
 * @module
 */
import assert from "node:assert/strict";
import type { ErrorBody, Json } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeConsoleWorker, settle } from "../../tests/console/fake_console_worker.ts";
import { EngineClient } from "./engine_client.ts";
import {
  GUEST_TRIGGERS_MAX,
  TRIGGER_CHARS_MAX,
  TriggerFeeds,
  TRIGGERS_MAX,
} from "./trigger_feeds.ts";

function setup() {
  const worker = new FakeConsoleWorker();
  const feeds = new TriggerFeeds(new EngineClient(worker, new FakeClock()), worker);
  const listen = () => {
    const received: Json[] = [];
    const errors: ErrorBody[] = [];
    const listener = {
      fired: (payload: Json) => void received.push(payload),
      failed: (error: ErrorBody) => void errors.push(error),
    };
    return { received, errors, listener };
  };
  return { worker, feeds, listen };
}

Deno.test("TriggerFeeds registers equal triggers once and notifies all listeners", async () => {
  const { worker, feeds, listen } = setup();
  const [one, two, other] = [listen(), listen(), listen()];

  feeds.watch({ type: "state", config: { scope: "a", key: "k" } }, one.listener);
  feeds.watch({ type: "state", config: { key: "k", scope: "a" } }, two.listener);
  feeds.watch({ type: "log" }, other.listener);
  await settle();
  await worker.fire("state", { n: 1 });

  assert.equal(worker.triggers.size, 2);
  assert.deepEqual([one.received, two.received, other.received], [[{ n: 1 }], [{ n: 1 }], []]);
  feeds.stop();
});

Deno.test("in a cluster, triggers name the namespace of their engine", async () => {
  const worker = new FakeConsoleWorker();
  const engine = new EngineClient(worker, new FakeClock());
  const feeds = new TriggerFeeds(engine, worker, "engine@a");
  feeds.watch({ type: "state" }, { fired() {}, failed() {} });
  await settle();

  const [call] = worker.calls;
  assert.equal((call!.payload as { namespace?: string }).namespace, "engine@a");
  assert.deepEqual(worker.namespaces, ["engine@a"]);
  feeds.stop();
});

Deno.test("TriggerFeeds unregisters a trigger with its last listener", async () => {
  const { worker, feeds, listen } = setup();
  const [one, two] = [listen(), listen()];
  const stopOne = feeds.watch({ type: "log" }, one.listener);
  const stopTwo = feeds.watch({ type: "log" }, two.listener);
  await settle();

  stopOne();
  stopOne();
  await worker.fire("log", 1);
  assert.deepEqual([one.received, two.received, worker.triggers.size], [[], [1], 1]);

  stopTwo();
  await settle();
  assert.deepEqual([worker.triggers.size, feeds.size], [0, 0]);
  feeds.stop();
});

Deno.test("TriggerFeeds unregisters a trigger whose listeners left while it was registered", async () => {
  const { worker, feeds, listen } = setup();

  feeds.watch({ type: "log" }, listen().listener)();
  await settle();

  assert.deepEqual([worker.triggers.size, worker.count("engine::unregister_trigger")], [0, 1]);
  feeds.stop();
});

Deno.test("TriggerFeeds reports why a trigger was refused, and drops it", async () => {
  const { worker, feeds, listen } = setup();
  const one = listen();

  feeds.watch({ type: "refused" }, one.listener);
  await settle();

  assert.deepEqual(one.errors, [{ code: "bad_config", message: "This config is wrong" }]);
  assert.deepEqual([feeds.size, worker.triggers.size], [0, 0]);
  feeds.stop();
});

Deno.test("TriggerFeeds registers all triggers again after every reconnect", async () => {
  const { worker, feeds, listen } = setup();
  const one = listen();
  feeds.watch({ type: "log" }, one.listener);
  await settle();

  worker.become("reconnecting");
  worker.become("connected");
  await settle();
  await worker.fire("log", 2);

  assert.deepEqual([one.received, one.errors, worker.triggers.size], [[2], [], 1]);
  feeds.stop();
});

Deno.test("TriggerFeeds registers triggers watched while disconnected on the next connection", async () => {
  const { worker, feeds, listen } = setup();
  const one = listen();
  worker.become("reconnecting");

  feeds.watch({ type: "log" }, one.listener);
  await settle();
  assert.equal(worker.count("engine::register_trigger"), 0);
  worker.become("connected");
  await settle();
  await worker.fire("log", 3);

  assert.deepEqual([one.received, one.errors], [[3], []]);
  feeds.stop();
});

Deno.test("TriggerFeeds reports no failure when the connection is lost during registration", async () => {
  const { worker, feeds, listen } = setup();
  const one = listen();
  const lost = Promise.withResolvers<Json>();
  const register = worker.functions["engine::register_trigger"]!;
  worker.functions["engine::register_trigger"] = () => lost.promise;
  feeds.watch({ type: "log" }, one.listener);

  worker.become("reconnecting");
  lost.reject(new Error("Invocation stopped"));
  await settle();
  worker.functions["engine::register_trigger"] = register;
  worker.become("connected");
  await settle();
  await worker.fire("log", 4);

  assert.deepEqual([one.received, one.errors], [[4], []]);
  feeds.stop();
});

Deno.test("TriggerFeeds ignores calls of its function that no trigger made", async () => {
  const { worker, feeds, listen } = setup();
  const one = listen();
  feeds.watch({ type: "log" }, one.listener);
  await settle();

  for (const metadata of [undefined, null, 7, [], { feed: "1" }, { feed: 99 }, { feed: -1 }]) {
    await worker.intrude("hello", metadata);
  }

  assert.deepEqual(one.received, []);
  feeds.stop();
});

Deno.test("TriggerFeeds refuses different triggers beyond its bound", async () => {
  const { feeds, listen } = setup();
  const { listener } = listen();
  const watch = (n: number, isOperator = false) =>
    feeds.watch({ type: "log", config: { n } }, listener, isOperator);
  for (let n = 0; n < GUEST_TRIGGERS_MAX; n++) watch(n);

  assert.throws(() => watch(-1), { code: "overloaded" });
  for (let n = GUEST_TRIGGERS_MAX; n < TRIGGERS_MAX; n++) watch(n, true);
  assert.throws(() => watch(-1, true), { code: "overloaded" });
  feeds.watch({ type: "log", config: { n: 0 } }, listen().listener);
  assert.equal(feeds.size, TRIGGERS_MAX);
  await settle();
  feeds.stop();
});

Deno.test("TriggerFeeds refuses a trigger that is too long", () => {
  const { feeds, listen } = setup();
  const config = { text: "x".repeat(TRIGGER_CHARS_MAX) };

  assert.throws(() => feeds.watch({ type: "log", config }, listen().listener), {
    code: "INVALID_ARGUMENTS",
  });

  assert.equal(feeds.size, 0);
  feeds.stop();
});

Deno.test("TriggerFeeds marks its own calls as not sampled", async () => {
  const { worker, feeds, listen } = setup();

  feeds.watch({ type: "log" }, listen().listener);
  await settle();

  assert.match(worker.calls[0]!.traceparent!, /^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
  feeds.stop();
});
