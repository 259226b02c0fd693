/**
 * All that a worker offers, kept so that it can be said again on every new line.
 *
 * The order on a new line is trigger types, functions, triggers. The same id of a function or a
 * type registered again replaces what was there; the earlier registration then no longer counts.
 * What is kept is the text, written at once: what user code does later to an object that it handed
 * over changes nothing.
 *
 * @module
 */
import { encodeMessage } from "./wire/codec.ts";
import type { Handler, Registration, TriggerHandlers } from "./options.ts";
import {
  DEFAULT_NAMESPACE,
  type RegisterFunction,
  type RegisterTrigger,
  type RegisterTriggerType,
  type WorkerMessage,
} from "./wire/protocol.ts";

/** A function and what runs it. */
interface OfferedFunction {
  readonly text: string;
  readonly handler: Handler;
}

/** A trigger type and what watches for it. */
interface OfferedType {
  readonly text: string;
  readonly handlers: TriggerHandlers;
}

/** The registrations of one worker. */
export class Registrations {
  readonly #functions = new Map<string, OfferedFunction>();
  readonly #types = new Map<string, OfferedType>();
  readonly #triggers = new Map<string, string>();
  readonly #send: (text: string) => void;
  readonly #withdrawn: (handlers: TriggerHandlers) => void;

  /** `send` says it to the engine if there is a line; `withdrawn` hears of types taken back. */
  constructor(send: (text: string) => void, withdrawn: (handlers: TriggerHandlers) => void) {
    this.#send = send;
    this.#withdrawn = withdrawn;
  }

  /** Offers a function. @throws {EngineError} `serialization_error` */
  addFunction(message: RegisterFunction, handler: Handler): Registration {
    const { id, namespace } = message;
    const take: WorkerMessage = { type: "unregisterfunction", id, ...namespace && { namespace } };
    const offer = { text: encodeMessage(message), handler };
    return this.#add(this.#functions, id, keyOf(namespace, id), offer, take);
  }

  /** Offers a trigger type. @throws {EngineError} `serialization_error` */
  addType(message: RegisterTriggerType, handlers: TriggerHandlers): Registration {
    const { id, namespace } = message;
    const take: WorkerMessage = {
      type: "unregistertriggertype",
      id,
      ...namespace && { namespace },
    };
    const offer = { text: encodeMessage(message), handlers };
    return this.#add(this.#types, id, keyOf(namespace, id), offer, take, () => {
      this.#withdrawn(handlers);
    });
  }

  /** Asks for a trigger. @throws {EngineError} `serialization_error` */
  addTrigger(message: RegisterTrigger): Registration {
    const { id, trigger_type } = message;
    const text = encodeMessage(message); // What cannot be written is not kept either.
    this.#triggers.set(id, text);
    this.#send(text);
    const unregister = (): void => {
      if (!this.#triggers.delete(id)) return;
      this.#send(encodeMessage({ type: "unregistertrigger", id, trigger_type }));
    };
    return { id, unregister };
  }

  /** What runs a function. */
  handler(namespace: string | undefined, function_id: string): Handler | undefined {
    return this.#functions.get(keyOf(namespace, function_id))?.handler;
  }

  /** What watches for triggers of a type. */
  triggerHandlers(namespace: string | undefined, id: string): TriggerHandlers | undefined {
    return this.#types.get(keyOf(namespace, id))?.handlers;
  }

  /** Everything, as it is said on a new line. */
  frames(): string[] {
    return [...this.#types.values(), ...this.#functions.values()]
      .map(({ text }) => text)
      .concat([...this.#triggers.values()]);
  }

  #add<Offer extends { readonly text: string }>(
    table: Map<string, Offer>,
    id: string,
    key: string,
    offer: Offer,
    takeBack: WorkerMessage,
    takenBack?: () => void,
  ): Registration {
    table.set(key, offer);
    this.#send(offer.text);
    const unregister = (): void => {
      if (table.get(key) !== offer) return; // Replaced, or taken back before.
      table.delete(key);
      this.#send(encodeMessage(takeBack));
      takenBack?.();
    };
    return { id, unregister };
  }
}

/** The id itself for the default namespace: nearly all calls, and no string to be made for them. */
function keyOf(namespace: string | undefined, id: string): string {
  const isDefault = namespace === undefined || namespace === DEFAULT_NAMESPACE;
  if (isDefault && !id.startsWith("\u0000")) return id;
  return `\u0000${namespace ?? DEFAULT_NAMESPACE}\u0000${id}`;
}
