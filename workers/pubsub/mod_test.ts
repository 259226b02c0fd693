import assert from "node:assert/strict";
import { localDial } from "../../engine/transport/local_connection.ts";
import { JsonText } from "../../sdk/typescript/json_text.ts";
import type { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Dial } from "../../sdk/typescript/wire/transport.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { LocalEngine, outcome } from "../../tests/fakes/local_engine.ts";
import { MESSAGE_BYTES_MAX, pubsub } from "./mod.ts";

interface Heard {
  readonly data: Json;
  readonly metadata: Json | undefined;
}

async function setup(config: Json = {}) {
  const clock = new FakeClock();
  const engine = new LocalEngine({ clock });
  await engine.start(pubsub, config);
  const worker = await engine.connect("shop");
  const publish = async (topic: Json, data?: Json) => {
    const payload = data === undefined ? { topic } : { topic, data };
    const answer = outcome(worker, { function_id: "publish", payload });
    await engine.settle();
    return await answer;
  };
  /** Subscribes a function of a worker; what it hears is added to the result. */
  const hear = async (topic: Json, by: Worker = worker, id = `hear::${crypto.randomUUID()}`) => {
    const heard: Heard[] = [];
    by.registerFunction(id, (data: Json, metadata) => void heard.push({ data, metadata }));
    const config = { topic };
    const registered = by.registerTrigger({ type: "subscribe", function_id: id, config });
    await engine.settle();
    return { heard, stop: () => registered.unregister(), id };
  };
  const list = async () => {
    const payload = {};
    const answer = worker.trigger<Json, Record<string, Json>>({
      function_id: "engine::pubsub::list",
      payload,
    });
    await engine.settle();
    return await answer;
  };
  return {
    engine,
    clock,
    worker,
    publish,
    hear,
    list,
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

const dataOf = (heard: readonly Heard[]): Json[] => heard.map(({ data }) => data);

Deno.test("a message reaches every function that is subscribed to its topic, as it was published", async () => {
  await using at = await setup();
  const other = await at.engine.connect("other");
  const [one, two, elsewhere] = [
    await at.hear("orders.new"),
    await at.hear("orders.new", other),
    await at.hear("users"),
  ];

  assert.equal(await at.publish("orders.new", { n: 1, text: 'ü\\"' }), undefined);
  await at.publish("orders.new");
  await at.publish("unheard", 1);

  assert.deepEqual(dataOf(one.heard), [{ n: 1, text: 'ü\\"' }, null]);
  assert.deepEqual(dataOf(two.heard), dataOf(one.heard));
  assert.deepEqual(elsewhere.heard, []);
});

Deno.test("a message keeps the digits of its numbers, also by way of a function of the engine", async () => {
  await using at = await setup();
  const frames: string[] = [];
  const peer = { address: "127.0.0.1", launch_id: null, builtin: null };
  const dial = localDial({ open: (line) => at.engine.router.open(line, peer) }, "raw");
  const recording: Dial = (url, events, options) =>
    dial(url, {
      ...events,
      text(frame) {
        frames.push(frame);
        events.text(frame);
      },
    }, options);
  const raw = await at.engine.connect("raw", { dial: recording });
  await at.hear("t", raw);
  at.worker.registerTrigger({
    type: "subscribe",
    function_id: "publish",
    config: { topic: "relay" },
  });
  await at.engine.settle();
  const exact = '{"n":12345678901234567890,"f":1.0,"text":"\\u00fc"}';

  for (
    const payload of [
      `{"topic":"t","data":${exact}}`,
      `{"data": 1, "topic":"t", "data":${exact} }`,
      `{"topic":"relay","data":{"topic":"t","data":${exact}}}`,
    ]
  ) {
    await outcome(at.worker, { function_id: "publish", payload: new JsonText(payload) as never });
    await at.engine.settle();
  }

  const heard = frames.filter((frame) => frame.includes('"function_id":"hear::'));
  assert.deepEqual(heard.map((frame) => frame.slice(frame.indexOf('"data":'))), [
    `"data":${exact}}`,
    `"data":${exact}}`,
    `"data":${exact}}`,
  ]);
});

Deno.test("a pattern hears all topics that it matches", async () => {
  await using at = await setup();
  const [part, rest] = [await at.hear("orders.*"), await at.hear("orders.>")];

  for (const topic of ["orders", "orders.eu", "orders.eu.new"]) await at.publish(topic, topic);

  assert.deepEqual(dataOf(part.heard), ["orders.eu"]);
  assert.deepEqual(dataOf(rest.heard), ["orders.eu", "orders.eu.new"]);
});

Deno.test("removing one subscription leaves the others of its topic", async () => {
  await using at = await setup();
  const [one, two] = [await at.hear("t"), await at.hear("t")];

  one.stop();
  await at.engine.settle();
  await at.publish("t", 1);

  assert.deepEqual([dataOf(one.heard), dataOf(two.heard)], [[], [1]]);
});

Deno.test("metadata of the trigger arrives, and functions of the engine can subscribe", async () => {
  await using at = await setup();
  const heard: unknown[] = [];
  at.worker.registerFunction("f::a", (data, metadata) => void heard.push([data, metadata]));
  at.worker.registerTrigger({
    type: "subscribe",
    function_id: "f::a",
    config: { topic: "t" },
    metadata: { why: "demo" },
  });
  at.worker.registerTrigger({
    type: "subscribe",
    function_id: "publish",
    config: { topic: "relay" },
  });
  await at.engine.settle();

  await at.publish("t", 1);
  await at.publish("relay", { topic: "t", data: 2 });
  await at.engine.settle();

  assert.deepEqual(heard, [[1, { why: "demo" }], [2, { why: "demo" }]]);
});

Deno.test("a delivery belongs to the trace of its publisher", async () => {
  await using at = await setup();
  const bounds = { memory_bytes: 1024 * 1024, payload_chars: 100 };
  at.engine.recorder.configure({ enabled: true, ratio: 1, rules: [], ...bounds });
  const seen: (string | undefined)[] = [];
  at.worker.registerFunction("f::a", (_data, _metadata, { traceparent }) => {
    seen.push(traceparent);
  });
  at.worker.registerTrigger({ type: "subscribe", function_id: "f::a", config: { topic: "t" } });
  await at.engine.settle();
  const trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";

  const payload = { topic: "t" };
  const traceparent = `00-${trace_id}-00f067aa0ba902b7-01`;
  await at.worker.trigger({ function_id: "publish", payload, traceparent });
  await at.publish("t");
  await at.engine.settle();

  const [first, second] = seen.map((text) => text!.split("-")[1]);
  assert.equal(first, trace_id);
  assert.notEqual(second, trace_id);
});

Deno.test("a subscriber that does not answer loses messages and delays no other", async () => {
  await using at = await setup({ max_waiting_calls: 3 });
  const slow = await at.engine.connect("slow");
  const stuck = Promise.withResolvers<void>();
  slow.registerFunction("slow::f", () => stuck.promise);
  slow.registerTrigger({ type: "subscribe", function_id: "slow::f", config: { topic: "t" } });
  const quick = await at.hear("t");

  for (let i = 0; i < 10; i++) await at.publish("t", i);

  assert.equal(quick.heard.length, 10);
  const { subscriptions, ...sums } = await at.list();
  assert.deepEqual(sums, { count: 2, sent: 13, dropped: 7, published: 10 });
  const [first] = subscriptions as JsonObject[];
  assert.deepEqual(
    { ...first, trigger_id: "" },
    {
      trigger_id: "",
      topic: "t",
      function_id: "slow::f",
      sent: 3,
      dropped: 7,
      dropped_at_ms: at.clock.wall(),
    },
  );
  const warnings = () => at.engine.lines.filter(({ level }) => level === "warn");
  assert.deepEqual(warnings().map(({ fields }) => [fields?.topic, fields?.function_id]), [
    ["t", "slow::f"],
  ]);
  at.clock.tick(10_000);
  assert.equal(warnings().at(-1)?.fields?.dropped, 7);
  stuck.resolve();
});

Deno.test("a wrong message is refused with what is wrong", async () => {
  await using at = await setup();
  const large = "x".repeat(MESSAGE_BYTES_MAX);
  for (
    const [topic, data, code, text] of [
      ["", 1, "topic_not_set", /needs a topic/],
      [null, 1, "deserialization_error", /topic: expected string, received null/],
      [["t"], 1, "deserialization_error", /topic: expected string, received array/],
      ["orders.*", 1, "deserialization_error", /"orders\.\*" has a wildcard/],
      ["x".repeat(1024 * 1024), 1, "deserialization_error", /at most 1024 characters/],
      ["t", large, "VALUE_TOO_LARGE", /1048578 bytes is too large; 1048576 are allowed/],
    ] as const
  ) {
    const failure = await at.publish(topic as Json, data) as EngineError;
    assert.equal(failure.code, code);
    assert.match(failure.message, text);
    assert.ok(failure.message.length < 300);
  }
  assert.equal(await at.publish("t", large.slice(2)), undefined);
});

Deno.test("a wrong subscription is refused, and the others go on", async () => {
  await using at = await setup();
  const good = await at.hear("t");

  for (const topic of ["", "a.>.b", "a*", 5, null, "x".repeat(200_000)]) await at.hear(topic);
  await at.publish("t", 1);

  const refused = at.engine.lines.filter(({ fields }) =>
    fields?.code === "trigger_registration_failed"
  );
  assert.equal(refused.length, 6);
  assert.match(refused[1]!.text, /has > in part 2/);
  assert.deepEqual(dataOf(good.heard), [1]);
});

Deno.test("the configuration has bounds", () => {
  assert.throws(() => pubsub.parse({ max_message_bytes: 1, max_waiting_calls: 0, other: 1 }), {
    issues: [
      { path: ["max_message_bytes"], expected: "at least 1024" },
      { path: ["max_waiting_calls"], expected: "at least 1" },
      { path: ["other"], expected: "a known key", received: "an unknown key" },
    ],
  });
});
