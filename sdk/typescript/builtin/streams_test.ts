import assert from "node:assert/strict";
import {
  type FakeStreams,
  fakeStreams,
  type FakeSubscriber,
} from "../../../tests/fakes/stream_subscriber.ts";
import type { Handler, WorkerCalls } from "../options.ts";
import {
  createStream,
  streamOf,
  type StreamSource,
  type StreamSubscriber,
  type StreamTriggerEvent,
} from "./streams.ts";
import type { JsonObject } from "../wire/protocol.ts";

interface Message {
  text: string;
  likes?: number;
}

/** Waits for a call of the SDK while the engine handles it. */
async function done<Out>({ engine }: FakeStreams, call: Promise<Out>): Promise<Out> {
  call.catch(() => {}); // Awaited below.
  await engine.settle();
  return await call;
}

/** What a client hears when it joins a group. */
async function kindOf(client: FakeSubscriber, groupId: string, streamName = "chat") {
  const [first] = await client.join(groupId + streamName, { groupId, streamName });
  return (first!.event as JsonObject).type as string;
}

/** A source that keeps items of any group in a map. */
function sourceOf(items: Map<string, Message>): StreamSource<Message> {
  return {
    get: ({ item_id }) => items.get(item_id),
    set({ item_id, data }) {
      if (data.text === "") throw new Error("a text is needed");
      const old_value = items.get(item_id);
      items.set(item_id, data);
      return { old_value, new_value: data };
    },
    delete({ item_id }) {
      const old_value = items.get(item_id);
      items.delete(item_id);
      return Promise.resolve({ old_value });
    },
    list: () => [...items.values()],
    listGroups: () => ["kept"],
  };
}

/** A worker that keeps the handlers that are registered. */
function recordingWorker() {
  const handlers: Handler<JsonObject>[] = [];
  const host = {
    registerFunction(id: string, handler: Handler<JsonObject>) {
      handlers.push(handler);
      return { id, unregister() {} };
    },
    registerTrigger: () => ({ id: "t", unregister() {} }),
  } as unknown as WorkerCalls;
  return { host, handlers };
}

const NO_CONTEXT = undefined as never;

Deno.test("a group stores, reads, changes, lists and removes items", async () => {
  await using at = await fakeStreams();
  const chat = at.worker.stream<Message>("chat");
  const room = chat.group("room-1");
  assert.deepEqual([chat.name, room.stream, room.id], ["chat", "chat", "room-1"]);

  assert.equal(await done(at, room.get("m1")), undefined);
  assert.deepEqual(await done(at, room.set("m1", { text: "hi" })), {
    old_value: null,
    new_value: { text: "hi" },
  });
  const ops = [{ type: "increment", path: "likes", by: 2 }] as const;
  const likes = await done(at, room.update("m1", ops));
  assert.deepEqual([likes.old_value, likes.new_value], [{ text: "hi" }, { text: "hi", likes: 2 }]);
  await done(at, room.set("m2", { text: "ho" }, { ttl_ms: 1_000 }));
  assert.deepEqual(await done(at, room.list()), [{ text: "hi", likes: 2 }, { text: "ho" }]);
  at.clock.tick(2_000);
  assert.equal(await done(at, room.get("m2")), undefined);
  assert.deepEqual(await done(at, chat.groups()), ["room-1"]);
  assert.deepEqual(await done(at, room.delete("m1")), { text: "hi", likes: 2 });
  assert.equal(await done(at, room.delete("m1")), undefined);
  assert.deepEqual(await done(at, chat.groups()), []);
});

Deno.test("entries() reads all items with their ids, page by page", async () => {
  await using at = await fakeStreams();
  const room = at.worker.stream<Message>("chat").group("room-1");
  const ids = Array.from({ length: 1_100 }, (_, i) => `m${String(i).padStart(4, "0")}`);
  await done(at, Promise.all(ids.toReversed().map((id) => room.set(id, { text: id }))));

  const read = async (prefix?: string): Promise<string[]> => {
    const found: string[] = [];
    for await (const [id, { text }] of room.entries(prefix)) found.push(id === text ? id : "?");
    return found;
  };
  const reading = read();
  for (let page = 0; page < 3; page++) await at.engine.settle();

  assert.deepEqual(await reading, ids);
  assert.deepEqual(await done(at, read("m109")), ids.slice(1_090, 1_100));
});

Deno.test("onEvent() hears changes and sent events of what it follows, until it is unregistered", async () => {
  await using at = await fakeStreams();
  const chat = at.worker.stream<Message>("chat");
  const all: string[] = [];
  const one: StreamTriggerEvent<Message>[] = [];
  const registration = chat.onEvent(({ id, event }) => {
    all.push(`${id} ${event.type === "event" ? event.event.type : event.data.text}`);
  });
  const options = { group_id: "a", item_id: "m1", metadata: { why: "demo" } };
  chat.onEvent((event, metadata) => {
    assert.deepEqual(metadata, { why: "demo" });
    one.push(event);
  }, options);
  await at.engine.settle();

  await done(at, chat.group("a").set("m1", { text: "hi" }));
  await done(at, chat.group("b").set("m1", { text: "ho" }));
  await done(at, chat.group("a").send("typing", { by: "ann" }));
  await done(at, chat.group("a").send("seen", undefined, "m1"));
  registration.unregister();
  await done(at, chat.group("a").set("m1", { text: "late" }));

  assert.deepEqual(all, ["m1 hi", "m1 ho", "null typing", "m1 seen"]);
  assert.deepEqual(one.map(({ event }) => event), [
    { type: "create", data: { text: "hi" } },
    { type: "event", event: { type: "seen", data: null } },
    { type: "update", data: { text: "late" } },
  ]);
});

Deno.test("every worker gets every event, and workers with one function id share them", async () => {
  await using at = await fakeStreams();
  const heard = { own: 0, shared: 0 };
  for (const name of ["one", "two"]) {
    const chat = (await at.engine.connect(name)).stream("chat");
    chat.onEvent(() => void heard.own++);
    chat.onEvent(() => void heard.shared++, { function_id: "chat::heard" });
  }
  await at.engine.settle();

  await done(at, at.worker.stream("chat").group("a").send("hi"));

  assert.deepEqual(heard, { own: 2, shared: 1 });
});

Deno.test("onJoin() refuses by false, by unauthorized and by failing, for its own stream only", async () => {
  await using at = await fakeStreams();
  const answers: Record<string, () => unknown> = {
    open: () => undefined,
    also: () => ({ unauthorized: false }),
    false: () => false,
    said: () => ({ unauthorized: true }),
    failed: () => {
      throw new Error("the database is away");
    },
  };
  const asked: StreamSubscriber[] = [];
  const left: StreamSubscriber[] = [];
  const chat = at.worker.stream("chat");
  chat.onJoin((subscriber) => {
    asked.push(subscriber);
    return answers[subscriber.group_id]!();
  });
  chat.onLeave((subscriber) => void left.push(subscriber));
  await at.engine.settle();
  const client = at.connect();

  const seen: Record<string, string> = {};
  for (const group of Object.keys(answers)) seen[group] = await kindOf(client, group);
  const elsewhere = await kindOf(client, "any", "news");
  client.cut();
  await at.engine.settle();

  assert.deepEqual(seen, {
    open: "sync",
    also: "sync",
    false: "unauthorized",
    said: "unauthorized",
    failed: "unauthorized",
  });
  assert.equal(elsewhere, "sync");
  assert.equal(asked.length, 5);
  assert.deepEqual(left.map(({ group_id }) => group_id), ["open", "also"]);
});

Deno.test("handlers of joins leave other streams alone when the engine does not filter", async () => {
  const { host, handlers } = recordingWorker();
  const chat = streamOf(host, "chat");
  chat.onJoin(() => false);
  let left = 0;
  chat.onLeave(() => void left++);
  const [join, leave] = handlers;
  const subscriber = { subscription_id: "s", group_id: "g", id: null, context: null };

  const said: unknown[] = [];
  for (const stream_name of ["chat", "news"]) {
    said.push(await join!({ ...subscriber, stream_name }, undefined, NO_CONTEXT));
    await leave!({ ...subscriber, stream_name }, undefined, NO_CONTEXT);
  }

  assert.deepEqual([said, left], [[{ unauthorized: true }, undefined], 1]);
});

Deno.test("a worker that keeps a stream is asked in place of the engine, and its changes are events", async () => {
  await using at = await fakeStreams();
  const items = new Map<string, Message>();
  const registration = at.worker.createStream<Message>("chat", sourceOf(items));
  const chat = (await at.engine.connect("other")).stream<Message>("chat");
  const room = chat.group("a");
  const heard: string[] = [];
  chat.onEvent(({ event }) => void heard.push(event.type));
  await at.engine.settle();

  assert.deepEqual(await done(at, room.set("m1", { text: "hi" })), { new_value: { text: "hi" } });
  assert.deepEqual([...items], [["m1", { text: "hi" }]]);
  assert.deepEqual(await done(at, room.get("m1")), { text: "hi" });
  assert.equal(await done(at, room.get("m2")), undefined);
  assert.deepEqual(await done(at, room.list()), [{ text: "hi" }]);
  assert.deepEqual(await done(at, chat.groups()), ["kept"]);
  assert.deepEqual(await done(at, room.delete("m1")), { text: "hi" });
  await assert.rejects(done(at, room.set("bad", { text: "" })), {
    code: "STREAM_SET_ERROR",
    message: /a text is needed/,
  });
  registration.unregister();
  await done(at, room.set("m1", { text: "engine" }));
  assert.equal(items.size, 0);
  assert.deepEqual(heard, ["create", "delete", "create"]);
});

Deno.test("update is overridden only where the source has it", async () => {
  await using at = await fakeStreams();
  at.worker.createStream("plain", sourceOf(new Map()));
  const seen: unknown[] = [];
  at.worker.createStream("own", {
    ...sourceOf(new Map()),
    update: ({ ops }) => {
      seen.push(ops);
      return { new_value: { text: "updated" } };
    },
  });
  await at.engine.settle();
  const ops = [{ type: "set", path: "text", value: "x" }] as const;

  const [plain, own] = [at.worker.stream("plain").group("a"), at.worker.stream("own").group("a")];
  assert.deepEqual((await done(at, plain.update("m", ops))).new_value, { text: "x" });
  assert.deepEqual((await done(at, own.update("m", ops))).new_value, { text: "updated" });
  assert.deepEqual(seen, [ops]);
});

Deno.test("what does not fit is refused before anything is registered", () => {
  const { host, handlers } = recordingWorker();
  const source = sourceOf(new Map());
  const wrong: (() => unknown)[] = [
    () => streamOf(host, ""),
    () => streamOf(host, 7 as never),
    () => streamOf(host, "chat").group(""),
    () => streamOf(host, "chat").onJoin(undefined as never),
    () => streamOf(host, "chat").onLeave("f" as never),
    () => createStream(host, "", source),
    () => createStream(host, "chat", undefined as never),
    () => createStream(host, "chat", { ...source, listGroups: undefined } as never),
    () => createStream(host, "chat", { ...source, update: 7 } as never),
  ];

  for (const each of wrong) assert.throws(each, { code: "INVALID_ARGUMENTS" });
  assert.equal(handlers.length, 0);
});
