/**
 * Applies the access rules of a connection to its messages, before the router handles them.
 *
 * A message is refused, passed on as it is, or passed on as another one: under another name, or as
 * a call of the listener's middleware. Where a hook decides, the message is passed on later, and
 * the connection holds the messages behind it. Only connections with rules come here.
 *
 * @module
 */
import {
  DEFAULT_NAMESPACE,
  type ErrorBody,
  type InvokeFunction,
  type Json,
  type JsonObject,
  type RegisterFunction,
  type RegisterTrigger,
  type RegisterTriggerType,
  type WorkerMessage,
} from "../../../sdk/typescript/wire/protocol.ts";
import type { Calls } from "../calls.ts";
import { type ErrorReplies, failure } from "../error_replies.ts";
import type { FunctionTable } from "../function_table.ts";
import type { Peer } from "../peer.ts";
import type { TriggerTable } from "../trigger_table.ts";
import { bytesOf } from "../wire/bytes.ts";
import type { Envelope } from "../wire/envelope.ts";
import { type ParsedFrame, parseFrame } from "../wire/parsed_frame.ts";
import type { Access, AskedFunction, HookAnswer } from "./access.ts";
import { nameKey, namesOf } from "./access.ts";

/** Registers a trigger by a call, with the fields of a trigger as payload. */
const REGISTER_TRIGGER = "engine::register_trigger";
/** Its payload names every function. */
const FUNCTIONS_AVAILABLE = "engine::functions-available";
const ENGINE_PREFIX = "engine::";
/** Keys of a trigger's config that name functions, such as `condition_function_id`. */
const FUNCTION_KEY = /function_ids?$/;

/** Handles a message that may be handled. */
export type Apply = (frame: ParsedFrame, envelope?: Envelope) => void;

/** What the guard reads, and where it refuses. */
export interface AccessGuardOptions {
  readonly functions: FunctionTable;
  readonly triggers: TriggerTable;
  readonly calls: Calls;
  readonly errorReplies: ErrorReplies;
  /** Called behind what happens after a hook. */
  flushEvents(): void;
}

/** Applies access rules. */
export class AccessGuard {
  readonly #options: AccessGuardOptions;

  constructor(options: AccessGuardOptions) {
    this.#options = options;
  }

  /** Calls `apply` with what the peer may send, at once or after a hook has decided. */
  admit(peer: Peer, frame: ParsedFrame, apply: Apply, envelope?: Envelope): void {
    const access = peer.access!;
    const { message } = frame;
    switch (message.type) {
      case "invokefunction":
        return this.#call(peer, access, message, frame, apply, envelope);
      case "registerfunction":
        return this.#registerFunction(peer, access, message, frame, apply);
      case "registertriggertype":
        return this.#registerType(peer, access, message, frame, apply);
      case "registertrigger":
        return this.#registerTrigger(peer, access, message, frame, apply);
      case "unregisterfunction":
      case "unregistertriggertype": {
        const names = message.type === "unregisterfunction" ? access.functions : access.types;
        const { id, namespace = DEFAULT_NAMESPACE } = message;
        const own = nameKey(namespace, id);
        if (!names.has(own)) return apply(frame, envelope);
        return this.#applyMessage(peer, { ...message, ...namesOf(names.remove(own)) }, apply);
      }
      case "unregistertrigger": {
        if (!access.triggers.has(message.id)) return apply(frame, envelope);
        const id = access.triggers.remove(message.id);
        return this.#applyMessage(peer, { ...message, id }, apply);
      }
      default:
        return apply(frame, envelope);
    }
  }

  #call(
    peer: Peer,
    access: Access,
    call: InvokeFunction,
    frame: ParsedFrame,
    apply: Apply,
    envelope: Envelope | undefined,
  ): void {
    if (this.#options.calls.rejectsDuplicateId(peer, call)) return;
    const { function_id, namespace } = call;
    const problem = access.callProblem(this.#asked(function_id, namespace)) ??
      this.#hiddenTriggerProblem(peer, access, call);
    if (problem) return this.#forbid(peer, call, problem, frame);
    const { middleware } = access;
    if (middleware === undefined || function_id.startsWith(ENGINE_PREFIX)) {
      return apply(frame, envelope);
    }
    const bytes = bytesOf(middlewareText(middleware, access.context, call, frame));
    this.#applyBytes(peer, bytes, apply);
  }

  /** A trigger that is registered by a call obeys the rules of other triggers. */
  #hiddenTriggerProblem(peer: Peer, access: Access, call: InvokeFunction): ErrorBody | undefined {
    if (call.function_id !== REGISTER_TRIGGER) return undefined;
    const { trigger_type, function_id, namespace, config } = (call.data ?? {}) as JsonObject;
    if (typeof trigger_type !== "string" || typeof function_id !== "string") return undefined;
    const asked = { trigger_type, function_id, config: config ?? {} };
    const space = typeof namespace === "string" ? namespace : DEFAULT_NAMESPACE;
    const reason = access.hook("trigger") !== undefined
      ? "a hook decides about triggers here; register this one with the message registertrigger"
      : access.triggerProblem(trigger_type) ??
        this.#targetProblem(peer, access, { ...asked, namespace: space });
    return reason === undefined ? undefined : failure("FORBIDDEN", `trigger refused: ${reason}`);
  }

  /** A refused call gets a result wherever it has an id, also a void one. */
  #forbid(peer: Peer, call: InvokeFunction, error: ErrorBody, frame: ParsedFrame): void {
    const { calls, errorReplies } = this.#options;
    const { invocation_id, action } = call;
    const isOpen = invocation_id !== undefined && calls.isWaiting(peer, invocation_id);
    const isAnswered = action?.type === "void" && invocation_id !== undefined && !isOpen;
    const { action: _action, ...asked } = call;
    errorReplies.refuse(peer, isAnswered ? asked : call, error, frame);
  }

  #registerFunction(
    peer: Peer,
    access: Access,
    message: RegisterFunction,
    frame: ParsedFrame,
    apply: Apply,
  ): void {
    const { id, namespace = DEFAULT_NAMESPACE, description, metadata, invocation } = message;
    const own = nameKey(namespace, id);
    const register = (given: RegisterFunction, kept?: ParsedFrame): void => {
      const space = given.namespace ?? DEFAULT_NAMESPACE;
      const registered = { ...given, id: access.prefixed(given.id) };
      const problem = access.functionProblem(registered.id, space);
      if (problem !== undefined) return this.#reject(peer, namespace, id, problem);
      const key = nameKey(space, registered.id);
      this.#leaveName(peer, own, key, apply);
      access.functions.add(own, key);
      if (kept && registered.id === id) apply(kept);
      else this.#applyMessage(peer, registered, apply);
      if (!this.#holdsFunction(peer, registered.id, space)) access.functions.remove(own);
    };
    const hook = access.hook("function");
    // Without the right to register, the hook need not be asked.
    const early = hook === undefined ? undefined : access.registrationProblem(id);
    if (early !== undefined) return this.#reject(peer, namespace, id, early);
    if (hook === undefined) return register(message, frame);
    const about = present({ description, metadata, namespace, invocation });
    const payload = { function_id: id, ...about };
    this.#ask(peer, access, hook, payload, (answer, reason) => {
      if (!answer) return this.#reject(peer, namespace, id, `${id} is refused: ${reason}`);
      const { function_id, ...others } = pick(answer, [
        "function_id",
        "description",
        "metadata",
        "namespace",
      ]);
      register({ ...message, ...present({ id: function_id }), ...others } as RegisterFunction);
    });
  }

  /** A function that now gets another name than before loses the one before. */
  #leaveName(peer: Peer, own: string, key: string, apply: Apply): void {
    const before = namesOf(peer.access!.functions.remove(own));
    const isSame = nameKey(before.namespace, before.id) === key;
    if (isSame || !this.#holdsFunction(peer, before.id, before.namespace)) return;
    this.#applyMessage(peer, { type: "unregisterfunction", ...before }, apply);
  }

  #registerType(
    peer: Peer,
    access: Access,
    message: RegisterTriggerType,
    frame: ParsedFrame,
    apply: Apply,
  ): void {
    const { id, namespace = DEFAULT_NAMESPACE, description } = message;
    const problem = access.triggerTypeProblem(id, namespace);
    if (problem !== undefined) return this.#refuse(peer, problem);
    const hook = access.hook("triggerType");
    if (hook === undefined) return apply(frame);
    const payload = { trigger_type_id: id, description };
    this.#ask(peer, access, hook, payload, (answer, reason) => {
      if (!answer) return this.#refuse(peer, `trigger type ${id}: ${reason}`);
      const { trigger_type_id = id, description: text = description } = answer;
      const given = { ...message, id: trigger_type_id, description: text } as RegisterTriggerType;
      const own = nameKey(namespace, id);
      access.types.add(own, nameKey(namespace, given.id));
      this.#applyMessage(peer, given, apply);
      const type = this.#options.triggers.types.find(given.id, namespace);
      const isHeld = type?.providers.some((provider) => provider.peer === peer) ?? false;
      if (!isHeld) access.types.remove(own);
    });
  }

  #registerTrigger(
    peer: Peer,
    access: Access,
    message: RegisterTrigger,
    frame: ParsedFrame,
    apply: Apply,
  ): void {
    const { id, trigger_type, function_id, config, metadata, namespace } = message;
    const problem = access.triggerProblem(trigger_type);
    if (problem !== undefined) return this.#refuse(peer, `trigger ${id}: ${problem}`);
    const register = (given: RegisterTrigger, decided?: JsonObject): void => {
      // What a hook wrote is the operator's choice.
      const checked = { ...given };
      if (decided?.function_id !== undefined) checked.function_id = "";
      if (decided?.config !== undefined) checked.config = {};
      const why = access.triggerProblem(given.trigger_type) ??
        this.#targetProblem(peer, access, checked);
      if (why !== undefined) return this.#refuse(peer, `trigger ${id}: ${why}`);
      const mapped = decided?.function_id === undefined ? withOwnFunctions(access, given) : given;
      access.triggers.add(id, given.id);
      if (mapped === message) apply(frame);
      else this.#applyMessage(peer, mapped, apply);
      if (this.#options.triggers.find(given.id)?.owner !== peer) access.triggers.remove(id);
    };
    const hook = access.hook("trigger");
    if (hook === undefined) return register(message);
    const payload = {
      trigger_id: id,
      trigger_type,
      function_id,
      ...present({ config, metadata, namespace }),
    };
    this.#ask(peer, access, hook, payload, (answer, reason) => {
      if (!answer) return this.#refuse(peer, `trigger ${id}: ${reason}`);
      const { trigger_id, ...others } = pick(answer, [
        "trigger_id",
        "trigger_type",
        "function_id",
        "config",
        "metadata",
        "namespace",
      ]);
      const given = { ...message, ...present({ id: trigger_id }), ...others } as RegisterTrigger;
      register(given, answer);
    });
  }

  /** Why the functions that a trigger names may not be called on behalf of the connection. */
  #targetProblem(
    peer: Peer,
    access: Access,
    { trigger_type, function_id, namespace, config }: Omit<RegisterTrigger, "type" | "id">,
  ): string | undefined {
    if (access.mayCallAll) return undefined;
    if (trigger_type === FUNCTIONS_AVAILABLE) {
      return `${FUNCTIONS_AVAILABLE} names every function; call engine::functions::list instead`;
    }
    const targets = function_id === "" ? [] : [{ id: function_id, namespace }];
    const ids = functionIdsIn(config).map((id) => ({ id, namespace: undefined }));
    for (const { id, namespace: space = DEFAULT_NAMESPACE } of [...targets, ...ids]) {
      const isOwn = access.functions.has(nameKey(space, id)) ||
        this.#holdsFunction(peer, id, space);
      const error = isOwn ? undefined : access.callProblem(this.#asked(id, space));
      if (error) return error.message;
    }
    return undefined;
  }

  #ask(
    peer: Peer,
    access: Access,
    hook: string,
    payload: JsonObject,
    then: (answer: JsonObject | undefined, reason: string) => void,
  ): void {
    access.ask(hook, { ...payload, context: access.context }, (answer) => {
      if (!peer.isLive) return;
      const [value, reason] = readAnswer(answer, hook);
      try {
        then(value, reason);
      } catch (thrown) {
        this.#options.errorReplies.warn(peer, "a message could not be handled", String(thrown));
      }
      this.#options.flushEvents();
    });
  }

  /** Passes a message on that the engine changed. */
  #applyMessage(peer: Peer, message: WorkerMessage, apply: Apply): void {
    this.#applyBytes(peer, bytesOf(JSON.stringify(message)), apply);
  }

  #applyBytes(peer: Peer, bytes: Uint8Array, apply: Apply): void {
    const frame = parseFrame(bytes, 0, bytes.length);
    if ("error" in frame) return this.#refuse(peer, frame.error.message);
    apply(frame);
  }

  #asked(function_id: string, namespace: string = DEFAULT_NAMESPACE): AskedFunction {
    const replicas = this.#options.functions.find(function_id, namespace)?.replicas ?? [];
    const metadata = replicas.map(({ registration }) => registration.metadata);
    return { function_id, namespace, metadata };
  }

  #holdsFunction(peer: Peer, id: string, namespace: string): boolean {
    const replicas = this.#options.functions.find(id, namespace)?.replicas ?? [];
    return replicas.some((replica) => replica.peer === peer);
  }

  /** Triggers and types: only the log has them. */
  #refuse(peer: Peer, reason: string): void {
    this.#options.errorReplies.warn(peer, "access rules refused a registration", reason);
  }

  #reject(peer: Peer, namespace: string, function_id: string, message: string): void {
    this.#refuse(peer, message);
    const code = "FUNCTION_NAMESPACE_CONFLICT";
    const owner_worker_id = "engine";
    const type = "registrationrejected";
    peer.send({ type, code, namespace, function_id, owner_worker_id, message });
  }
}

/** The call of the middleware for a call; the payload keeps its bytes. */
function middlewareText(
  middleware: string,
  context: JsonObject,
  call: InvokeFunction,
  frame: ParsedFrame,
): string {
  const { invocation_id, function_id, namespace = DEFAULT_NAMESPACE, action } = call;
  const { timeout_ms, traceparent, baggage } = call;
  const head = present({
    type: "invokefunction",
    invocation_id,
    function_id: middleware,
    action: action?.type === "void" ? { type: "void" } : undefined,
    timeout_ms,
    traceparent,
    baggage,
  });
  const asked = { function_id, action: action as Json ?? null, context, namespace };
  const metadata = frame.field("metadata");
  const extra = metadata === undefined ? "" : `,"metadata":${metadata}`;
  const payload = frame.field("data") ?? "null";
  return `${JSON.stringify(head).slice(0, -1)}${extra},"data":` +
    `${JSON.stringify(asked).slice(0, -1)},"payload":${payload}}}`;
}

/** The object that a hook returned, or why it refuses. */
function readAnswer(answer: HookAnswer, hook: string): [JsonObject | undefined, string] {
  if ("error" in answer) return [undefined, `${hook} failed: ${answer.error.message}`];
  const { value } = answer;
  if (isObject(value)) return [value, ""];
  return [undefined, `${hook} returned no object`];
}

/** A trigger whose functions have the names under which this connection registered them. */
function withOwnFunctions(access: Access, trigger: RegisterTrigger): RegisterTrigger {
  const own = nameKey(trigger.namespace ?? DEFAULT_NAMESPACE, trigger.function_id);
  const config = withOwnIds(access, trigger.config);
  if (!access.functions.has(own) && config === trigger.config) return trigger;
  const { namespace, id: function_id } = namesOf(access.functions.registered(own));
  return { ...trigger, function_id, namespace, ...present({ config }) };
}

function withOwnIds(access: Access, config: Json | undefined): Json | undefined {
  const isOwn = (id: Json): boolean =>
    typeof id === "string" && access.functions.has(nameKey(DEFAULT_NAMESPACE, id));
  if (!functionIdsIn(config).some(isOwn)) return config;
  const renamed = (id: Json): Json =>
    isOwn(id)
      ? namesOf(access.functions.registered(nameKey(DEFAULT_NAMESPACE, id as string))).id
      : id;
  const entries = Object.entries(config as JsonObject).map(([key, value]): [string, Json] => {
    if (!FUNCTION_KEY.test(key)) return [key, value];
    return [key, Array.isArray(value) ? value.map(renamed) : renamed(value)];
  });
  return Object.fromEntries(entries);
}

/** The functions that a trigger's config names. */
function functionIdsIn(config: Json | undefined): string[] {
  if (!isObject(config)) return [];
  return Object.entries(config).filter(([key]) => FUNCTION_KEY.test(key))
    .flatMap(([, value]) => value)
    .filter((id) => typeof id === "string");
}

function isObject(value: Json | undefined): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

/** The members that have a value. */
function present(members: Readonly<Record<string, Json | undefined>>): JsonObject {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as JsonObject;
}

/** Some members of an object, as far as it has them. */
function pick(from: JsonObject, keys: readonly string[]): JsonObject {
  return present(Object.fromEntries(keys.map((key) => [key, from[key]])));
}
