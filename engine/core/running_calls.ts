/**
 * The records of running calls: each is opened, perhaps sent, and ended once.
 *
 * Decides nothing. Whatever ends a call closes its record and tells the observer first, and sends
 * afterwards, so nothing that follows can end it again.
 *
 * @module
 */
import type { ErrorBody } from "../../sdk/typescript/wire/protocol.ts";
import type { CallObserver, ObservedFunction } from "../ports/call_observer.ts";
import type { Clock } from "../ports/clock.ts";
import type { Candidate } from "../ports/telemetry.ts";
import { Deadlines } from "./deadlines.ts";
import { errorRemainder } from "./error_replies.ts";
import { Invocations } from "./invocations.ts";
import type { ParkedCalls } from "./parked_calls.ts";
import type { Invocation, Peer } from "./peer.ts";
import { bytesOf, copyWords, NO_BYTES, viewOf } from "./wire/bytes.ts";
import {
  CALL_PREFIX,
  type CallerId,
  type CallRemainder,
  Prefix,
  remainderOf,
  RESULT_PREFIX,
  type ResultRemainder,
} from "./wire/frame_parts.ts";

/** What stands between the id of a call and that of its caller, for the engine's own workers. */
const CALLER_KEY = bytesOf('","caller":"');
const CALL_START = viewOf(bytesOf(CALL_PREFIX));

/** What running calls stand on. */
export interface RunningCallsOptions {
  readonly clock: Clock;
  readonly parked: ParkedCalls;
  readonly observer: CallObserver;
  /** A UUID, part of every id of a call. */
  readonly secret: string;
  /** The time of a call is up, or that for which it may wait; its record is still open. */
  onDue(invocation: Invocation): void;
}

/** What a call begins with. */
export interface NewCall {
  readonly caller: Peer;
  /** The caller's id of it; `undefined`: nobody waits. */
  readonly ids: CallerId | undefined;
  /** Who runs it; `undefined`: the engine itself, or nobody yet. */
  readonly callee: Peer | undefined;
  readonly function_id: string;
  readonly subject: ObservedFunction;
  readonly timeout_ms: number;
  readonly remainder: CallRemainder;
}

/** The calls that run or wait to start. */
export class RunningCalls {
  readonly #clock: Clock;
  readonly #parked: ParkedCalls;
  readonly #observer: CallObserver;
  readonly #invocations: Invocations;
  readonly #deadlines: Deadlines<Invocation>;
  readonly #callPrefix = new Prefix(CALL_PREFIX);
  readonly #resultPrefix = new Prefix(RESULT_PREFIX);

  /** Makes one in which no call runs. */
  constructor({ clock, parked, observer, secret, onDue }: RunningCallsOptions) {
    this.#clock = clock;
    this.#parked = parked;
    this.#observer = observer;
    this.#invocations = new Invocations(secret);
    this.#deadlines = new Deadlines(clock, onDue);
  }

  /** How many there are, those nobody waits for included. */
  get size(): number {
    return this.#invocations.size;
  }

  /** The engine's id of a call, also of one that is over. */
  idOf(slot: number, uses: number): string {
    return this.#invocations.idOf(slot, uses);
  }

  /** The call whose id stands in `view` from `start` to `end`; `undefined` when none runs. */
  find(view: DataView, start: number, end: number): Invocation | undefined {
    return this.#invocations.find(view, start, end);
  }

  /** The same for an id that is a text. */
  findText(id: string): Invocation | undefined {
    const view = viewOf(bytesOf(id));
    return this.find(view, 0, view.byteLength);
  }

  /** The engine's id of a call, as a text. */
  textOf({ slot, uses }: Invocation): string {
    return this.idOf(slot, uses);
  }

  /** The call that a caller knows under an id of its own. */
  findOfCaller(caller: Peer, ids: CallerId): Invocation | undefined {
    return this.#invocations.findOfCaller(caller, ids);
  }

  /** The calls that a caller waits for, in the order in which they came. */
  ofCaller(caller: Peer): Invocation[] {
    return this.#invocations.ofCaller(caller);
  }

  /** Opens the record of a call, due in `due_ms`. */
  open(call: NewCall, due_ms: number = call.timeout_ms): Invocation {
    const { caller, ids, callee, function_id, subject, timeout_ms, remainder } = call;
    const since = this.#clock.now();
    const invocation = this.#invocations.open({
      caller: ids && caller,
      ids: ids ?? NO_CALLER,
      callee,
      function_id,
      subject,
      timeout_ms,
      since,
      bytes: callee ? remainder.end - remainder.idEnd : 0,
    });
    this.#deadlines.add(invocation, due_ms, since);
    this.#observer.opened(invocation, caller.endpoint, remainder);
    return invocation;
  }

  /** A worker executes from now on a call that nobody did; `left` is what is left of its time. */
  assign(invocation: Invocation, callee: Peer, remainder: CallRemainder, left: number): void {
    this.#parked.remove(invocation);
    this.#deadlines.remove(invocation);
    this.#deadlines.add(invocation, left);
    this.#invocations.assign(invocation, callee, remainder.end - remainder.idEnd);
  }

  /** Sends a call to its callee. */
  send(
    invocation: Invocation,
    caller: Peer,
    remainder: CallRemainder,
    now: number,
    candidates: readonly Candidate[] | undefined,
  ): void {
    const callee = invocation.callee!;
    const { id } = invocation;
    const { memory, view, idStart, idEnd, traceStart, traceEnd, end } = remainder;
    const field = this.#observer.sent(invocation, callee.endpoint, now, candidates);
    const traceBytes = field ? field.memory.length : traceEnd - traceStart;
    const longer = traceBytes - (traceEnd - traceStart);
    const start = idStart - CALL_PREFIX.length - longer;
    if (!callee.isBuiltin && idEnd - idStart === id.length && longer >= 0 && start >= 0) {
      // Nothing has to be put together: it fits where the caller's words stand, and what is longer
      // moves them to the front, over frames that are done with.
      if (longer > 0) {
        copyWords(view, start, CALL_START, 0, CALL_PREFIX.length);
        copyWords(view, idEnd - longer, view, idEnd, traceStart - idEnd);
      }
      copyWords(view, idStart - longer, invocation.idView, 0, id.length);
      if (field) copyWords(view, traceEnd - traceBytes, field.view, 0, traceBytes);
      callee.connection.forward(NO_BYTES, 0, memory, start, end);
      return;
    }
    const prefix = this.#callPrefix;
    prefix.restart();
    prefix.add(id, 0, id.length);
    if (callee.isBuiltin) {
      prefix.add(CALLER_KEY, 0, CALLER_KEY.length);
      prefix.add(caller.idBytes, 0, caller.idBytes.length);
    }
    if (field) {
      prefix.add(memory, idEnd, traceStart);
      prefix.add(field.memory, 0, traceBytes);
    }
    const from = field ? traceEnd : idEnd;
    callee.connection.forward(prefix.memory, prefix.length, memory, from, end);
  }

  /** Ends a call well. */
  settle(invocation: Invocation, remainder: ResultRemainder): void {
    this.#observer.settled(invocation, remainder.memory, remainder.dataStart, remainder.end - 1);
    this.#answer(invocation, remainder);
  }

  /** Ends a call with what its callee says is an error. */
  settleError(invocation: Invocation, remainder: ResultRemainder, error: ErrorBody): void {
    this.#observer.failed(invocation, error, null);
    this.#answer(invocation, remainder);
  }

  /** Ends a call with an error of the engine; `endedBy` says who ended it before its time. */
  fail(invocation: Invocation, error: ErrorBody, endedBy: string | null): void {
    this.#observer.failed(invocation, error, endedBy);
    this.#answer(invocation, remainderOf(errorRemainder(invocation.function_id, error)));
  }

  /** Ends a call without a word to its caller; the error is for those who ask later. */
  drop(invocation: Invocation, error: ErrorBody, endedBy: string | null): void {
    this.#observer.failed(invocation, error, endedBy);
    this.#close(invocation);
  }

  /** Leaves nothing on the clock. */
  stop(): void {
    this.#deadlines.clear();
  }

  /** Closes the record, and only then tells the caller. */
  #answer(invocation: Invocation, { memory, view, idStart, idEnd, end }: ResultRemainder): void {
    const { caller, callerId, callerIdBytes } = invocation;
    if (idStart < idEnd && idEnd - idStart === callerIdBytes) {
      copyWords(view, idStart, invocation.callerIdView, 0, callerIdBytes);
      this.#close(invocation);
      caller?.reply(NO_BYTES, 0, memory, idStart - RESULT_PREFIX.length, end);
      return;
    }
    const prefix = this.#resultPrefix;
    prefix.restart();
    prefix.add(callerId, 0, callerIdBytes);
    this.#close(invocation);
    caller?.reply(prefix.memory, prefix.length, memory, idEnd, end);
  }

  #close(invocation: Invocation): void {
    if (!invocation.callee) this.#parked.remove(invocation);
    this.#deadlines.remove(invocation);
    this.#invocations.close(invocation);
  }
}

/** Stands for the id of a call for whose result nobody waits. */
const NO_CALLER: CallerId = { view: viewOf(NO_BYTES), idStart: 0, idEnd: 0, hash: 0 };
