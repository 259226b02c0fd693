import assert from "node:assert/strict";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import type { TriggerInput, TriggerInstance } from "../../sdk/typescript/options.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import type { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { LocalEngine } from "../../tests/fakes/local_engine.ts";
import { createMemoryBudget } from "../../engine/platform/memory_budget.ts";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import type { StateEvent } from "./entries.ts";
import { state } from "./mod.ts";
import { ChangeTriggers, STATE_TRIGGERS } from "./triggers.ts";

/** An engine with a worker whose function `seen` records its payloads. */
async function setup() {
  const clock = new FakeClock(1_000);
  const engine = new LocalEngine({ clock, store: new MemoryStore() });
  await engine.start(state);
  const errors: EngineError[] = [];
  const worker = await engine.connect("caller", { onError: (error) => void errors.push(error) });
  const seen: JsonObject[] = [];
  const metadata: (Json | undefined)[] = [];
  worker.registerFunction<JsonObject>("test::seen", (event, given) => {
    seen.push(event);
    metadata.push(given);
  });
  const watch = async (config?: Json, more: Partial<TriggerInput> = {}) => {
    const trigger = worker.registerTrigger({
      type: "state",
      function_id: "test::seen",
      ...config !== undefined && { config },
      ...more,
    });
    await engine.settle();
    return trigger;
  };
  const call = async (name: string, payload: Json): Promise<void> => {
    await worker.trigger({ function_id: `state::${name}`, payload });
    await engine.settle();
  };
  const set = (scope: string, key: string, value: Json) => call("set", { scope, key, value });
  const close = () => engine[Symbol.asyncDispose]();
  return {
    clock,
    engine,
    worker,
    seen,
    metadata,
    errors,
    watch,
    call,
    set,
    [Symbol.asyncDispose]: close,
  };
}

Deno.test("A state trigger fires for a value that is created, updated and deleted", async () => {
  await using at = await setup();
  await at.watch();

  await at.set("cart", "u1", { n: 1 });
  await at.call("update", {
    scope: "cart",
    key: "u1",
    ops: [{ type: "increment", path: "n", by: 1 }],
  });
  await at.call("delete", { scope: "cart", key: "u1" });

  const event = { type: "state", scope: "cart", key: "u1" };
  assert.deepEqual(at.seen, [
    { ...event, event_type: "state:created", old_value: null, new_value: { n: 1 } },
    { ...event, event_type: "state:updated", old_value: { n: 1 }, new_value: { n: 2 } },
    { ...event, event_type: "state:deleted", old_value: { n: 2 }, new_value: null },
  ]);
});

Deno.test("Nothing fires for a missing key or a rejected write", async () => {
  await using at = await setup();
  await at.watch();

  await at.call("delete", { scope: "s", key: "k" });
  await at.call("get", { scope: "s", key: "k" });
  await assert.rejects(at.call("set", { scope: "s", key: "k", value: 1, expected_version: 9 }));

  assert.deepEqual(at.seen, []);
});

for (
  const [config, expected] of [
    [{}, ["a/x", "a/y", "b/x"]],
    [{ scope: null, key: null }, ["a/x", "a/y", "b/x"]],
    [{ scope: "a" }, ["a/x", "a/y"]],
    [{ key: "x" }, ["a/x", "b/x"]],
    [{ scope: "a", key: "y" }, ["a/y"]],
    [{ scope: "b", key: "y" }, []],
  ] as const
) {
  Deno.test(`A state trigger with ${JSON.stringify(config)} fires for ${expected}`, async () => {
    await using at = await setup();
    await at.watch(config);

    for (const [scope, key] of [["a", "x"], ["a", "y"], ["b", "x"]]) await at.set(scope!, key!, 1);

    assert.deepEqual(at.seen.map(({ scope, key }) => `${scope}/${key}`), expected);
  });
}

Deno.test("A trigger without config fires for everything, and passes its metadata on", async () => {
  await using at = await setup();
  await at.watch(undefined, { metadata: { tag: 1 } });

  await at.set("s", "k", 1);

  assert.deepEqual(at.metadata, [{ tag: 1 }]);
});

Deno.test("An unregistered trigger no longer fires, an equal one continues", async () => {
  await using at = await setup();
  const first = await at.watch({ scope: "s" }, { metadata: 1 });
  await at.watch({ scope: "s" }, { metadata: 2 });

  first.unregister();
  await at.engine.settle();
  await at.set("s", "k", 1);

  assert.deepEqual(at.metadata, [2]);
});

Deno.test("An invalid config is rejected, and its originator receives the error", async () => {
  await using at = await setup();

  await at.watch({ scope: 1, condition_function_id: "" });
  await at.set("s", "k", 1);

  assert.equal(at.errors.length, 1);
  assert.match(at.errors[0]!.message, /scope: expected string, received 1/);
  assert.match(at.errors[0]!.message, /condition_function_id: /);
  assert.deepEqual(at.seen, []);
});

Deno.test("Only a condition that returns false or fails suppresses a firing", async () => {
  await using at = await setup();
  const asked: Json[] = [];
  const answers: Record<string, () => unknown> = {
    false: () => false,
    zero: () => 0,
    nothing: () => undefined,
    null: () => null,
    true: () => true,
    fails: () => {
      throw new Error("no");
    },
  };
  at.worker.registerFunction<JsonObject>("test::condition", (event) => {
    asked.push(event);
    return answers[event.key as string]!();
  });
  await at.watch({ condition_function_id: "test::condition" });

  for (const key of Object.keys(answers)) await at.set("s", key, 1);

  assert.deepEqual(at.seen.map(({ key }) => key), ["zero", "nothing", "null", "true"]);
  assert.equal(asked.length, 6);
  assert.deepEqual(asked[3], at.seen[2]);
  assert.equal(at.engine.lines.at(-1)?.fields.function_id, "test::condition");
});

Deno.test("A condition is called in the namespace of the trigger's function", async () => {
  await using at = await setup();
  const namespace = "blue";
  const asked: Json[] = [];
  at.worker.registerFunction("test::blue", (event) => void at.seen.push(event as JsonObject), {
    namespace,
  });
  at.worker.registerFunction("test::condition", (event) => void asked.push(event), { namespace });
  const config = { condition_function_id: "test::condition" };
  await at.watch(config, { namespace, function_id: "test::blue" });

  await at.set("cart", "u1", 1);

  assert.equal(asked.length, 1);
  assert.deepEqual(at.seen, asked);
});

Deno.test("A missing condition suppresses the firing", async () => {
  await using at = await setup();
  await at.watch({ condition_function_id: "test::missing" });

  await at.set("s", "k", 1);

  assert.deepEqual(at.seen, []);
});

Deno.test("Calls for one key keep the order of the changes, however long conditions take", async () => {
  await using at = await setup();
  const waiting = new Map<string, () => void>();
  at.worker.registerFunction<JsonObject>("test::condition", async ({ key, new_value }) => {
    await new Promise<void>((resolve) => waiting.set(`${key}${new_value}`, resolve));
  });
  await at.watch({ condition_function_id: "test::condition" });
  for (const value of [1, 2, 3]) await at.set("s", "a", value);
  await at.set("s", "b", 1);
  const answer = async (name: string) => {
    waiting.get(name)!();
    await at.engine.settle();
    return at.seen.map(({ key, new_value }) => `${key}${new_value}`);
  };

  assert.deepEqual(await answer("a3"), []);
  assert.deepEqual(await answer("b1"), ["b1"]);
  assert.deepEqual(await answer("a1"), ["b1", "a1"]);
  assert.deepEqual(await answer("a2"), ["b1", "a1", "a2", "a3"]);
});

Deno.test("A firing does not inherit the deadline of the call that made the change", async () => {
  await using at = await setup();
  const timeouts: (number | undefined)[] = [];
  at.worker.registerFunction("test::timed", (_event, _metadata, { timeout_ms }) => {
    timeouts.push(timeout_ms);
  });
  at.worker.registerFunction("test::condition", (_event, _metadata, { timeout_ms }) => {
    timeouts.push(timeout_ms);
  });
  await at.watch({ condition_function_id: "test::condition" }, { function_id: "test::timed" });

  const payload = { scope: "s", key: "k", value: 1 };
  await at.worker.trigger({ function_id: "state::set", payload, timeout_ms: 50 });
  await at.engine.settle();

  assert.equal(timeouts.length, 2);
  assert.ok(timeouts[0]! > 1_000);
  assert.ok(timeouts[1] === undefined || timeouts[1] > 1_000);
});

Deno.test("1,000 changes of one key at once fire 1,000 times in order", async () => {
  await using at = await setup();
  await at.watch({ scope: "s" });
  const ops = [{ type: "increment", path: "n", by: 1 }];
  const payload = { scope: "s", key: "k", ops };

  await Promise.all(Array.from({ length: 1_000 }, () => at.call("update", payload)));

  const values = at.seen.map(({ new_value }) => (new_value as { n: number }).n);
  assert.deepEqual(values, Array.from({ length: 1_000 }, (_, i) => i + 1));
});

/** Triggers on a clock of which every look takes 1 ms, with the calls that they make. */
function setupAlone(answer: (function_id: string) => Promise<Json> = () => Promise.resolve(null)) {
  const clock = new FakeClock();
  const passing = {
    now: () => (clock.tick(1), clock.now()),
    after: (ms: number, task: () => void) => clock.after(ms + 1_000, task),
  };
  const memory = createMemoryBudget(100_000);
  const calls: string[] = [];
  const lines: LogLine[] = [];
  const worker = {
    trigger: ({ function_id }: { function_id: string }) => {
      calls.push(function_id);
      return answer(function_id);
    },
  } as unknown as Worker;
  const triggers = new ChangeTriggers({
    kind: STATE_TRIGGERS,
    worker,
    log: recordingLog(lines),
    clock: passing,
    memory,
  });
  const add = (function_id: string, condition_function_id?: string) =>
    triggers.add({
      id: `${function_id} ${condition_function_id}`,
      trigger_type: "state",
      function_id,
      config: { ...condition_function_id !== undefined && { condition_function_id } },
    } as TriggerInstance);
  const event = (key: string): StateEvent => ({
    type: "state",
    event_type: "state:created",
    scope: "s",
    key,
    old_value: null,
    new_value: 1,
  });
  const settle = async () => {
    for (let i = 0; i < 100; i++) await Promise.resolve();
  };
  return { triggers, add, event, calls, lines, clock, memory, settle };
}

Deno.test("the calls of many triggers are made in slices, between which others have a turn", async () => {
  const at = setupAlone();
  for (let i = 0; i < 20; i++) at.add(`f::${i}`);
  at.triggers.fire(at.event("k"), 10);
  await at.settle();

  assert.ok(at.calls.length < 10, `${at.calls.length} calls in the first slice`);
  for (let i = 0; i < 20; i++) {
    at.clock.tick(1_000);
    await at.settle();
  }
  assert.deepEqual(at.calls, Array.from({ length: 20 }, (_, i) => `f::${i}`));
  assert.equal(at.memory.usedBytes, 0);
  at.triggers.close();
});

Deno.test("changes that wait for their calls are counted, and given back at the end", async () => {
  const at = setupAlone();
  at.add("f::a");
  for (let i = 0; i < 20; i++) at.triggers.fire(at.event("k"), 4_000);

  assert.ok(at.triggers.isBehind, "the budget is tight");
  assert.ok(at.memory.used("queues") > 80_000);
  at.triggers.close();
  await at.settle();
  assert.equal(at.memory.usedBytes, 0);
});

Deno.test("a slow condition drops changes of its own trigger only, and the log says so", async () => {
  const at = setupAlone((id) =>
    id === "slow::condition" ? new Promise(() => {}) : Promise.resolve(null)
  );
  at.add("f::a", "slow::condition");
  at.add("f::b");
  for (let i = 0; i < 1_200; i++) {
    at.triggers.fire(at.event(`k${i}`), 10);
    at.clock.tick(2_000);
    await at.settle();
  }

  const count = (id: string): number => at.calls.filter((called) => called === id).length;
  assert.deepEqual([count("slow::condition"), count("f::b")], [1_000, 1_200]);
  assert.match(at.lines[0]!.text, /condition is too slow/);
  at.triggers.close();
});
