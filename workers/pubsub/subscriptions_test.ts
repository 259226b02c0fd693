import assert from "node:assert/strict";
import type { Fired, FiringPayload, Firings } from "../../engine/ports/firings.ts";
import { JsonText } from "../../sdk/typescript/json_text.ts";
import type { TriggerInstance } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import { LocalTopics } from "./local_topics.ts";
import { Subscriptions, SUBSCRIPTIONS_LISTED_MAX } from "./subscriptions.ts";
import { UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";

function triggerOf(id: string, topic: Json, function_id = `f::${id}`): TriggerInstance {
  return {
    id,
    trigger_type: "subscribe",
    function_id,
    config: { topic },
    metadata: { id },
    namespace: undefined,
  };
}

function setup() {
  const clock = new FakeClock();
  const lines: LogLine[] = [];
  const fired: string[] = [];
  const called: unknown[] = [];
  const outcomes = new Map<string, Fired>();
  const firings: Firings = {
    prepare: ({ function_id, namespace }) => ({ function_id, namespace, head: new Uint8Array() }),
    fire: (_worker, { function_id }) => {
      fired.push(function_id);
      return outcomes.get(function_id) ?? "sent";
    },
  };
  const worker = {
    trigger: (request: unknown) => {
      called.push(request);
      return Promise.resolve() as Promise<never>;
    },
  };
  const topics = new LocalTopics({ clock, memory: UNLIMITED_MEMORY });
  const bounds = { waitingCalls: 1, unsentBytes: 1 };
  const log = recordingLog(lines);
  const name = "engine-pubsub";
  const it = new Subscriptions({ name, worker, topics, firings, bounds, clock, log });
  const publish = (topic: string, value: Json = 1) => {
    const json = new TextEncoder().encode(JSON.stringify(value));
    const message: FiringPayload = { json, traceparent: undefined };
    topics.publish(topic, message);
  };
  return { it, clock, lines, fired, called, outcomes, publish };
}

Deno.test("a trigger that is registered again under its id replaces the earlier one", () => {
  const { it, fired, publish } = setup();

  it.add(triggerOf("1", "a"));
  it.add(triggerOf("1", "b"));
  publish("a");
  publish("b");
  it.remove("1");
  it.remove("1");
  publish("b");

  assert.deepEqual(fired, ["f::1"]);
  assert.equal(it.list().count, 0);
});

Deno.test("a function that cannot be fired is called in the ordinary way, with the value", () => {
  const { it, called, outcomes, publish } = setup();
  outcomes.set("f::1", "ordinary");

  it.add(triggerOf("1", "a"));
  publish("a", { n: [1, "ü"] });

  assert.deepEqual(called, [{
    function_id: "f::1",
    payload: new JsonText('{"n":[1,"ü"]}'),
    action: { type: "void" },
    metadata: { id: "1" },
  }]);
  assert.deepEqual([it.sent, it.dropped], [1, 0]);
});

Deno.test("dropped messages are counted, and logged at most twice in ten seconds", () => {
  const { it, clock, lines, outcomes, publish } = setup();
  it.add(triggerOf("1", "a"));
  it.add(triggerOf("2", "a"));
  outcomes.set("f::2", "behind");

  for (let i = 0; i < 100; i++) publish("a");
  clock.tick(10_000);
  publish("a");

  assert.deepEqual(lines.map(({ level, fields }) => [level, fields?.topic, fields?.dropped]), [
    ["warn", "a", undefined],
    ["warn", undefined, 100],
    ["warn", "a", undefined],
  ]);
  const { subscriptions, sent, dropped } = it.list();
  assert.deepEqual([sent, dropped], [101, 101]);
  assert.equal((subscriptions as { function_id: string }[])[0]!.function_id, "f::2");
  it[Symbol.dispose]();
  assert.equal(clock.waiting, 0);
});

Deno.test("a config without a usable topic is refused with what is wrong", () => {
  const { it } = setup();
  const code = "trigger_registration_failed";

  assert.throws(() => it.add(triggerOf("1", 7)), {
    code,
    message: "The config of the subscribe trigger does not fit: topic: expected string, received 7",
  });
  assert.throws(() => it.add(triggerOf("1", "a.b*")), { code, message: /inside the part "b\*"/ });
  assert.throws(() => it.add({ ...triggerOf("1", "a"), config: null }), { code });
});

Deno.test("a list has a bound", () => {
  const { it } = setup();
  for (let i = 0; i <= SUBSCRIPTIONS_LISTED_MAX; i++) it.add(triggerOf(`${i}`, `t.${i}`));

  const { subscriptions, count } = it.list();

  assert.equal((subscriptions as Json[]).length, SUBSCRIPTIONS_LISTED_MAX);
  assert.equal(count, SUBSCRIPTIONS_LISTED_MAX + 1);
});
