/**
 * Routes calls between the workers of a test, its fakes and the built-in functions of a test
 * engine, and keeps what was called.
 *
 * It follows PROTOCOL 1 to 4 as far as workers notice, and is much smaller than the engine's core:
 * nothing is bounded, payloads are parsed, and every part runs in this process.
 *
 * @module
 */
import { describeThrown, EngineError, errorBody } from "../typescript/wire/errors.ts";
import {
  DEFAULT_NAMESPACE,
  type ErrorBody,
  type InvokeFunction,
  type Json,
  type JsonObject,
  type RegisterTrigger,
  type WorkerMessage,
} from "../typescript/wire/protocol.ts";
import { similarNames } from "../typescript/wire/similar.ts";
import type { TestClock } from "./clock.ts";
import type { Peer, PeerEvents } from "./peers.ts";

/** A call that came to a function. */
export interface SeenCall {
  /** The function. */
  readonly function_id: string;
  /** What it got; `null` if the caller sent none. */
  readonly payload: Json;
  /** Second argument of the handler. */
  readonly metadata: Json | undefined;
  /** Name of the worker that called; `test` for calls and firings of the test. */
  readonly caller: string;
  /** What it returned; `undefined` while it runs, and if it returned nothing. */
  readonly result: Json | undefined;
  /** What it failed with. */
  readonly error: ErrorBody | undefined;
}

/** A function in the engine: a fake, or a built-in one. */
export type EngineFunction = (payload: Json, metadata: Json | undefined) => unknown;

/** A built-in trigger type. */
export interface EngineTriggerType {
  /** @throws {Error} For a config that the type does not accept. */
  added?(trigger: RegisterTrigger): void;
  removed?(id: string): void;
}

/** A call to make. */
export interface CallToMake {
  readonly function_id: string;
  readonly payload: Json | undefined;
  readonly metadata?: Json | undefined;
  readonly namespace?: string | undefined;
  readonly timeout_ms?: number | undefined;
}

type Outcome = (result: Json | undefined, error: ErrorBody | undefined) => void;
type OpenCall = { -readonly [Key in keyof SeenCall]: SeenCall[Key] };

/** A call that a worker runs. */
interface Running {
  readonly callee: Peer;
  readonly end: Outcome;
  readonly progress: ((data: Json) => void) | undefined;
}

/** The core functions that each worker calls by itself, and what they return. */
const SILENT: Readonly<Record<string, Json>> = { "engine::workers::register": { success: true } };
const LOG = /^engine::log::/;

/** See the module. */
export class Routing implements PeerEvents {
  readonly clock: TestClock;
  readonly seen: OpenCall[] = [];
  /** Fakes, by namespace and id. */
  readonly fakes: Map<string, EngineFunction> = new Map();
  readonly builtins: Map<string, EngineFunction> = new Map();
  readonly types: Map<string, EngineTriggerType> = new Map();
  /** Called when a function appears. */
  functionAdded: () => void = () => {};
  readonly #peers = new Set<Peer>();
  readonly #running = new Map<string, Running>();
  /** Calls by the caller's connection and id, to cancel them. */
  readonly #cancels = new Map<string, (reason: string) => void>();
  readonly #refused = new Set<string>();
  readonly #isOpen = new Set<SeenCall>();
  #events = 0;
  #turn = 0;

  constructor(clock: TestClock) {
    this.clock = clock;
  }

  /** Calls that have not ended. */
  get openCalls(): readonly SeenCall[] {
    return [...this.#isOpen];
  }

  /** Grows with everything that happens. */
  get activity(): number {
    return this.#events;
  }

  /** Makes a call. @throws {EngineError} What it fails with. */
  call(call: CallToMake): Promise<Json | undefined> {
    return new Promise((resolve, reject) => {
      this.#start(call, "test", (result, error) => {
        if (!error) return resolve(result);
        const { code, message, details, retryable = false } = error;
        reject(new EngineError(code, message, { ...details && { details }, retryable }));
      });
    });
  }

  /** Makes a call whose outcome nothing waits for; it is kept among the seen ones. */
  fire(call: CallToMake): void {
    this.#start(call, "test", () => {});
  }

  /** The triggers of a type, in the order of their registration. */
  triggers(type: string): RegisterTrigger[] {
    return [...this.#peers].flatMap((peer) => [...peer.triggers.values()])
      .filter(({ id, trigger_type }) => trigger_type === type && !this.#refused.has(id));
  }

  /** Whether a function is there. */
  has(function_id: string, namespace?: string): boolean {
    const key = keyOf(namespace, function_id);
    return this.fakes.has(key) || this.builtins.has(function_id) || this.#replicas(key).length > 0;
  }

  /** Ends all calls and conversations. */
  stop(): void {
    for (const [id, { end }] of this.#running) {
      this.#running.delete(id);
      end(undefined, errorBody("invocation_stopped", "The test engine has stopped"));
    }
    for (const peer of this.#peers) peer.abandon();
  }

  joined(peer: Peer): void {
    this.#peers.add(peer);
    const capabilities = ["cancel", "timeout", "progress"];
    const reattach_token = crypto.randomUUID();
    peer.send({ type: "workerregistered", worker_id: peer.id, reattach_token, capabilities });
  }

  left(peer: Peer): void {
    this.#peers.delete(peer);
    for (const trigger of peer.triggers.values()) this.#removeTrigger(trigger);
    for (const [id, { callee, end }] of this.#running) {
      if (callee !== peer) continue;
      this.#running.delete(id);
      end(undefined, errorBody("invocation_stopped", "Invocation stopped"));
    }
  }

  received(peer: Peer, message: WorkerMessage): void {
    this.#events++;
    switch (message.type) {
      case "registerfunction":
        peer.functions.set(keyOf(message.namespace, message.id), message);
        return this.functionAdded();
      case "unregisterfunction":
        return void peer.functions.delete(keyOf(message.namespace, message.id));
      case "registertrigger":
        return this.#addTrigger(peer, message);
      case "unregistertrigger": {
        const trigger = peer.triggers.get(message.id);
        peer.triggers.delete(message.id);
        return trigger && this.#removeTrigger(trigger);
      }
      case "registertriggertype":
        peer.types.add(message.id);
        for (const trigger of this.triggers(message.id)) peer.send(trigger);
        return;
      case "unregistertriggertype":
        return void peer.types.delete(message.id);
      case "triggerregistrationresult":
        return message.error && this.#refuse(message.id, message.error);
      case "invokefunction":
        return this.#invoke(peer, message);
      case "invocationresult":
        return this.#finish(message.invocation_id, message.result, message.error);
      case "invocationprogress":
        return this.#running.get(message.invocation_id)?.progress?.(message.data);
      case "cancelinvocation":
        return this.#cancels.get(`${peer.id} ${message.invocation_id}`)?.(message.reason ?? "");
      case "ping":
        return peer.send({ type: "pong" });
      default:
        return;
    }
  }

  #finish(id: string, result: Json | undefined, error: ErrorBody | undefined): void {
    const running = this.#running.get(id);
    this.#running.delete(id);
    running?.end(error ? undefined : result ?? undefined, error);
  }

  #invoke(peer: Peer, message: InvokeFunction): void {
    const { function_id, invocation_id, data, metadata, namespace, timeout_ms, action } = message;
    if (function_id === "engine::workers::register") peer.name = String((data as JsonObject).name);
    const answer: Outcome = (result, error) => {
      this.#cancels.delete(`${peer.id} ${invocation_id}`);
      if (invocation_id === undefined || action?.type === "void") return;
      const head = { type: "invocationresult", invocation_id, function_id } as const;
      if (error) peer.send({ ...head, error });
      else peer.send({ ...head, ...result !== undefined && result !== null && { result } });
    };
    const call = { function_id, payload: data, metadata, namespace, timeout_ms };
    if (LOG.test(function_id) || Object.hasOwn(SILENT, function_id)) {
      return answer(SILENT[function_id], undefined);
    }
    if (action?.type === "enqueue") {
      const job = { ...action, function_id, data: data ?? null, namespace: namespace ?? null };
      const enqueue = this.builtins.get("engine::queue::enqueue")!;
      return void settled(() => enqueue(job, undefined), answer);
    }
    const cancel = this.#start(call, peer.name, answer, (data) => {
      if (invocation_id) peer.send({ type: "invocationprogress", invocation_id, data });
    });
    if (invocation_id) this.#cancels.set(`${peer.id} ${invocation_id}`, cancel);
  }

  /** Starts a call; the result cancels it. */
  #start(
    call: CallToMake,
    caller: string,
    outcome: Outcome,
    progress?: (data: Json) => void,
  ): (reason: string) => void {
    const { function_id, metadata, timeout_ms } = call;
    const payload = call.payload === undefined ? null : jsonCopy(call.payload);
    const record: OpenCall = {
      ...{ function_id, payload, metadata, caller },
      ...{ result: undefined, error: undefined },
    };
    this.seen.push(record);
    this.#isOpen.add(record);
    let stopTimer = (): void => {};
    const end: Outcome = (result, error) => {
      if (!this.#isOpen.delete(record)) return;
      this.#events++;
      stopTimer();
      Object.assign(record, { result, error });
      outcome(result, error);
    };
    const stop = this.#dispatch(call, payload, end, progress);
    if (timeout_ms !== undefined) {
      stopTimer = this.clock.after(timeout_ms, () => {
        end(
          undefined,
          errorBody("timeout", `Invocation of ${function_id} timed out after ${timeout_ms} ms`),
        );
        stop("timeout");
      });
    }
    return (reason) => {
      end(undefined, errorBody("cancelled", "Invocation cancelled"));
      stop(reason);
    };
  }

  /** Runs a function; the result tells its worker that the caller is gone. */
  #dispatch(
    { function_id, metadata, namespace, timeout_ms }: CallToMake,
    payload: Json,
    end: Outcome,
    progress: ((data: Json) => void) | undefined,
  ): (reason: string) => void {
    const key = keyOf(namespace, function_id);
    const own = this.fakes.get(key) ?? this.builtins.get(function_id);
    const replicas = this.#replicas(key);
    if (own) void settled(() => own(jsonCopy(payload), metadata), end);
    if (own || replicas.length === 0) {
      if (!own) queueMicrotask(() => end(undefined, this.#notFound(function_id)));
      return () => {};
    }
    const callee = replicas[this.#turn++ % replicas.length]!;
    const invocation_id = crypto.randomUUID();
    this.#running.set(invocation_id, { callee, end, progress });
    callee.send({
      ...{ type: "invokefunction", invocation_id, function_id },
      ...namespace !== undefined && { namespace },
      ...timeout_ms !== undefined && { timeout_ms },
      ...metadata !== undefined && { metadata },
      data: payload,
    });
    return (reason) => {
      if (!this.#running.delete(invocation_id)) return;
      callee.send({ type: "cancelinvocation", invocation_id, reason });
    };
  }

  #notFound(function_id: string): ErrorBody {
    const ids = [...this.#peers].flatMap((peer) =>
      [...peer.functions.values()].map(({ id }) => id)
    );
    const [similar] = similarNames(function_id, [...ids, ...this.builtins.keys()]);
    const hint = `; to fake it: engine.fake("${function_id}", …)`;
    const details = { ...similar !== undefined && { similar }, hint: hint.slice(2) };
    return errorBody("function_not_found", `Function ${function_id} not found`, details);
  }

  #replicas(key: string): Peer[] {
    return [...this.#peers].filter((peer) => peer.functions.has(key));
  }

  #addTrigger(peer: Peer, trigger: RegisterTrigger): void {
    const own = this.types.get(trigger.trigger_type);
    if (peer.triggers.has(trigger.id)) own?.removed?.(trigger.id);
    this.#refused.delete(trigger.id);
    peer.triggers.set(trigger.id, trigger);
    try {
      own?.added?.(trigger);
    } catch (thrown) {
      const { message } = describeThrown(thrown);
      return this.#refuse(trigger.id, errorBody("trigger_registration_failed", message));
    }
    for (const provider of this.#providers(trigger.trigger_type)) provider.send(trigger);
  }

  #refuse(id: string, error: ErrorBody): void {
    const originator = [...this.#peers].find((peer) => peer.triggers.has(id));
    const trigger = originator?.triggers.get(id);
    if (!originator || !trigger) return;
    this.#refused.add(id);
    const { trigger_type, function_id } = trigger;
    originator.send({ type: "triggerregistrationresult", id, trigger_type, function_id, error });
  }

  #removeTrigger({ id, trigger_type }: RegisterTrigger): void {
    this.types.get(trigger_type)?.removed?.(id);
    for (const provider of this.#providers(trigger_type)) {
      provider.send({ type: "unregistertrigger", id, trigger_type });
    }
  }

  #providers(type: string): Peer[] {
    return [...this.#peers].filter((peer) => peer.types.has(type));
  }
}

/** Ends a call as a function in this process does. */
async function settled(run: () => unknown, end: Outcome): Promise<void> {
  try {
    const value = await run();
    end(value === undefined || value === null ? undefined : jsonCopy(value), undefined);
  } catch (thrown) {
    end(undefined, describeThrown(thrown));
  }
}

/** A value as it arrives over the wire. */
export function jsonCopy(value: unknown): Json {
  return JSON.parse(JSON.stringify(value) ?? "null");
}

/** The key of a function. */
export function keyOf(namespace: string | undefined, id: string): string {
  return `${namespace ?? DEFAULT_NAMESPACE}\0${id}`;
}
