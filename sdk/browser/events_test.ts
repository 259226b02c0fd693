import assert from "node:assert/strict";
import { Items, ownId, readMessage } from "./events.ts";

const GROUP = { streamName: "chat", groupId: "room-1", id: null };

function read(message: unknown) {
  return readMessage(JSON.stringify(message));
}

Deno.test("readMessage() reads what PROTOCOL 5.3 says, and nothing else", () => {
  const base = { type: "stream", timestamp: 7, ...GROUP };
  const about = { ...GROUP, id: "m7" };

  assert.deepEqual(read({ ...base, event: { type: "sync", data: [1], ids: ["a"] } }), {
    type: "sync",
    topic: GROUP,
    data: [1],
    ids: ["a"],
    timestamp: 7,
  });
  assert.deepEqual(read({ ...base, id: "m7", event: { type: "create", data: 1 } }), {
    type: "event",
    topic: about,
    event: { type: "create", id: "m7", item: 1, timestamp: 7 },
  });
  const sent = { type: "event", event: { type: "typing", data: "ann" } };
  assert.deepEqual(read({ ...base, event: sent }), {
    type: "event",
    topic: GROUP,
    event: { type: "event", id: null, name: "typing", data: "ann", timestamp: 7 },
  });
  assert.deepEqual(read({ ...base, event: { type: "unauthorized" } }), {
    type: "unauthorized",
    topic: GROUP,
  });
  const error = { type: "error", subscriptionId: "s1", error: { code: "overloaded" } };
  assert.deepEqual(read(error), error);

  const wrong = [
    null,
    [],
    "x",
    { type: "stream" },
    { type: "later", ...GROUP, event: { type: "sync", data: [] } },
    { ...base, event: null },
    { ...base, id: 5, event: { type: "create", data: 1 } },
    { ...base, event: { type: "create", data: 1 } },
    { ...base, event: { type: "event", event: "typing" } },
    { ...base, event: { type: "unheard-of" } },
    { ...error, subscriptionId: 1 },
  ];
  for (const message of wrong) assert.equal(read(message), undefined, JSON.stringify(message));
  assert.equal(readMessage("{"), undefined);
});

Deno.test("Items are those of the sync, with every change since", () => {
  const items = new Items(ownId);
  items.replace(GROUP, ["a", "b"], ["1", "2"]);

  items.apply({ type: "update", id: "1", item: "A", timestamp: 0 });
  items.apply({ type: "create", id: "3", item: "c", timestamp: 0 });
  items.apply({ type: "delete", id: "2", item: "b", timestamp: 0 });
  items.apply({ type: "event", id: "3", name: "typing", data: null, timestamp: 0 });

  assert.deepEqual([...items.map], [["1", "A"], ["3", "c"]]);
  items.replace(GROUP, [], []);
  assert.equal(items.map.size, 0);
});

Deno.test("Items without ids of the engine have the id of their data, else their place", () => {
  const items = new Items(ownId);

  items.replace(GROUP, [{ id: "x" }, { id: 5 }, null], undefined);
  assert.deepEqual([...items.map.keys()], ["x", "#1", "#2"]);

  items.replace({ ...GROUP, id: "m7" }, { text: "hi" }, undefined);
  assert.deepEqual([...items.map], [["m7", { text: "hi" }]]);
  items.replace({ ...GROUP, id: "m7" }, null, undefined);
  assert.equal(items.map.size, 0);
});
