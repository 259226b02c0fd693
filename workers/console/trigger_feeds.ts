/**
 * Triggers that pages watch: each different one is registered once, however many watch it.
 *
 * All of them call one function of this console, and say by their metadata which one fired. They
 * are registered by call, because then the engine tells what is wrong with one; so they are
 * registered anew whenever the line is. What fires is handed on from a task of our own: whatever
 * follows would otherwise count as done by the handler, with its deadline and its trace.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { CONSOLE_FEEDS_MAX } from "./limits.ts";
import type { ErrorBody, Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import {
  beginTrace,
  canonical,
  type ConsoleWorker,
  type EngineLink,
  failureOf,
  randomHex,
} from "./engine_client.ts";
import type { WatchedTrigger } from "./wire.ts";

/** Hears of one trigger; must not throw. */
export interface TriggerListener {
  fired(payload: Json): void;
  /** It could not be registered; nothing more comes. */
  failed(error: ErrorBody): void;
}

/** One trigger and those who watch it. */
interface Feed {
  readonly key: string;
  readonly number: number;
  readonly trigger: WatchedTrigger;
  readonly listeners: Set<TriggerListener>;
  /** As the engine names it; `undefined` while it is not registered. */
  id: string | undefined;
}

/** See the top of this file. */
export class TriggerFeeds {
  readonly #link: EngineLink;
  readonly #functionId = `engine-console::fired::${randomHex(6)}`;
  readonly #byKey = new Map<string, Feed>();
  readonly #byNumber = new Map<number, Feed>();
  readonly #stopListening: () => void;
  #inbox: { readonly feed: number; readonly payload: Json }[] = [];
  #wake = Promise.withResolvers<void>();
  #isStopped = false;
  #count = 0;
  /** Grows with every line: what was registered on an older one is gone. */
  #line = 0;

  /** Offers the function that triggers call. */
  constructor(link: EngineLink, worker: ConsoleWorker) {
    this.#link = link;
    worker.registerFunction(this.#functionId, (payload, metadata) => {
      this.#inbox.push({ feed: numberIn(metadata), payload });
      this.#wake.resolve();
    }, { description: "Takes what pages of the console watch", metadata: { internal: true } });
    this.#stopListening = link.listen((connected) => connected && this.#renew());
    void this.#handOn();
  }

  /**
   * Watches a trigger; call the result to stop.
   *
   * @throws {EngineError} `overloaded` when too many different ones are watched.
   */
  watch(trigger: WatchedTrigger, listener: TriggerListener): () => void {
    const feed = this.#feedOf(trigger);
    feed.listeners.add(listener);
    return () => {
      if (feed.listeners.delete(listener) && feed.listeners.size === 0) this.#remove(feed);
    };
  }

  /** How many different triggers are watched. */
  get size(): number {
    return this.#byKey.size;
  }

  /** Hands on nothing any more. The triggers end with the line. */
  stop(): void {
    this.#isStopped = true;
    this.#wake.resolve();
    this.#stopListening();
    this.#byKey.clear();
    this.#byNumber.clear();
  }

  #feedOf(trigger: WatchedTrigger): Feed {
    const key = canonical([trigger.type, trigger.config ?? null]);
    const known = this.#byKey.get(key);
    if (known) return known;
    if (this.#byKey.size >= CONSOLE_FEEDS_MAX) {
      const message = `${CONSOLE_FEEDS_MAX} triggers are watched, which is the most; close a page`;
      throw new EngineError("overloaded", message);
    }
    const number = ++this.#count;
    const feed: Feed = { key, number, trigger, listeners: new Set(), id: undefined };
    this.#byKey.set(key, feed);
    this.#byNumber.set(number, feed);
    if (this.#link.isConnected) void this.#register(feed);
    return feed;
  }

  #renew(): void {
    this.#line++;
    for (const feed of this.#byKey.values()) {
      feed.id = undefined;
      void this.#register(feed);
    }
  }

  async #register(feed: Feed): Promise<void> {
    const line = this.#line;
    const { type, config } = feed.trigger;
    const payload: JsonObject = {
      trigger_type: type,
      function_id: this.#functionId,
      config: config ?? {},
      metadata: { feed: feed.number },
    };
    try {
      const answer = await this.#call("engine::register_trigger", payload) as { id: string };
      if (line !== this.#line) return; // The line was lost meanwhile, and the trigger with it.
      feed.id = answer.id;
      if (this.#byKey.get(feed.key) !== feed) this.#unregister(feed);
    } catch (thrown) {
      // Without a line there is nothing wrong with the trigger: it is tried on the next one.
      if (line !== this.#line || !this.#link.isConnected) return;
      if (this.#byKey.get(feed.key) !== feed) return;
      this.#forget(feed);
      for (const listener of feed.listeners) listener.failed(failureOf(thrown));
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
    // If this fails the line is gone, and the trigger with it.
    this.#call("engine::unregister_trigger", { id }).catch(() => {});
  }

  #call(function_id: string, payload: JsonObject): Promise<Json | undefined> {
    return this.#link.call({ function_id, payload, traceparent: beginTrace(false).traceparent });
  }

  async #handOn(): Promise<void> {
    while (true) {
      await this.#wake.promise;
      if (this.#isStopped) return;
      this.#wake = Promise.withResolvers<void>();
      const inbox = this.#inbox;
      this.#inbox = [];
      for (const { feed, payload } of inbox) {
        const listeners = this.#byNumber.get(feed)?.listeners ?? [];
        for (const listener of [...listeners]) listener.fired(payload);
      }
    }
  }
}

/** Which feed a firing is for; 0, which none has, when a stranger called. */
function numberIn(metadata: Json | undefined): number {
  const feed = (metadata as { feed?: Json } | null | undefined)?.feed;
  return typeof feed === "number" ? feed : 0;
}
