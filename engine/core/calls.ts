/**
 * The life of a call: started at a replica, then settled, failed, cancelled or late.
 *
 * Whatever ends a call closes its record first and sends afterwards, so nothing that follows can
 * end it again. Frames in canonical order come in by {@linkcode Calls.forward} and are not parsed;
 * everything else was decoded before.
 *
 * @module
 */
import type { ErrorCode } from "../../sdk/typescript/errors.ts";
import type {
  CancelInvocation,
  ErrorBody,
  InvocationProgress,
  InvocationResult,
  InvokeFunction,
  Json,
} from "../../sdk/typescript/protocol.ts";
import type { Clock } from "../ports/clock.ts";
import type { Misfit, Schemas } from "../ports/schemas.ts";
import { Deadlines } from "./deadlines.ts";
import {
  CALL_HEAD,
  callTail,
  type Envelope,
  fieldText,
  jsonText,
  RESULT_HEAD,
  resultTail,
} from "./envelope.ts";
import type { FunctionTable, LoadBounds, Replica } from "./function_table.ts";
import { type Invocation, Invocations } from "./invocations.ts";
import type { Peer } from "./peer.ts";
import { errorTail, failure, type Refusals } from "./refusals.ts";

/** The router's settings, which may change while it runs; PROTOCOL section 12 has the defaults. */
export interface RouterSettings extends LoadBounds {
  /** How long a call may take that names no time-out of its own. */
  readonly invocation_timeout_ms: number;
  /** Whether payloads are checked against `request_format`. */
  readonly validate_payloads: boolean;
}

/** What calls stand on. */
export interface CallsOptions {
  readonly clock: Clock;
  readonly schemas: Schemas;
  readonly functions: FunctionTable;
  readonly refusals: Refusals;
  readonly settings: RouterSettings;
  /** A UUID, part of every id of a call. */
  readonly secret: string;
}

/** What #start() is told of a call. */
interface Start {
  /** As it stands between quotes in JSON; `undefined`: nobody waits. */
  readonly callerId: string | undefined;
  readonly timeout_ms: number | undefined;
  /** The frame from the closing quote of the call's id on. */
  readonly tail: string;
}

/** Runs calls. */
export class Calls {
  readonly #functions: FunctionTable;
  readonly #refusals: Refusals;
  readonly #schemas: Schemas;
  readonly #invocations: Invocations;
  readonly #deadlines: Deadlines<Invocation>;
  #settings: RouterSettings;
  #isDraining = false;

  /** Makes one in which no call runs. */
  constructor({ clock, schemas, functions, refusals, settings, secret }: CallsOptions) {
    this.#functions = functions;
    this.#refusals = refusals;
    this.#schemas = schemas;
    this.#settings = settings;
    this.#invocations = new Invocations(secret);
    this.#deadlines = new Deadlines(clock, (invocation) => this.#timedOut(invocation));
  }

  /** Calls that run now, those nobody waits for included. */
  get size(): number {
    return this.#invocations.size;
  }

  /** What holds for calls from now on. */
  applySettings(settings: RouterSettings): void {
    this.#settings = settings;
  }

  /** From now on new calls are refused, but for those that a running call needs to finish. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Leaves nothing on the clock. */
  stop(): void {
    this.#deadlines.clear();
  }

  /** Passes a frame on without parsing it; `false` when somebody has to parse it. */
  forward(peer: Peer, text: string, envelope: Envelope): boolean {
    if (envelope.kind === "result") {
      const invocation = this.#invocations.find(text, envelope.idStart, envelope.idEnd);
      // Late, or not its to answer: the caller is told once, by the right worker.
      if (invocation?.callee === peer) this.#settle(invocation, text.slice(envelope.idEnd));
      return true;
    }
    if (this.#isDraining) return false;
    const offer = this.#functions.find(envelope.function_id);
    if (!offer || (offer.formats > 0 && this.#checks(peer))) return false;
    const callerId = text.slice(envelope.idStart, envelope.idEnd);
    if (this.#invocations.findOfCaller(peer, callerId)) return false;
    const replica = this.#functions.pick(offer, text.length, this.#settings);
    if (!replica) return false;
    const tail = text.slice(envelope.idEnd);
    this.#start(peer, replica, { callerId, timeout_ms: envelope.timeout_ms, tail });
    return true;
  }

  /** Starts a call, or says why not. `envelope` is that of `text`, if it has one. */
  invoke(caller: Peer, call: InvokeFunction, text: string, envelope?: Envelope): void {
    if (this.refusesId(caller, call)) return;
    if (this.#isDraining && caller.inflightCalls === 0) {
      this.#refuse(caller, call, "overloaded", "The engine is stopping and takes no new calls");
      return;
    }
    if (call.action?.type === "enqueue") {
      this.#refuse(caller, call, "enqueue_error", `Queue '${call.action.queue}' not found`);
      return;
    }
    const offer = this.#functions.find(call.function_id, call.namespace);
    if (!offer) return this.#refusals.notFound(caller, call);
    const replica = this.#functions.pick(offer, text.length, this.#settings);
    if (!replica) {
      const who = `every worker that offers ${call.function_id} is at its bound`;
      this.#refuse(
        caller,
        call,
        "overloaded",
        `Function ${call.function_id} is overloaded: ${who}`,
      );
      return;
    }
    const misfits = this.#checks(caller) ? this.#misfits(replica, call.data) : [];
    if (misfits.length > 0) return this.#refuseMisfits(caller, call, misfits);
    const tail = envelope ? text.slice(envelope.idEnd) : callTail(call, text);
    const waits = call.invocation_id !== undefined && call.action === undefined;
    const callerId = waits ? jsonText(call.invocation_id!) : undefined;
    this.#start(caller, replica, { callerId, timeout_ms: call.timeout_ms, tail });
  }

  /** Whether the caller has a call under that id already; it is told so. */
  refusesId(caller: Peer, { invocation_id, action }: InvokeFunction): boolean {
    if (invocation_id === undefined || action?.type === "void") return false;
    if (!this.isWaiting(caller, invocation_id)) return false;
    const message = `Invocation ${invocation_id} is still open; each call needs an id of its own`;
    caller.tell({ type: "error", error: failure("bad_message", message) });
    return true;
  }

  /** Whether a peer waits for a call that it knows under this id. */
  isWaiting(caller: Peer, invocation_id: string): boolean {
    return this.#invocations.findOfCaller(caller, jsonText(invocation_id)) !== undefined;
  }

  /** A worker answers. */
  settle(from: Peer, result: InvocationResult, text: string): void {
    const invocation = this.#invocations.find(result.invocation_id);
    if (invocation?.callee === from) this.#settle(invocation, resultTail(result, text));
  }

  /** A worker answers in a way nobody can read. */
  settleBroken(from: Peer, invocation_id: string, reason: string): void {
    const invocation = this.#invocations.find(invocation_id);
    if (invocation?.callee !== from) return;
    const message =
      `The answer of the worker that ran ${invocation.function_id} is broken: ${reason}`;
    this.#fail(invocation, failure("bad_message", message));
  }

  /** A worker has news of a call. */
  progress(from: Peer, { invocation_id }: InvocationProgress, text: string): void {
    const invocation = this.#invocations.find(invocation_id);
    if (invocation?.callee !== from || !invocation.caller?.wantsProgress) return;
    const head = `{"type":"invocationprogress","invocation_id":"${invocation.callerId}`;
    invocation.caller.answer(head, `","data":${fieldText(text, "data")}}`);
  }

  /** A caller no longer wants a result. */
  cancel(from: Peer, { invocation_id, reason }: CancelInvocation): void {
    const invocation = this.#invocations.findOfCaller(from, jsonText(invocation_id));
    if (!invocation) return;
    const { callee, id } = invocation;
    this.#fail(invocation, failure("cancelled", "Invocation cancelled"));
    tellCancelled(callee, id, reason);
  }

  /** A worker has left: what it ran has stopped, what it waited for is cancelled. */
  removePeer(peer: Peer): void {
    for (let first = peer.firstCall; first; first = peer.firstCall) {
      this.#fail(first, failure("invocation_stopped", "Invocation stopped"));
    }
    for (const first of [...peer.waiting.values()]) {
      let invocation: Invocation | undefined = first;
      while (invocation) {
        const { callee, id, next }: Invocation = invocation;
        this.#close(invocation);
        tellCancelled(callee, id, "caller_disconnected");
        invocation = next;
      }
    }
  }

  /** Keeps a call open that the engine itself executes; the result names it for complete(). */
  hold(caller: Peer, call: InvokeFunction, invocation_id: string): string {
    const invocation = this.#invocations.open({
      caller,
      callerId: jsonText(invocation_id),
      callee: undefined,
      function_id: call.function_id,
      timeout_ms: call.timeout_ms ?? this.#settings.invocation_timeout_ms,
      bytes: 0,
    });
    this.#deadlines.add(invocation, invocation.timeout_ms);
    return invocation.id;
  }

  /** Ends a held call: with an error, or with a value. `false` when it had ended before. */
  complete(id: string, outcome: { error: ErrorBody } | { result: Json }): boolean {
    const invocation = this.#invocations.find(id);
    if (!invocation) return false;
    if ("error" in outcome) this.#fail(invocation, outcome.error);
    else this.#settle(invocation, valueTail(invocation.function_id, outcome.result));
    return true;
  }

  /** Answers a call that was never opened, with a value. */
  answer(caller: Peer, invocation_id: string, function_id: string, result: Json): void {
    caller.answer(RESULT_HEAD + jsonText(invocation_id), valueTail(function_id, result));
  }

  #start(caller: Peer, { peer: callee, offer }: Replica, start: Start): void {
    const { callerId, tail, timeout_ms = this.#settings.invocation_timeout_ms } = start;
    const invocation = this.#invocations.open({
      caller: callerId === undefined ? undefined : caller,
      callerId: callerId ?? "",
      callee,
      function_id: offer.id,
      timeout_ms,
      bytes: tail.length,
    });
    this.#deadlines.add(invocation, timeout_ms);
    const head = CALL_HEAD + invocation.id;
    callee.connection.send(callee.isBuiltin ? `${head}","caller":"${caller.id}` : head, tail);
  }

  #settle(invocation: Invocation, tail: string): void {
    const { caller, callerId } = invocation;
    this.#close(invocation);
    caller?.answer(RESULT_HEAD + callerId, tail);
  }

  #fail(invocation: Invocation, error: ErrorBody): void {
    this.#settle(invocation, errorTail(invocation.function_id, error));
  }

  #timedOut(invocation: Invocation): void {
    const { callee, id, function_id, timeout_ms } = invocation;
    const message = `Invocation of ${function_id} timed out after ${timeout_ms} ms`;
    this.#fail(invocation, failure("timeout", message));
    tellCancelled(callee, id, "timeout");
  }

  #close(invocation: Invocation): void {
    this.#deadlines.remove(invocation);
    this.#invocations.close(invocation);
  }

  #refuse(caller: Peer, call: InvokeFunction, code: ErrorCode, message: string): void {
    this.#refusals.call(caller, call, failure(code, message));
  }

  #refuseMisfits(caller: Peer, call: InvokeFunction, misfits: readonly Misfit[]): void {
    const errors = misfits.map(({ path, message }) => ({ path, message }));
    const first = `${errors[0]!.path} ${errors[0]!.message}`.trim();
    const message = `Payload of ${call.function_id} does not fit its request_format: ${first}`;
    this.#refusals.call(caller, call, failure("invalid_payload", message, { errors }));
  }

  /** Firings of the engine's own workers are not checked: their shape belongs to the type. */
  #checks(caller: Peer): boolean {
    return this.#settings.validate_payloads && !caller.isBuiltin;
  }

  #misfits(replica: Replica, data: Json = null): readonly Misfit[] {
    if (replica.check === undefined) {
      replica.check = null;
      try {
        replica.check = this.#schemas.compile(replica.registration.request_format!);
      } catch (thrown) {
        const detail = `${replica.offer.id}: ${(thrown as Error).message}`;
        this.#refusals.warn(replica.peer, "request_format is not enforced", detail);
      }
    }
    return replica.check?.(data) ?? [];
  }
}

function tellCancelled(callee: Peer | undefined, id: string, reason: string | undefined): void {
  if (!callee?.wantsCancel) return;
  callee.tell({
    type: "cancelinvocation",
    invocation_id: id,
    ...(reason === undefined ? {} : { reason }),
  });
}

function valueTail(function_id: string, result: Json): string {
  return `","function_id":${JSON.stringify(function_id)},"result":${JSON.stringify(result)}}`;
}
