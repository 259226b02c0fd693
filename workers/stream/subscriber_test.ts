import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { fakeStreams } from "../../tests/fakes/stream_subscriber.ts";
import { HELD_EVENTS_MAX, REQUESTS_WAITING_MAX, SUBSCRIPTIONS_MAX } from "./subscriber.ts";

const GROUP = { stream_name: "chat", group_id: "room-1" };
const item = (item_id: string) => ({ ...GROUP, item_id });
/** What the event of a message is, and what it is about. */
const eventsIn = (messages: JsonObject[]): Json[] => messages.map(({ id, event }) => [id!, event!]);

Deno.test("a subscriber gets the items of its group first, then what happens to them", async () => {
  await using at = await fakeStreams();
  await at.call("set", { ...item("b"), data: { n: 1 } });
  await at.call("set", { ...item("a"), data: { n: 2 } });
  const one = at.connect();

  assert.deepEqual(await one.join("s", {}), [{
    type: "stream",
    timestamp: at.clock.wall(),
    streamName: "chat",
    groupId: "room-1",
    id: null,
    event: { type: "sync", data: [{ n: 1 }, { n: 2 }], ids: ["b", "a"] },
  }]);
  await at.call("set", { ...item("c"), data: 3 });
  await at.call("update", { ...item("a"), ops: [{ type: "increment", path: "n", by: 1 }] });
  await at.call("delete", item("b"));
  await at.call("send", { ...GROUP, type: "typing", data: { by: "ann" } });
  await at.call("set", { ...item("c"), group_id: "room-2", data: 4 });

  assert.deepEqual(eventsIn(one.heard()), [
    ["c", { type: "create", data: 3 }],
    ["a", { type: "update", data: { n: 3 } }],
    ["b", { type: "delete", data: { n: 1 } }],
    [null, { type: "event", event: { type: "typing", data: { by: "ann" } } }],
  ]);
});

Deno.test("a subscriber of one item hears of no other, and gets null while it is missing", async () => {
  await using at = await fakeStreams();
  const one = at.connect();

  const [first] = await one.join("s", { id: "a.*" });
  assert.deepEqual(first!.event, { type: "sync", data: null });
  await at.call("set", { ...item("a.b"), data: 1 });
  await at.call("set", { ...item("a.*"), data: 2 });
  await at.call("send", { ...GROUP, type: "typing" });

  assert.deepEqual(eventsIn(one.heard()), [["a.*", { type: "create", data: 2 }]]);
});

Deno.test("names with dots, percent signs and wildcards are names like any other", async () => {
  await using at = await fakeStreams();
  const one = at.connect();
  await one.join("s", { streamName: "a.b", groupId: "*" });
  await one.join("t", { streamName: "a", groupId: ">" });
  one.heard();

  for (const [stream_name, group_id] of [["a", "b"], ["a.b", "x"], ["a", "b.c"], ["a%2eb", "*"]]) {
    await at.call("set", { stream_name: stream_name!, group_id: group_id!, item_id: "i", data: 1 });
  }
  await at.call("set", { stream_name: "a.b", group_id: "*", item_id: "i", data: 2 });

  assert.deepEqual(eventsIn(one.heard()), [["i", { type: "create", data: 2 }]]);
});

Deno.test("an event that several subscriptions of a connection match is sent once", async () => {
  await using at = await fakeStreams();
  const one = at.connect();
  await one.join("group", {});
  await one.join("again", {});
  await one.join("item", { id: "a" });
  one.heard();

  await at.call("set", { ...item("a"), data: 1 });
  await at.call("set", { ...item("a"), data: 1 });

  assert.deepEqual(eventsIn(one.heard()), [
    ["a", { type: "create", data: 1 }],
    ["a", { type: "update", data: 1 }],
  ]);
});

Deno.test("events that come while the first message is read follow it", async () => {
  await using at = await fakeStreams();
  const release = Promise.withResolvers<void>();
  at.worker.registerFunction("stream::list(chat)", async () => {
    await release.promise;
    return ["old"];
  });
  await at.engine.settle();
  const one = at.connect();

  assert.deepEqual(await one.join("s", {}), []);
  await at.call("send", { ...GROUP, type: "first" });
  await at.call("send", { ...GROUP, type: "second" });
  assert.deepEqual(one.heard(), []);
  release.resolve();
  await at.engine.settle();

  assert.deepEqual(one.heard().map(({ event }) => event), [
    { type: "sync", data: ["old"] },
    { type: "event", event: { type: "first", data: null } },
    { type: "event", event: { type: "second", data: null } },
  ]);
});

Deno.test("a subscriber for whom too much comes before its first message is closed", async () => {
  await using at = await fakeStreams();
  at.worker.registerFunction("stream::list(chat)", () => new Promise<Json>(() => {}));
  await at.engine.settle();
  const one = at.connect();
  await one.join("s", {});

  for (let i = 0; i <= HELD_EVENTS_MAX; i++) await at.call("send", { ...GROUP, type: "tick" });

  assert.equal(one.connection.closing?.code, 1013);
  assert.equal((await at.stats()).closed_slow, 1);
});

Deno.test("who left hears nothing more; a subscription that joins again starts anew", async () => {
  await using at = await fakeStreams();
  const one = at.connect();
  await one.join("s", {});
  await one.leave("s");
  await at.call("set", { ...item("a"), data: 1 });
  assert.deepEqual([one.heard(), (await at.stats()).subscriptions], [[], 0]);

  await one.join("s", {});
  const messages = await one.join("s", { groupId: "room-2" });
  await at.call("set", { ...item("a"), data: 2 });

  assert.deepEqual(messages.map(({ groupId }) => groupId), ["room-2"]);
  assert.deepEqual([one.heard(), (await at.stats()).subscriptions], [[], 1]);
});

Deno.test("a subscriber that reads too slowly is closed, and the others go on", async () => {
  await using at = await fakeStreams();
  const [slow, quick] = [at.connect(), at.connect()];
  await slow.join("s", {});
  await quick.join("s", {});
  quick.heard();
  slow.connection.queuedBytes = 1024 * 1024;

  await at.call("set", { ...item("a"), data: 1 });

  assert.equal(slow.connection.closing?.code, 1013);
  assert.deepEqual(eventsIn(quick.heard()), [["a", { type: "create", data: 1 }]]);
  const { connections, closed_slow, events_sent } = await at.stats();
  assert.deepEqual([connections, closed_slow, events_sent], [1, 1, 1]);
});

Deno.test("stats count events by stream, whether it is followed or not", async () => {
  await using at = await fakeStreams();
  await at.connect().join("s", {});

  for (const data of [1, 2]) await at.call("set", { ...item("a"), data });
  await at.call("send", { stream_name: "other", group_id: "g", type: "typing" });

  const { events, streams } = await at.stats();
  assert.equal(events, 3);
  assert.deepEqual(streams, [
    { stream_name: item("a").stream_name, subscriptions: 1, events: 2 },
    { stream_name: "other", subscriptions: 0, events: 1 },
  ]);
});

Deno.test("messages that do not fit get an error, which says what is wrong", async () => {
  await using at = await fakeStreams();
  const one = at.connect();
  const data = { subscriptionId: "s", streamName: "chat", groupId: "room-1" };
  const cases: [unknown, RegExp, string | null][] = [
    ["{", /not JSON/, null],
    [[], /expected object, received array/, null],
    [{ type: "enter", data }, /type/, "s"],
    [{ type: "join", data: { ...data, streamName: "" } }, /streamName.*at least 1/, "s"],
    [{ type: "join", data: { ...data, groupId: "g".repeat(401) } }, /groupId.*400 bytes/, "s"],
    [{ type: "join", data: { ...data, id: 7 } }, /id/, "s"],
    [{ type: "join", data: { ...data, subscriptionId: "s".repeat(257) } }, /256/, null],
    [`{"type":${"[".repeat(200)}${"]".repeat(200)}}`, /too deeply/, null],
  ];
  for (const [message, pattern, subscriptionId] of cases) {
    one.say(message);
    await at.engine.settle();
    const [answer, ...more] = one.heard();
    const error = answer!.error as JsonObject;
    assert.deepEqual([answer!.type, answer!.subscriptionId, error.code, more], [
      "error",
      subscriptionId,
      "bad_message",
      [],
    ]);
    assert.match(error.message as string, pattern);
  }
  assert.equal(one.connection.closing, undefined);
});

Deno.test("too large and binary messages end the connection", async () => {
  await using at = await fakeStreams();
  const [large, binary] = [at.connect(), at.connect()];

  large.say("x".repeat(16 * 1024 + 1));
  binary.events.binary(new Uint8Array(1));

  assert.deepEqual([large, binary].map(({ connection }) => connection.closing?.code), [1009, 1003]);
  assert.equal((await at.stats()).connections, 0);
});

Deno.test("a connection has a number of subscriptions and no more", async () => {
  await using at = await fakeStreams();
  const one = at.connect();
  for (let i = 0; i < SUBSCRIPTIONS_MAX; i++) await one.join(`s${i}`, { groupId: `g${i}` });
  one.heard();

  const [answer] = await one.join("more", {});

  assert.equal((answer!.error as JsonObject).code, "overloaded");
  await one.leave("s0");
  assert.equal((await one.join("more", {})).length, 1);
});

Deno.test("requests are handled one after another; a flood of them is not read", async () => {
  await using at = await fakeStreams({ auth_function: "auth" });
  const admit = Promise.withResolvers<Json>();
  at.worker.registerFunction("auth", () => admit.promise);
  await at.engine.settle();
  const one = at.connect();

  for (let i = 0; i <= REQUESTS_WAITING_MAX; i++) {
    one.say({ type: "join", data: { subscriptionId: `s${i}`, streamName: "a", groupId: `g${i}` } });
  }
  await at.engine.settle();
  assert.deepEqual([one.connection.paused, one.heard()], [true, []]);
  admit.resolve({ context: null });
  for (let i = 0; i < 10; i++) await at.engine.settle();

  assert.equal(one.connection.paused, false);
  assert.deepEqual(
    one.heard().map(({ groupId }) => groupId),
    Array.from({ length: REQUESTS_WAITING_MAX + 1 }, (_, i) => `g${i}`),
  );
});
