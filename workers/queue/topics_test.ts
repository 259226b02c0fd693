/**
 * Durable topics: every subscriber gets a copy, also one that was away.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Store } from "../../engine/ports/store.ts";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { LocalEngine } from "../../tests/fakes/local_engine.ts";
import { queue } from "./mod.ts";

async function setup(store: Store = new MemoryStore()) {
  const clock = new FakeClock();
  const engine = new LocalEngine({ clock, store });
  await engine.start(queue);
  const caller = await engine.connect("caller");
  const seen: [string, Json][] = [];
  return {
    engine,
    clock,
    seen,
    ask: async (function_id: string, payload: Json = {}): Promise<Json | undefined> => {
      const answer = caller.trigger<Json, Json | undefined>({ function_id, payload });
      answer.catch(() => {});
      await engine.settle();
      return await answer;
    },
    /** A worker whose function subscribes. */
    subscribe: async (function_id: string, config: JsonObject): Promise<Worker> => {
      const worker = await engine.connect(function_id);
      worker.registerFunction(
        function_id,
        (payload: Json) => void seen.push([function_id, payload]),
      );
      worker.registerTrigger({ type: "durable:subscriber", function_id, config });
      await engine.settle();
      return worker;
    },
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

const PUBLISH = "engine::durable::publish";

Deno.test("each subscriber of a topic gets a copy; replicas of one function share theirs", async () => {
  await using at = await setup();
  await at.subscribe("a::f", { topic: "orders" });
  await at.subscribe("b::f", { topic: "orders" });
  await at.subscribe("b::f", { topic: "orders" });
  await at.subscribe("c::f", { topic: "other" });

  assert.equal(await at.ask(PUBLISH, { topic: "orders", data: { n: 1 } }), undefined);
  await at.ask(PUBLISH, { topic: "unknown", data: 1 });
  await at.engine.settle();

  assert.deepEqual(at.seen.toSorted(), [["a::f", { n: 1 }], ["b::f", { n: 1 }]]);
  assert.deepEqual(await at.ask("engine::queue::list_topics"), [
    { name: "orders", broker_type: "builtin", subscriber_count: 2 },
    { name: "other", broker_type: "builtin", subscriber_count: 1 },
  ]);
});

Deno.test("a message right behind the registration of a subscriber reaches it", async () => {
  await using at = await setup();
  const worker = await at.engine.connect("a");
  worker.registerFunction("a::f", (payload: Json) => void at.seen.push(["a::f", payload]));
  const config = { topic: "orders" };

  worker.registerTrigger({ type: "durable:subscriber", function_id: "a::f", config });
  const published = worker.trigger({ function_id: PUBLISH, payload: { ...config, data: 1 } });
  for (let i = 0; i < 3; i++) await at.engine.settle();
  await published;

  assert.deepEqual(at.seen, [["a::f", 1]]);
});

Deno.test("a subscriber that is away gets its messages later, also from another engine", async () => {
  const store = new MemoryStore();
  {
    await using at = await setup(store);
    const worker = await at.subscribe("a::f", { topic: "orders" });
    void worker.shutdown();
    await at.engine.settle();
    await at.ask(PUBLISH, { topic: "orders", data: 1 });
  }
  await using at = await setup(store);
  await at.ask(PUBLISH, { topic: "orders", data: 2 });
  assert.deepEqual(at.seen, []);

  await at.subscribe("a::f", { topic: "orders" });

  assert.deepEqual(at.seen, [["a::f", 1], ["a::f", 2]]);
});

Deno.test("a trigger that is unregistered while its function is there ends the subscription", async () => {
  await using at = await setup();
  const worker = await at.subscribe("a::f", { topic: "orders" });
  const config = { topic: "orders" };
  const second = worker.registerTrigger({
    type: "durable:subscriber",
    function_id: "a::f",
    config: { topic: "more" },
  });
  await at.engine.settle();
  assert.equal((await at.ask("engine::queue::list_topics") as Json[]).length, 2);

  second.unregister();
  await at.engine.settle();

  await at.ask(PUBLISH, { topic: "more", data: 1 });
  await at.ask(PUBLISH, { ...config, data: 2 });
  assert.deepEqual(at.seen, [["a::f", 2]]);
  await assert.rejects(at.ask("engine::queue::topic_stats", { topic: "more" }), {
    code: "NOT_FOUND",
  });
});

Deno.test("settings of a trigger hold for its queue, and dead letters belong to the topic", async () => {
  await using at = await setup();
  const worker = await at.engine.connect("w");
  let calls = 0;
  worker.registerFunction("a::f", () => {
    calls++;
    throw new Error("no");
  });
  const queue_config = { maxRetries: 2, backoffType: "fixed", backoffDelayMs: 10, type: "fifo" };
  const config = { topic: "orders", queue_config };
  worker.registerTrigger({ type: "durable:subscriber", function_id: "a::f", config });
  await at.engine.settle();
  await at.ask(PUBLISH, { topic: "orders", data: { n: 1 } });
  at.clock.tick(20);
  await at.engine.settle();

  assert.equal(calls, 2);
  const stats = await at.ask("engine::queue::topic_stats", { topic: "orders" }) as JsonObject;
  const { depth, consumer_count, dlq_depth } = stats;
  assert.deepEqual({ depth, consumer_count, dlq_depth }, {
    depth: 0,
    consumer_count: 1,
    dlq_depth: 1,
  });
  const topics = await at.ask("engine::queue::dlq_topics") as JsonObject[];
  assert.deepEqual(topics[1], { topic: "orders", broker_type: "builtin", message_count: 1 });
  const [dead] = await at.ask("engine::queue::dlq_messages", { topic: "orders" }) as JsonObject[];
  assert.deepEqual(dead!.payload, { n: 1 });
  assert.deepEqual(await at.ask("engine::queue::redrive", { topic: "orders" }), {
    queue: "orders",
    redriven: 1,
  });
});

Deno.test("a condition that says false ends a message; its metadata reaches the function", async () => {
  await using at = await setup();
  const worker = await at.engine.connect("w");
  const seen: Json[] = [];
  worker.registerFunction(
    "a::f",
    (payload: Json, metadata) => void seen.push([payload, metadata!]),
  );
  worker.registerFunction("a::large", (payload: Json) => (payload as number) > 10);
  const config = { topic: "orders", condition_function_id: "a::large" };
  const function_id = "a::f";
  worker.registerTrigger({ type: "durable:subscriber", function_id, config, metadata: "m" });
  await at.engine.settle();

  for (const data of [5, 50]) await at.ask(PUBLISH, { topic: "orders", data });
  await at.engine.settle();

  assert.deepEqual(seen, [[50, "m"]]);
});

for (
  const config of [
    {},
    { topic: "" },
    { topic: "x".repeat(100_000) },
    { topic: "ü".repeat(100) },
    { topic: "orders.*" },
    { topic: ">" },
    { topic: "a", queue_config: { maxRetries: 0 } },
    { topic: "a", queue_config: { delaySeconds: -1 } },
  ] as JsonObject[]
) {
  const name = JSON.stringify(config).slice(0, 60);
  Deno.test(`a durable:subscriber trigger with ${name} is refused`, async () => {
    await using at = await setup();
    await at.subscribe("a::f", config);
    assert.deepEqual(await at.ask("engine::queue::list_topics"), []);
    assert.ok(at.engine.lines.some(({ fields }) => fields?.code === "trigger_registration_failed"));
  });
}
