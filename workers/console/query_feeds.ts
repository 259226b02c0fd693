/**
 * Queries that pages watch: each different one is asked once for all of them, and again whenever
 * one of its triggers fires.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { ErrorBody, Json } from "../../sdk/typescript/wire/protocol.ts";
import { beginTrace, canonical, type EngineLink, failureOf } from "./engine_client.ts";
import {
  CONSOLE_FEEDS_MAX,
  CONSOLE_QUERY_DEBOUNCE_MS,
  CONSOLE_QUERY_INTERVAL_MS,
  CONSOLE_QUERY_RETRIES,
  CONSOLE_QUERY_RETRY_MS,
  CONSOLE_QUERY_WAIT_FACTOR,
  CONSOLE_QUERY_WAIT_MS_MAX,
} from "./limits.ts";
import { type QueryChange, QueryState } from "./query_state.ts";
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

/** Hears of one query; must not throw. */
export interface QueryWatcher {
  /** There is another result; `state` has all of it. */
  changed(change: QueryChange, state: QueryState): void;
  /** It cannot be asked; nothing more comes. */
  failed(error: ErrorBody): void;
}

/** What a query needs. */
export interface QueryFeedOptions {
  readonly wanted: QueryToWatch;
  readonly link: EngineLink;
  readonly triggers: TriggerFeeds;
  readonly clock: Clock;
  /** It failed for good. */
  ended(): void;
}

/** See the top of this file. */
export class QueryFeed {
  readonly #options: QueryFeedOptions;
  readonly #state: QueryState;
  readonly #watchers = new Set<QueryWatcher>();
  readonly #stops: (() => void)[] = [];
  #cancel: (() => void) | undefined;
  #isAsking = false;
  /** Something fired while the query was on its way. */
  #isDue = false;
  #isStopped = false;
  /** Not before, on the clock. */
  #notBefore = 0;
  #failures = 0;
  #hasAnswered = false;
  /** Grows with every line and with the end: a result of before is of no use. */
  #epoch = 0;

  /** Asks nothing yet. */
  constructor(options: QueryFeedOptions) {
    this.#options = options;
    this.#state = new QueryState(options.wanted.query);
  }

  /** Registers the triggers first, so that no change is missed, then asks. */
  start(): void {
    const { wanted, triggers } = this.#options;
    for (const trigger of wanted.on) {
      this.#stops.push(triggers.watch(trigger, {
        fired: () => this.#schedule(CONSOLE_QUERY_DEBOUNCE_MS),
        failed: (error) => this.#fail(error),
      }));
    }
    this.#ask();
  }

  /** Adds a watcher, and tells it what is known. */
  add(watcher: QueryWatcher): void {
    this.#watchers.add(watcher);
    this.tellAll(watcher);
  }

  /** Tells a watcher all that is known. */
  tellAll(watcher: QueryWatcher): void {
    if (this.#state.isKnown) watcher.changed({ type: "all" }, this.#state);
  }

  /** Takes a watcher out and says how many are left. */
  remove(watcher: QueryWatcher): number {
    this.#watchers.delete(watcher);
    return this.#watchers.size;
  }

  /** The line to the engine is lost, or there again: then all is asked and told anew. */
  heardOfLine(connected: boolean): void {
    this.#epoch++;
    this.#isAsking = false;
    this.#cancel?.();
    this.#cancel = undefined;
    this.#failures = 0;
    if (!connected) return;
    this.#state.forget();
    this.#ask();
  }

  /** Asks nothing any more. */
  stop(): void {
    this.#isStopped = true;
    this.#epoch++;
    this.#cancel?.();
    for (const stop of this.#stops) stop();
    this.#stops.length = 0;
    this.#watchers.clear();
  }

  #schedule(ms: number): void {
    if (this.#isStopped || this.#cancel || !this.#options.link.isConnected) return;
    if (this.#isAsking) {
      this.#isDue = true;
      return;
    }
    const { clock } = this.#options;
    const wait = Math.max(ms, this.#notBefore - clock.now());
    this.#cancel = clock.after(wait, () => {
      this.#cancel = undefined;
      this.#ask();
    });
  }

  #ask(): void {
    const { link, wanted: { query }, clock } = this.#options;
    if (this.#isStopped || !link.isConnected) return;
    const epoch = this.#epoch;
    const began = clock.now();
    this.#isAsking = true;
    this.#isDue = false;
    const { function_id, payload = {} } = query;
    const { traceparent } = beginTrace(false);
    link.call({ function_id, payload, traceparent }).then(
      (result) => epoch === this.#epoch && this.#take(result),
      (thrown) => epoch === this.#epoch && this.#missed(failureOf(thrown)),
    ).finally(() => {
      if (epoch !== this.#epoch) return;
      this.#isAsking = false;
      const tookMs = clock.now() - began;
      this.#notBefore = clock.now() + waitAfter(tookMs);
      if (this.#failures > 0) this.#schedule(CONSOLE_QUERY_RETRY_MS);
      else if (this.#isDue) this.#schedule(CONSOLE_QUERY_DEBOUNCE_MS);
    });
  }

  #take(result: Json | undefined): void {
    this.#failures = 0;
    this.#hasAnswered = true;
    const { view } = this.#options.wanted;
    let change: QueryChange;
    try {
      change = this.#state.take(view ? view.apply(result) : result);
    } catch (thrown) {
      return this.#fail(failureOf(thrown)); // No list where one was to be: asking again won't help.
    }
    if (change.type === "none") return;
    for (const watcher of [...this.#watchers]) watcher.changed(change, this.#state);
  }

  /** What has answered once may be restarting; what never has is wrong. */
  #missed(error: ErrorBody): void {
    this.#failures++;
    if (this.#hasAnswered && this.#failures <= CONSOLE_QUERY_RETRIES) return;
    this.#fail(error);
  }

  #fail(error: ErrorBody): void {
    const watchers = [...this.#watchers];
    this.stop();
    this.#options.ended();
    for (const watcher of watchers) watcher.failed(error);
  }
}

function waitAfter(tookMs: number): number {
  const wait = Math.min(tookMs * CONSOLE_QUERY_WAIT_FACTOR, CONSOLE_QUERY_WAIT_MS_MAX);
  return Math.max(CONSOLE_QUERY_INTERVAL_MS, wait);
}
