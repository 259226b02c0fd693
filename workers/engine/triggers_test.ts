/**
 * Triggers for changes in the engine, over a real router and with a fake clock.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { CallRequest, TriggerHandlers } from "../../sdk/typescript/options.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDirectory } from "../../tests/fakes/fake_supervision.ts";
import { LocalEngine } from "../../tests/fakes/local_engine.ts";
import { engine } from "./mod.ts";
import {
  CHANGE_TRIGGERS_PER_WORKER_MAX,
  CHANGES_DEBOUNCE_MS,
  CHANGES_NAMED_MAX,
  EngineTriggers,
  FUNCTIONS_CHANGED_DEBOUNCE_MS,
} from "./triggers.ts";

/** A worker that records every firing; starts when the engine has settled. */
async function setup() {
  const local = new LocalEngine();
  await local.start(engine);
  const received: [Json, Json | undefined][] = [];
  const watcher = await local.connect("watcher");
  watcher.registerFunction(
    "watch::receive",
    (payload, metadata) => void received.push([payload, metadata]),
  );
  const wait = async (ms = FUNCTIONS_CHANGED_DEBOUNCE_MS): Promise<void> => {
    await local.settle();
    (local.clock as FakeClock).tick(ms);
    await local.settle();
  };
  await wait();
  const watch = async (type: string, metadata?: Json) => {
    const trigger = { type: `engine::${type}-available`, function_id: "watch::receive" };
    const registration = watcher.registerTrigger(metadata ? { ...trigger, metadata } : trigger);
    await wait();
    return registration;
  };
  return {
    local,
    received,
    watch,
    wait,
    [Symbol.asyncDispose]: () => local[Symbol.asyncDispose](),
  };
}

Deno.test("engine::functions-available fires once per burst of changes", async () => {
  await using it = await setup();
  await it.watch("functions", { why: "test" });
  const shop = await it.local.connect("shop");

  shop.registerFunction("shop::a", () => 1);
  shop.registerFunction("shop::b", () => 1, { description: "B" });
  await it.wait(FUNCTIONS_CHANGED_DEBOUNCE_MS - 1);
  assert.equal(it.received.length, 0);
  await it.wait(1);

  assert.equal(it.received.length, 1);
  const [payload, metadata] = it.received[0]!;
  assert.deepEqual(payload, {
    event: "functions_changed",
    functions: [
      { function_id: "shop::a", namespace: "default", worker_name: "shop" },
      { function_id: "shop::b", namespace: "default", worker_name: "shop", description: "B" },
      { function_id: "watch::receive", namespace: "default", worker_name: "watcher" },
    ],
  });
  assert.deepEqual(metadata, { why: "test" });
});

Deno.test("engine::functions-available does not fire if the ids are the same after a burst", async () => {
  await using it = await setup();
  await it.watch("functions");
  const shop = await it.local.connect("shop");

  shop.registerFunction("shop::a", () => 1).unregister();
  await it.wait();
  assert.equal(it.received.length, 0);

  const a = shop.registerFunction("shop::a", () => 1);
  await it.wait();
  a.unregister();
  shop.registerFunction("shop::a", () => 2, { description: "Another" });
  await it.wait();
  assert.equal(it.received.length, 1);
});

Deno.test("engine::functions-available fires when a worker leaves", async () => {
  await using it = await setup();
  const shop = await it.local.connect("shop");
  shop.registerFunction("shop::a", () => 1);
  await it.wait();
  await it.watch("functions");

  await shop.shutdown();
  await it.wait();

  const { functions } = it.received[0]![0] as { functions: JsonObject[] };
  assert.deepEqual(functions.map(({ function_id }) => function_id), ["watch::receive"]);
});

Deno.test("engine::functions-available fires for a storm of triggers within its bound", async () => {
  await using it = await setup();
  await it.watch("functions");
  const shop = await it.local.connect("shop");

  for (let i = 0; i < 30; i++) {
    shop.registerFunction(`shop::f${i}`, () => 1);
    await it.wait(FUNCTIONS_CHANGED_DEBOUNCE_MS / 2);
  }

  assert.ok(it.received.length >= 10, `${it.received.length} firings`);
});

Deno.test("engine::workers-available reports connects, announcements and disconnects", async () => {
  await using it = await setup();
  await it.watch("workers");

  const shop = await it.local.connect("shop");
  await shop.shutdown();
  await it.wait();

  const events = it.received.map(([payload]) => (payload as JsonObject).event);
  assert.deepEqual(events, ["worker_connected", "worker_metadata_updated", "worker_disconnected"]);
  const ids = new Set(it.received.map(([payload]) => (payload as JsonObject).worker_id));
  assert.equal(ids.size, 1);
});

Deno.test("An unregistered trigger no longer fires", async () => {
  await using it = await setup();
  const functions = await it.watch("functions");
  const workers = await it.watch("workers");

  functions.unregister();
  workers.unregister();
  await it.wait();
  const shop = await it.local.connect("shop");
  shop.registerFunction("shop::a", () => 1);
  await it.wait();

  assert.deepEqual(it.received, []);
});

/** EngineTriggers without a router, and what they fired. */
function setupFake() {
  const clock = new FakeClock();
  const fired: CallRequest[] = [];
  const types = new Map<string, TriggerHandlers>();
  const worker = {
    trigger: (request: CallRequest<unknown>) => {
      fired.push(request as CallRequest);
      return Promise.resolve(undefined as never);
    },
    registerTriggerType: ({ id }: { id: string }, handlers: TriggerHandlers) => {
      types.set(id, handlers);
      return { id, unregister() {} };
    },
  };
  const triggers = new EngineTriggers(worker as never, new FakeDirectory(), clock);
  triggers.register(worker as never);
  const watch = (trigger_type: string, metadata?: Json): void =>
    void types.get(trigger_type)!.registerTrigger({
      id: `of ${trigger_type}`,
      trigger_type,
      function_id: `watch::${trigger_type.split("::")[1]}`,
      config: {},
      metadata,
      namespace: undefined,
    });
  return { clock, triggers, fired, types, watch };
}

Deno.test("engine::triggers-available fires once per burst, with the workers concerned", () => {
  const { clock, triggers, fired, watch } = setupFake();
  watch("engine::triggers-available", { why: "test" });

  triggers.onEvent({ type: "triggers_changed", worker_id: "w1" });
  clock.tick(CHANGES_DEBOUNCE_MS - 1);
  triggers.onEvent({ type: "triggers_changed", worker_id: "w2" });
  triggers.onEvent({ type: "triggers_changed", worker_id: "w1" });
  assert.equal(fired.length, 0);
  clock.tick(1);

  assert.deepEqual(fired, [{
    function_id: "watch::triggers-available",
    payload: { event: "triggers_changed", worker_ids: ["w1", "w2"] },
    action: { type: "void" },
    metadata: { why: "test" },
  }]);
});

Deno.test("engine::supervisor-changed names the workers whose status changed", () => {
  const { clock, triggers, fired, watch } = setupFake();
  watch("engine::supervisor-changed");

  triggers.onEvent({ type: "supervised_changed", name: "shop" });
  triggers.onEvent({ type: "supervised_changed", name: "mail" });
  clock.tick(CHANGES_DEBOUNCE_MS);
  triggers.onEvent({ type: "supervised_changed", name: "shop" });
  clock.tick(CHANGES_DEBOUNCE_MS);

  const payloads = fired.map(({ payload }) => payload);
  assert.deepEqual(payloads, [{ names: ["shop", "mail"] }, { names: ["shop"] }]);
});

Deno.test("engine::config-changed fires when a new configuration is in force", () => {
  const { clock, triggers, fired, watch } = setupFake();
  watch("engine::config-changed");

  triggers.onEvent({ type: "config_changed" });
  clock.tick(CHANGES_DEBOUNCE_MS);

  assert.deepEqual(fired.map(({ payload }) => payload), [{ event: "config_changed" }]);
});

Deno.test("EngineTriggers fires only the triggers of the type that changed", () => {
  const { clock, triggers, fired, watch } = setupFake();
  watch("engine::config-changed");

  triggers.onEvent({ type: "triggers_changed", worker_id: "w1" });
  triggers.onEvent({ type: "worker_connected", worker_id: "w1", address: null });
  triggers.onEvent({ type: "functions_changed", worker_id: "w1", ids_changed: true });
  clock.tick(CHANGES_DEBOUNCE_MS);

  assert.deepEqual(fired, []);
});

Deno.test("EngineTriggers bounds the names of a burst", () => {
  const { clock, triggers, fired, watch } = setupFake();
  watch("engine::supervisor-changed");

  for (let i = 0; i < CHANGES_NAMED_MAX + 50; i++) {
    triggers.onEvent({ type: "supervised_changed", name: `w${i}` });
  }
  clock.tick(CHANGES_DEBOUNCE_MS);

  const { names } = fired[0]!.payload as { names: string[] };
  assert.equal(names.length, CHANGES_NAMED_MAX);
});

Deno.test("EngineTriggers fires neither unregistered triggers nor after stop()", () => {
  const { clock, triggers, fired, types, watch } = setupFake();
  watch("engine::config-changed");
  watch("engine::supervisor-changed");

  const id = "of engine::config-changed";
  void types.get("engine::config-changed")!.unregisterTrigger({ id, trigger_type: "" });
  triggers.onEvent({ type: "config_changed" });
  clock.tick(CHANGES_DEBOUNCE_MS);
  triggers.onEvent({ type: "supervised_changed", name: "shop" });
  triggers.stop();
  clock.tick(CHANGES_DEBOUNCE_MS);

  assert.deepEqual([fired, clock.waiting], [[], 0]);
});

Deno.test("a worker has a bounded number of triggers for changes", async () => {
  await using it = await setup();
  const greedy = await it.local.connect("greedy");
  for (let i = 0; i < CHANGE_TRIGGERS_PER_WORKER_MAX + 5; i++) {
    const type = i % 2 === 0 ? "engine::functions-available" : "engine::workers-available";
    greedy.registerTrigger({ type, function_id: "watch::receive", metadata: { i } });
  }
  await it.wait();

  const states = it.local.router.directory.triggers().map(({ state }) => state);
  assert.equal(states.filter((state) => state === "offered").length, 100);
  assert.equal(states.filter((state) => state === "refused").length, 5);
  await it.watch("functions");
  const last = it.local.router.directory.triggers().at(-1)!;
  assert.equal(last.state, "offered");
});
