/**
 * `engine-stream` without sockets: subscribers whose messages tests send and read.
 *
 * @module
 */
import { MemoryStore } from "../../engine/store/memory_store.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { stream } from "../../workers/stream/mod.ts";
import { FakeClock } from "./fake_clock.ts";
import { FakeConnection, type FakePeer, fakePeer } from "./fake_connection.ts";
import { LocalEngine } from "./local_engine.ts";

/** A subscriber, and what it has received. */
export interface FakeSubscriber extends FakePeer {
  /** Joins a topic, and waits for what comes of it. */
  join(subscriptionId: string, topic: Partial<FakeTopic>): Promise<JsonObject[]>;
  /** Leaves it. */
  leave(subscriptionId: string): Promise<void>;
  /** The messages since the last call. */
  heard(): JsonObject[];
}

/** What a subscriber follows. */
export interface FakeTopic {
  readonly streamName: string;
  readonly groupId: string;
  readonly id?: string;
}

/** `engine-stream` and its subscribers. */
export interface FakeStreams extends AsyncDisposable {
  readonly engine: LocalEngine;
  readonly clock: FakeClock;
  readonly worker: Worker;
  /** Connects by `/stream` of the worker port. */
  connect(query?: Record<string, string>, headers?: HeadersInit): FakeSubscriber;
  /** Calls a function of streams. */
  call(op: string, payload: Json): Promise<Json>;
  /** What `engine::stream::stats` says. */
  stats(): Promise<JsonObject>;
}

const ROOM = { streamName: "chat", groupId: "room-1" };

/** Starts it with a configuration; `port` is a free one. */
export async function fakeStreams(
  config: JsonObject = {},
  memory?: MemoryBudget,
): Promise<FakeStreams> {
  const clock = new FakeClock();
  const engine = new LocalEngine({ clock, store: new MemoryStore(), ...memory && { memory } });
  await engine.start(stream, { port: 0, ...config });
  const worker = await engine.connect("shop");
  const ask = async (function_id: string, payload: Json): Promise<Json> => {
    const answer = worker.trigger<Json, Json>({ function_id, payload });
    await engine.settle();
    return await answer;
  };
  let connections = 0;
  return {
    engine,
    clock,
    worker,
    connect(query = {}, headers = {}) {
      const accepted = engine.sockets.get("/stream")!.accept({
        path: "/stream",
        query: new URLSearchParams(query),
        headers: new Headers(headers),
        address: "127.0.0.1",
      });
      if (typeof accepted !== "function") throw new Error(`${accepted.status} ${accepted.message}`);
      const connection = new FakeConnection(`subscriber-${++connections}`);
      const peer = fakePeer(connection, accepted(connection));
      const heard = (): JsonObject[] => connection.takeTexts().map((text) => JSON.parse(text));
      const say = async (type: string, subscriptionId: string, topic: object): Promise<void> => {
        peer.say({ type, data: { subscriptionId, ...ROOM, ...topic } });
        for (let i = 0; i < 5; i++) await engine.settle();
      };
      return {
        ...peer,
        heard,
        join: async (id, topic) => {
          await say("join", id, topic);
          return heard();
        },
        leave: (id) => say("leave", id, {}),
      };
    },
    call: (op, payload) => ask(`stream::${op}`, payload),
    stats: () => ask("engine::stream::stats", {}) as Promise<JsonObject>,
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}
