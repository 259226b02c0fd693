/**
 * What one connection may do, and under which names it knows what it registered: PROTOCOL 8.
 *
 * A connection without rules has no {@linkcode Access}, so its messages cost one comparison with
 * `undefined`. Nothing is sent here, and nothing is stored but names.
 *
 * @module
 */
import { errorBody } from "../../../sdk/typescript/wire/errors.ts";
import {
  ANNOUNCE_FUNCTION_ID,
  DEFAULT_NAMESPACE,
  type EngineMessage,
  type ErrorBody,
  type Json,
  type JsonObject,
} from "../../../sdk/typescript/wire/protocol.ts";
import { type ExposeRule, isExposed, type Pattern } from "./patterns.ts";

/** Functions that every connection may call unless they are forbidden to it. */
export const INFRASTRUCTURE: ReadonlySet<string> = new Set([
  "engine::channels::create",
  ANNOUNCE_FUNCTION_ID,
  ...["trace", "debug", "info", "warn", "error"].map((level) => `engine::log::${level}`),
  ...["get", "set", "get_all"].map((name) => `engine::baggage::${name}`),
]);

/** What an auth function granted to one connection. */
export interface AccessGrant {
  readonly allowed: readonly Pattern[];
  /** In any namespace. */
  readonly forbidden: readonly Pattern[];
  /** Namespaces whose functions may all be called. */
  readonly namespaces: ReadonlySet<string>;
  /** `undefined`: every type. */
  readonly triggerTypes: ReadonlySet<string> | undefined;
  readonly mayRegisterTriggerTypes: boolean;
  readonly mayRegisterFunctions: boolean;
  /** For middleware and hooks. */
  readonly context: JsonObject;
  /** Ids of functions that it registers begin with this and `::`. */
  readonly prefix: string | undefined;
}

/** The access rules of a listener. */
export interface ListenerRules {
  /** `undefined`: everything is allowed. */
  readonly expose: readonly ExposeRule[] | undefined;
  /** Called instead of each allowed function outside `engine::*`. */
  readonly middleware: string | undefined;
  readonly hooks: RegistrationHooks;
}

/** Functions that decide about registrations; `undefined`: none is asked. */
export interface RegistrationHooks {
  readonly function: string | undefined;
  readonly trigger: string | undefined;
  readonly triggerType: string | undefined;
}

/** A token with patterns, by which a connection came. */
export interface TokenRules {
  readonly name: string;
  readonly allow: readonly Pattern[];
}

/** Asks functions for a decision, while messages of the connection wait. */
export interface AccessPorts {
  /**
   * Calls a hook; `then` is called once, later, with its result or the error of the call. Messages
   * that arrive until then are held.
   */
  ask(function_id: string, payload: JsonObject, then: (answer: HookAnswer) => void): void;
}

/** The result of a hook, or why there is none. */
export type HookAnswer = { readonly value: Json } | { readonly error: ErrorBody };

/** What decides about a connection. */
export interface AccessOptions {
  /** Of its listener, with what was granted; `undefined`: the listener has none. */
  readonly rules?: { readonly listener: ListenerRules; readonly grant: AccessGrant } | undefined;
  /** Of its token; `undefined`: it may do everything. */
  readonly token?: TokenRules | undefined;
  readonly ports?: AccessPorts | undefined;
  /** Functions that decide about access, which it may not register. */
  readonly reserved?: ReadonlySet<string> | undefined;
}

/** A function that a connection asks for. */
export interface AskedFunction {
  readonly function_id: string;
  readonly namespace: string;
  /** That of each of its registrations. */
  readonly metadata: readonly (Json | undefined)[];
}

/** What is granted where no auth function is asked. */
export const DEFAULT_GRANT: AccessGrant = {
  allowed: [],
  forbidden: [],
  namespaces: new Set(),
  triggerTypes: undefined,
  mayRegisterTriggerTypes: false,
  mayRegisterFunctions: true,
  context: {},
  prefix: undefined,
};

/** The type of a trigger, in messages about it. */
interface TypeFields {
  readonly trigger_type?: string;
  readonly trigger_namespace?: string;
}

/** What one connection may do. */
export class Access {
  readonly #listener: ListenerRules | undefined;
  readonly #grant: AccessGrant;
  readonly #token: TokenRules | undefined;
  readonly #ports: AccessPorts | undefined;
  readonly #reserved: ReadonlySet<string>;
  /** What it registered under names of its own. */
  readonly functions: Renames = new Renames();
  readonly triggers: Renames = new Renames();
  readonly types: Renames = new Renames();

  constructor({ rules, token, ports, reserved = new Set() }: AccessOptions) {
    this.#listener = rules?.listener;
    this.#grant = rules?.grant ?? DEFAULT_GRANT;
    this.#token = token;
    this.#ports = ports;
    this.#reserved = reserved;
  }

  /** Called instead of allowed functions outside `engine::*`. */
  get middleware(): string | undefined {
    return this.#listener?.middleware;
  }

  /** For middleware and hooks. */
  get context(): JsonObject {
    return this.#grant.context;
  }

  /** Whether every function may be called. */
  get mayCallAll(): boolean {
    return this.#listener?.expose === undefined && this.#token === undefined;
  }

  /** Whether trigger types have other names than the worker gave them. */
  get renamesTypes(): boolean {
    return this.types.size > 0;
  }

  /** The hook that decides about a kind of registration; `undefined`: none. */
  hook(kind: keyof RegistrationHooks): string | undefined {
    return this.#listener?.hooks[kind];
  }

  /** See {@linkcode AccessPorts.ask}. */
  ask(function_id: string, payload: JsonObject, then: (answer: HookAnswer) => void): void {
    this.#ports!.ask(function_id, payload, then);
  }

  /** Why a function may not be called; `undefined`: it may. */
  callProblem(asked: AskedFunction): ErrorBody | undefined {
    const { function_id } = asked;
    const wanted = this.#decide(asked);
    if (wanted === undefined) return undefined;
    const what = wanted === "forbidden"
      ? "remove from rbac.forbidden_functions"
      : "add to rbac.expose_functions";
    const message = `function '${function_id}' not allowed (${what})`;
    return errorBody("FORBIDDEN", message, wanted === "token" ? this.#tokenDetails() : undefined);
  }

  /** Whether a function may be called. */
  mayCall(asked: AskedFunction): boolean {
    return this.#decide(asked) === undefined;
  }

  /** The id under which a function of this connection is registered. */
  prefixed(id: string): string {
    const { prefix } = this.#grant;
    return prefix === undefined ? id : `${prefix}::${id}`;
  }

  /** Why no function may be registered; `undefined`: some may. */
  registrationProblem(id: string): string | undefined {
    if (this.#grant.mayRegisterFunctions) return undefined;
    return `${id} is refused: the auth function does not let this connection register functions`;
  }

  /** Why a function may not be registered under its final id; `undefined`: it may. */
  functionProblem(id: string, namespace: string): string | undefined {
    // A guest that offered one of them would decide about others.
    if (namespace === DEFAULT_NAMESPACE && this.#reserved.has(id)) {
      return `${id} is refused: a function with this id decides about access`;
    }
    return this.registrationProblem(id) ?? this.#tokenProblem(id, namespace);
  }

  /** Why a trigger type may not be registered; `undefined`: it may. */
  triggerTypeProblem(id: string, namespace: string): string | undefined {
    if (this.#listener?.expose !== undefined && !this.#grant.mayRegisterTriggerTypes) {
      return `trigger type ${id}: allow_trigger_type_registration is not granted`;
    }
    return this.#tokenProblem(id, namespace);
  }

  /** Why a trigger may not be of a type; `undefined`: it may. */
  triggerProblem(type: string): string | undefined {
    const { triggerTypes } = this.#grant;
    if (triggerTypes === undefined || triggerTypes.has(type)) return undefined;
    return `trigger type ${type} is not among allowed_trigger_types`;
  }

  /** A message for the worker, with the names by which it knows what it registered. */
  outgoing(message: EngineMessage): EngineMessage {
    switch (message.type) {
      case "triggerregistrationresult":
        return { ...message, id: this.triggers.own(message.id) };
      case "registertrigger":
      case "unregistertrigger":
        if (message.trigger_type === undefined) return message;
        return { ...message, trigger_type: this.#ownType(message) };
      default:
        return message;
    }
  }

  /** The name by which the provider knows the type of a trigger. */
  #ownType({ trigger_type = "", trigger_namespace = DEFAULT_NAMESPACE }: TypeFields): string {
    return namesOf(this.types.own(nameKey(trigger_namespace, trigger_type))).id;
  }

  /** Which rule says no: the first that matches decides, and both of listener and token do. */
  #decide(asked: AskedFunction): "forbidden" | "expose" | "token" | undefined {
    const { function_id, namespace } = asked;
    const { forbidden, namespaces, allowed } = this.#grant;
    const isDefault = namespace === DEFAULT_NAMESPACE;
    if (forbidden.some((pattern) => pattern.matches(function_id))) return "forbidden";
    const isFree = isDefault && INFRASTRUCTURE.has(function_id);
    const token = this.#token;
    if (token && !isFree && !(isDefault && token.allow.some((each) => each.matches(function_id)))) {
      return "token";
    }
    const expose = this.#listener?.expose;
    if (expose === undefined || isFree || namespaces.has(namespace)) return undefined;
    if (isDefault && allowed.some((pattern) => pattern.matches(function_id))) return undefined;
    const isOpen = expose.some((rule) => isExposed(rule, function_id, namespace, asked.metadata));
    return isOpen ? undefined : "expose";
  }

  #tokenProblem(id: string, namespace: string): string | undefined {
    const token = this.#token;
    if (!token) return undefined;
    const isAllowed = namespace === DEFAULT_NAMESPACE &&
      token.allow.some((pattern) => pattern.matches(id));
    if (isAllowed) return undefined;
    const patterns = token.allow.map(({ text }) => text).join(", ");
    return `${id} is refused: token ${token.name} allows ${patterns}`;
  }

  #tokenDetails(): JsonObject {
    const { name, allow } = this.#token!;
    return { token: name, allow: allow.map(({ text }) => text) };
  }
}

/** A function, or a trigger type, in a namespace, as a key of {@linkcode Renames}. */
export function nameKey(namespace: string, id: string): string {
  return JSON.stringify([namespace, id]);
}

/** The namespace and the id of a key. */
export function namesOf(key: string): { namespace: string; id: string } {
  const [namespace, id] = JSON.parse(key) as [string, string];
  return { namespace, id };
}

/** Names of a connection for what is registered under others. */
export class Renames {
  readonly #registered = new Map<string, string>();
  readonly #own = new Map<string, string>();

  /** Number of names that differ. */
  get size(): number {
    return this.#own.size;
  }

  /** Stores under which name something is registered. */
  add(own: string, registered: string): void {
    this.remove(own);
    const other = this.#own.get(registered);
    if (other !== undefined) this.remove(other);
    if (own === registered) return;
    this.#registered.set(own, registered);
    this.#own.set(registered, own);
  }

  /** The name under which something is registered. */
  registered(own: string): string {
    return this.#registered.get(own) ?? own;
  }

  /** The connection's own name for it. */
  own(registered: string): string {
    return this.#own.get(registered) ?? registered;
  }

  /** Whether something has another name. */
  has(own: string): boolean {
    return this.#registered.has(own);
  }

  /** Forgets a name, and returns what was registered under it. */
  remove(own: string): string {
    const registered = this.#registered.get(own) ?? own;
    if (this.#registered.delete(own)) this.#own.delete(registered);
    return registered;
  }
}
