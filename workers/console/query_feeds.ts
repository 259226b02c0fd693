/**
 * Queries that pages watch: each different one is asked once for all of them, and again whenever
 * one of its triggers fires.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { CONSOLE_FEEDS_MAX } from "./limits.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { EngineLink } from "./engine_link.ts";
import { canonical } from "./json_text.ts";
import { QueryFeed, type QueryWatcher } from "./query_feed.ts";
import type { TriggerFeeds } from "./trigger_feeds.ts";
import type { WatchedQuery, WatchedTrigger } from "./wire.ts";

/** A query to watch. */
export interface QueryToWatch {
  readonly query: WatchedQuery;
  /** Asked again when one of these fires. */
  readonly on: readonly WatchedTrigger[];
  /** Applied to every result; equal names stand for equal ones. */
  readonly view?: { readonly name: string; apply(result: Json | undefined): Json | undefined };
}

/** Part in a query that is watched. */
export interface QueryPart {
  /** Sends all of it again, to this watcher alone, if there is a result. */
  again(): void;
  /** Ends the part. */
  stop(): void;
}

/** See the top of this file. */
export class QueryFeeds {
  readonly #link: EngineLink;
  readonly #triggers: TriggerFeeds;
  readonly #clock: Clock;
  readonly #feeds = new Map<string, QueryFeed>();
  readonly #stopListening: () => void;

  /** Asks nothing yet. */
  constructor(link: EngineLink, triggers: TriggerFeeds, clock: Clock) {
    this.#link = link;
    this.#triggers = triggers;
    this.#clock = clock;
    this.#stopListening = link.listen((connected) => {
      for (const feed of [...this.#feeds.values()]) feed.heardOfLine(connected);
    });
  }

  /** How many different queries are watched. */
  get size(): number {
    return this.#feeds.size;
  }

  /**
   * Watches a query.
   *
   * @throws {EngineError} `overloaded` when too many different ones are watched.
   */
  watch(wanted: QueryToWatch, watcher: QueryWatcher): QueryPart {
    const { query, on, view } = wanted;
    const key = canonical([query, on, view?.name ?? null]);
    const feed = this.#feeds.get(key) ?? this.#open(key, wanted);
    feed.add(watcher);
    return {
      again: () => feed.tellAll(watcher),
      stop: () => {
        if (feed.remove(watcher) === 0) this.#close(key, feed);
      },
    };
  }

  /** Asks nothing any more. */
  stop(): void {
    this.#stopListening();
    for (const [key, feed] of [...this.#feeds]) this.#close(key, feed);
  }

  #open(key: string, wanted: QueryToWatch): QueryFeed {
    if (this.#feeds.size >= CONSOLE_FEEDS_MAX) {
      const message = `${CONSOLE_FEEDS_MAX} queries are watched, which is the most; close a page`;
      throw new EngineError("overloaded", message);
    }
    const feed: QueryFeed = new QueryFeed({
      wanted,
      link: this.#link,
      triggers: this.#triggers,
      clock: this.#clock,
      ended: () => this.#close(key, feed),
    });
    this.#feeds.set(key, feed);
    try {
      feed.start();
    } catch (thrown) {
      this.#close(key, feed);
      throw thrown;
    }
    return feed;
  }

  #close(key: string, feed: QueryFeed): void {
    if (this.#feeds.get(key) === feed) this.#feeds.delete(key);
    feed.stop();
  }
}
