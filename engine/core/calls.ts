/**
 * The life of a call: perhaps held, started at a replica, then settled, failed, cancelled or late.
 *
 * Whatever ends a call closes its record first and sends afterwards, so nothing that follows can
 * end it again. Frames in canonical order come in by {@linkcode Calls.forward} and are not parsed;
 * everything else was decoded before.
 *
 * @module
 */
import { parseMessage, readWorkerMessage } from "../../sdk/typescript/codec.ts";
import { CALL_HOLD_MS } from "../../sdk/typescript/limits.ts";
import type {
  CancelInvocation,
  ErrorBody,
  InvocationProgress,
  InvocationResult,
  InvokeFunction,
  Json,
} from "../../sdk/typescript/protocol.ts";
import type { Clock } from "../ports/clock.ts";
import { Deadlines } from "./deadlines.ts";
import {
  CALL_HEAD,
  callTail,
  type Envelope,
  fieldText,
  jsonText,
  RESULT_HEAD,
  resultTail,
  valueTail,
} from "./envelope.ts";
import type { Replica } from "./function_table.ts";
import type { HeldCall, HeldCalls, Target } from "./held_calls.ts";
import { type Invocation, Invocations } from "./invocations.ts";
import type { Peer } from "./peer.ts";
import type { Placement, PlacementSettings } from "./placement.ts";
import { errorTail, failure, type Refusals } from "./refusals.ts";

/** The router's settings, which may change while it runs; PROTOCOL section 12 has the defaults. */
export interface RouterSettings extends PlacementSettings {
  /** How long a call may take that names no time-out of its own. */
  readonly invocation_timeout_ms: number;
}

/** What calls stand on. */
export interface CallsOptions {
  readonly clock: Clock;
  readonly placement: Placement;
  readonly refusals: Refusals;
  readonly held: HeldCalls;
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
  readonly #clock: Clock;
  readonly #placement: Placement;
  readonly #refusals: Refusals;
  readonly #held: HeldCalls;
  readonly #invocations: Invocations;
  readonly #deadlines: Deadlines<Invocation>;
  #settings: RouterSettings;
  #isDraining = false;

  /** Makes one in which no call runs. */
  constructor({ clock, placement, refusals, held, settings, secret }: CallsOptions) {
    this.#clock = clock;
    this.#placement = placement;
    this.#refusals = refusals;
    this.#held = held;
    this.#settings = settings;
    this.#invocations = new Invocations(secret);
    this.#deadlines = new Deadlines(clock, (invocation) => this.#due(invocation));
  }

  /** Calls that run or wait to start now, those nobody waits for included. */
  get size(): number {
    return this.#invocations.size;
  }

  /** What holds for calls from now on. */
  applySettings(settings: RouterSettings): void {
    this.#settings = settings;
    this.#placement.applySettings(settings);
  }

  /** From now on new calls are refused, but for those that a running call needs to finish. */
  drain(): void {
    this.#isDraining = true;
  }

  /** All lines are over: forgets what still waits to start, and leaves nothing on the clock. */
  stop(): void {
    for (const { invocation } of this.#held.all()) this.#close(invocation);
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
    const { function_id, timeout_ms, idStart, idEnd } = envelope;
    const callerId = text.slice(idStart, idEnd);
    if (this.#invocations.findOfCaller(peer, callerId)) return false;
    const replica = this.#placement.find(peer, function_id, text.length);
    if (replica) this.#start(peer, replica, { callerId, timeout_ms, tail: text.slice(idEnd) });
    return replica !== undefined;
  }

  /** Starts a call, lets it wait, or says why not. `envelope` is that of `text`, if it has one. */
  invoke(caller: Peer, call: InvokeFunction, text: string, envelope?: Envelope): void {
    if (this.refusesId(caller, call)) return;
    if (this.#isDraining && caller.inflightCalls === 0) {
      const message = "The engine is stopping and takes no new calls";
      return this.#refusals.call(caller, call, failure("overloaded", message));
    }
    if (call.action?.type === "enqueue") {
      const message = `Queue '${call.action.queue}' not found`;
      return this.#refusals.call(caller, call, failure("enqueue_error", message));
    }
    const chosen = this.#placement.choose(caller, call, text.length);
    if (!chosen) return this.#hold(caller, call, text);
    if ("code" in chosen) return this.#refusals.call(caller, call, chosen);
    const tail = envelope ? text.slice(envelope.idEnd) : callTail(call, text);
    const { timeout_ms } = call;
    this.#start(caller, chosen, { callerId: callerIdOf(call), timeout_ms, tail });
  }

  /** Somebody may run a function from now on: calls that waited for it start, the oldest first. */
  release(target: Target): void {
    for (const held of this.#held.waitingFor(target)) {
      // Whoever is sent one of them may cause another one's end.
      if (this.#held.find(held.invocation) === held) this.#resume(held);
    }
  }

  /** Ends the calls that wait for functions which nobody expects any more. */
  dropUnexpected(): void {
    for (const held of this.#held.unexpected()) {
      if (this.#held.find(held.invocation) === held) this.#giveUp(held);
    }
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
    callee?.tellCancelled(id, reason);
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
        callee?.tellCancelled(id, "caller_disconnected");
        invocation = next;
      }
    }
  }

  /** Opens a call that the engine itself executes; the result names it for complete(). */
  begin(caller: Peer, call: InvokeFunction, invocation_id: string): string {
    const invocation = this.#open(caller, call, jsonText(invocation_id));
    this.#deadlines.add(invocation, invocation.timeout_ms);
    return invocation.id;
  }

  /** Ends such a call: with an error, or with a value. `false` when it had ended before. */
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
    send(caller, callee, invocation.id, tail);
  }

  /** The record of a call that no worker executes, or none yet. */
  #open(caller: Peer, call: InvokeFunction, callerId: string | undefined): Invocation {
    return this.#invocations.open({
      caller: callerId === undefined ? undefined : caller,
      callerId: callerId ?? "",
      callee: undefined,
      function_id: call.function_id,
      timeout_ms: call.timeout_ms ?? this.#settings.invocation_timeout_ms,
      bytes: 0,
    });
  }

  /** Nobody there may run a call: it waits for whoever is expected to. */
  #hold(caller: Peer, call: InvokeFunction, text: string): void {
    if (!this.#held.isExpected(call)) return this.#refusals.notFound(caller, call);
    if (!this.#held.hasRoom(text.length)) {
      const message = `Function ${call.function_id} is overloaded: ${TOO_MANY_WAIT}`;
      return this.#refusals.call(caller, call, failure("overloaded", message));
    }
    const invocation = this.#open(caller, call, callerIdOf(call));
    this.#deadlines.add(invocation, Math.min(invocation.timeout_ms, CALL_HOLD_MS));
    this.#held.add({ caller, call, text, invocation, since: this.#clock.now() });
  }

  /** Starts a call that waited, unless whoever could run it is gone again. */
  #resume({ caller, text, invocation, since }: HeldCall): void {
    const left = since + invocation.timeout_ms - this.#clock.now();
    if (left <= 0) return this.#timedOut(invocation);
    const call = readWorkerMessage(parseMessage(text)) as InvokeFunction;
    const chosen = this.#placement.choose(caller, call, text.length);
    if (!chosen) return;
    if ("code" in chosen) {
      this.#close(invocation);
      return this.#refusals.call(caller, call, chosen);
    }
    // PROTOCOL 3.3: whoever runs it is told what is left of its time.
    if (call.timeout_ms !== undefined) call.timeout_ms = Math.ceil(left);
    const tail = callTail(call, text);
    this.#held.remove(invocation);
    this.#deadlines.remove(invocation);
    this.#deadlines.add(invocation, left);
    this.#invocations.assign(invocation, chosen.peer, tail.length);
    send(caller, chosen.peer, invocation.id, tail);
  }

  /** A call has waited long enough, or in vain. */
  #giveUp({ caller, call, invocation }: HeldCall): void {
    this.#close(invocation);
    this.#refusals.notFound(caller, call);
  }

  /** The time of a call is up, or that for which it may wait to start. */
  #due(invocation: Invocation): void {
    const held = invocation.callee ? undefined : this.#held.find(invocation);
    if (held && invocation.timeout_ms >= CALL_HOLD_MS) this.#giveUp(held);
    else this.#timedOut(invocation);
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
    callee?.tellCancelled(id, "timeout");
  }

  #close(invocation: Invocation): void {
    if (!invocation.callee) this.#held.remove(invocation);
    this.#deadlines.remove(invocation);
    this.#invocations.close(invocation);
  }
}

const TOO_MANY_WAIT = "too many calls wait for workers that are being restarted";

/** The id under which the caller waits, as it stands between quotes; `undefined`: it does not. */
function callerIdOf({ invocation_id, action }: InvokeFunction): string | undefined {
  return invocation_id === undefined || action ? undefined : jsonText(invocation_id);
}

function send(caller: Peer, callee: Peer, id: string, tail: string): void {
  const head = CALL_HEAD + id;
  callee.connection.send(callee.isBuiltin ? `${head}","caller":"${caller.id}` : head, tail);
}
