/**
 * One subscription as a program uses it: an iterator of events, and the items as they are now.
 *
 * Events wait for the iterator within a bound. A program that is slower than the stream gets one
 * `sync` with the items as they are now in place of the events that it has not taken: it is never
 * wrong, only less detailed, and its memory does not grow.
 *
 * @module
 */
import { invalid, show } from "../typescript/arguments.ts";
import type { EngineError } from "../typescript/wire/errors.ts";
import type { Json } from "../typescript/wire/protocol.ts";
import type { StreamEvent, SyncEvent } from "./events.ts";

/** Events that wait for an iterator, unless the options say otherwise. */
export const BUFFER_EVENTS_DEFAULT = 1_000;
/** Characters of the messages of those events. */
export const BUFFER_CHARS_MAX: number = 8 * 1024 * 1024;

/** Options of a subscription. */
export interface SubscribeOptions {
  /** Follows this item only. Default: the whole group. */
  readonly id?: string | undefined;
  /** Ends the subscription, and the iteration without an error, when aborted. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Events that wait for the iterator, at most; 8 Mi characters in any case. Beyond, all that wait
   * are replaced by one `sync`.
   *
   * @default {1000}
   */
  readonly bufferEvents?: number | undefined;
}

/**
 * A subscription. It yields `sync` first, then events in the order of the changes, and `sync` again
 * after each reconnect. Leaving a `for await` ends it.
 *
 * The iteration fails with an {@linkcode EngineError}: `unauthorized`; what the engine answers,
 * such as `STREAM_LIST_ERROR` or `overloaded`; `engine_unreachable` after the last attempt to
 * connect.
 */
export interface StreamSubscription<Item = Json>
  extends AsyncIterableIterator<StreamEvent<Item>>, AsyncDisposable {
  /** Name of the stream. */
  readonly stream: string;
  /** The group. */
  readonly group: string;
  /**
   * The items by id, the oldest first, with all changes that have arrived, also those that the
   * iterator has not yielded yet. It is empty before the first `sync`, and keeps what it has while
   * there is no connection.
   */
  readonly items: ReadonlyMap<string, Item>;
  /** Whether the items are those of the engine: after a `sync`, until the connection is lost. */
  readonly isLive: boolean;
  /** Ends the subscription; the iterator yields what waits, then ends. Nothing the second time. */
  close(): void;
}

/** What a subscription needs of the client. */
export interface SubscriptionSource {
  readonly stream: string;
  readonly group: string;
  readonly items: ReadonlyMap<string, Json>;
  isLive(): boolean;
  /** A `sync` of the items as they are now. */
  sync(missed: number): SyncEvent;
  /** The subscription has ended by itself. */
  ended(subscription: Subscription): void;
}

interface Buffered {
  readonly event: StreamEvent;
  readonly chars: number;
}

interface Waiter {
  resolve(result: IteratorResult<StreamEvent>): void;
  reject(error: EngineError): void;
}

/** See {@linkcode StreamSubscription}. */
export class Subscription implements StreamSubscription {
  readonly stream: string;
  readonly group: string;
  readonly items: ReadonlyMap<string, Json>;
  readonly #source: SubscriptionSource;
  readonly #eventsMax: number;
  readonly #signal: AbortSignal | undefined;
  readonly #close = (): void => this.close();
  #buffer: Buffered[] = [];
  #chars = 0;
  #waiters: Waiter[] = [];
  #error: EngineError | undefined;
  #isOver = false;

  /** @throws {EngineError} `INVALID_ARGUMENTS` */
  constructor(source: SubscriptionSource, { signal, bufferEvents }: SubscribeOptions) {
    const eventsMax = bufferEvents ?? BUFFER_EVENTS_DEFAULT;
    if (!Number.isSafeInteger(eventsMax) || eventsMax < 1) {
      throw invalid(`bufferEvents must be a whole number above 0, got ${show(bufferEvents)}`);
    }
    this.stream = source.stream;
    this.group = source.group;
    this.items = source.items;
    this.#source = source;
    this.#eventsMax = eventsMax;
    this.#signal = signal;
    signal?.addEventListener("abort", this.#close, { once: true });
  }

  get isLive(): boolean {
    return !this.#isOver && this.#source.isLive();
  }

  /** Adds an event whose message has so many characters. */
  push(event: StreamEvent, chars: number): void {
    if (this.#isOver) return;
    const waiter = this.#waiters.shift();
    if (waiter) return waiter.resolve({ done: false, value: event });
    this.#buffer.push({ event, chars });
    this.#chars += chars;
    if (this.#buffer.length > this.#eventsMax || this.#chars > BUFFER_CHARS_MAX) this.#compact();
  }

  /** Ends the iteration with an error, after what waits. */
  fail(error: EngineError): void {
    if (this.#isOver) return;
    this.#error = error;
    this.#end();
  }

  close(): void {
    if (this.#isOver) return;
    this.#end();
    this.#source.ended(this);
  }

  next(): Promise<IteratorResult<StreamEvent>> {
    const first = this.#buffer.shift();
    if (first) {
      this.#chars -= first.chars;
      return Promise.resolve({ done: false, value: first.event });
    }
    if (!this.#isOver) {
      return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
    }
    const error = this.#error;
    this.#error = undefined; // An iterator fails once, then it is done.
    return error ? Promise.reject(error) : Promise.resolve({ done: true, value: undefined });
  }

  return(): Promise<IteratorResult<StreamEvent>> {
    this.#buffer = [];
    this.#error = undefined;
    this.close();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  /** Puts one `sync` in the place of all that waits. */
  #compact(): void {
    const missed = this.#buffer.reduce(
      (sum, { event }) => sum + (event.type === "sync" ? event.missed : 1),
      0,
    );
    this.#buffer = [{ event: this.#source.sync(missed), chars: 0 }];
    this.#chars = 0;
  }

  #end(): void {
    this.#isOver = true;
    this.#signal?.removeEventListener("abort", this.#close);
    const [first, ...others] = this.#waiters.splice(0);
    if (first && this.#error) {
      first.reject(this.#error);
      this.#error = undefined;
    } else first?.resolve({ done: true, value: undefined });
    for (const waiter of others) waiter.resolve({ done: true, value: undefined });
  }
}
