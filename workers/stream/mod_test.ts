import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { LocalEngine, outcome } from "../../tests/fakes/local_engine.ts";
import { stream } from "./mod.ts";

const PLACE = { stream_name: "chat", group_id: "room-1", item_id: "m7" };
const GROUP = { stream_name: "chat", group_id: "room-1" };

async function setup() {
  const clock = new FakeClock();
  const engine = new LocalEngine({ clock, store: new MemoryStore() });
  await engine.start(stream, { port: 0 });
  const worker = await engine.connect("shop");
  /** The result of a function of the streams. */
  const call = async (op: string, payload: Json): Promise<Json> => {
    const answer = worker.trigger<Json, Json>({ function_id: `stream::${op}`, payload });
    await engine.settle();
    return await answer;
  };
  /** The code of its error. */
  const fail = async (op: string, payload: Json): Promise<string> => {
    const answer = outcome(worker, { function_id: `stream::${op}`, payload });
    await engine.settle();
    const error = await answer as { code?: string };
    return error?.code ?? `no error: ${JSON.stringify(error)}`;
  };
  /** Events that a trigger with this config fires. */
  const hear = async (config: JsonObject): Promise<JsonObject[]> => {
    const heard: JsonObject[] = [];
    const id = `hear::${crypto.randomUUID()}`;
    worker.registerFunction(id, (event: JsonObject) => void heard.push(event));
    worker.registerTrigger({ type: "stream", function_id: id, config });
    await engine.settle();
    return heard;
  };
  return {
    engine,
    clock,
    worker,
    call,
    fail,
    hear,
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

Deno.test("an item is stored, read, changed and removed, with its old value each time", async () => {
  await using at = await setup();

  assert.equal(await at.call("get", PLACE), undefined);
  assert.deepEqual(await at.call("set", { ...PLACE, data: { n: 1 } }), {
    old_value: null,
    new_value: { n: 1 },
  });
  const ops = [{ type: "increment", path: "n", by: 2 }];
  assert.deepEqual(await at.call("update", { ...PLACE, ops }), {
    old_value: { n: 1 },
    new_value: { n: 3 },
  });
  assert.deepEqual(await at.call("get", PLACE), { n: 3 });
  assert.deepEqual(await at.call("delete", PLACE), { old_value: { n: 3 } });
  assert.deepEqual(await at.call("delete", PLACE), { old_value: null });
  assert.equal(await at.call("get", PLACE), undefined);
});

Deno.test("lists have the items of a group, the groups of a stream, and all streams", async () => {
  await using at = await setup();
  for (
    const [stream_name, group_id, item_id] of [["a", "g", "2"], ["a", "g", "1"], ["ab", "h", "1"], [
      "a",
      "i",
      "1",
    ]]
  ) {
    const place = { stream_name: stream_name!, group_id: group_id!, item_id: item_id! };
    await at.call("set", { ...place, data: `${stream_name}${group_id}${item_id}` });
  }

  assert.deepEqual(await at.call("list", { stream_name: "a", group_id: "g" }), ["ag2", "ag1"]);
  assert.deepEqual(await at.call("list", { stream_name: "a", group_id: "none" }), []);
  assert.deepEqual(await at.call("list_groups", { stream_name: "a" }), ["g", "i"]);
  assert.deepEqual(await at.call("list_groups", { stream_name: "none" }), []);
  assert.deepEqual(await at.call("list_all", {}), {
    stream: [{ id: "a", groups: ["g", "i"] }, { id: "ab", groups: ["h"] }],
    count: 2,
  });
  const page = { stream_name: "a", limit: 1 };
  assert.deepEqual(await at.call("list_groups", page), ["g"]);
  assert.deepEqual(await at.call("list_groups", { ...page, cursor: "g" }), ["i"]);
  assert.deepEqual(await at.call("list_groups", { ...page, cursor: "i" }), []);
  const first = await at.call("list_all", { limit: 1 }) as JsonObject;
  assert.deepEqual(first.stream, [{ id: "a", groups: ["g"] }]);
  assert.deepEqual(await at.call("list_all", { cursor: first.cursor! }), {
    stream: [{ id: "a", groups: ["i"] }, { id: "ab", groups: ["h"] }],
    count: 2,
  });
  for (const cursor of ["", "a", "\0", "a\0b\0c", `a\0${"x".repeat(500)}`, "\ud800\0a"]) {
    assert.equal(await at.fail("list_all", { cursor }), "JSON_ERROR", cursor);
  }
});

Deno.test("items are listed with their ids, page by page, unless a worker keeps them", async () => {
  await using at = await setup();
  for (const item_id of ["b", "a2", "a1"]) {
    await at.call("set", { ...GROUP, item_id, data: { of: item_id } });
  }
  const one = { id: "a1", data: { of: "a1" } };
  const two = { id: "a2", data: { of: "a2" } };

  assert.deepEqual(await at.call("list_items", { ...GROUP, limit: 1 }), {
    items: [one],
    cursor: "a1",
  });
  assert.deepEqual(await at.call("list_items", { ...GROUP, prefix: "a", cursor: "a1" }), {
    items: [two],
  });
  assert.deepEqual(await at.call("list_items", { ...GROUP, group_id: "other" }), { items: [] });
  for (const wrong of [{ limit: 0 }, { prefix: "b", cursor: "a1" }, { prefix: "x".repeat(901) }]) {
    assert.equal(await at.fail("list_items", { ...GROUP, ...wrong }), "JSON_ERROR");
  }
  at.worker.registerFunction("stream::list(chat)", () => []);
  await at.engine.settle();
  assert.equal(await at.fail("list_items", GROUP), "STREAM_LIST_ERROR");
});

Deno.test("every change and every sent event fires the triggers that match it, in order", async () => {
  await using at = await setup();
  const [all, group, item, other] = [
    await at.hear({ stream_name: "chat" }),
    await at.hear({ stream_name: "chat", group_id: "room-1" }),
    await at.hear({ stream_name: "chat", item_id: "m7" }),
    await at.hear({ stream_name: "chat", group_id: "room-2" }),
  ];

  await at.call("set", { ...PLACE, data: 1 });
  await at.call("set", { ...PLACE, data: 2 });
  await at.call("delete", PLACE);
  await at.call("delete", PLACE);
  assert.equal(await at.call("send", { ...GROUP, type: "typing", data: "ada" }), undefined);
  await at.engine.settle();

  const base = {
    type: "stream",
    timestamp: at.clock.wall(),
    streamName: "chat",
    groupId: "room-1",
  };
  const changes = [
    { ...base, id: "m7", event: { type: "create", data: 1 } },
    { ...base, id: "m7", event: { type: "update", data: 2 } },
    { ...base, id: "m7", event: { type: "delete", data: 2 } },
  ];
  const sent = {
    ...base,
    id: null,
    event: { type: "event", event: { type: "typing", data: "ada" } },
  };
  assert.deepEqual(all, [...changes, sent]);
  assert.deepEqual(group, [...changes, sent]);
  assert.deepEqual(item, changes);
  assert.deepEqual(other, []);
});

Deno.test("an item with a time to live is gone after it, and its end is an event", async () => {
  await using at = await setup();
  const heard = await at.hear({ stream_name: "chat" });

  await at.call("set", { ...PLACE, data: 1, ttl_ms: 1_000 });
  at.clock.tick(1_001);
  await at.engine.settle();

  assert.equal(await at.call("get", PLACE), undefined);
  assert.deepEqual(heard.map(({ event }) => (event as JsonObject).type), ["create", "delete"]);
});

Deno.test("a function of a worker is called instead of the store, and its changes are events", async () => {
  await using at = await setup();
  const heard = await at.hear({ stream_name: "own" });
  const kept = new Map<string, Json>();
  const { worker } = at;
  worker.registerFunction("stream::set(own)", ({ item_id, data }: JsonObject) => {
    const old = kept.get(item_id as string);
    kept.set(item_id as string, data!);
    return { ...old !== undefined && { old_value: old }, new_value: data! };
  });
  worker.registerFunction(
    "stream::get(own)",
    ({ item_id }: JsonObject) => kept.get(item_id as string),
  );
  worker.registerFunction("stream::list(own)", () => [...kept.values()]);
  await at.engine.settle();
  const place = { stream_name: "own", group_id: "g", item_id: "i" };

  assert.deepEqual(await at.call("set", { ...place, data: 1 }), { new_value: 1 });
  await at.call("set", { ...place, data: 2 });

  assert.equal(await at.call("get", place), 2);
  assert.deepEqual(await at.call("list", place), [2]);
  assert.deepEqual((await at.call("list_all", {}) as JsonObject).count, 0);
  assert.deepEqual(heard.map(({ event }) => event), [
    { type: "create", data: 1 },
    { type: "update", data: 2 },
  ]);
});

Deno.test("an override that fails or answers badly fails the call with the code of the operation", async () => {
  await using at = await setup();
  at.worker.registerFunction("stream::set(own)", () => "done");
  at.worker.registerFunction("stream::get(own)", () => Promise.reject(new Error("no disk")));
  await at.engine.settle();
  const place = { stream_name: "own", group_id: "g", item_id: "i" };

  assert.equal(await at.fail("set", { ...place, data: 1 }), "STREAM_SET_ERROR");
  assert.equal(await at.fail("get", place), "STREAM_GET_ERROR");
});

Deno.test("payloads of the wrong shape are JSON_ERRORs", async () => {
  await using at = await setup();
  const long = "x".repeat(401);
  const cases: [string, Json][] = [
    ["set", PLACE],
    ["set", { ...PLACE, stream_name: "", data: 1 }],
    ["set", { ...PLACE, group_id: 5, data: 1 }],
    ["set", { ...PLACE, item_id: "a\0b", data: 1 }],
    ["set", { ...PLACE, data: 1, ttl_ms: -1 }],
    ["get", { ...PLACE, stream_name: long }],
    ["get", { ...PLACE, item_id: "\ud800" }],
    ["get", null],
    ["delete", GROUP],
    ["update", { ...PLACE, ops: [{ type: "twist" }] }],
    ["list", { stream_name: "chat" }],
    ["list_groups", {}],
    ["send", { ...GROUP, data: 1 }],
  ];

  for (const [op, payload] of cases) {
    assert.equal(await at.fail(op, payload), "JSON_ERROR", `${op} ${JSON.stringify(payload)}`);
  }
  assert.equal(
    await at.fail("send", { ...GROUP, type: "t", data: "x".repeat(1024 * 1024) }),
    "VALUE_TOO_LARGE",
  );
});
