/**
 * The registrations of a worker, kept so that they can be sent on each new connection.
 *
 * They are sent in the order trigger types, functions, triggers. A function or type with the same
 * id replaces the earlier one, whose `unregister()` then has no effect. The frames are written when
 * user code registers, so later changes to its objects have no effect.
 *
 * @module
 */
import { checkSize } from "./arguments.ts";
import type { Handler, Registration, TriggerHandlers } from "./options.ts";
import { encodeMessage } from "./wire/codec.ts";
import { EngineError } from "./wire/errors.ts";
import { isTooDeep, JSON_DEPTH_MAX } from "./wire/json_depth.ts";
import {
  DEFAULT_NAMESPACE,
  type RegisterFunction,
  type RegisterTrigger,
  type RegisterTriggerType,
  type WorkerMessage,
} from "./wire/protocol.ts";

/** Largest registration that an engine accepts, as a frame. */
const REGISTRATION_BYTES_MAX = 256 * 1024;

/** A function: its frame and its handler. */
interface RegisteredFunction {
  readonly text: string;
  readonly handler: Handler;
}

/** A trigger type: its frame and its handlers. */
interface RegisteredType {
  readonly text: string;
  readonly handlers: TriggerHandlers;
}

/** The registrations of one worker. */
export class Registrations {
  readonly #functions = new Map<string, RegisteredFunction>();
  readonly #types = new Map<string, RegisteredType>();
  readonly #triggers = new Map<string, string>();
  readonly #send: (text: string) => void;
  readonly #typeRemoved: (handlers: TriggerHandlers) => void;

  /** `send` sends a frame if connected; `typeRemoved` is called when a type is unregistered. */
  constructor(send: (text: string) => void, typeRemoved: (handlers: TriggerHandlers) => void) {
    this.#send = send;
    this.#typeRemoved = typeRemoved;
  }

  /** Registers a function. @throws {EngineError} `serialization_error` */
  addFunction(message: RegisterFunction, handler: Handler): Registration {
    const { id, namespace } = message;
    const removal: WorkerMessage = {
      type: "unregisterfunction",
      id,
      ...namespace && { namespace },
    };
    const entry = { text: encodeRegistration(message), handler };
    return this.#add(this.#functions, id, keyOf(namespace, id), entry, removal);
  }

  /** Registers a trigger type. @throws {EngineError} `serialization_error` */
  addType(message: RegisterTriggerType, handlers: TriggerHandlers): Registration {
    const { id, namespace } = message;
    const removal: WorkerMessage = {
      type: "unregistertriggertype",
      id,
      ...namespace && { namespace },
    };
    const entry = { text: encodeRegistration(message), handlers };
    return this.#add(this.#types, id, keyOf(namespace, id), entry, removal, () => {
      this.#typeRemoved(handlers);
    });
  }

  /** Registers a trigger. @throws {EngineError} `serialization_error` */
  addTrigger(message: RegisterTrigger): Registration {
    const { id, trigger_type } = message;
    const text = encodeRegistration(message); // Throws before the trigger is kept.
    this.#triggers.set(id, text);
    this.#send(text);
    const unregister = (): void => {
      if (!this.#triggers.delete(id)) return;
      this.#send(encodeMessage({ type: "unregistertrigger", id, trigger_type }));
    };
    return { id, unregister };
  }

  /** The handler of a function. */
  handler(namespace: string | undefined, function_id: string): Handler | undefined {
    return this.#functions.get(keyOf(namespace, function_id))?.handler;
  }

  /** The handlers of a trigger type. */
  triggerHandlers(namespace: string | undefined, id: string): TriggerHandlers | undefined {
    return this.#types.get(keyOf(namespace, id))?.handlers;
  }

  /** The frames of all registrations, in the order for a new connection. */
  frames(): string[] {
    return [...this.#types.values(), ...this.#functions.values()]
      .map(({ text }) => text)
      .concat([...this.#triggers.values()]);
  }

  #add<Entry extends { readonly text: string }>(
    table: Map<string, Entry>,
    id: string,
    key: string,
    entry: Entry,
    removal: WorkerMessage,
    removed?: () => void,
  ): Registration {
    table.set(key, entry);
    this.#send(entry.text);
    const unregister = (): void => {
      if (table.get(key) !== entry) return; // Replaced, or unregistered before.
      table.delete(key);
      this.#send(encodeMessage(removal));
      removed?.();
    };
    return { id, unregister };
  }
}

/** The frame of a registration, which an engine would otherwise refuse on each connection. */
function encodeRegistration(
  message: RegisterFunction | RegisterTrigger | RegisterTriggerType,
): string {
  const text = encodeMessage(message);
  const what = `The registration of ${message.id}`;
  checkSize(what, text, REGISTRATION_BYTES_MAX);
  if (!isTooDeep(text)) return text;
  const reason = `is nested more deeply than ${JSON_DEPTH_MAX} levels`;
  throw new EngineError("serialization_error", `${what} ${reason}`);
}

/** For the default namespace the id itself, so that most calls create no string. */
function keyOf(namespace: string | undefined, id: string): string {
  const isDefault = namespace === undefined || namespace === DEFAULT_NAMESPACE;
  if (isDefault && !id.startsWith("\u0000")) return id;
  return `\u0000${namespace ?? DEFAULT_NAMESPACE}\u0000${id}`;
}
