/**
 * A value of `engine-configuration` that stays current in a worker.
 *
 * An event says only that something changed; the value is always read with `configuration::get`,
 * which expands references. It is read after each event and after each reconnect, one read at a
 * time, and replaced as a whole. What cannot be read leaves the value as it is, is reported, and is
 * tried again.
 *
 * @module
 */
import { checkCallable, checkId } from "../arguments.ts";
import { together } from "../implementation.ts";
import type { ConnectionState, Registration, WorkerCalls } from "../options.ts";
import { newId, type WorkerClock } from "../platform.ts";
import type { CallScopes } from "../trace_context.ts";
import { EngineError, thrownText } from "../wire/errors.ts";
import type { Json, JsonInput } from "../wire/protocol.ts";

/** First delay until a failed read is repeated; it doubles. */
const RETRY_FIRST_MS = 1_000;
/** Longest delay until a failed read is repeated. */
const RETRY_MAX_MS = 60_000;
/** A delay varies at random by this part of it, in both directions. */
const RETRY_JITTER = 0.3;

/** Options of `Worker.configuration()`. */
export interface ConfigurationOptions {
  /**
   * JSON Schema of the value. With any of these members the configuration is registered first; a
   * value that it has stays.
   */
  readonly schema?: JsonInput | undefined;
  /** The value if it has none yet. */
  readonly initial_value?: JsonInput | undefined;
  /** Name in listings. @default the id */
  readonly name?: string | undefined;
  /** One sentence for listings. */
  readonly description?: string | undefined;
  /** Any JSON, for listings. */
  readonly metadata?: JsonInput | undefined;
  /**
   * Receives what a later read failed with; once until it changes. The value stays as it is.
   *
   * @default `onError` of the worker
   */
  readonly onError?: ((error: EngineError) => void) | undefined;
}

/**
 * A configuration whose {@linkcode LiveConfiguration.value} is always the present one. Created by
 * `Worker.configuration()`.
 *
 * @example
 * ```ts
 * import { registerWorker } from "engine-sdk";
 *
 * async function run() {
 *   const worker = registerWorker();
 *   using mail = await worker.configuration<{ port: number }>("mail", {
 *     schema: { type: "object", properties: { port: { type: "integer" } } },
 *     initial_value: { port: 25 },
 *   });
 *   console.log(mail.value.port);
 *   for await (const { port } of mail.changes()) console.log("now", port);
 * }
 * ```
 */
export interface LiveConfiguration<Value = Json> extends Disposable {
  /** Its id. */
  readonly id: string;
  /**
   * The value, with references expanded and secrets in plain text: the last one that could be read.
   * Another change makes another value; this one is never changed.
   */
  readonly value: Value;
  /** How often it was set, from 1 on. */
  readonly version: number;
  /** Why the value may be out of date; `undefined` while it is current. */
  readonly error: EngineError | undefined;
  /**
   * The values that follow, each once. A program that is slower than the changes gets the latest
   * one only. Ends when the configuration or the worker is closed, or `signal` is aborted.
   */
  changes(options?: { readonly signal?: AbortSignal | undefined }): AsyncIterableIterator<Value>;
  /**
   * Calls `listener` with each value that follows; the returned function removes it. What it throws
   * is reported to `onError`.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS` if it is not a function.
   */
  onChange(listener: (value: Value) => void): () => void;
  /** Stops to follow; the value stays as it is. Nothing the second time. */
  close(): void;
}

/** What a {@linkcode LiveConfiguration} needs besides the worker. */
export interface LiveConfigurationSetup {
  readonly worker: WorkerCalls;
  readonly clock: WorkerClock;
  /** The call whose handler may be running: reads do not share its deadline. */
  readonly scopes: CallScopes;
  /** From 0 to 1. @default Math.random */
  readonly random?: () => number;
  /** Receives errors, unless the options name someone else. */
  report(error: EngineError): void;
}

/** `Worker.configuration()` */
export async function followConfiguration<Value>(
  setup: LiveConfigurationSetup,
  id: string,
  options: ConfigurationOptions,
): Promise<LiveConfiguration<Value>> {
  checkId("The id of a configuration", id, "mail");
  if (options.onError) checkCallable("onError", options.onError);
  const followed = new FollowedConfiguration<Value>(setup, id, options);
  try {
    await followed.begin();
    return followed;
  } catch (thrown) {
    followed.close();
    throw thrown;
  }
}

/** A value as it was read. */
interface Read<Value> {
  readonly value: Value;
  readonly version: number;
}

/** See {@linkcode LiveConfiguration}. */
class FollowedConfiguration<Value> implements LiveConfiguration<Value> {
  readonly id: string;
  readonly #setup: LiveConfigurationSetup;
  readonly #options: ConfigurationOptions;
  readonly #listeners = new Set<(value: Value) => void>();
  /** Run when it is closed. */
  readonly #ends = new Set<() => void>();
  #registration: Registration | undefined;
  #stopListening: (() => void) | undefined;
  #current: Read<Value> | undefined;
  /** JSON of the value, by which changes are known. */
  #text: string | undefined;
  #error: EngineError | undefined;
  #reading: Promise<void> | undefined;
  /** Something happened since the read under way began. */
  #isStale = false;
  #isClosed = false;
  #retryMs = RETRY_FIRST_MS;
  #cancelRetry: (() => void) | undefined;

  constructor(setup: LiveConfigurationSetup, id: string, options: ConfigurationOptions) {
    this.id = id;
    this.#setup = setup;
    this.#options = options;
  }

  get value(): Value {
    return this.#current!.value;
  }

  get version(): number {
    return this.#current!.version;
  }

  get error(): EngineError | undefined {
    return this.#error;
  }

  /**
   * Follows events, then reads: no change is missed.
   *
   * @throws {EngineError} What the first read failed with.
   */
  async begin(): Promise<void> {
    const { worker } = this.#setup;
    if (this.#isDescribed) await this.#register();
    const function_id = `configuration-changed::${newId()}`;
    const called = worker.registerFunction(function_id, () => this.#changed(), {
      description: `Changes of configuration ${this.id}`,
      metadata: { internal: true },
    });
    const config = { configuration_id: this.id };
    const trigger = worker.registerTrigger({ type: "configuration", function_id, config });
    this.#registration = together(trigger.id, [trigger, called]);
    this.#stopListening = worker.onConnectionState((state) => this.#connection(state));
    this.#changed();
    await this.#reading;
    if (!this.#current) throw this.#error!;
  }

  changes(
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): AsyncIterableIterator<Value> {
    const latest = new Latest<Value>();
    if (this.#isClosed || signal?.aborted) {
      latest.end();
      return latest;
    }
    const remove = this.onChange((value) => latest.put(value));
    const end = (): void => latest.end();
    latest.ended = () => {
      remove();
      this.#ends.delete(end);
      signal?.removeEventListener("abort", end);
    };
    this.#ends.add(end);
    signal?.addEventListener("abort", end, { once: true });
    return latest;
  }

  onChange(listener: (value: Value) => void): () => void {
    checkCallable("A listener for changes", listener);
    const own = (value: Value): void => listener(value); // The same listener may be added twice.
    if (!this.#isClosed) this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stopListening?.();
    this.#cancelRetry?.();
    this.#registration?.unregister();
    this.#listeners.clear();
    for (const end of [...this.#ends]) end();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  get #isDescribed(): boolean {
    const { onError: _onError, ...described } = this.#options;
    return Object.values(described).some((value) => value !== undefined);
  }

  #register(): Promise<unknown> {
    const { onError: _onError, ...described } = this.#options;
    const payload = { id: this.id, ...described };
    return this.#setup.worker.trigger({ function_id: "configuration::register", payload });
  }

  #connection(state: ConnectionState): void {
    if (state === "connected") this.#changed();
    if (state === "disconnected" || state === "failed") this.close();
  }

  /** The value may be another one: reads it, after the read that is under way. */
  #changed(): void {
    if (this.#isClosed) return;
    this.#isStale = true;
    this.#reading ??= this.#apart(() => this.#read());
  }

  /** Never rejects. */
  async #read(): Promise<void> {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    while (this.#isStale && !this.#isClosed) {
      this.#isStale = false;
      try {
        const read = await this.#get();
        if (!this.#isClosed || !this.#current) this.#take(read);
      } catch (thrown) {
        this.#fail(thrown);
      }
    }
    this.#reading = undefined;
    if (!this.#error || !this.#current || this.#isClosed) return;
    const { clock, random = Math.random } = this.#setup;
    const ms = this.#retryMs * (1 + RETRY_JITTER * (2 * random() - 1));
    this.#retryMs = Math.min(2 * this.#retryMs, RETRY_MAX_MS);
    this.#cancelRetry = clock.after(ms, () => this.#changed());
  }

  /** Runs a task outside of any call. */
  #apart<T>(task: () => T): T {
    const nothing = { deadline: undefined, traceparent: undefined, baggage: undefined };
    return this.#setup.scopes.run(nothing, task);
  }

  async #get(): Promise<Read<Value>> {
    const request = { function_id: "configuration::get", payload: { id: this.id } };
    const { worker } = this.#setup;
    try {
      return await worker.trigger<Json, Read<Value>>(request);
    } catch (thrown) {
      // The state of the engine was replaced, for example.
      const isGone = thrown instanceof EngineError && thrown.code === "NOT_REGISTERED";
      if (!isGone || !this.#isDescribed) throw thrown;
      await this.#register();
      return await worker.trigger<Json, Read<Value>>(request);
    }
  }

  #take({ value, version }: Read<Value>): void {
    const text = JSON.stringify(value);
    this.#error = undefined;
    this.#retryMs = RETRY_FIRST_MS;
    const isFirst = !this.#current;
    const isSame = text === this.#text;
    this.#text = text;
    this.#current = { value: isSame ? this.#current!.value : value, version };
    if (isFirst || isSame) return;
    for (const listener of [...this.#listeners]) {
      try {
        listener(value);
      } catch (cause) {
        const message = `A listener for changes of ${this.id} failed: ${thrownText(cause)}`;
        this.#report(new EngineError("invocation_failed", message, { cause }));
      }
    }
  }

  #fail(thrown: unknown): void {
    const error = thrown instanceof EngineError
      ? thrown
      : new EngineError("invocation_failed", thrownText(thrown), { cause: thrown });
    const isNew = error.message !== this.#error?.message;
    this.#error = error;
    // A first read that fails is thrown.
    if (!isNew || !this.#current || this.#isClosed) return;
    const message = `Configuration ${this.id} keeps its value: ${error.message}`;
    this.#report(new EngineError(error.code, message, { cause: error }));
  }

  #report(error: EngineError): void {
    const { onError } = this.#options;
    if (!onError) return this.#setup.report(error);
    try {
      onError(error);
    } catch (cause) {
      const message = `onError of configuration ${this.id} failed: ${thrownText(cause)}`;
      this.#setup.report(new EngineError("invocation_failed", message, { cause }));
    }
  }
}

/** An iterator over values of which the latest counts: it holds at most one. */
class Latest<Value> implements AsyncIterableIterator<Value> {
  /** Called once, at the end. */
  ended: (() => void) | undefined;
  #next: { readonly value: Value } | undefined;
  #waiters: ((result: IteratorResult<Value>) => void)[] = [];
  #isOver = false;

  put(value: Value): void {
    const waiter = this.#waiters.shift();
    if (waiter) waiter({ done: false, value });
    else this.#next = { value };
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.ended?.();
    for (const waiter of this.#waiters.splice(0)) waiter({ done: true, value: undefined });
  }

  next(): Promise<IteratorResult<Value>> {
    const next = this.#next;
    this.#next = undefined;
    if (next) return Promise.resolve({ done: false, value: next.value });
    if (this.#isOver) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  return(): Promise<IteratorResult<Value>> {
    this.#next = undefined;
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
