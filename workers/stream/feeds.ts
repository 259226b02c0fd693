/**
 * In a cluster, at the engine that keeps the streams: what subscribers at the other engines need.
 *
 * Each other engine opens a feed and names the groups that are followed there. The events of those
 * go to it in batches, one after another, each with its number. A feed whose engine does not take
 * them, is too far behind, or has not been heard of for {@linkcode LEASE_MS} ends; that engine
 * learns it when it asks next, and its clients begin anew. `front.ts` is the other side.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { triggerAt } from "../kit/engines.ts";
import type { Audience, GroupEvent } from "./audience.ts";
import type { Topic } from "./messages.ts";
import { groupKey } from "./subscriber.ts";

/** Takes events at an engine, in the namespace of that engine. */
export const EVENTS_FUNCTION = "stream::events";
/** A feed of which nothing was heard for so long is over. */
export const LEASE_MS = 10_000;
/** Feeds at once: engines of a cluster. */
export const FEEDS_MAX = 256;
/** Groups of one feed. */
export const FEED_GROUPS_MAX = 100_000;
/** Events that wait for one engine, and their bytes. */
export const FEED_EVENTS_MAX = 10_000;
export const FEED_BYTES_MAX: number = 32 * 1024 * 1024;
/** Events of one call, and their bytes, after which it has no more. */
const BATCH_EVENTS_MAX = 1_000;
const BATCH_BYTES_MAX: number = 256 * 1024;
/** How long an engine may take for a batch. */
const BATCH_TIMEOUT_MS = 5_000;
/** Attempts of a batch that an engine has no room for, and the time between them. */
export const ATTEMPTS_MAX = 20;
const AGAIN_MS = 100;
/** Estimated bytes of an event beside its message. */
const OVERHEAD_BYTES = 256;

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** A group of a stream. */
export type GroupName = Omit<Topic, "id">;

/** An event on its way to an engine: stream, group, item, message. */
export type FeedEvent = readonly [string, string, string | null, string];

/** One that has not been taken, and what it counts. */
interface Waiting {
  readonly event: FeedEvent;
  readonly size: number;
}

/** What an engine says of its subscribers. */
export interface FrontStats {
  readonly connections: number;
  readonly connections_max: number;
  readonly subscriptions: number;
  readonly events_sent: number;
  readonly closed_slow: number;
  /** Subscriptions by stream. */
  readonly streams: readonly (readonly [string, number])[];
}

/** Dependencies of {@linkcode Feeds}. */
export interface FeedsSetup {
  readonly worker: Pick<Worker, "trigger">;
  readonly clock: Clock;
  readonly memory: Pick<MemoryBudget, "take" | "release">;
  readonly audience: Pick<Audience, "follow">;
}

/** The feeds, by the life of their engine. */
export class Feeds implements Disposable {
  readonly #setup: FeedsSetup;
  readonly #feeds = new Map<string, Feed>();
  #cancelCheck: (() => void) | undefined;

  constructor(setup: FeedsSetup) {
    this.#setup = setup;
  }

  /** Whether an engine is half as far behind as it may be. */
  get isBehind(): boolean {
    return this.#feeds.values().some((feed) => feed.isBehind);
  }

  /** What the engines said of their subscribers. */
  get stats(): FrontStats[] {
    return [...this.#feeds.values()].flatMap(({ stats }) => stats ?? []);
  }

  /** Begins a feed, in place of one before. @throws {EngineError} `overloaded` */
  open(life: string, session: string): void {
    this.#feeds.get(life)?.end();
    if (this.#feeds.size >= FEEDS_MAX) {
      throw new EngineError(
        "overloaded",
        `There are ${FEEDS_MAX} feeds of streams already, the maximum`,
      );
    }
    const feed = new Feed(life, session, {
      ...this.#setup,
      ended: () => void this.#feeds.delete(life),
    });
    this.#feeds.set(life, feed);
    this.#cancelCheck ??= this.#setup.clock.after(LEASE_MS / 2, () => this.#check());
  }

  /** @throws {EngineError} `NOT_FOUND` when there is no such feed any more. */
  of(life: string, session: string): Feed {
    const feed = this.#feeds.get(life);
    if (feed?.session === session) return feed;
    throw new EngineError("NOT_FOUND", "The feed of streams has ended");
  }

  /** Ends all. */
  [Symbol.dispose](): void {
    this.#cancelCheck?.();
    for (const feed of [...this.#feeds.values()]) feed.end();
  }

  #check(): void {
    const { clock } = this.#setup;
    const stale = clock.now() - LEASE_MS;
    for (const feed of [...this.#feeds.values()]) if (feed.heardAt < stale) feed.end();
    this.#cancelCheck = this.#feeds.size === 0
      ? undefined
      : clock.after(LEASE_MS / 2, () => this.#check());
  }
}

/** The feed of one engine. */
export class Feed {
  readonly session: string;
  /** When its engine asked last. */
  heardAt: number;
  /** What its engine said last. */
  stats: FrontStats | undefined;
  readonly #life: string;
  readonly #setup: FeedsSetup & { ended(): void };
  /** What stops following, by group. */
  readonly #groups = new Map<string, () => void>();
  #waiting: Waiting[] = [];
  #bytes = 0;
  #number = 0;
  #isSending = false;
  #isOver = false;

  constructor(life: string, session: string, setup: FeedsSetup & { ended(): void }) {
    this.#life = life;
    this.session = session;
    this.#setup = setup;
    this.heardAt = setup.clock.now();
  }

  /** See {@linkcode Feeds.isBehind}. */
  get isBehind(): boolean {
    return this.#waiting.length > FEED_EVENTS_MAX / 2 || this.#bytes > FEED_BYTES_MAX / 2;
  }

  /** Its engine lives. */
  heard(stats: FrontStats | undefined): void {
    this.heardAt = this.#setup.clock.now();
    this.stats = stats ?? this.stats;
  }

  /** Events of a group go to the engine from now on. @throws {EngineError} `overloaded` */
  follow(group: GroupName): void {
    const key = groupKey(group);
    if (this.#groups.has(key)) return;
    if (this.#groups.size >= FEED_GROUPS_MAX) {
      throw new EngineError("overloaded", `An engine may follow at most ${FEED_GROUPS_MAX} groups`);
    }
    const hear = (event: GroupEvent): void => this.#hear(group, event);
    this.#groups.set(key, this.#setup.audience.follow(key, { hear }));
  }

  /** Ends {@linkcode Feed.follow}. */
  unfollow(group: GroupName): void {
    const key = groupKey(group);
    this.#groups.get(key)?.();
    this.#groups.delete(key);
  }

  /** Ends it; its engine learns that when it asks. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const stop of this.#groups.values()) stop();
    this.#groups.clear();
    this.#waiting = [];
    this.#setup.memory.release("queues", this.#bytes);
    this.#bytes = 0;
    this.#setup.ended();
  }

  #hear({ stream_name, group_id }: GroupName, { id, bytes }: GroupEvent): void {
    if (this.#isOver) return;
    const size = bytes.length + OVERHEAD_BYTES;
    const isFull = this.#waiting.length >= FEED_EVENTS_MAX ||
      (this.#bytes > 0 && this.#bytes + size > FEED_BYTES_MAX);
    if (isFull || !this.#setup.memory.take("queues", size)) return this.end();
    this.#bytes += size;
    this.#waiting.push({ size, event: [stream_name, group_id, id, decoder.decode(bytes)] });
    if (!this.#isSending) void this.#send();
  }

  /** Sends what waits, one batch after another. Never rejects. */
  async #send(): Promise<void> {
    this.#isSending = true;
    await undefined; // What comes in the same turn goes with it.
    while (this.#waiting.length > 0) {
      const { events, size } = batchOf(this.#waiting);
      const isTaken = await this.#deliver(events);
      if (this.#isOver) return;
      if (!isTaken) return this.end();
      this.#waiting.splice(0, events.length);
      this.#bytes -= size;
      this.#setup.memory.release("queues", size);
    }
    this.#isSending = false;
  }

  async #deliver(events: readonly FeedEvent[]): Promise<boolean> {
    const number = this.#number++;
    const payload: Json = { session: this.session, number, events: events as unknown as Json };
    const call = { function_id: EVENTS_FUNCTION, payload, timeoutMs: BATCH_TIMEOUT_MS };
    for (let attempt = 1; attempt <= ATTEMPTS_MAX && !this.#isOver; attempt++) {
      try {
        await triggerAt(this.#setup.worker, this.#life, call);
        return true;
      } catch (thrown) {
        if ((thrown as EngineError).code !== "overloaded") return false;
        await new Promise<void>((resolve) => void this.#setup.clock.after(AGAIN_MS, resolve));
      }
    }
    return false;
  }
}

/** The first events, as many as one call has. */
function batchOf(waiting: readonly Waiting[]): { events: FeedEvent[]; size: number } {
  const events: FeedEvent[] = [];
  let size = 0;
  for (const each of waiting) {
    if (events.length >= BATCH_EVENTS_MAX || size >= BATCH_BYTES_MAX) break;
    events.push(each.event);
    size += each.size;
  }
  return { events, size };
}

/** Statistics of this engine's subscribers, with those of the others. */
export function withFronts(own: JsonObject, fronts: readonly FrontStats[]): JsonObject {
  if (fronts.length === 0) return own;
  const sum = (key: Exclude<keyof FrontStats, "streams">): number =>
    fronts.reduce((total, front) => total + front[key], own[key] as number);
  const streams = new Map((own.streams as JsonObject[]).map((one) => [one.stream_name, one]));
  for (const [stream_name, subscriptions] of fronts.flatMap((front) => front.streams)) {
    const known = streams.get(stream_name);
    const before = known?.subscriptions as number | undefined ?? 0;
    streams.set(stream_name, {
      stream_name,
      events: known?.events ?? 0,
      subscriptions: before + subscriptions,
    });
  }
  return {
    ...own,
    connections: sum("connections"),
    connections_max: sum("connections_max"),
    subscriptions: sum("subscriptions"),
    events_sent: sum("events_sent"),
    closed_slow: sum("closed_slow"),
    streams: [...streams.values()],
  };
}
