import assert from "node:assert/strict";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import {
  changeOf,
  entryOf,
  listGroups,
  listStreams,
  type StreamEvent,
  streamItems,
} from "./items.ts";

function setup() {
  const events: StreamEvent[] = [];
  const entries = streamItems({
    store: new MemoryStore(),
    clock: new FakeClock(),
    changed: (event) => void events.push(event),
    expires() {},
  });
  const set = (stream_name: string, group_id: string, item_id: string) =>
    entries.write(entryOf({ stream_name, group_id, item_id }), () => ({
      value: item_id,
      expires_at_ms: undefined,
    }));
  return { entries, events, set };
}

Deno.test("groups of a stream are not those of one whose name begins alike", async () => {
  const { entries, set } = setup();
  for (const [stream, group] of [["a", "x"], ["a!", "y"], ["ab", "z"], ["a", "b"]] as const) {
    await set(stream, group, "1");
  }

  assert.deepEqual(await listGroups(entries, "a"), ["b", "x"]);
  assert.deepEqual((await listStreams(entries)).streams.map(({ id }) => id), ["a", "a!", "ab"]);
});

Deno.test("a group with many pages of others before it is found", async () => {
  const { entries, set } = setup();
  for (let i = 0; i < 1_005; i++) await set("many", `g${String(i).padStart(4, "0")}`, "1");

  assert.equal((await listGroups(entries, "many"))?.length, 1_005);
});

Deno.test("a change names stream, group and item", async () => {
  const { events, set } = setup();

  await set("chat", "room", "m1");

  const [{ timestamp: _, ...event }] = events as [StreamEvent];
  assert.deepEqual(event, {
    type: "stream",
    streamName: "chat",
    groupId: "room",
    id: "m1",
    event: { type: "create", data: "m1" },
  });
});

Deno.test("changeOf() tells creations, updates and removals apart", () => {
  assert.deepEqual(changeOf(undefined, 1), { type: "create", data: 1 });
  assert.deepEqual(changeOf(null, 1), { type: "update", data: 1 });
  assert.deepEqual(changeOf(1, undefined), { type: "delete", data: 1 });
  assert.equal(changeOf(undefined, undefined), undefined);
});
