/**
 * `engine-stream` at an engine of a cluster that does not keep the streams: its own port and path,
 * whose subscribers are served with what the keeping engine says (`kept.ts`, `feeds.ts`).
 *
 * A connection, what it follows and what waits for it are here, so an event crosses the link once
 * for each engine, however many of its clients follow the group. A client begins with the group as
 * it is after its events were asked for, so it misses none. When the engine that keeps the streams
 * changes, or its events did not all arrive, all clients are closed with 1013: they connect again
 * and get everything anew.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import type { EngineHost } from "../kit/define.ts";
import { registerForEngines } from "../kit/engines.ts";
import { fit } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import { Audience, type Follower } from "./audience.ts";
import type { StreamConfig } from "./config.ts";
import { EVENTS_FUNCTION, type FeedEvent, type FrontStats, type GroupName } from "./feeds.ts";
import { Joins, type SubscriptionInfo } from "./joins.ts";
import { FRONT_FUNCTION, FRONT_STREAMS_MAX, type FrontRequest, LEAVES_MAX } from "./kept.ts";
import type { Topic } from "./messages.ts";
import { StreamServer } from "./server.ts";
import { groupKey } from "./subscriber.ts";
import { SyncReads } from "./sync.ts";

/** Between two questions whether the feed goes on. */
export const ALIVE_MS = 1_000;
/** How long an answer may take beside the time of the functions that it needs. */
const ANSWER_MS = 30_000;
/** How long clients may take to leave when this engine becomes the one that keeps the streams. */
const END_MS = 500;
/** Errors that say that the feed, or its engine, is gone. */
const GONE = new Set([
  "function_not_found",
  "invocation_stopped",
  "store_unavailable",
  "NOT_FOUND",
]);
const CHANGED = "the engine that keeps the streams has changed; connect again";

const Events = v.object({
  session: v.string(),
  number: v.int(0, Number.MAX_SAFE_INTEGER),
  events: v.array(v.tuple([v.string(), v.string(), v.nullable(v.string()), v.string()])),
});

const encoder = new TextEncoder();

/** A group that subscribers of this engine follow. */
interface Followed {
  followers: number;
  /** Settles when its events come. */
  readonly isThere: Promise<void>;
}

/** See the module. */
export class Front implements AsyncDisposable {
  readonly server: StreamServer;
  readonly #worker: Pick<Worker, "trigger">;
  readonly #host: EngineHost;
  readonly #audience: Audience;
  readonly #timeoutMs: number;
  readonly #followed = new Map<string, Followed>();
  #session: { readonly id: string; readonly isOpen: Promise<unknown> } | undefined;
  /** Number of the batch that comes next. */
  #number = 0;
  #cancelAlive = (): void => {};
  /** Subscriptions that ended, and whose end was not said yet. */
  readonly #leaving: SubscriptionInfo[] = [];

  /** @throws {EngineError} `address_in_use` or `address_not_available`, with what to do. */
  constructor(worker: Pick<Worker, "trigger">, config: StreamConfig, host: EngineHost) {
    const { clock, log, memory, turns } = host;
    this.#worker = worker;
    this.#host = host;
    this.#timeoutMs = config.call_timeout_ms + ANSWER_MS;
    this.#audience = new Audience({ turns, memory });
    const { auth_function: authFunction, call_timeout_ms: timeoutMs } = config;
    const own = new Joins({ worker: this.#worker, clock, log, authFunction, timeoutMs });
    const joins = {
      admit: own.admit.bind(own),
      allows: async (info: SubscriptionInfo) =>
        await this.#ask({ op: "join", subscription: about(info) }) === true,
      left: (info: SubscriptionInfo): void => this.#leave(info),
    };
    const audience = { follow: this.#follow.bind(this) };
    const sync = new SyncReads({ read: (topic) => this.#read(topic) });
    const services = { clock, memory, audience, joins, sync };
    this.server = new StreamServer(config, host, services, END_MS);
  }

  /** Those that leave at once, such as all when the keeper changes, are one call. */
  #leave(info: SubscriptionInfo): void {
    if (this.#leaving.push(info) > 1) return;
    queueMicrotask(() => {
      const all = this.#leaving.splice(0).map(about);
      for (let at = 0; at < all.length; at += LEAVES_MAX) {
        const subscriptions = all.slice(at, at + LEAVES_MAX);
        this.#call({ op: "leave", subscriptions }).catch(() => {}); // Gone as well.
      }
    });
  }

  /** Takes a batch of events. @throws {EngineError} `NOT_FOUND` for one that does not fit. */
  take(payload: Json): void {
    const { session, number, events } = fit(EVENTS_FUNCTION, Events, payload);
    if (session !== this.#session?.id) throw new EngineError("NOT_FOUND", "The feed has ended");
    if (number < this.#number) return; // It came twice.
    if (number > this.#number) {
      this.#lost("events were lost; connect again");
      throw new EngineError("NOT_FOUND", "Events were lost");
    }
    this.#number++;
    for (const [stream_name, group_id, id, message] of events as FeedEvent[]) {
      const event = { id, bytes: encoder.encode(message) };
      this.server.count(stream_name);
      if (this.#audience.publish(groupKey({ stream_name, group_id }), event)) continue;
      return this.#lost("events were lost; connect again");
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#lost(CHANGED);
    await this.server[Symbol.asyncDispose]();
    this.#audience[Symbol.dispose]();
  }

  #follow(key: string, follower: Follower): () => void {
    const stop = this.#audience.follow(key, follower);
    const known = this.#followed.get(key);
    const group = known ?? { followers: 0, isThere: this.#begin(groupOf(key)) };
    if (!known) {
      this.#followed.set(key, group);
      group.isThere.catch(() => {}); // The read that waits for it fails.
    }
    group.followers++;
    return () => {
      stop();
      if (--group.followers > 0 || this.#followed.get(key) !== group) return;
      this.#followed.delete(key);
      void this.#end(groupOf(key));
    };
  }

  async #begin(group: GroupName): Promise<void> {
    const { id, isOpen } = this.#session ??= this.#open();
    await isOpen;
    await this.#ask({ op: "follow", ...this.#named(id), group });
  }

  /** Never rejects. */
  async #end(group: GroupName): Promise<void> {
    const session = this.#session;
    if (!session) return;
    await this.#call({ op: "unfollow", ...this.#named(session.id), group }).catch(() => {});
  }

  #open(): { id: string; isOpen: Promise<unknown> } {
    const id = crypto.randomUUID();
    this.#number = 0;
    this.#cancelAlive = this.#host.clock.after(ALIVE_MS, () => void this.#alive());
    // Asked once `#session` is set, so that clients begin anew if there is no keeper.
    const isOpen = Promise.resolve().then(() => this.#ask({ op: "open", ...this.#named(id) }));
    return { id, isOpen };
  }

  /** Asks whether the feed goes on. Never rejects. */
  async #alive(): Promise<void> {
    const session = this.#session!;
    // A call would wait for the next one to keep the streams, while clients miss events.
    if (!this.#isKeeperLinked()) return this.#lost(CHANGED);
    try {
      await session.isOpen;
      const stats = this.#stats();
      await this.#ask({ op: "alive", ...this.#named(session.id), stats: stats as never });
    } catch {
      if (session === this.#session) this.#lost(CHANGED);
    }
    if (session !== this.#session) return;
    this.#cancelAlive = this.#host.clock.after(ALIVE_MS, () => void this.#alive());
  }

  async #read(topic: Topic): Promise<Uint8Array> {
    await this.#followed.get(groupKey(topic))?.isThere;
    return encoder.encode(await this.#ask({ op: "read", topic }) as string);
  }

  /** Calls the engine that keeps the streams; all clients begin anew when that is gone. */
  async #ask(payload: FrontRequest): Promise<Json> {
    const session = this.#session;
    try {
      return await this.#call(payload);
    } catch (thrown) {
      const isGone = GONE.has((thrown as EngineError).code);
      if (isGone && session === this.#session) this.#lost(CHANGED);
      throw thrown;
    }
  }

  #call(payload: FrontRequest): Promise<Json> {
    const called = { function_id: FRONT_FUNCTION, payload: payload as unknown as Json };
    return this.#worker.trigger<Json, Json>({ ...called, timeoutMs: this.#timeoutMs });
  }

  /** Closes all clients, who come back and get everything anew. */
  #lost(reason: string): void {
    const session = this.#session;
    this.#session = undefined;
    this.#cancelAlive();
    this.#followed.clear();
    this.server.lost(reason);
    if (session) this.#call({ op: "close", ...this.#named(session.id) }).catch(() => {});
  }

  #isKeeperLinked(): boolean {
    const engines = this.#host.engines!;
    return engines.list().some(({ life, link }) => life === engines.keeper && link !== null);
  }

  #named(session: string): { life: string; session: string } {
    return { life: this.#host.engines!.life, session };
  }

  #stats(): FrontStats {
    const own = this.server.stats();
    const streams = (own.streams as JsonObject[]).slice(0, FRONT_STREAMS_MAX)
      .filter(({ subscriptions }) => subscriptions !== 0)
      .map((one) => [one.stream_name as string, one.subscriptions as number] as const);
    const { connections, connections_max, subscriptions, events_sent, closed_slow } =
      own as unknown as FrontStats;
    return { connections, connections_max, subscriptions, events_sent, closed_slow, streams };
  }
}

/** Starts it. */
export function startFront(
  worker: Worker,
  config: StreamConfig,
  host: EngineHost,
): Front {
  const front = new Front(worker, config, host);
  const about = {
    function_id: EVENTS_FUNCTION,
    description: "Takes events of streams for the clients of this engine",
  };
  const { directory, engines } = host;
  registerForEngines({ worker, directory, life: engines!.life }, about, (payload) => {
    front.take(payload);
    return null;
  });
  return front;
}

function about({ subscription_id, topic, context }: SubscriptionInfo) {
  return { subscription_id, topic, context };
}

function groupOf(key: string): GroupName {
  const at = key.indexOf("\0");
  return { stream_name: key.slice(0, at), group_id: key.slice(at + 1) };
}
