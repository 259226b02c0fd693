import assert from "node:assert/strict";
import { NO_ENTRIES, withChange, withPage } from "../state/entries.ts";
import {
  ALL,
  eventView,
  itemSource,
  matchesSearch,
  rowsOf,
  type StreamEvent,
  StreamSamples,
  type StreamStats,
} from "./stream_rows.ts";

function stats(events: number, chat: number, sent = 0): StreamStats {
  return {
    url: "ws://127.0.0.1:3112",
    connections: 1,
    connections_max: 10,
    subscriptions: 2,
    events,
    events_sent: sent,
    closed_slow: 0,
    streams: [{ stream_name: "chat", subscriptions: 2, events: chat }],
  };
}

function event(type: "create" | "update" | "delete", id: string, data = 1): StreamEvent {
  return { timestamp: 1, id, event: { type, data } };
}

Deno.test("StreamSamples makes rates of totals, and none where they began anew", () => {
  const samples = new StreamSamples();
  samples.add(1_000, stats(0, 0));
  samples.add(3_000, stats(10, 4, 100));

  assert.equal(samples.window.latest(ALL, "events_per_s"), 5);
  assert.equal(samples.window.latest(ALL, "sent_per_s"), 50);
  assert.equal(samples.window.latest("chat", "events_per_s"), 2);
  samples.add(4_000, stats(1, 1, 1));
  assert.equal(samples.window.latest(ALL, "events_per_s"), null);
});

Deno.test("rowsOf() joins streams with items and streams with subscribers", () => {
  const listed = [{ id: "news", groups: ["a", "b"] }, { id: "chat", groups: ["a"] }];

  assert.deepEqual(rowsOf(listed, stats(0, 0)), [
    { name: "chat", groups: 1, subscriptions: 2 },
    { name: "news", groups: 2, subscriptions: 0 },
  ]);
  assert.deepEqual(rowsOf(null, stats(0, 0)), [{ name: "chat", groups: null, subscriptions: 2 }]);
  assert.deepEqual(rowsOf([], stats(0, 0))[0]!.groups, 0);
  assert.deepEqual(rowsOf([], undefined), []);
});

Deno.test("matchesSearch() looks at the name", () => {
  const row = { name: "Chat-rooms", groups: 1, subscriptions: 0 };

  assert.equal(matchesSearch(row, "ROOM chat"), true);
  assert.equal(matchesSearch(row, "news"), false);
});

Deno.test("items of a group are entries, which its events change", () => {
  const source = itemSource({ stream_name: "chat", group_id: "r1" });
  const list = withPage(
    NO_ENTRIES,
    source.readPage({ items: [{ id: "a", data: 1 }, { id: "c", data: 3 }] }),
  );
  const after = [event("create", "b", 2), event("update", "a", 9), event("delete", "c")]
    .reduce((list, each) => withChange(list, source.changeIn(each)!, 5), list);

  assert.deepEqual(after.entries.map(({ key, value }) => [key, value]), [["a", 9], ["b", 2]]);
  assert.equal(source.readPage({ items: [], cursor: "x" }).cursor, "x");
});

Deno.test("an event that is only sent changes no item, and is shown by its name", () => {
  const { changeIn } = itemSource({ stream_name: "chat", group_id: "r1" });
  const sent: StreamEvent = {
    timestamp: 1,
    id: "a",
    event: { type: "event", event: { type: "typing", data: { by: "ann" } } },
  };

  assert.equal(changeIn(sent), undefined);
  assert.equal(changeIn({ ...event("create", "a"), id: null }), undefined);
  assert.deepEqual([eventView(sent).word, eventView(sent).brief], ["typing", '{"by":"ann"}']);
  assert.equal(eventView(event("delete", "a")).tone, "bad");
});
