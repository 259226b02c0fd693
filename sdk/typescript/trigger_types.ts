/**
 * Trigger types that this worker provides: tells their owner what to watch, and the engine whether
 * it could.
 *
 * Every registerTrigger is paired with one unregisterTrigger. What concerns one trigger happens in
 * order, also when its handlers take their time; different triggers do not wait for each other.
 *
 * @module
 */
import { encodeMessage } from "./wire/codec.ts";
import { EngineError, errorBody, thrownText } from "./wire/errors.ts";
import type { TriggerHandlers, TriggerInstance } from "./options.ts";
import {
  DEFAULT_NAMESPACE,
  type ErrorBody,
  type RegisterTrigger,
  type UnregisterTrigger,
} from "./wire/protocol.ts";
import type { Line } from "./connection.ts";

/** A trigger that a provider was asked to watch. */
interface Watched {
  readonly trigger_type: string;
  readonly handlers: TriggerHandlers;
  /** Whether the provider took it; it is asked to stop only then. */
  taken: boolean;
  /** What happened so far, one after the other. Never rejects. */
  done: Promise<void>;
}

/** What the triggers of one worker's types need. */
export interface TriggerTypesSetup {
  /** The handlers of a type, if this worker provides it. */
  find(namespace: string | undefined, id: string): TriggerHandlers | undefined;
  /** Hears of failures that nobody else hears of. */
  report(error: EngineError): void;
}

/** The triggers that one worker watches for others. */
export class TriggerTypes {
  readonly #setup: TriggerTypesSetup;
  readonly #watched = new Map<string, Watched>();
  /** Ends that providers have not finished, the last of each trigger. They never reject. */
  readonly #ending = new Map<string, Promise<void>>();

  /** Stores. */
  constructor(setup: TriggerTypesSetup) {
    this.#setup = setup;
  }

  /** Triggers that are watched now. */
  get size(): number {
    return this.#watched.size;
  }

  /** Hands a trigger to its provider and answers the engine; never rejects. */
  async register(message: RegisterTrigger, line: Line): Promise<void> {
    const { id, trigger_type } = message;
    const handlers = this.#setup.find(message.trigger_namespace, trigger_type);
    if (!handlers) {
      line.send(answer(message, errorBody("trigger_type_not_found", "Trigger type not found")));
      return;
    }
    this.#end(id); // The same id again replaces what was there.
    const before = this.#ending.get(id);
    const watched: Watched = { trigger_type, handlers, taken: false, done: Promise.resolve() };
    this.#watched.set(id, watched);
    let error: ErrorBody | undefined;
    watched.done = this.#attempt(async () => {
      if (before) await before;
      await handlers.registerTrigger(instanceOf(message));
      watched.taken = true;
    }, (thrown) => error = refusal(thrown));
    await watched.done;
    if (error && this.#watched.get(id) === watched) this.#watched.delete(id);
    line.send(answer(message, error));
  }

  /** Asks the provider to stop watching a trigger; one that is not watched is ignored. */
  unregister({ id }: UnregisterTrigger): void {
    this.#end(id);
  }

  /** Asks the providers to stop watching all triggers, or those of one type. */
  unregisterAll(handlers?: TriggerHandlers): void {
    for (const [id, watched] of [...this.#watched]) {
      if (!handlers || watched.handlers === handlers) this.#end(id);
    }
  }

  /** Stops watching; what comes next for the trigger waits until the provider has done so. */
  #end(id: string): void {
    const watched = this.#watched.get(id);
    if (!watched) return;
    this.#watched.delete(id);
    const stopped = watched.taken
      ? this.#stop(id, watched)
      : watched.done.then(() => watched.taken ? this.#stop(id, watched) : undefined);
    if (!stopped) return; // At once, as most do: then nothing need wait.
    const ended = stopped.then(() => {
      if (this.#ending.get(id) === ended) this.#ending.delete(id);
    });
    this.#ending.set(id, ended);
  }

  /** Asks the provider to stop; `undefined` when it has done so already. Never rejects. */
  #stop(id: string, { trigger_type, handlers }: Watched): Promise<void> | undefined {
    const failed = (thrown: unknown): void => {
      const { code, message } = refusal(thrown);
      this.#setup.report(new EngineError(code, `A trigger could not be ended: ${message}`));
    };
    try {
      const said: unknown = handlers.unregisterTrigger({ id, trigger_type });
      // A short arrow function may well return what its last expression gives.
      return said instanceof Object ? Promise.resolve(said).then(() => {}, failed) : undefined;
    } catch (thrown) {
      failed(thrown);
      return undefined;
    }
  }

  async #attempt(task: () => Promise<void>, failed: (thrown: unknown) => void): Promise<void> {
    try {
      await task();
    } catch (thrown) {
      failed(thrown);
    }
  }
}

function instanceOf(message: RegisterTrigger): TriggerInstance {
  const { id, trigger_type, function_id, config, metadata, namespace } = message;
  const target = namespace === DEFAULT_NAMESPACE ? undefined : namespace;
  return { id, trigger_type, function_id, config: config ?? {}, metadata, namespace: target };
}

/** What the originator reads: the provider's own words. */
function refusal(thrown: unknown): ErrorBody {
  return errorBody("trigger_registration_failed", thrownText(thrown));
}

function answer(message: RegisterTrigger, error: ErrorBody | undefined): string {
  const { id, trigger_type, function_id } = message;
  return encodeMessage({
    type: "triggerregistrationresult",
    id,
    trigger_type,
    function_id,
    ...error && { error },
  });
}
