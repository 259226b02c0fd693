/**
 * The life of a call: perhaps parked, started at a replica, then settled, failed or cancelled.
 *
 * Whatever ends a call closes its record first and sends afterwards, so nothing that follows can
 * end it again. Frames in canonical order come in by {@linkcode Calls.forward} and are not parsed;
 * everything else was decoded before.
 *
 * @module
 */
import { parseMessage, readWorkerMessage } from "../../sdk/typescript/wire/codec.ts";
import { CALL_PARK_MS } from "../../sdk/typescript/wire/limits.ts";
import {
  type CancelInvocation,
  DEFAULT_NAMESPACE,
  type ErrorBody,
  type InvocationProgress,
  type InvocationResult,
  type InvokeFunction,
  type Json,
} from "../../sdk/typescript/wire/protocol.ts";
import type { CallObserver, ObservedEndpoint } from "../ports/call_observer.ts";
import type { Clock } from "../ports/clock.ts";
import { BackPressure } from "./back_pressure.ts";
import { type ErrorReplies, failure } from "./error_replies.ts";
import type { FunctionEntry, Replica } from "./function_table.ts";
import type { ParkedCall, ParkedCalls, Target } from "./parked_calls.ts";
import type { Invocation, Peer } from "./peer.ts";
import { candidatesOf, type Placement, type PlacementSettings } from "./placement.ts";
import { RunningCalls } from "./running_calls.ts";
import { textOf } from "./wire/bytes.ts";
import type { Envelope } from "./wire/envelope.ts";
import {
  type CallerId,
  callerIdIn,
  callerIdOf,
  type CallRemainder,
  callRemainder,
  jsonText,
  resultRemainder,
  valueRemainder,
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
  readonly errorReplies: ErrorReplies;
  readonly parked: ParkedCalls;
  readonly observer: CallObserver;
  readonly settings: RouterSettings;
  /** A UUID, part of every id of a call. */
  readonly secret: string;
}

/** Runs calls. */
export class Calls {
  readonly #clock: Clock;
  readonly #placement: Placement;
  readonly #errorReplies: ErrorReplies;
  readonly #parked: ParkedCalls;
  readonly #observer: CallObserver;
  /** The engine itself, for calls that it runs. */
  readonly #engine: ObservedEndpoint;
  readonly #running: RunningCalls;
  readonly #backPressure: BackPressure;
  #settings: RouterSettings;
  #isDraining = false;

  /** Makes one in which no call runs. */
  constructor(
    { clock, placement, errorReplies, parked, observer, settings, secret }: CallsOptions,
  ) {
    this.#clock = clock;
    this.#placement = placement;
    this.#errorReplies = errorReplies;
    this.#parked = parked;
    this.#observer = observer;
    this.#engine = observer.endpointOf("engine", "engine");
    this.#settings = settings;
    this.#backPressure = new BackPressure(clock);
    const onDue = (call: Invocation): void => this.#onDue(call);
    this.#running = new RunningCalls({ clock, parked, observer, secret, onDue });
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
    for (const { invocation } of this.#parked.all()) {
      this.#running.drop(invocation, error, "the engine stopped");
    }
    this.#running.stop();
    this.#backPressure.stop();
  }

  /** A line that had much unsent has room again. */
  drained(peer: Peer): void {
    peer.drained();
    this.#backPressure.drained(peer);
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
    if (this.rejectsDuplicateId(caller, call)) return;
    if (this.#isDraining && caller.inflightCalls === 0) {
      const message = "The engine is stopping and takes no new calls";
      return this.#errorReplies.refuse(caller, call, failure("overloaded", message), text);
    }
    if (call.action?.type === "enqueue") {
      const message = `Queue '${call.action.queue}' not found`;
      return this.#errorReplies.refuse(caller, call, failure("enqueue_error", message), text);
    }
    const remainder = envelope?.kind === "call" ? envelope : callRemainder(call, text);
    const chosen = this.#placement.choose(caller, call, remainder.end - remainder.idEnd);
    if (!chosen) return this.#park(caller, call, text, remainder);
    if ("code" in chosen) return this.#errorReplies.refuse(caller, call, chosen, text);
    this.#start(caller, chosen, callerIdIn(call), call.timeout_ms, remainder);
  }

  /** Somebody may run a function from now on: calls that waited for it start, the oldest first. */
  startParked(target: Target): void {
    for (const parked of this.#parked.waitingFor(target)) {
      // Whoever is sent one of them may cause another one's end.
      if (this.#parked.find(parked.invocation) === parked) this.#resume(parked);
    }
  }

  /** Ends the calls that wait for functions which nobody expects any more. */
  failUnexpected(): void {
    for (const parked of this.#parked.unexpected()) {
      if (this.#parked.find(parked.invocation) === parked) this.#giveUp(parked);
    }
  }

  /** Whether the caller has a call under that id already; it is told so. */
  rejectsDuplicateId(caller: Peer, { invocation_id, action }: InvokeFunction): boolean {
    if (invocation_id === undefined || action?.type === "void") return false;
    if (!this.isWaiting(caller, invocation_id)) return false;
    const message = `Invocation ${invocation_id} is still open; each call needs an id of its own`;
    caller.send({ type: "error", error: failure("bad_message", message) });
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
    const remainder = resultRemainder(result, text);
    if (result.error === undefined) this.#running.settle(invocation, remainder);
    else this.#running.settleError(invocation, remainder, result.error);
  }

  /** A worker answers in a way nobody can read. */
  settleMalformed(from: Peer, invocation_id: string, reason: string): void {
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
    const prefix = `{"type":"invocationprogress","invocation_id":"${id}"`;
    caller.replyText(`${prefix},"data":${fieldText(text, "data")}}`);
  }

  /** A caller no longer wants a result. */
  cancel(from: Peer, { invocation_id, reason }: CancelInvocation): void {
    const invocation = this.#running.findOfCaller(from, callerIdOf(jsonText(invocation_id)));
    if (!invocation) return;
    const { callee } = invocation;
    const id = this.#running.textOf(invocation);
    this.#running.fail(invocation, CANCELLED, "the caller cancelled");
    callee?.sendCancel(id, reason);
  }

  /** A worker has left: what it ran has stopped, what it waited for is cancelled. */
  removePeer(peer: Peer): void {
    this.#backPressure.disconnected(peer);
    for (let first = peer.firstCall; first; first = peer.firstCall) {
      this.#running.fail(first, STOPPED, "the worker left");
    }
    for (const invocation of this.#running.ofCaller(peer)) {
      const { callee } = invocation;
      const id = this.#running.textOf(invocation);
      this.#running.drop(invocation, CALLER_LEFT, "the caller left");
      callee?.sendCancel(id, "caller_disconnected");
    }
  }

  /** Opens a call that the engine itself executes; the result names it for complete(). */
  begin(caller: Peer, call: InvokeFunction, invocation_id: string, text: string): string {
    const remainder = callRemainder(call, text);
    const invocation = this.#open(caller, call, callerIdOf(jsonText(invocation_id)), remainder);
    this.#observer.sent(invocation, this.#engine, invocation.since, undefined);
    return this.#running.textOf(invocation);
  }

  /** Ends such a call: with an error, or with a value. `false` when it had ended before. */
  complete(id: string, outcome: { error: ErrorBody } | { result: Json }): boolean {
    const invocation = this.#running.findText(id);
    if (!invocation) return false;
    if ("error" in outcome) this.#running.fail(invocation, outcome.error, null);
    else this.#running.settle(invocation, valueRemainder(invocation.function_id, outcome.result));
    return true;
  }

  #start(
    caller: Peer,
    { peer: callee, entry }: Replica,
    ids: CallerId | undefined,
    timeout_ms: number = this.#settings.invocation_timeout_ms,
    remainder: CallRemainder,
  ): void {
    const subject = entry.subject ??= this.#observer.functionOf(entry.namespace, entry.id);
    const start = { caller, ids, callee, function_id: entry.id, subject, timeout_ms, remainder };
    const invocation = this.#running.open(start);
    this.#send(invocation, caller, entry, remainder, invocation.since);
  }

  #send(
    call: Invocation,
    caller: Peer,
    entry: FunctionEntry,
    remainder: CallRemainder,
    now: number,
  ): void {
    const candidates = this.#observer.wantsCandidates(call)
      ? candidatesOf(entry, call.callee!, remainder.end - remainder.idEnd, this.#settings)
      : undefined;
    this.#running.send(call, caller, remainder, now, candidates);
    this.#backPressure.sent(caller, call.callee!);
  }

  /** The record of a call that no worker executes, or none yet. */
  #open(
    caller: Peer,
    call: InvokeFunction,
    ids: CallerId | undefined,
    remainder: CallRemainder,
    holdMs = Infinity,
  ): Invocation {
    const { function_id, namespace = DEFAULT_NAMESPACE } = call;
    const timeout_ms = call.timeout_ms ?? this.#settings.invocation_timeout_ms;
    const subject = this.#observer.functionOf(namespace, function_id);
    const start = { caller, ids, callee: undefined, function_id, subject, timeout_ms, remainder };
    return this.#running.open(start, Math.min(timeout_ms, holdMs));
  }

  /** Nobody there may run a call: it waits for whoever is expected to. */
  #park(caller: Peer, call: InvokeFunction, text: string, remainder: CallRemainder): void {
    if (!this.#parked.isExpected(call)) {
      return this.#errorReplies.functionNotFound(caller, call, text);
    }
    if (!this.#parked.hasRoom(text.length)) {
      const message = `Function ${call.function_id} is overloaded: ${TOO_MANY_WAIT}`;
      return this.#errorReplies.refuse(caller, call, failure("overloaded", message), text);
    }
    const invocation = this.#open(caller, call, callerIdIn(call), remainder, CALL_PARK_MS);
    this.#parked.add({ caller, call, text, invocation });
  }

  /** Starts a call that waited, unless whoever could run it is gone again. */
  #resume({ caller, text, invocation }: ParkedCall): void {
    const now = this.#clock.now();
    const left = invocation.since + invocation.timeout_ms - now;
    if (left <= 0) return this.#timedOut(invocation);
    const call = readWorkerMessage(parseMessage(text)) as InvokeFunction;
    // PROTOCOL 3.3: whoever runs it is told what is left of its time.
    if (call.timeout_ms !== undefined) call.timeout_ms = Math.ceil(left);
    const remainder = callRemainder(call, text);
    const chosen = this.#placement.choose(caller, call, remainder.end - remainder.idEnd);
    if (!chosen) return;
    if ("code" in chosen) return this.#refuse(caller, call, invocation, chosen);
    this.#running.assign(invocation, chosen.peer, remainder, left);
    this.#send(invocation, caller, chosen.entry, remainder, now);
  }

  /** A call that waited does not start. */
  #refuse(caller: Peer, call: InvokeFunction, invocation: Invocation, error: ErrorBody): void {
    this.#running.drop(invocation, error, null);
    this.#errorReplies.reply(caller, call, error);
  }

  /** A call has waited long enough, or in vain. */
  #giveUp({ caller, call, invocation }: ParkedCall): void {
    this.#refuse(caller, call, invocation, this.#errorReplies.functionNotFoundError(call));
  }

  /** The time of a call is up, or that for which it may wait to start. */
  #onDue(invocation: Invocation): void {
    const parked = invocation.callee ? undefined : this.#parked.find(invocation);
    if (parked && invocation.timeout_ms >= CALL_PARK_MS) this.#giveUp(parked);
    else this.#timedOut(invocation);
  }

  #timedOut(invocation: Invocation): void {
    const { callee, function_id, timeout_ms } = invocation;
    const id = this.#running.textOf(invocation);
    const message = `Invocation of ${function_id} timed out after ${timeout_ms} ms`;
    this.#running.fail(invocation, failure("timeout", message), "its time-out passed");
    callee?.sendCancel(id, "timeout");
  }
}

const STOPPED = failure("invocation_stopped", "Invocation stopped");
const CANCELLED = failure("cancelled", "Invocation cancelled");
const CALLER_LEFT = failure("cancelled", "The caller left before the result came");
const TOO_MANY_WAIT = "too many calls wait for workers that are being restarted";
