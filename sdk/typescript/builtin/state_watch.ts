/**
 * Entries of `engine-state` as they are and as they change, in a worker.
 *
 * An event says only which key changed; the entry is read when the program asks for the next one,
 * so a program that is slower than the changes gets the latest one of each key, and only keys and
 * versions are kept for it. All entries are read at first and after each reconnect, page by page,
 * and compared with the versions that the program has seen: it misses no change and sees none
 * twice.
 *
 * @module
 */
import { checkId } from "../arguments.ts";
import { together } from "../implementation.ts";
import type { ConnectionState, Registration, WorkerCalls } from "../options.ts";
import { newId, type WorkerClock } from "../platform.ts";
import type { CallScopes } from "../trace_context.ts";
import { EngineError, thrownText } from "../wire/errors.ts";
import type { Json } from "../wire/protocol.ts";

/** First delay until a failed read is repeated; it doubles. */
const RETRY_FIRST_MS = 500;
/** Longest delay until a failed read is repeated. */
const RETRY_MAX_MS = 30_000;
/** Entries of one page. */
const PAGE_ENTRIES = 100;
/** Entries that are read at once. */
const READS_AT_ONCE = 16;

/** What {@linkcode StateChanges} follows. */
export interface StatePlace {
  /** Such as `stock`. */
  readonly scope: string;
  /** Such as `apples`. @default all keys of the scope */
  readonly key?: string | undefined;
}

/** Options of `Worker.watchState()`. */
export interface WatchOptions {
  /** Ends it when aborted. */
  readonly signal?: AbortSignal | undefined;
}

/** An entry as it is now. */
export interface StateChange<Value = Json> {
  /** Its key in the scope. */
  readonly key: string;
  /** The value; `undefined`: there is none, it was deleted or has expired. */
  readonly value: Value | undefined;
  /** Its version, for `expected_version`; 0: there is no value. */
  readonly version: number;
}

/**
 * Entries of the state, first as they are, then each one that changed. Created by
 * `Worker.watchState()`; it begins with the first `next()`.
 *
 * @example
 * ```ts
 * import { registerWorker } from "engine-sdk";
 *
 * async function run() {
 *   const worker = registerWorker();
 *   for await (const { key, value, version } of worker.watchState<number>({ scope: "stock" })) {
 *     console.log(key, value ?? "gone", version);
 *   }
 * }
 * ```
 */
export interface StateChanges<Value = Json>
  extends AsyncIterableIterator<StateChange<Value>>, AsyncDisposable {}

/** What a watch needs besides the worker. */
export interface WatchSetup {
  readonly worker: WorkerCalls;
  readonly clock: WorkerClock;
  /** The call whose handler may be running: reads do not share its deadline. */
  readonly scopes: CallScopes;
  /** Receives what a later read failed with; it is tried again. */
  report(error: EngineError): void;
}

/** `Worker.watchState()` */
export function watchState<Value>(
  setup: WatchSetup,
  place: StatePlace,
  options: WatchOptions,
): StateChanges<Value> {
  checkId("scope", place.scope, "stock");
  if (place.key !== undefined) checkId("key", place.key, "apples");
  return new StateWatch<Value>(setup, place, options);
}

/** An entry that was read. */
interface Listed {
  readonly key: string;
  readonly value: Json;
  readonly version: number;
}

/** An answer of `state::list_entries`. */
interface Page {
  readonly entries: readonly Listed[];
  readonly cursor?: string | null;
}

class StateWatch<Value> implements StateChanges<Value> {
  readonly #setup: WatchSetup;
  readonly #place: StatePlace;
  readonly #options: WatchOptions;
  readonly #changes: AsyncGenerator<StateChange<Value>, undefined>;
  /** Versions that the program has seen; 0: it has seen that there is none. */
  readonly #seen = new Map<string, number>();
  /** Keys of which a change was reported. */
  readonly #changed = new Set<string>();
  readonly #ending = new AbortController();
  /** All entries have to be compared. */
  #isStale = true;
  /** Ends a wait for changes, and one after a failure. */
  #wake: (() => void) | undefined;
  #resume: (() => void) | undefined;
  #retryMs = RETRY_FIRST_MS;
  #reported: string | undefined;

  constructor(setup: WatchSetup, place: StatePlace, options: WatchOptions) {
    this.#setup = setup;
    this.#place = place;
    this.#options = options;
    this.#changes = this.#run();
  }

  next(): Promise<IteratorResult<StateChange<Value>>> {
    return this.#changes.next();
  }

  return(): Promise<IteratorResult<StateChange<Value>>> {
    this.#end();
    return this.#changes.return(undefined);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  get #isOver(): boolean {
    return this.#ending.signal.aborted;
  }

  async *#run(): AsyncGenerator<StateChange<Value>, undefined> {
    const { signal } = this.#options;
    if (signal?.aborted || this.#isOver) return undefined;
    const end = (): void => this.#end();
    signal?.addEventListener("abort", end, { once: true });
    const registration = this.#follow();
    const stopListening = this.#setup.worker.onConnectionState((state) => this.#connection(state));
    let isFirst = true;
    try {
      while (!this.#isOver) {
        try {
          if (this.#isStale) yield* this.#all();
          else if (this.#changed.size > 0) yield* this.#some();
          else await this.#woken();
          isFirst = false;
          this.#retryMs = RETRY_FIRST_MS;
          this.#reported = undefined;
        } catch (thrown) {
          if (this.#isOver) break;
          if (isFirst) throw thrown;
          await this.#failed(thrown);
        }
      }
    } finally {
      this.#end();
      registration.unregister();
      stopListening();
      signal?.removeEventListener("abort", end);
    }
    return undefined;
  }

  /** Registers for events; each marks its key. */
  #follow(): Registration {
    const { worker } = this.#setup;
    const { scope, key } = this.#place;
    const function_id = `state-changed::${newId()}`;
    const handler = (event: { readonly key: string }): void => {
      this.#changed.add(event.key);
      this.#wake?.();
    };
    const called = worker.registerFunction(function_id, handler, {
      description: `Changes of state ${scope}${key === undefined ? "" : `/${key}`}`,
      metadata: { internal: true },
    });
    const config = key === undefined ? { scope } : { scope, key };
    const trigger = worker.registerTrigger({ type: "state", function_id, config });
    return together(trigger.id, [trigger, called]);
  }

  #connection(state: ConnectionState): void {
    if (state === "connected") {
      this.#isStale = true;
      this.#wake?.();
      this.#resume?.();
    }
    if (state === "disconnected" || state === "failed") this.#end();
  }

  #end(): void {
    this.#ending.abort();
    this.#wake?.();
    this.#resume?.();
  }

  /** Compares all entries with what was seen. */
  async *#all(): AsyncGenerator<StateChange<Value>, void> {
    this.#isStale = false;
    const { scope, key } = this.#place;
    if (key !== undefined) return void this.#changed.add(key);
    const found = new Set<string>();
    let cursor: string | undefined;
    do {
      const page = await this.#page(scope, cursor);
      for (const { key, value, version } of page.entries) {
        found.add(key);
        if (this.#seen.get(key) === version) continue;
        this.#seen.set(key, version);
        yield { key, value: value as Value, version };
        if (this.#isStale || this.#isOver) return; // The page may be old.
      }
      cursor = page.cursor ?? undefined;
    } while (cursor !== undefined && !this.#isStale);
    if (this.#isStale) return;
    for (const key of this.#seen.keys()) if (!found.has(key)) this.#changed.add(key);
  }

  async #page(scope: string, cursor: string | undefined): Promise<Page> {
    try {
      const after = cursor === undefined ? {} : { cursor };
      return await this.#call("state::list_entries", { scope, limit: PAGE_ENTRIES, ...after });
    } catch (thrown) {
      this.#isStale = true; // All are compared again.
      throw thrown;
    }
  }

  /** Reads some of the entries that changed. */
  async *#some(): AsyncGenerator<StateChange<Value>, void> {
    const { scope, key: only } = this.#place;
    const keys = [...this.#changed].slice(0, READS_AT_ONCE);
    for (const key of keys) this.#changed.delete(key);
    const outcomes = await Promise.allSettled(
      keys.map((key) => this.#call<Listed | undefined>("state::entry", { scope, key })),
    );
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome.status === "rejected") this.#changed.add(keys[i]!);
    }
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome.status === "rejected") continue;
      const [key, { value, version } = NOTHING] = [keys[i]!, outcome.value];
      const seen = this.#seen.get(key) ?? (only === undefined ? 0 : undefined);
      if (seen === version) continue;
      if (version === 0 && only === undefined) this.#seen.delete(key);
      else this.#seen.set(key, version);
      yield { key, value: value as Value | undefined, version };
      if (this.#isOver) return;
    }
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed) throw failed.reason;
  }

  /** Calls outside of any call whose handler may be running. */
  #call<Out>(function_id: string, payload: Json): Promise<Out> {
    const { worker, scopes } = this.#setup;
    const { signal } = this.#ending;
    const nothing = { deadline: undefined, traceparent: undefined, baggage: undefined };
    return scopes.run(nothing, () => worker.trigger<Json, Out>({ function_id, payload, signal }));
  }

  /** Waits until something changed, or for the end. */
  #woken(): Promise<void> {
    return new Promise((resolve) => this.#wake = resolve);
  }

  /** Waits so long, or for another connection, or for the end. */
  #rested(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#setup.clock.after(ms, resolve);
      this.#resume = () => {
        cancel();
        resolve();
      };
    });
  }

  /** Reports what a read failed with, once, and waits. */
  async #failed(thrown: unknown): Promise<void> {
    const { scope } = this.#place;
    const error = thrown instanceof EngineError
      ? thrown
      : new EngineError("invocation_failed", thrownText(thrown), { cause: thrown });
    if (error.message !== this.#reported) {
      this.#reported = error.message;
      const message = `The watch of state ${scope} waits: ${error.message}`;
      this.#setup.report(new EngineError(error.code, message, { cause: error }));
    }
    const ms = this.#retryMs;
    this.#retryMs = Math.min(2 * ms, RETRY_MAX_MS);
    await this.#rested(ms);
  }
}

const NOTHING = { value: undefined, version: 0 };
