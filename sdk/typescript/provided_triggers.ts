/**
 * The triggers of the trigger types that this worker provides: calls the provider's handlers, and
 * tells the engine whether each trigger was accepted.
 *
 * Each `registerTrigger` is followed by one `unregisterTrigger`. The handlers of one trigger run
 * one after another, also if they are asynchronous; those of different triggers run concurrently. A
 * trigger that ends while it waits for the one before with its id is not passed to the provider: of
 * an id that is registered a thousand times meanwhile, only the last waits.
 *
 * @module
 */
import type { Connection } from "./connection.ts";
import type { TriggerHandlers, TriggerInstance } from "./options.ts";
import { encodeMessage } from "./wire/codec.ts";
import { EngineError, errorBody, thrownText } from "./wire/errors.ts";
import { LargeMap } from "./wire/large_map.ts";
import {
  DEFAULT_NAMESPACE,
  type ErrorBody,
  type RegisterTrigger,
  type UnregisterTrigger,
} from "./wire/protocol.ts";

/** A trigger that was passed to its provider. */
interface WatchedTrigger {
  readonly trigger_type: string;
  readonly handlers: TriggerHandlers;
  /** Whether `registerTrigger` succeeded; only then `unregisterTrigger` is called. */
  accepted: boolean;
  /** While an asynchronous `registerTrigger` runs: resolves when it has ended. Never rejects. */
  done: Promise<void> | undefined;
  /** While it waits for the trigger before with its id: passes it to the provider, or drops it. */
  begin: ((isWanted: boolean) => void) | undefined;
}

/** A trigger whose handlers run for the last time. */
interface EndingTrigger {
  /** With the same id; it begins when this one has ended. */
  next: WatchedTrigger | undefined;
}

/** What {@linkcode ProvidedTriggers} work with. */
export interface ProvidedTriggersSetup {
  /** The handlers of a trigger type, if it is registered. */
  find(namespace: string | undefined, id: string): TriggerHandlers | undefined;
  /** Receives errors of `unregisterTrigger`. */
  report(error: EngineError): void;
}

/** The triggers that one worker watches as a provider. */
export class ProvidedTriggers {
  readonly #setup: ProvidedTriggersSetup;
  readonly #watched = new LargeMap<WatchedTrigger>();
  /** By id; of each the last one that was passed to its provider. */
  readonly #ending = new Map<string, EndingTrigger>();

  constructor(setup: ProvidedTriggersSetup) {
    this.#setup = setup;
  }

  /** Number of watched triggers. */
  get size(): number {
    return this.#watched.size;
  }

  /**
   * Passes a trigger to its provider and sends the result, at once if the provider is synchronous:
   * thousands of triggers may come, and a promise is kept for none. Never throws or rejects.
   */
  register(message: RegisterTrigger, connection: Connection): void | Promise<void> {
    const { id, trigger_type } = message;
    const handlers = this.#setup.find(message.trigger_namespace, trigger_type);
    if (!handlers) {
      const error = errorBody("trigger_type_not_found", "Trigger type not found");
      return connection.send(resultFrame(message, error));
    }
    this.#end(id); // The same id replaces the earlier trigger.
    const watched: WatchedTrigger = {
      trigger_type,
      handlers,
      accepted: false,
      done: undefined,
      begin: undefined,
    };
    this.#watched.set(id, watched);
    const before = this.#ending.get(id);
    if (before) {
      const turn = turnAfter(before, watched).then((isWanted) => {
        return isWanted ? this.#accept(message, watched) : undefined;
      });
      return watched.done = this.#answerAfter(turn, message, watched, connection);
    }
    let error: ErrorBody | undefined;
    try {
      const accepted = this.#accept(message, watched);
      if (accepted) {
        return watched.done = this.#answerAfter(accepted, message, watched, connection);
      }
    } catch (thrown) {
      error = rejection(thrown);
    }
    this.#answer(message, watched, connection, error);
  }

  /** Calls `registerTrigger`; `undefined` if it was synchronous. */
  #accept(message: RegisterTrigger, watched: WatchedTrigger): Promise<void> | undefined {
    const returned: unknown = watched.handlers.registerTrigger(instanceOf(message));
    // An arrow function may return any value, not only a promise.
    if (returned instanceof Object) {
      return Promise.resolve(returned).then(() => void (watched.accepted = true));
    }
    watched.accepted = true;
    return undefined;
  }

  async #answerAfter(
    accepted: Promise<void>,
    message: RegisterTrigger,
    watched: WatchedTrigger,
    connection: Connection,
  ): Promise<void> {
    let error: ErrorBody | undefined;
    try {
      await accepted;
    } catch (thrown) {
      error = rejection(thrown);
    }
    watched.done = undefined;
    this.#answer(message, watched, connection, error);
  }

  #answer(
    message: RegisterTrigger,
    watched: WatchedTrigger,
    connection: Connection,
    error: ErrorBody | undefined,
  ): void {
    const { id } = message;
    if (error && this.#watched.get(id) === watched) this.#watched.delete(id);
    connection.send(resultFrame(message, error));
  }

  /** Stops watching a trigger; ignored if it is not watched. */
  unregister({ id }: UnregisterTrigger): void {
    this.#end(id);
  }

  /** Stops watching all triggers, or those of one type. */
  unregisterAll(handlers?: TriggerHandlers): void {
    for (const [id, watched] of [...this.#watched]) {
      if (!handlers || watched.handlers === handlers) this.#end(id);
    }
  }

  /** Stops watching; the next `registerTrigger` of the same id waits for the provider. */
  #end(id: string): void {
    const watched = this.#watched.get(id);
    if (!watched) return;
    this.#watched.delete(id);
    if (watched.begin) return this.#drop(id, watched.begin);
    const stopped = watched.accepted
      ? this.#stop(id, watched)
      : watched.done?.then(() => watched.accepted ? this.#stop(id, watched) : undefined);
    if (!stopped) return; // Synchronous, as in most providers: nothing has to wait.
    const ending: EndingTrigger = { next: undefined };
    this.#ending.set(id, ending);
    void stopped.then(() => {
      this.#ending.delete(id);
      const { next } = ending;
      if (!next) return;
      const { begin } = next;
      next.begin = undefined;
      begin!(true);
    });
  }

  /** Ends a trigger that its provider does not know yet. */
  #drop(id: string, begin: (isWanted: boolean) => void): void {
    this.#ending.get(id)!.next = undefined;
    begin(false);
  }

  /** Calls `unregisterTrigger`; `undefined` if it was synchronous. Never rejects. */
  #stop(id: string, { trigger_type, handlers }: WatchedTrigger): Promise<void> | undefined {
    const failed = (thrown: unknown): void => {
      const { code, message } = rejection(thrown);
      this.#setup.report(new EngineError(code, `A trigger could not be ended: ${message}`));
    };
    try {
      const returned: unknown = handlers.unregisterTrigger({ id, trigger_type });
      // An arrow function may return any value, not only a promise.
      return returned instanceof Object
        ? Promise.resolve(returned).then(() => {}, failed)
        : undefined;
    } catch (thrown) {
      failed(thrown);
      return undefined;
    }
  }
}

/** Waits for the handlers of the trigger before; `false`: this one ended meanwhile. */
function turnAfter(before: EndingTrigger, watched: WatchedTrigger): Promise<boolean> {
  before.next = watched;
  return new Promise((resolve) => watched.begin = resolve);
}

function instanceOf(message: RegisterTrigger): TriggerInstance {
  const { id, trigger_type, function_id, config, metadata, namespace } = message;
  const target = namespace === DEFAULT_NAMESPACE ? undefined : namespace;
  return { id, trigger_type, function_id, config: config ?? {}, metadata, namespace: target };
}

/** The error for the originator, with the message of the provider. */
function rejection(thrown: unknown): ErrorBody {
  return errorBody("trigger_registration_failed", thrownText(thrown));
}

function resultFrame(message: RegisterTrigger, error: ErrorBody | undefined): string {
  const { id, trigger_type, function_id } = message;
  return encodeMessage({
    type: "triggerregistrationresult",
    id,
    trigger_type,
    function_id,
    ...error && { error },
  });
}
