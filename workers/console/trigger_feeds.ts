/**
 * Triggers that pages watch: each different trigger is registered once, however many pages watch
 * it.
 *
 * All of them fire one function of this console and carry the number of their feed as metadata.
 * They are registered by calls, because then the engine reports what is wrong with one; calls are
 * not repeated by the SDK, so they are registered again after every reconnect. Firings are
 * delivered by a task of their own: listeners called from within the handler would run under its
 * deadline and in its trace.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { ErrorBody, Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import {
  beginTrace,
  canonicalJson,
  type ConsoleWorker,
  type EngineClient,
  errorBodyOf,
} from "./engine_client.ts";
import type { WatchedTrigger } from "./wire.ts";

/** Different triggers that all pages together watch. */
export const TRIGGERS_MAX = 2_000;
/** Of these, triggers of pages that are not the operator's. */
export const GUEST_TRIGGERS_MAX = 1_500;
/** Longest trigger as JSON: all of them are registrations of one worker, the console. */
export const TRIGGER_CHARS_MAX = 4 * 1024;
/** Firings that wait; further ones are dropped, and counted for those who watch. */
export const FIRINGS_MAX = 10_000;
/** Firings that are delivered before others get a turn. */
const FIRINGS_PER_TURN = 200;

/** Listens to one trigger; must not throw. */
export interface TriggerListener {
  fired(payload: Json): void;
  /** So many firings were dropped. */
  missed?(count: number): void;
  /** The trigger could not be registered; no call follows. */
  failed(error: ErrorBody): void;
}

/** One trigger and its listeners. */
interface Feed {
  readonly key: string;
  readonly number: number;
  readonly trigger: WatchedTrigger;
  readonly listeners: Set<TriggerListener>;
  /** The engine's id of the trigger; `undefined` while it is not registered. */
  id: string | undefined;
}

/** See the module. */
export class TriggerFeeds {
  readonly #engine: EngineClient;
  readonly #functionId = `engine-console::fired::${crypto.randomUUID().slice(-12)}`;
  readonly #byKey = new Map<string, Feed>();
  readonly #byNumber = new Map<number, Feed>();
  readonly #stopListening: () => void;
  /** Dropped firings by feed. */
  readonly #dropped = new Map<number, number>();
  #inbox: { readonly feed: number; readonly payload: Json }[] = [];
  #wake = Promise.withResolvers<void>();
  #isStopped = false;
  #lastNumber = 0;
  /** Counts connections: triggers that were registered on an older one are gone. */
  #connection = 0;

  readonly #namespace: string | undefined;

  /**
   * Registers the function that triggers fire. `namespace`: in a cluster that of this engine, whose
   * functions other engines may call, where a trigger may be kept.
   */
  constructor(engine: EngineClient, worker: ConsoleWorker, namespace?: string) {
    this.#engine = engine;
    this.#namespace = namespace;
    worker.registerFunction(this.#functionId, (payload, metadata) => {
      const feed = feedNumber(metadata);
      if (this.#inbox.length < FIRINGS_MAX) this.#inbox.push({ feed, payload });
      else if (this.#byNumber.has(feed)) {
        this.#dropped.set(feed, (this.#dropped.get(feed) ?? 0) + 1);
      }
      this.#wake.resolve();
    }, {
      description: "Takes what pages of the console watch",
      metadata: { internal: true },
      ...namespace !== undefined && { namespace },
    });
    this.#stopListening = engine.onChange((connected) => connected && this.#registerAgain());
    void this.#deliver();
  }

  /**
   * Watches a trigger until the result is called.
   *
   * @throws {EngineError} `overloaded` when too many different ones are watched;
   * `INVALID_ARGUMENTS` for one that is too long.
   */
  watch(trigger: WatchedTrigger, listener: TriggerListener, isOperator = false): () => void {
    const feed = this.#feedOf(trigger, isOperator);
    feed.listeners.add(listener);
    return () => {
      if (feed.listeners.delete(listener) && feed.listeners.size === 0) this.#remove(feed);
    };
  }

  /** How many different triggers are watched. */
  get size(): number {
    return this.#byKey.size;
  }

  /** Delivers nothing any more. The engine removes the triggers when the connection ends. */
  stop(): void {
    this.#isStopped = true;
    this.#wake.resolve();
    this.#stopListening();
    this.#byKey.clear();
    this.#byNumber.clear();
  }

  #feedOf(trigger: WatchedTrigger, isOperator: boolean): Feed {
    const key = canonicalJson([trigger.type, trigger.config ?? null]);
    const known = this.#byKey.get(key);
    if (known) return known;
    if (key.length > TRIGGER_CHARS_MAX) {
      const message = `A trigger has ${key.length} characters; at most ${TRIGGER_CHARS_MAX} are ` +
        "watched";
      throw new EngineError("INVALID_ARGUMENTS", message);
    }
    const max = isOperator ? TRIGGERS_MAX : GUEST_TRIGGERS_MAX;
    if (this.#byKey.size >= max) {
      const message = `${max} triggers are watched already, the maximum; close a page`;
      throw new EngineError("overloaded", message);
    }
    const number = ++this.#lastNumber;
    const feed: Feed = { key, number, trigger, listeners: new Set(), id: undefined };
    this.#byKey.set(key, feed);
    this.#byNumber.set(number, feed);
    if (this.#engine.isConnected) void this.#register(feed);
    return feed;
  }

  #registerAgain(): void {
    this.#connection++;
    for (const feed of this.#byKey.values()) {
      feed.id = undefined;
      void this.#register(feed);
    }
  }

  async #register(feed: Feed): Promise<void> {
    const connection = this.#connection;
    const { type, config } = feed.trigger;
    const payload: JsonObject = {
      trigger_type: type,
      function_id: this.#functionId,
      config: config ?? {},
      metadata: { feed: feed.number },
      ...this.#namespace !== undefined && { namespace: this.#namespace },
    };
    try {
      const registered = await this.#call("engine::register_trigger", payload) as { id: string };
      if (connection !== this.#connection) return; // That connection is gone, and its triggers too.
      feed.id = registered.id;
      if (this.#byKey.get(feed.key) !== feed) this.#unregister(feed);
    } catch (thrown) {
      // Without a connection nothing is wrong with the trigger: the next one registers it.
      if (connection !== this.#connection || !this.#engine.isConnected) return;
      if (this.#byKey.get(feed.key) !== feed) return;
      this.#forget(feed);
      for (const listener of feed.listeners) listener.failed(errorBodyOf(thrown));
    }
  }

  #remove(feed: Feed): void {
    this.#forget(feed);
    this.#unregister(feed);
  }

  #forget(feed: Feed): void {
    if (this.#byKey.get(feed.key) === feed) this.#byKey.delete(feed.key);
    this.#byNumber.delete(feed.number);
  }

  #unregister(feed: Feed): void {
    const { id } = feed;
    if (id === undefined || this.#isStopped) return;
    feed.id = undefined;
    // If this fails the connection is gone, and the trigger with it.
    this.#call("engine::unregister_trigger", { id }).catch(() => {});
  }

  #call(function_id: string, payload: JsonObject): Promise<Json | undefined> {
    const { traceparent } = beginTrace(false);
    return this.#engine.call({ function_id, payload, traceparent });
  }

  #reportDropped(): void {
    for (const [feed, count] of this.#dropped) {
      for (const listener of this.#byNumber.get(feed)?.listeners ?? []) listener.missed?.(count);
    }
    this.#dropped.clear();
  }

  async #deliver(): Promise<void> {
    while (true) {
      await this.#wake.promise;
      if (this.#isStopped) return;
      this.#wake = Promise.withResolvers<void>();
      const inbox = this.#inbox;
      this.#inbox = [];
      for (const [at, { feed, payload }] of inbox.entries()) {
        if (at % FIRINGS_PER_TURN === FIRINGS_PER_TURN - 1) await this.#engine.turn();
        const listeners = this.#byNumber.get(feed)?.listeners ?? [];
        for (const listener of [...listeners]) listener.fired(payload);
      }
      this.#reportDropped();
    }
  }
}

/** Which feed fired; 0, which no feed has, when the caller is not one of our triggers. */
function feedNumber(metadata: Json | undefined): number {
  const feed = (metadata as { feed?: Json } | null | undefined)?.feed;
  return typeof feed === "number" ? feed : 0;
}
