/**
 * The life of a call: perhaps held, started at a replica, then settled, failed, cancelled or late.
 *
 * Whatever ends a call closes its record first and sends afterwards, so nothing that follows can
 * end it again. Frames in canonical order come in by {@linkcode Calls.forward} and are not parsed;
 * everything else was decoded before.
 *
 * @module
 */
import { parseMessage, readWorkerMessage } from "../../sdk/typescript/wire/codec.ts";
import { CALL_HOLD_MS } from "../../sdk/typescript/wire/limits.ts";
import {
  type CancelInvocation,
  DEFAULT_NAMESPACE,
  type ErrorBody,
  type InvocationProgress,
  type InvocationResult,
  type InvokeFunction,
  type Json,
} from "../../sdk/typescript/wire/protocol.ts";
import type { CallObserver, ObservedParty } from "../ports/call_observer.ts";
import type { Clock } from "../ports/clock.ts";
import { BackPressure } from "./back_pressure.ts";
import { failure, type Refusals } from "./error_replies.ts";
import type { Offer, Replica } from "./function_table.ts";
import type { HeldCall, HeldCalls, Target } from "./parked_calls.ts";
import type { Invocation, Peer } from "./peer.ts";
import { candidatesOf, type Placement, type PlacementSettings } from "./placement.ts";
import { RunningCalls } from "./running_calls.ts";
import { textOf } from "./wire/bytes.ts";
import type { Envelope } from "./wire/envelope.ts";
import {
  type CallerId,
  callerIdIn,
  callerIdOf,
  type CallTail,
  callTail,
  jsonText,
  resultTail,
  valueTail,
} from "./wire/frame_parts.ts";
import { fieldText } from "./wire/json_scan.ts";

/** The router's settings, which may change while it runs; PROTOCOL 12 has the defaults. */
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
  readonly observer: CallObserver;
  readonly settings: RouterSettings;
  /** A UUID, part of every id of a call. */
  readonly secret: string;
}

/** Runs calls. */
export class Calls {
  readonly #clock: Clock;
  readonly #placement: Placement;
  readonly #refusals: Refusals;
  readonly #held: HeldCalls;
  readonly #observer: CallObserver;
  /** The engine itself, for calls that it runs. */
  readonly #engine: ObservedParty;
  readonly #running: RunningCalls;
  readonly #pressure: BackPressure;
  #settings: RouterSettings;
  #isDraining = false;

  /** Makes one in which no call runs. */
  constructor({ clock, placement, refusals, held, observer, settings, secret }: CallsOptions) {
    this.#clock = clock;
    this.#placement = placement;
    this.#refusals = refusals;
    this.#held = held;
    this.#observer = observer;
    this.#engine = observer.partyOf("engine", "engine");
    this.#settings = settings;
    this.#pressure = new BackPressure(clock);
    const onDue = (call: Invocation): void => this.#due(call);
    this.#running = new RunningCalls({ clock, held, observer, secret, onDue });
  }

  /** Calls that run or wait to start now, those nobody waits for included. */
  get size(): number {
    return this.#running.size;
  }

  /** The engine's id of a call, also of one that is over. */
  idOf(slot: number, uses: number): string {
    return this.#running.idOf(slot, uses);
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
    const error = failure("function_not_found", "The engine stopped before the call could start");
    for (const { invocation } of this.#held.all()) {
      this.#running.drop(invocation, error, "the engine stopped");
    }
    this.#running.stop();
    this.#pressure.stop();
  }

  /** A line that had much unsent has room again. */
  drained(peer: Peer): void {
    peer.drained();
    this.#pressure.drained(peer);
  }

  /** Passes a frame on without parsing it; `false` when somebody has to. */
  forward(peer: Peer, envelope: Envelope): boolean {
    if (envelope.kind === "result") {
      const { view, idStart, idEnd } = envelope;
      const invocation = this.#running.find(view, idStart, idEnd);
      // Late, or not its to answer: the caller is told once, by the right worker.
      if (invocation?.callee === peer) this.#running.settle(invocation, envelope);
      return true;
    }
    if (this.#isDraining || this.#running.findOfCaller(peer, envelope)) return false;
    const replica = this.#placement.find(peer, envelope);
    if (replica) this.#start(peer, replica, envelope, envelope.timeout_ms, envelope);
    return replica !== undefined;
  }

  /** Starts a call, lets it wait, or says why not. `envelope` is that of `text`, if it has one. */
  invoke(caller: Peer, call: InvokeFunction, text: string, envelope?: Envelope): void {
    if (this.refusesId(caller, call)) return;
    if (this.#isDraining && caller.inflightCalls === 0) {
      const message = "The engine is stopping and takes no new calls";
      return this.#refusals.call(caller, call, failure("overloaded", message), text);
    }
    if (call.action?.type === "enqueue") {
      const message = `Queue '${call.action.queue}' not found`;
      return this.#refusals.call(caller, call, failure("enqueue_error", message), text);
    }
    const tail = envelope?.kind === "call" ? envelope : callTail(call, text);
    const chosen = this.#placement.choose(caller, call, tail.end - tail.idEnd);
    if (!chosen) return this.#hold(caller, call, text, tail);
    if ("code" in chosen) return this.#refusals.call(caller, call, chosen, text);
    this.#start(caller, chosen, callerIdIn(call), call.timeout_ms, tail);
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
    return this.#running.findOfCaller(caller, callerIdOf(jsonText(invocation_id))) !== undefined;
  }

  /** A worker answers. */
  settle(from: Peer, result: InvocationResult, text: string): void {
    const invocation = this.#running.findText(result.invocation_id);
    if (invocation?.callee !== from) return;
    const tail = resultTail(result, text);
    if (result.error === undefined) this.#running.settle(invocation, tail);
    else this.#running.settleError(invocation, tail, result.error);
  }

  /** A worker answers in a way nobody can read. */
  settleBroken(from: Peer, invocation_id: string, reason: string): void {
    const invocation = this.#running.findText(invocation_id);
    if (invocation?.callee !== from) return;
    const message =
      `The answer of the worker that ran ${invocation.function_id} is broken: ${reason}`;
    this.#running.fail(invocation, failure("bad_message", message), null);
  }

  /** A worker has news of a call. */
  progress(from: Peer, { invocation_id }: InvocationProgress, text: string): void {
    const invocation = this.#running.findText(invocation_id);
    if (invocation?.callee !== from || !invocation.caller?.wantsProgress) return;
    const { caller, callerId, callerIdBytes } = invocation;
    const id = textOf(callerId, 0, callerIdBytes);
    const head = `{"type":"invocationprogress","invocation_id":"${id}"`;
    caller.answerText(`${head},"data":${fieldText(text, "data")}}`);
  }

  /** A caller no longer wants a result. */
  cancel(from: Peer, { invocation_id, reason }: CancelInvocation): void {
    const invocation = this.#running.findOfCaller(from, callerIdOf(jsonText(invocation_id)));
    if (!invocation) return;
    const { callee } = invocation;
    const id = this.#running.textOf(invocation);
    this.#running.fail(invocation, CANCELLED, "the caller cancelled");
    callee?.tellCancelled(id, reason);
  }

  /** A worker has left: what it ran has stopped, what it waited for is cancelled. */
  removePeer(peer: Peer): void {
    this.#pressure.left(peer);
    for (let first = peer.firstCall; first; first = peer.firstCall) {
      this.#running.fail(first, STOPPED, "the worker left");
    }
    for (const invocation of this.#running.ofCaller(peer)) {
      const { callee } = invocation;
      const id = this.#running.textOf(invocation);
      this.#running.drop(invocation, CALLER_LEFT, "the caller left");
      callee?.tellCancelled(id, "caller_disconnected");
    }
  }

  /** Opens a call that the engine itself executes; the result names it for complete(). */
  begin(caller: Peer, call: InvokeFunction, invocation_id: string, text: string): string {
    const tail = callTail(call, text);
    const invocation = this.#open(caller, call, callerIdOf(jsonText(invocation_id)), tail);
    this.#observer.sent(invocation, this.#engine, invocation.since, undefined);
    return this.#running.textOf(invocation);
  }

  /** Ends such a call: with an error, or with a value. `false` when it had ended before. */
  complete(id: string, outcome: { error: ErrorBody } | { result: Json }): boolean {
    const invocation = this.#running.findText(id);
    if (!invocation) return false;
    if ("error" in outcome) this.#running.fail(invocation, outcome.error, null);
    else this.#running.settle(invocation, valueTail(invocation.function_id, outcome.result));
    return true;
  }

  #start(
    caller: Peer,
    { peer: callee, offer }: Replica,
    ids: CallerId | undefined,
    timeout_ms: number = this.#settings.invocation_timeout_ms,
    tail: CallTail,
  ): void {
    const subject = offer.subject ??= this.#observer.functionOf(offer.namespace, offer.id);
    const beginning = { caller, ids, callee, function_id: offer.id, subject, timeout_ms, tail };
    const invocation = this.#running.open(beginning);
    this.#send(invocation, caller, offer, tail, invocation.since);
  }

  #send(call: Invocation, caller: Peer, offer: Offer, tail: CallTail, now: number): void {
    const candidates = this.#observer.wantsCandidates(call)
      ? candidatesOf(offer, call.callee!, tail.end - tail.idEnd, this.#settings)
      : undefined;
    this.#running.send(call, caller, tail, now, candidates);
    this.#pressure.sent(caller, call.callee!);
  }

  /** The record of a call that no worker executes, or none yet. */
  #open(
    caller: Peer,
    call: InvokeFunction,
    ids: CallerId | undefined,
    tail: CallTail,
    holdMs = Infinity,
  ): Invocation {
    const { function_id, namespace = DEFAULT_NAMESPACE } = call;
    const timeout_ms = call.timeout_ms ?? this.#settings.invocation_timeout_ms;
    const subject = this.#observer.functionOf(namespace, function_id);
    const beginning = { caller, ids, callee: undefined, function_id, subject, timeout_ms, tail };
    return this.#running.open(beginning, Math.min(timeout_ms, holdMs));
  }

  /** Nobody there may run a call: it waits for whoever is expected to. */
  #hold(caller: Peer, call: InvokeFunction, text: string, tail: CallTail): void {
    if (!this.#held.isExpected(call)) return this.#refusals.notFound(caller, call, text);
    if (!this.#held.hasRoom(text.length)) {
      const message = `Function ${call.function_id} is overloaded: ${TOO_MANY_WAIT}`;
      return this.#refusals.call(caller, call, failure("overloaded", message), text);
    }
    const invocation = this.#open(caller, call, callerIdIn(call), tail, CALL_HOLD_MS);
    this.#held.add({ caller, call, text, invocation });
  }

  /** Starts a call that waited, unless whoever could run it is gone again. */
  #resume({ caller, text, invocation }: HeldCall): void {
    const now = this.#clock.now();
    const left = invocation.since + invocation.timeout_ms - now;
    if (left <= 0) return this.#timedOut(invocation);
    const call = readWorkerMessage(parseMessage(text)) as InvokeFunction;
    // PROTOCOL 3.3: whoever runs it is told what is left of its time.
    if (call.timeout_ms !== undefined) call.timeout_ms = Math.ceil(left);
    const tail = callTail(call, text);
    const chosen = this.#placement.choose(caller, call, tail.end - tail.idEnd);
    if (!chosen) return;
    if ("code" in chosen) return this.#refuse(caller, call, invocation, chosen);
    this.#running.assign(invocation, chosen.peer, tail, left);
    this.#send(invocation, caller, chosen.offer, tail, now);
  }

  /** A call that waited does not start. */
  #refuse(caller: Peer, call: InvokeFunction, invocation: Invocation, error: ErrorBody): void {
    this.#running.drop(invocation, error, null);
    this.#refusals.tell(caller, call, error);
  }

  /** A call has waited long enough, or in vain. */
  #giveUp({ caller, call, invocation }: HeldCall): void {
    this.#refuse(caller, call, invocation, this.#refusals.notFoundError(call));
  }

  /** The time of a call is up, or that for which it may wait to start. */
  #due(invocation: Invocation): void {
    const held = invocation.callee ? undefined : this.#held.find(invocation);
    if (held && invocation.timeout_ms >= CALL_HOLD_MS) this.#giveUp(held);
    else this.#timedOut(invocation);
  }

  #timedOut(invocation: Invocation): void {
    const { callee, function_id, timeout_ms } = invocation;
    const id = this.#running.textOf(invocation);
    const message = `Invocation of ${function_id} timed out after ${timeout_ms} ms`;
    this.#running.fail(invocation, failure("timeout", message), "its time-out passed");
    callee?.tellCancelled(id, "timeout");
  }
}

const STOPPED = failure("invocation_stopped", "Invocation stopped");
const CANCELLED = failure("cancelled", "Invocation cancelled");
const CALLER_LEFT = failure("cancelled", "The caller left before the result came");
const TOO_MANY_WAIT = "too many calls wait for workers that are being restarted";
