/**
 * Queries that pages watch: each different query is asked once for all pages, and again whenever
 * one of its triggers fires.
 *
 * A firing only says that the result may have changed. The query then waits for further firings,
 * for the least interval between two queries, and longer after a query that took long: in the
 * engine's own process it is the engine's thread that answers.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import { type MemoryBudget, UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { ErrorBody, Json } from "../../sdk/typescript/wire/protocol.ts";
import { HeldMemory } from "../kit/held_memory.ts";
import { beginTrace, canonicalJson, type EngineClient, errorBodyOf } from "./engine_client.ts";
import { type QueryChange, QueryState } from "./query_state.ts";
import { QueryTurns } from "./query_turns.ts";
import type { TriggerFeeds } from "./trigger_feeds.ts";
import type { WatchedQuery, WatchedTrigger } from "./wire.ts";

/** Different queries that all pages together watch. */
export const QUERIES_MAX = 2_000;
/** Of these, queries of pages that are not the operator's. */
export const GUEST_QUERIES_MAX = 1_500;
/** Longest query as JSON, its triggers included. */
export const QUERY_CHARS_MAX = 64 * 1024;
/** Firings within this time lead to one query. */
export const DEBOUNCE_MS = 100;
/** Least time between two queries of one feed. */
export const INTERVAL_MS = 250;
/** The next query waits this many times as long as the last one took, at most `WAIT_MS_MAX`. */
export const WAIT_FACTOR = 5;
/** See {@linkcode WAIT_FACTOR}. */
export const WAIT_MS_MAX = 3_000;
/** Wait after a query that failed. */
export const RETRY_MS = 1_000;
/** Failures in a row before the feed ends with the error. */
export const RETRIES_MAX = 5;

/** A query to watch. */
export interface QueryToWatch {
  readonly query: WatchedQuery;
  /** The query is asked again when one of these fires. */
  readonly on: readonly WatchedTrigger[];
  /** Whether a page of the operator asks; its queries go first. Default: no. */
  readonly isOperator?: boolean;
  /** Applied to every result; views of the same name are the same. */
  readonly view?: { readonly name: string; apply(result: Json | undefined): Json | undefined };
}

/** Listens to one query; must not throw. */
export interface QueryListener {
  /** The result changed; `state` has all of it. */
  changed(change: QueryChange, state: QueryState): void;
  /** The query failed for good; no call follows. */
  failed(error: ErrorBody): void;
}

/** One listener's share of a watched query. */
export interface QueryWatch {
  /** Reports the whole result again to this listener, if there is one. */
  sendAll(): void;
  stop(): void;
}

/** All watched queries of a console. */
export class QueryFeeds {
  readonly #engine: EngineClient;
  readonly #triggers: TriggerFeeds;
  readonly #clock: Clock;
  readonly #memory: MemoryBudget;
  readonly #turns: QueryTurns;
  readonly #feeds = new Map<string, QueryFeed>();
  readonly #stopListening: () => void;

  constructor(
    engine: EngineClient,
    triggers: TriggerFeeds,
    clock: Clock,
    memory: MemoryBudget = UNLIMITED_MEMORY,
  ) {
    this.#memory = memory;
    this.#turns = new QueryTurns(clock);
    this.#engine = engine;
    this.#triggers = triggers;
    this.#clock = clock;
    this.#stopListening = engine.onChange((connected) => {
      for (const feed of [...this.#feeds.values()]) feed.connectionChanged(connected);
    });
  }

  /** How many different queries are watched. */
  get size(): number {
    return this.#feeds.size;
  }

  /**
   * Watches a query.
   *
   * @throws {EngineError} `overloaded` when too many different ones are watched;
   * `INVALID_ARGUMENTS` for one that is too long.
   */
  watch(wanted: QueryToWatch, listener: QueryListener): QueryWatch {
    const { query, on, view } = wanted;
    const key = canonicalJson([query, on, view?.name ?? null]);
    if (key.length > QUERY_CHARS_MAX) {
      const message =
        `A query has ${key.length} characters; at most ${QUERY_CHARS_MAX} are watched`;
      throw new EngineError("INVALID_ARGUMENTS", message);
    }
    const feed = this.#feeds.get(key) ?? this.#open(key, wanted);
    feed.isUrgent ||= wanted.isOperator ?? false;
    feed.add(listener);
    return {
      sendAll: () => feed.sendAll(listener),
      stop: () => {
        if (feed.remove(listener) === 0) this.#close(key, feed);
      },
    };
  }

  /** Ends all feeds. */
  stop(): void {
    this.#stopListening();
    this.#turns.stop();
    for (const [key, feed] of [...this.#feeds]) this.#close(key, feed);
  }

  #open(key: string, wanted: QueryToWatch): QueryFeed {
    const max = wanted.isOperator ? QUERIES_MAX : GUEST_QUERIES_MAX;
    if (this.#feeds.size >= max) {
      const message = `${max} queries are watched already, the maximum; close a page`;
      throw new EngineError("overloaded", message);
    }
    const feed: QueryFeed = new QueryFeed({
      wanted,
      engine: this.#engine,
      triggers: this.#triggers,
      clock: this.#clock,
      turns: this.#turns,
      memory: this.#memory,
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

/** What a {@linkcode QueryFeed} needs. */
export interface QueryFeedOptions {
  readonly wanted: QueryToWatch;
  readonly engine: EngineClient;
  readonly triggers: TriggerFeeds;
  readonly clock: Clock;
  readonly turns: QueryTurns;
  /** For the last result. */
  readonly memory: MemoryBudget;
  /** The query failed for good. */
  ended(): void;
}

/** One watched query: when it is asked, and what its listeners get. */
export class QueryFeed {
  readonly #options: QueryFeedOptions;
  readonly #state: QueryState;
  readonly #listeners = new Set<QueryListener>();
  readonly #stops: (() => void)[] = [];
  /** Whether it goes first. */
  isUrgent = false;
  readonly #held: HeldMemory;
  #cancel: (() => void) | undefined;
  #leaveTurns: () => void = () => {};
  #isAsking = false;
  /** A trigger fired while the query was running. */
  #isDue = false;
  #isStopped = false;
  /** Earliest time of the next query, on the clock. */
  #notBefore = 0;
  #failures = 0;
  #hasSucceeded = false;
  /** Grows with every connection and with the end: results of an older epoch are dropped. */
  #epoch = 0;

  constructor(options: QueryFeedOptions) {
    this.#options = options;
    this.#state = new QueryState(options.wanted.query);
    this.#held = new HeldMemory(options.memory, options.clock);
    this.isUrgent = options.wanted.isOperator ?? false;
  }

  /** Registers the triggers, then asks: in this order no change is missed. */
  start(): void {
    const { wanted, triggers } = this.#options;
    for (const trigger of wanted.on) {
      this.#stops.push(triggers.watch(trigger, {
        fired: () => this.#schedule(DEBOUNCE_MS),
        failed: (error) => this.#fail(error),
      }, wanted.isOperator));
    }
    this.#ask();
  }

  /** Adds a listener, which gets the result that is known. */
  add(listener: QueryListener): void {
    this.#listeners.add(listener);
    this.sendAll(listener);
  }

  /** Reports the whole result to a listener, if there is one. */
  sendAll(listener: QueryListener): void {
    if (this.#state.isKnown) listener.changed({ type: "all" }, this.#state);
  }

  /** Removes a listener and returns how many are left. */
  remove(listener: QueryListener): number {
    this.#listeners.delete(listener);
    return this.#listeners.size;
  }

  /** The connection to the engine was lost, or is back: then the result is asked for anew. */
  connectionChanged(connected: boolean): void {
    this.#epoch++;
    this.#isAsking = false;
    this.#leaveTurns();
    this.#cancel?.();
    this.#cancel = undefined;
    this.#failures = 0;
    if (!connected) return;
    this.#state.forget();
    this.#ask();
  }

  stop(): void {
    this.#isStopped = true;
    this.#epoch++;
    this.#cancel?.();
    this.#leaveTurns();
    this.#held.release();
    for (const stop of this.#stops) stop();
    this.#stops.length = 0;
    this.#listeners.clear();
  }

  #schedule(ms: number): void {
    if (this.#isStopped || this.#cancel || !this.#options.engine.isConnected) return;
    if (this.#isAsking) {
      this.#isDue = true;
      return;
    }
    const { clock } = this.#options;
    const waitMs = Math.max(ms, this.#notBefore - clock.now());
    this.#cancel = clock.after(waitMs, () => {
      this.#cancel = undefined;
      this.#ask();
    });
  }

  #ask(): void {
    const { engine, wanted: { query }, turns } = this.#options;
    if (this.#isStopped || !engine.isConnected) return;
    this.#isAsking = true;
    this.#leaveTurns = turns.enter(query.function_id, this.isUrgent, (done) => this.#call(done));
  }

  #call(done: () => void): void {
    const { engine, wanted: { query }, clock } = this.#options;
    const epoch = this.#epoch;
    const began = clock.now();
    this.#isDue = false;
    const { function_id, payload = {} } = query;
    const { traceparent } = beginTrace(false);
    engine.call({ function_id, payload, traceparent }).then(
      (result) => epoch === this.#epoch && this.#update(result),
      (thrown) => epoch === this.#epoch && this.#retryOrFail(errorBodyOf(thrown)),
    ).finally(() => {
      done();
      if (epoch !== this.#epoch) return;
      this.#isAsking = false;
      const tookMs = clock.now() - began;
      this.#notBefore = clock.now() + waitAfter(tookMs);
      if (this.#failures > 0) this.#schedule(RETRY_MS);
      else if (this.#isDue) this.#schedule(DEBOUNCE_MS);
    });
  }

  #update(result: Json | undefined): void {
    this.#failures = 0;
    this.#hasSucceeded = true;
    const { view } = this.#options.wanted;
    let change: QueryChange;
    try {
      change = this.#state.update(view ? view.apply(result) : result);
      this.#holdMemory();
    } catch (thrown) {
      return this.#fail(errorBodyOf(thrown)); // A result of the wrong shape: retrying won't help.
    }
    if (change.type === "none") return;
    for (const listener of [...this.#listeners]) listener.changed(change, this.#state);
  }

  /** @throws {EngineError} `overloaded` when there is no memory for the result. */
  #holdMemory(): void {
    const more = this.#state.chars - this.#held.bytes;
    if (more <= 0) return this.#held.give(-more);
    if (this.#held.take(more)) return;
    throw new EngineError("overloaded", "The memory of the engine has no room for the result");
  }

  /** A function that has answered before may be restarting; one that never has is wrong. */
  #retryOrFail(error: ErrorBody): void {
    this.#failures++;
    if (this.#hasSucceeded && this.#failures <= RETRIES_MAX) return;
    this.#fail(error);
  }

  #fail(error: ErrorBody): void {
    const listeners = [...this.#listeners];
    this.stop();
    this.#options.ended();
    for (const listener of listeners) listener.failed(error);
  }
}

function waitAfter(tookMs: number): number {
  return Math.max(INTERVAL_MS, Math.min(tookMs * WAIT_FACTOR, WAIT_MS_MAX));
}
