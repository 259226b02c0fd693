import assert from "node:assert/strict";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { Audience } from "./audience.ts";
import {
  ATTEMPTS_MAX,
  FEED_BYTES_MAX,
  FEED_EVENTS_MAX,
  FEED_GROUPS_MAX,
  Feeds,
  FEEDS_MAX,
  LEASE_MS,
  withFronts,
} from "./feeds.ts";

const GROUP = { stream_name: "chat", group_id: "room" };
const encoder = new TextEncoder();

interface Batch {
  readonly number: number;
  readonly events: readonly Json[][];
  readonly answer: PromiseWithResolvers<Json>;
}

function setup() {
  const clock = new FakeClock();
  let taken = 0;
  const room = { bytes: Infinity };
  const memory = {
    take(_use: string, bytes: number) {
      if (bytes > room.bytes - taken) return false;
      taken += bytes;
      return true;
    },
    release: (_use: string, bytes: number) => void (taken -= bytes),
  };
  const turns = { queue: (work: { work(): boolean }) => void work.work(), isSpent: () => false };
  const audience = new Audience({ turns, memory });
  const batches: Batch[] = [];
  const worker = {
    trigger({ payload }: { payload: { number: number; events: Json[][] } }) {
      const answer = Promise.withResolvers<Json>();
      batches.push({ ...payload, answer });
      return answer.promise;
    },
  };
  const feeds = new Feeds({ worker: worker as never, clock, memory, audience });
  const happen = (text: string, id: string | null = "i") =>
    audience.publish("chat\0room", { id, bytes: encoder.encode(text) });
  const settle = async () => {
    for (let i = 0; i < 10; i++) await undefined;
  };
  return { clock, feeds, batches, happen, settle, room, taken: () => taken };
}

Deno.test("events of a followed group go to the engine in numbered batches, one at a time", async () => {
  const { feeds, batches, happen, settle, taken } = setup();
  feeds.open("b", "s");
  feeds.of("b", "s").follow(GROUP);
  feeds.of("b", "s").follow(GROUP);

  happen("1");
  happen("2", null);
  await settle();
  happen("3");
  await settle();
  assert.deepEqual(batches.map(({ number, events }) => [number, events]), [
    [0, [["chat", "room", "i", "1"], ["chat", "room", null, "2"]]],
  ]);
  batches[0]!.answer.resolve(null);
  await settle();
  assert.deepEqual(batches[1]!.events, [["chat", "room", "i", "3"]]);
  batches[1]!.answer.resolve(null);
  await settle();
  assert.equal(taken(), 0);

  feeds.of("b", "s").unfollow(GROUP);
  happen("4");
  await settle();
  assert.equal(batches.length, 2);
});

Deno.test("an engine without room gets the same batch again; one that is gone loses its feed", async () => {
  const { clock, feeds, batches, happen, settle, taken } = setup();
  feeds.open("b", "s");
  feeds.of("b", "s").follow(GROUP);
  happen("1");
  await settle();

  batches[0]!.answer.reject(new EngineError("overloaded", "Later"));
  await settle();
  clock.tick(100);
  await settle();
  assert.deepEqual(batches.map(({ number }) => number), [0, 0]);
  batches[1]!.answer.reject(new EngineError("function_not_found", "Gone"));
  await settle();

  assert.throws(() => feeds.of("b", "s"), { code: "NOT_FOUND" });
  assert.equal(taken(), 0);
});

Deno.test("a feed ends whose events are too large together, or have no room in memory", () => {
  const { feeds, happen, room, taken } = setup();
  const large = "x".repeat(FEED_BYTES_MAX / 4);
  for (const bytes of [Infinity, FEED_BYTES_MAX * 3 / 4]) {
    room.bytes = bytes;
    feeds.open("b", "s");
    feeds.of("b", "s").follow(GROUP);

    happen(large);
    feeds.of("b", "s");
    for (let i = 0; i < 3; i++) happen(large);

    assert.throws(() => feeds.of("b", "s"), { code: "NOT_FOUND" });
    assert.equal(taken(), 0);
  }
});

Deno.test("a feed ends whose engine has no room for a batch for long", async () => {
  const { clock, feeds, batches, happen, settle } = setup();
  feeds.open("b", "s");
  feeds.of("b", "s").follow(GROUP);
  happen("1");
  await settle();

  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    feeds.of("b", "s").heard(undefined);
    batches[attempt]!.answer.reject(new EngineError("overloaded", "Later"));
    await settle();
    clock.tick(100);
    await settle();
  }

  assert.equal(batches.length, ATTEMPTS_MAX);
  assert.throws(() => feeds.of("b", "s"), { code: "NOT_FOUND" });
});

Deno.test("feeds, and the groups of one, have a limit", () => {
  const { feeds } = setup();
  for (let i = 0; i < FEEDS_MAX; i++) feeds.open(`${i}`, "s");
  assert.throws(() => feeds.open("other", "s"), { code: "overloaded" });
  feeds.open("0", "again");
  const feed = feeds.of("0", "again");
  for (let i = 0; i < FEED_GROUPS_MAX; i++) feed.follow({ ...GROUP, group_id: `${i}` });

  feed.follow({ ...GROUP, group_id: "0" });
  assert.throws(() => feed.follow({ ...GROUP, group_id: "more" }), { code: "overloaded" });
  feeds[Symbol.dispose]();
});

Deno.test("a feed ends when its engine is too far behind, is not heard of, or opens another", () => {
  const { clock, feeds, happen, taken } = setup();
  feeds.open("b", "s");
  feeds.of("b", "s").follow(GROUP);
  for (let i = 0; i < FEED_EVENTS_MAX; i++) happen("x");
  assert.equal(feeds.isBehind, true);
  feeds.of("b", "s");
  happen("one too many");
  assert.throws(() => feeds.of("b", "s"), { code: "NOT_FOUND" });
  assert.deepEqual([feeds.isBehind, taken()], [false, 0]);

  feeds.open("b", "t");
  clock.tick(LEASE_MS - 1);
  feeds.of("b", "t").heard(undefined);
  clock.tick(LEASE_MS - 1);
  feeds.of("b", "t");
  clock.tick(LEASE_MS);
  assert.throws(() => feeds.of("b", "t"), { code: "NOT_FOUND" });

  feeds.open("b", "u");
  feeds.open("b", "v");
  assert.throws(() => feeds.of("b", "u"), { code: "NOT_FOUND" });
  feeds.of("b", "v");
  feeds[Symbol.dispose]();
});

Deno.test("statistics have the subscribers of all engines", () => {
  const own = {
    url: "ws://a",
    connections: 1,
    connections_max: 10,
    subscriptions: 2,
    events: 9,
    events_sent: 3,
    closed_slow: 0,
    streams: [{ stream_name: "chat", subscriptions: 2, events: 9 }],
  };
  const front = {
    connections: 5,
    connections_max: 10,
    subscriptions: 6,
    events_sent: 7,
    closed_slow: 1,
    streams: [["chat", 5], ["news", 1]] as const,
  };

  assert.deepEqual(withFronts(own, []), own);
  assert.deepEqual(withFronts(own, [front]), {
    ...own,
    connections: 6,
    connections_max: 20,
    subscriptions: 8,
    events_sent: 10,
    closed_slow: 1,
    streams: [
      { stream_name: "chat", subscriptions: 7, events: 9 },
      { stream_name: "news", subscriptions: 1, events: 0 },
    ],
  });
});
