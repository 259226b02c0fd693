/**
 * The life of a call: perhaps parked, started at a replica, then settled, failed or cancelled.
 *
 * Whatever ends a call closes its record before it sends anything, so no consequence can end it
 * twice. Frames in canonical order enter by {@linkcode Calls.forward} and are not parsed; all
 * others were decoded before.
 *
 * @module
 */
import {
  type Action,
  type CancelInvocation,
  DEFAULT_NAMESPACE,
  ENQUEUE_FUNCTION_ID,
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
import type { FunctionEntry, LoadBounds, Replica } from "./function_table.ts";
import {
  CALL_PARK_MS,
  type ParkedCall,
  type ParkedCalls,
  type Target,
  targetOf,
} from "./parked_calls.ts";
import type { Invocation, Peer } from "./peer.ts";
import { candidatesOf, COMPILING, type Placement, type PlacementSettings } from "./placement.ts";
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
  type ResultRemainder,
  resultRemainder,
  valueRemainder,
} from "./wire/frame_parts.ts";
import { type ParsedFrame, parseFrame, type RawFields } from "./wire/parsed_frame.ts";
import { JSON_PARTS_MAX, parsingProblem, valueProblem } from "./wire/members.ts";

/** Settings of the router, which may change at run time; PROTOCOL 12 has the defaults. */
export interface RouterSettings extends PlacementSettings {
  /** Time limit of a call that sets none. */
  readonly invocation_timeout_ms: number;
  /** Functions that workers of different names may offer; `undefined`: all. */
  readonly shared_functions?: readonly string[];
}

/** Dependencies and settings of calls. */
export interface CallsOptions {
  readonly clock: Clock;
  readonly placement: Placement;
  readonly errorReplies: ErrorReplies;
  readonly parked: ParkedCalls;
  readonly observer: CallObserver;
  readonly settings: RouterSettings;
  /** A UUID; part of every call id. */
  readonly secret: string;
  /** Returns a new random UUID. */
  newId(): string;
}

/** Where the payload of a call or the value of a result is. */
type PayloadPlace = Pick<ResultRemainder, "memory" | "dataStart" | "end" | "payload">;

/** Starts, parks and ends calls. */
export class Calls {
  readonly #clock: Clock;
  readonly #placement: Placement;
  readonly #errorReplies: ErrorReplies;
  readonly #parked: ParkedCalls;
  readonly #observer: CallObserver;
  /** The engine as callee, for core functions. */
  readonly #engine: ObservedEndpoint;
  readonly #newId: () => string;
  readonly #running: RunningCalls;
  readonly #backPressure: BackPressure;
  #settings: RouterSettings;
  #isDraining = false;

  constructor(
    { clock, placement, errorReplies, parked, observer, settings, secret, newId }: CallsOptions,
  ) {
    this.#clock = clock;
    this.#placement = placement;
    this.#errorReplies = errorReplies;
    this.#parked = parked;
    this.#observer = observer;
    this.#engine = observer.endpointOf("engine", "engine", true);
    this.#settings = settings;
    this.#newId = newId;
    this.#backPressure = new BackPressure(clock);
    placement.onCompiling = {
      compiling: ({ id, namespace }) => parked.expect(targetOf(id, namespace)),
      starting: ({ id, namespace }) => this.#startEach(targetOf(id, namespace)),
      compiled: ({ id, namespace }) => this.#compiled(targetOf(id, namespace)),
    };
    const onDue = (call: Invocation): void => this.#onDue(call);
    const onEnd = (callee: Peer): void => this.#backPressure.ended(callee);
    this.#running = new RunningCalls({ clock, parked, observer, secret, onDue, onEnd });
  }

  /** Calls that run or are parked, void calls included. */
  get size(): number {
    return this.#running.size;
  }

  /** The engine's id of a call, also of one that has ended. */
  idOf(slot: number, uses: number): string {
    return this.#running.idOf(slot, uses);
  }

  /** Applies new settings to later calls. */
  applySettings(settings: RouterSettings): void {
    this.#settings = settings;
    this.#placement.applySettings(settings);
  }

  /** Rejects new calls, except those of built-in workers and those that a running call makes. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Ends all open calls, parked ones included, with `invocation_stopped`. */
  stopAll(reason: string): void {
    for (const invocation of this.#running.all()) {
      // The end of one call may end others.
      if (!invocation.isOpen) continue;
      const { callee } = invocation;
      const id = this.#running.textOf(invocation);
      this.#running.fail(invocation, stopped(reason), "the engine stopped");
      callee?.sendCancel(id, "engine_stopping");
    }
  }

  /** Cancels all timers, after all connections were closed. */
  stop(): void {
    this.#running.stop();
  }

  /** A connection with much unsent data accepts data again. */
  drained(peer: Peer): void {
    peer.drained();
    this.#backPressure.drained(peer);
  }

  /** Forwards a frame without parsing it; `false` when it has to be parsed. */
  forward(peer: Peer, envelope: Envelope): boolean {
    if (envelope.kind === "result") {
      const { view, idStart, idEnd } = envelope;
      const invocation = this.#running.find(view, idStart, idEnd);
      // Otherwise the result is late, or comes from another worker: ignored.
      if (invocation?.callee === peer) this.#settle(invocation, envelope);
      return true;
    }
    if (peer.access !== undefined || this.#isDraining) return false;
    if (this.#running.findOfCaller(peer, envelope)) return false;
    const replica = this.#placement.find(peer, envelope);
    if (!replica) return false;
    const problem = replica.peer.isBuiltin ? payloadProblem(envelope) : undefined;
    if (problem) this.#refusePayload(peer, envelope, problem);
    else this.#start(peer, replica, envelope, envelope.timeout_ms, envelope);
    return true;
  }

  /** Starts, parks or rejects a call. `envelope` is the one of `frame`, if it has one. */
  invoke(caller: Peer, call: InvokeFunction, frame: ParsedFrame, envelope?: Envelope): void {
    if (this.rejectsDuplicateId(caller, call)) return;
    // Built-in workers refuse new work themselves; what they still call for began before.
    if (this.#isDraining && caller.inflightCalls === 0 && !caller.isBuiltin) {
      const message = "The engine is stopping and takes no new calls";
      return this.#errorReplies.refuse(caller, call, failure("overloaded", message), frame);
    }
    if (call.action?.type === "enqueue") {
      return this.#enqueue(caller, call, call.action, frame);
    }
    const remainder = envelope?.kind === "call" ? envelope : callRemainder(call, frame);
    const bytes = remainder.end - remainder.idEnd;
    const chosen = this.#placement.choose(caller, call, bytes, frame.payload);
    if (!chosen || chosen === COMPILING) return this.#park(caller, call, frame, remainder);
    if ("code" in chosen) return this.#errorReplies.refuse(caller, call, chosen, frame);
    const sent = ownRemainder(chosen, call, frame) ?? remainder;
    this.#start(caller, chosen, callerIdIn(call), call.timeout_ms, sent);
  }

  /** Starts a call whose caller does not wait. */
  startVoid(caller: Peer, replica: Replica, remainder: CallRemainder): void {
    this.#start(caller, replica, undefined, undefined, remainder);
  }

  /** The bounds of workers as they are set now. */
  get bounds(): LoadBounds {
    return this.#settings;
  }

  /** Starts the calls that are parked for a function, the oldest first. */
  startParked(target: Target): void {
    for (const _ of this.#startEach(target));
  }

  *#startEach(target: Target): Generator<void, void, void> {
    for (const parked of this.#parked.waitingFor(target)) {
      // Another one that started may have ended this one.
      if (this.#parked.find(parked.invocation) !== parked) continue;
      this.#resume(parked);
      yield;
    }
  }

  /** The calls that waited for the schema of a function have started, or cannot start. */
  #compiled(target: Target): void {
    this.#parked.stopExpecting(target);
    if (this.#parked.waitingFor(target).length > 0) this.failUnexpected();
  }

  /** Fails parked calls whose function nothing expects any more. */
  failUnexpected(): void {
    for (const parked of this.#parked.unexpected()) {
      if (this.#parked.find(parked.invocation) === parked) this.#giveUp(parked);
    }
  }

  /** Rejects a call whose id the caller already uses for an open call. */
  rejectsDuplicateId(caller: Peer, { invocation_id, action }: InvokeFunction): boolean {
    if (invocation_id === undefined || action?.type === "void") return false;
    if (!this.isWaiting(caller, invocation_id)) return false;
    const message = `Invocation ${invocation_id} is still open; each call needs an id of its own`;
    caller.send({ type: "error", error: failure("bad_message", message) });
    return true;
  }

  /** Whether a peer has an open call with this id. */
  isWaiting(caller: Peer, invocation_id: string): boolean {
    return this.#running.findOfCaller(caller, callerIdOf(jsonText(invocation_id))) !== undefined;
  }

  /** Handles a parsed result. */
  settle(from: Peer, result: InvocationResult, frame: RawFields): void {
    const invocation = this.#running.findText(result.invocation_id);
    if (invocation?.callee !== from) return;
    const remainder = resultRemainder(result, frame);
    const { error } = result;
    if (error === undefined) this.#settle(invocation, remainder);
    else if (from.isBuiltin && isRefusal(error)) {
      const { stacktrace: _, ...shown } = error;
      this.#running.fail(invocation, shown, null);
    } else this.#running.settleError(invocation, remainder, error);
  }

  /** Fails a call whose callee sent a result that cannot be read. */
  settleMalformed(from: Peer, invocation_id: string, reason: string): void {
    const invocation = this.#running.findText(invocation_id);
    if (invocation?.callee !== from) return;
    this.#failMalformed(invocation, reason);
  }

  /** Forwards progress to the caller, if it announced the capability. */
  progress(from: Peer, { invocation_id }: InvocationProgress, frame: ParsedFrame): void {
    const invocation = this.#running.findText(invocation_id);
    if (invocation?.callee !== from || !invocation.caller?.wantsProgress) return;
    const { payload } = frame;
    // A built-in caller would have to parse it.
    if (invocation.caller.isBuiltin && payload && payload.parts > JSON_PARTS_MAX) return;
    const { caller, callerId, callerIdAt, callerIdBytes } = invocation;
    const id = textOf(callerId, callerIdAt, callerIdAt + callerIdBytes);
    const prefix = `{"type":"invocationprogress","invocation_id":"${id}"`;
    caller.replyText(`${prefix},"data":${frame.field("data")}}`);
  }

  /** Handles the caller's cancellation. */
  cancel(from: Peer, { invocation_id, reason }: CancelInvocation): void {
    const invocation = this.#running.findOfCaller(from, callerIdOf(jsonText(invocation_id)));
    if (!invocation) return;
    const { callee } = invocation;
    const id = this.#running.textOf(invocation);
    this.#running.fail(invocation, CANCELLED, "the caller cancelled");
    callee?.sendCancel(id, reason);
  }

  /**
   * A worker disconnected: ends the calls that it executed and cancels those that it waited for.
   * The reason of its disconnect is in the details of the errors.
   */
  removePeer(peer: Peer, reason: string): void {
    this.#backPressure.disconnected(peer);
    const error = stopped(reason);
    for (let first = peer.firstCall; first; first = peer.firstCall) {
      this.#running.fail(first, error, "the worker left");
    }
    for (const invocation of this.#running.ofCaller(peer)) {
      const { callee } = invocation;
      const id = this.#running.textOf(invocation);
      this.#running.drop(invocation, CALLER_LEFT, "the caller left");
      callee?.sendCancel(id, "caller_disconnected");
    }
  }

  /** Opens a call that the engine executes itself; returns its id for {@linkcode complete}. */
  begin(caller: Peer, call: InvokeFunction, invocation_id: string, frame: RawFields): string {
    const remainder = callRemainder(call, frame);
    const invocation = this.#open(caller, call, callerIdOf(jsonText(invocation_id)), remainder);
    this.#observer.sent(invocation, this.#engine, invocation.since, undefined);
    return this.#running.textOf(invocation);
  }

  /** Ends a call of {@linkcode begin}; `false` when it had already ended. */
  complete(id: string, outcome: { error: ErrorBody } | { result: Json }): boolean {
    const invocation = this.#running.findText(id);
    if (!invocation) return false;
    if ("error" in outcome) this.#running.fail(invocation, outcome.error, null);
    else this.#running.settle(invocation, valueRemainder(invocation.function_id, outcome.result));
    return true;
  }

  /** Ends a call with a value; built-in callers get none that is too costly to be parsed. */
  #settle(invocation: Invocation, remainder: ResultRemainder): void {
    if (invocation.caller?.isBuiltin) {
      const problem = payloadProblem(remainder);
      if (problem) return this.#failMalformed(invocation, `the value ${problem}`);
    }
    this.#running.settle(invocation, remainder);
  }

  /** Rejects a call whose payload is too costly for the built-in worker that would get it. */
  #refusePayload(
    caller: Peer,
    { memory, idStart, idEnd, functionStart, functionEnd }: Envelope,
    problem: string,
  ): void {
    const [id, function_id] = [
      textOf(memory, idStart, idEnd),
      textOf(memory, functionStart, functionEnd),
    ];
    const error = failure("invalid_payload", `Payload of ${function_id} ${problem}`);
    this.#errorReplies.replyUnread(caller, id, function_id, error);
  }

  #failMalformed(invocation: Invocation, reason: string): void {
    const message =
      `The result of the worker that ran ${invocation.function_id} is malformed: ${reason}`;
    this.#running.fail(invocation, failure("bad_message", message), null);
  }

  #start(
    caller: Peer,
    { callee, entry, far: onEnd }: Replica,
    ids: CallerId | undefined,
    timeout_ms: number = this.#settings.invocation_timeout_ms,
    remainder: CallRemainder,
  ): void {
    const subject = entry.subject ??= this.#observer.functionOf(entry.namespace, entry.id);
    const { id: function_id } = entry;
    const start = { caller, ids, callee, function_id, subject, timeout_ms, onEnd, remainder };
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

  /**
   * Routes an enqueue to the worker that provides queues: PROTOCOL 3.10. Its result, a receipt or
   * an error such as an unknown queue, is that of the caller's call.
   */
  #enqueue(caller: Peer, call: InvokeFunction, action: EnqueueAction, frame: ParsedFrame): void {
    if (this.#placement.mustWait(caller, call)) {
      return this.#park(caller, call, frame, callRemainder(call, frame));
    }
    const { request, remainder, payload } = enqueueRequest(call, action, this.#newId(), frame);
    const bytes = remainder.end - remainder.idEnd;
    const chosen = this.#placement.choose(caller, request, bytes, frame.payload);
    if (chosen === COMPILING || !chosen && this.#parked.isExpected(request, caller)) {
      const error = this.#placement.checkPayload(caller, call, frame.payload);
      if (error) return this.#errorReplies.refuse(caller, call, error, frame);
      return this.#park(caller, request, frameOf(request, payload), remainder);
    }
    if (!chosen) {
      const error = this.#errorReplies.queueNotFoundError(caller, request, action.queue);
      return this.#errorReplies.refuse(caller, call, error, frame);
    }
    if ("code" in chosen) return this.#errorReplies.refuse(caller, call, chosen, frame);
    const error = this.#placement.checkPayload(caller, call, frame.payload);
    if (error) {
      chosen.far?.ended();
      return this.#errorReplies.refuse(caller, call, error, frame);
    }
    this.#start(caller, chosen, callerIdIn(request), call.timeout_ms, remainder);
  }

  /** Opens the record of a call without a callee. */
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
    const none = { callee: undefined, onEnd: undefined };
    const start = { caller, ids, function_id, subject, timeout_ms, remainder, ...none };
    return this.#running.open(start, Math.min(timeout_ms, holdMs));
  }

  /** Parks a call that no worker can execute now, if its function is expected. */
  #park(caller: Peer, call: InvokeFunction, frame: ParsedFrame, remainder: CallRemainder): void {
    if (!this.#parked.isExpected(call, caller)) {
      return this.#errorReplies.functionNotFound(caller, call, frame);
    }
    const { range } = frame;
    if (!this.#parked.takeRoom(range.end - range.start)) {
      const why = this.#placement.isCompiling(call) ? TOO_MANY_COMPILE : TOO_MANY_WAIT;
      const message = `Function ${call.function_id} is overloaded: ${why}`;
      return this.#errorReplies.refuse(caller, call, failure("overloaded", message), frame);
    }
    const { action, ...plain } = call;
    const ids = callerIdIn(action?.type === "enqueue" ? plain : call);
    const invocation = this.#open(caller, call, ids, remainder, CALL_PARK_MS);
    this.#parked.add({ caller, call, frame: frame.copy(), invocation });
  }

  /** Starts a parked call, unless no worker can execute it any more. */
  #resume({ caller, frame: bytes, invocation }: ParkedCall): void {
    const now = this.#clock.now();
    const left = invocation.since + invocation.timeout_ms - now;
    if (left <= 0) return this.#timedOut(invocation);
    const frame = parseFrame(bytes, 0, bytes.length) as ParsedFrame;
    const call = frame.message as InvokeFunction;
    // PROTOCOL 3.3: the callee receives the remaining time.
    if (call.timeout_ms !== undefined) call.timeout_ms = Math.ceil(left);
    if (call.action?.type === "enqueue") {
      return this.#resumeEnqueue(caller, call, call.action, frame, invocation, left);
    }
    const remainder = callRemainder(call, frame);
    const bytesLeft = remainder.end - remainder.idEnd;
    const chosen = this.#placement.choose(caller, call, bytesLeft, frame.payload);
    if (!chosen || chosen === COMPILING) return;
    if ("code" in chosen) return this.#refuse(caller, call, invocation, chosen);
    const sent = ownRemainder(chosen, call, frame) ?? remainder;
    this.#running.assign(invocation, chosen, sent, left);
    this.#send(invocation, caller, chosen.entry, sent, now);
  }

  /** Puts a call into its queue that waited for the schema of its function. */
  #resumeEnqueue(
    caller: Peer,
    call: InvokeFunction,
    action: EnqueueAction,
    frame: ParsedFrame,
    invocation: Invocation,
    left: number,
  ): void {
    if (this.#placement.mustWait(caller, call)) return;
    const { request, remainder } = enqueueRequest(call, action, this.#newId(), frame);
    const invalid = this.#placement.checkPayload(caller, call, frame.payload);
    if (invalid) return this.#refuse(caller, call, invocation, invalid);
    const bytes = remainder.end - remainder.idEnd;
    const chosen = this.#placement.choose(caller, request, bytes, frame.payload);
    if (!chosen || chosen === COMPILING) {
      const error = this.#errorReplies.queueNotFoundError(caller, request, action.queue);
      return this.#refuse(caller, call, invocation, error);
    }
    if ("code" in chosen) return this.#refuse(caller, call, invocation, chosen);
    this.#running.assign(invocation, chosen, remainder, left);
    this.#send(invocation, caller, chosen.entry, remainder, this.#clock.now());
  }

  /** Ends a parked call that cannot start. */
  #refuse(caller: Peer, call: InvokeFunction, invocation: Invocation, error: ErrorBody): void {
    this.#running.drop(invocation, error, null);
    this.#errorReplies.reply(caller, call, error);
  }

  /** A parked call waited too long or in vain. */
  #giveUp({ caller, call, invocation }: ParkedCall): void {
    const error = this.#placement.isCompiling(call)
      ? failure("overloaded", `Function ${call.function_id} is overloaded: ${COMPILES_LONG}`)
      : this.#errorReplies.functionNotFoundError(caller, call);
    this.#refuse(caller, call, invocation, error);
  }

  /** The timeout of a call, or the longest time that it may be parked, has passed. */
  #onDue(invocation: Invocation): void {
    const parked = invocation.callee ? undefined : this.#parked.find(invocation);
    if (parked && invocation.timeout_ms >= CALL_PARK_MS) this.#giveUp(parked);
    else this.#timedOut(invocation);
  }

  #timedOut(invocation: Invocation): void {
    const { callee, function_id, timeout_ms } = invocation;
    const id = this.#running.textOf(invocation);
    const message = `Invocation of ${function_id} timed out after ${timeout_ms} ms`;
    this.#running.fail(invocation, failure("timeout", message), "its timeout passed");
    callee?.sendCancel(id, "timeout");
    callee?.probe(this.#clock.now());
  }
}

/** An action that puts the call into a queue. */
type EnqueueAction = Extract<Action, { type: "enqueue" }>;

/** The call of the queue provider for an enqueue; the payload keeps its bytes. */
function enqueueRequest(
  call: InvokeFunction,
  { type: _type, queue, ...options }: EnqueueAction,
  messageReceiptId: string,
  raw: RawFields,
): { request: InvokeFunction; remainder: CallRemainder; payload: string } {
  const { invocation_id, function_id, namespace, timeout_ms, traceparent, baggage } = call;
  const request: InvokeFunction = {
    type: "invokefunction",
    ...invocation_id !== undefined && { invocation_id },
    function_id: ENQUEUE_FUNCTION_ID,
    ...timeout_ms !== undefined && { timeout_ms },
    ...traceparent !== undefined && { traceparent },
    ...baggage !== undefined && { baggage },
  };
  const job = { queue, function_id, namespace, messageReceiptId, traceparent, baggage };
  const data = raw.field("data");
  const last = data === undefined ? "" : `,"data":${data}`;
  const payload = `${JSON.stringify({ ...options, ...job }).slice(0, -1)}${last}}`;
  return { request, remainder: callRemainder(request, { field: () => payload }), payload };
}

/** The frame of a call that the engine makes of another one. */
function frameOf(call: InvokeFunction, payload: string): ParsedFrame {
  const text = `${JSON.stringify(call).slice(0, -1)},"data":${payload}}`;
  const bytes = encoder.encode(text);
  return parseFrame(bytes, 0, bytes.length) as ParsedFrame;
}

const encoder = new TextEncoder();

/** The call for a replica that knows the function by another name; `undefined`: as it is. */
function ownRemainder(
  { own }: Replica,
  call: InvokeFunction,
  frame: RawFields,
): CallRemainder | undefined {
  if (own === undefined) return undefined;
  return callRemainder({ ...call, function_id: own.id, namespace: own.namespace }, frame);
}

/** Why the payload of a frame is too costly for a built-in worker, which parses it. */
function payloadProblem({ memory, dataStart, end, payload }: PayloadPlace): string | undefined {
  if (payload) return valueProblem(payload.depth, payload.parts);
  return dataStart < 0 ? undefined : parsingProblem(memory, dataStart, end - 1);
}

/** The error of a call whose worker, or whose engine, ended. */
function stopped(reason: string): ErrorBody {
  return failure("invocation_stopped", "Invocation stopped", { reason });
}

const CANCELLED = failure("cancelled", "Invocation cancelled");
const CALLER_LEFT = failure("cancelled", "The caller left before the result came");
const TOO_MANY_WAIT = "too many calls wait for workers that are being restarted";
const TOO_MANY_COMPILE = "too many calls wait for schemas that are being compiled";
const COMPILES_LONG = "its request_format is being compiled, or other calls are checked, for long";

/** Whether an error is one that a handler meant: the engine's own stack would say nothing. */
function isRefusal({ code, stacktrace }: ErrorBody): boolean {
  return stacktrace !== undefined && code !== "invocation_failed";
}
