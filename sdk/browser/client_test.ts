import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDial } from "../../tests/fakes/fake_dial.ts";
import type { Json, JsonObject } from "../typescript/wire/protocol.ts";
import { connectStreams, type Credential, type StreamClientOptions } from "./client.ts";

function setup(options: StreamClientOptions = {}, url: Credential = "ws://127.0.0.1:3112/?u=ann") {
  const clock = new FakeClock();
  const fake = new FakeDial();
  const log: string[] = [];
  const client = connectStreams(url, {
    dial: fake.dial,
    clock,
    random: () => 0.5,
    onError: (error) => log.push(error.code),
    onState: (state) => log.push(state),
    ...options,
  });
  /** Delivers an event of `chat`; its group is `room-1`. */
  const tell = (event: JsonObject, id: string | null = null, groupId = "room-1"): void => {
    const message = { type: "stream", timestamp: 1, streamName: "chat", groupId, id, event };
    fake.transport.deliverText(JSON.stringify(message));
  };
  const sync = (items: Record<string, Json>, groupId?: string): void => {
    tell({ type: "sync", data: Object.values(items), ids: Object.keys(items) }, null, groupId);
  };
  const refuse = (subscriptionId: string | null, code: string): void => {
    const message = { type: "error", subscriptionId, error: { code, message: "no" } };
    fake.transport.deliverText(JSON.stringify(message));
  };
  return { client, clock, fake, log, tell, sync, refuse };
}

/** The next events, without their times. */
async function take(events: AsyncIterator<unknown>, count: number): Promise<unknown[]> {
  const taken: unknown[] = [];
  for (let i = 0; i < count; i++) {
    const { timestamp: _, ...event } = (await events.next()).value as Record<string, unknown>;
    taken.push(event);
  }
  return taken;
}

Deno.test("a subscription joins with the connection; it yields a sync, then every event", async () => {
  const { client, fake, tell, sync } = setup();
  const room = client.subscribe<string>("chat", "room-1");

  assert.equal(fake.transport.url, "ws://127.0.0.1:3112/?u=ann");
  fake.transport.open();
  tell({ type: "create", data: "before the sync, which has it" }, "a");
  sync({ a: "A" });
  tell({ type: "create", data: "B" }, "b");
  tell({ type: "delete", data: "A" }, "a");
  tell({ type: "event", event: { type: "typing", data: "ann" } });

  const data = { subscriptionId: "s1", streamName: "chat", groupId: "room-1" };
  assert.deepEqual(fake.transport.take(), [{ type: "join", data }]);
  assert.deepEqual(await take(room, 4), [
    { type: "sync", items: ["A"], missed: 0 },
    { type: "create", id: "b", item: "B" },
    { type: "delete", id: "a", item: "A" },
    { type: "event", id: null, name: "typing", data: "ann" },
  ]);
  assert.deepEqual([...room.items], [["b", "B"]]);
  await client.close();
});

Deno.test("many subscriptions share a connection, alike ones a join", async () => {
  const { client, fake, tell, sync } = setup();
  const [first, item] = [
    client.subscribe("chat", "room-1"),
    client.subscribe("chat", "room-1", { id: "a" }),
  ];
  fake.transport.open();
  sync({ a: 1 });
  tell({ type: "sync", data: 1 }, "a");
  const second = client.subscribe("chat", "room-1");
  client.subscribe("chat", "room-2");

  assert.equal(fake.transports.length, 1);
  assert.deepEqual(fake.transport.take().map(({ data }) => data), [
    { subscriptionId: "s1", streamName: "chat", groupId: "room-1" },
    { subscriptionId: "s2", streamName: "chat", groupId: "room-1", id: "a" },
    { subscriptionId: "s3", streamName: "chat", groupId: "room-2" },
  ]);
  tell({ type: "update", data: 2 }, "a");
  tell({ type: "update", data: 3 }, "b");
  for (const own of [first, second]) {
    assert.deepEqual(await take(own, 3), [
      { type: "sync", items: [1], missed: 0 },
      { type: "update", id: "a", item: 2 },
      { type: "update", id: "b", item: 3 },
    ]);
  }
  assert.deepEqual(await take(item, 2), [
    { type: "sync", items: [1], missed: 0 },
    { type: "update", id: "a", item: 2 },
  ]);
  await client.close();
});

Deno.test("the engine hears of the last that leaves; the connection closes a little later", async () => {
  const { client, clock, fake, sync } = setup();
  const [first, second] = [client.subscribe("chat", "room-1"), client.subscribe("chat", "room-1")];
  fake.transport.open();
  sync({});
  fake.transport.take();

  first.close();
  assert.deepEqual(fake.transport.take(), []);
  second.close();
  assert.deepEqual(fake.transport.take().map(({ type }) => type), ["leave"]);

  clock.tick(1_000);
  const third = client.subscribe("chat", "room-1");
  clock.tick(10_000);
  assert.equal(client.state, "connected");
  third.close();
  clock.tick(2_000);
  await Promise.resolve();
  assert.deepEqual([client.state, fake.transport.isClosed], ["disconnected", true]);
  client.subscribe("chat", "room-1");
  assert.equal(fake.transports.length, 2);
  await client.close();
  assert.equal(clock.waiting, 0);
});

Deno.test("after a lost connection it joins again; the iterator sees a sync", async () => {
  const { client, clock, fake, log, tell, sync } = setup();
  const room = client.subscribe("chat", "room-1");
  fake.transport.open();
  sync({ a: 1 });

  fake.transport.drop(1001, "the engine is stopping");
  assert.deepEqual([room.isLive, [...room.items]], [false, [["a", 1]]]);
  clock.tick(1_000);
  fake.transport.drop(1006, "refused");
  clock.tick(999);
  assert.equal(fake.transports.length, 2);
  clock.tick(1);
  fake.transport.open();
  tell({ type: "update", data: "of the time before the sync" }, "a");
  sync({ b: 2 });

  assert.deepEqual(fake.transport.take().map(({ type }) => type), ["join"]);
  assert.deepEqual(await take(room, 2), [
    { type: "sync", items: [1], missed: 0 },
    { type: "sync", items: [2], missed: 0 },
  ]);
  assert.equal(room.isLive, true);
  assert.deepEqual(log, [
    "connected",
    "reconnecting",
    "engine_unreachable",
    "engine_unreachable",
    "connected",
  ]);
  await client.close();
});

Deno.test("delays grow to 15 seconds and vary", async () => {
  const { client, clock, fake } = setup({ random: () => 1 });
  client.subscribe("chat", "room-1");
  const delays: number[] = [];

  for (let i = 0; i < 6; i++) {
    fake.transport.drop();
    delays.push(Math.round(clock.nextIn!));
    clock.tick(clock.nextIn!);
  }

  assert.deepEqual(delays, [1_300, 2_600, 5_200, 10_400, 15_000, 15_000]);
  await client.close();
});

Deno.test("who is not admitted at first gets an error; who was is tried again", async () => {
  const { client, clock, fake, sync } = setup();
  const refused = client.subscribe("chat", "room-1");
  fake.transport.open().drop(1008, "who are you");
  await assert.rejects(refused.next(), { code: "unauthorized", message: /who are you/ });

  const room = client.subscribe("chat", "room-1");
  fake.transport.open();
  sync({});
  await room.next();
  fake.transport.drop(1001);
  for (let i = 0; i < 6; i++) {
    clock.tick(20_000);
    fake.transport.open().drop(1008, "the auth function is not there");
  }
  assert.equal(room.isLive, false);
  clock.tick(20_000);
  fake.transport.open().drop(1008, "no longer");

  await assert.rejects(room.next(), { code: "unauthorized", message: /no longer/ });
  await client.close();
});

Deno.test("a subscription that is refused ends with the reason, and no other does", async () => {
  const { client, fake, log, tell, refuse, sync } = setup();
  const [staff, full, room] = ["staff", "full", "room-1"].map((it) => client.subscribe("chat", it));
  fake.transport.open();
  sync({});

  tell({ type: "unauthorized" }, null, "staff");
  refuse("s2", "overloaded");
  refuse(null, "bad_message");

  await assert.rejects(staff!.next(), { code: "unauthorized" });
  await assert.rejects(full!.next(), { code: "overloaded" });
  assert.equal((await room!.next()).value.type, "sync");
  assert.deepEqual(log, ["connected", "bad_message"]);
  await client.close();
});

Deno.test("a topic that was live is joined again when its items cannot be read", async () => {
  const { client, clock, fake, refuse, sync } = setup();
  const room = client.subscribe("chat", "room-1");
  fake.transport.open();
  sync({ a: 1 });
  await room.next();
  fake.transport.drop(1001);
  clock.tick(1_000);
  fake.transport.open().take();

  refuse("s1", "STREAM_LIST_ERROR");
  assert.deepEqual(fake.transport.take(), []);
  clock.tick(500);
  assert.deepEqual(fake.transport.take().map(({ type }) => type), ["join"]);
  sync({ a: 2 });
  assert.deepEqual(await take(room, 1), [{ type: "sync", items: [2], missed: 0 }]);
  for (let i = 0; i < 6; i++) {
    refuse("s1", "STREAM_LIST_ERROR");
    clock.tick(500 * 2 ** i);
  }
  assert.equal(fake.transport.take().length, 6);
  refuse("s1", "STREAM_LIST_ERROR");

  await assert.rejects(room.next(), { code: "STREAM_LIST_ERROR" });
  await client.close();
});

Deno.test("after the last attempt to connect all subscriptions fail, later ones try again", async () => {
  const { client, clock, fake } = setup({ reconnect: { maxAttempts: 2 } });
  const [one, two] = [client.subscribe("chat", "room-1"), client.subscribe("chat", "room-2")];
  fake.transport.drop();
  clock.tick(1_000);
  fake.transport.drop();

  await assert.rejects(one.next(), { code: "engine_unreachable" });
  await assert.rejects(two.next(), { code: "engine_unreachable" });
  client.subscribe("chat", "room-1");
  assert.equal(fake.transports.length, 3);
  await client.close();
});

Deno.test("a token travels as a subprotocol or in the query, fresh for each connection", async () => {
  const [fixed, query] = [setup({ token: "t1" }), setup({ token: "t 1", tokenIn: "query" })];
  for (const { client } of [fixed, query]) client.subscribe("chat", "room-1");
  assert.deepEqual(fixed.fake.transport.options.protocols, ["engine.stream.v1", "t1"]);
  assert.equal(query.fake.transport.url, "ws://127.0.0.1:3112/?u=ann&token=t+1");

  let calls = 0;
  const fresh = setup({ token: () => Promise.resolve(`t${++calls}`) }, () => "http://other:1/");
  fresh.client.subscribe("chat", "room-1");
  await new Promise((resolve) => setTimeout(resolve));
  fresh.fake.transport.open().drop();
  fresh.clock.tick(1_000);
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual(
    fresh.fake.transports.map(({ url, options }) => [url, options.protocols?.[1]]),
    [["ws://other:1/", "t1"], ["ws://other:1/", "t2"]],
  );

  const failing = setup({
    token: () => Promise.reject(new Error("no net")),
    reconnect: { maxAttempts: 1 },
  });
  const room = failing.client.subscribe("chat", "room-1");
  await assert.rejects(room.next(), { code: "engine_unreachable", message: /token.*no net/ });
  for (const { client } of [fixed, query, fresh, failing]) await client.close();
});

Deno.test("messages that are not understood are reported and change nothing", async () => {
  const { client, fake, log, sync } = setup();
  const room = client.subscribe("chat", "room-1");
  fake.transport.open();

  for (const text of ["", "{", "[]", '{"type":"stream"}', "null"]) fake.transport.deliverText(text);
  sync({ a: 1 });
  sync({ x: 1 }, "another room");

  assert.deepEqual(await take(room, 1), [{ type: "sync", items: [1], missed: 0 }]);
  assert.deepEqual(log, ["connected", ...Array(4).fill("bad_message")]);
  await client.close();
});

Deno.test("a socket that cannot be made is a connection that failed", async () => {
  const dial = () => {
    throw new Error("mixed content");
  };
  const { client, log } = setup({ dial, reconnect: { maxAttempts: 1 } });

  const room = client.subscribe("chat", "room-1");

  await assert.rejects(room.next(), { code: "engine_unreachable", message: /mixed content/ });
  assert.deepEqual(log, ["engine_unreachable", "failed"]);
  await client.close();
});

Deno.test("bad arguments are refused, and everything after close()", async () => {
  for (const url of ["", "no url", "ftp://x"]) {
    assert.throws(() => connectStreams(url), { code: "INVALID_ARGUMENTS" });
  }
  assert.throws(() => setup({ tokenIn: "header" as "query" }), { code: "INVALID_ARGUMENTS" });
  assert.throws(() => setup({ token: "a b" }), {
    code: "INVALID_ARGUMENTS",
    message: /set tokenIn: "query"/,
  });
  assert.throws(() => setup({ reconnect: { firstMs: 0 } }), { code: "INVALID_ARGUMENTS" });
  const { client, fake } = setup();
  assert.throws(() => client.subscribe("", "g"), { code: "INVALID_ARGUMENTS" });
  assert.throws(() => client.subscribe("s", 5 as unknown as string), { code: "INVALID_ARGUMENTS" });
  assert.throws(() => client.subscribe("s", "g", { id: "" }), { code: "INVALID_ARGUMENTS" });
  const ended = client.subscribe("s", "g", { signal: AbortSignal.abort() });
  assert.equal((await ended.next()).done, true);
  assert.equal(fake.transports.length, 0);

  const room = client.subscribe("chat", "room-1");
  await client.close();
  await client.close();
  assert.equal((await room.next()).done, true);
  assert.throws(() => client.subscribe("chat", "room-1"), { code: "SHUTDOWN" });
});
