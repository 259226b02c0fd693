/**
 * Opens, sends and ends calls: their records, deadlines and frames.
 *
 * Makes no decisions. Whatever ends a call notifies the observer and closes the record before it
 * sends anything, so no consequence can end it twice.
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
import type { Replica } from "./function_table.ts";
import type { EndListener, Invocation, Peer } from "./peer.ts";
import { bytesOf, copyWords, NO_BYTES, viewOf } from "./wire/bytes.ts";
import {
  CALL_PREFIX,
  type CallerId,
  type CallRemainder,
  Prefix,
  remainderOf,
  RESULT_PREFIX,
  type ResultRemainder,
  UUID_BYTES,
} from "./wire/frame_parts.ts";

/** Between the id of a call and the id of its caller, in calls to built-in workers. */
const CALLER_KEY = bytesOf('","caller":"');
const CALL_START = viewOf(bytesOf(CALL_PREFIX));

/** Dependencies of running calls. */
export interface RunningCallsOptions {
  readonly clock: Clock;
  readonly parked: ParkedCalls;
  readonly observer: CallObserver;
  /** A UUID; part of every call id. */
  readonly secret: string;
  /** The deadline of a call has passed; its record is still open. */
  onDue(invocation: Invocation): void;
  /** A call that `callee` executed has ended; its record is closed. */
  onEnd(callee: Peer): void;
}

/** Fields of a new call. */
export interface NewCall {
  readonly caller: Peer;
  /** The caller's id; `undefined` when it does not wait. */
  readonly ids: CallerId | undefined;
  /** Executes the call; `undefined` for the engine itself and while the call is parked. */
  readonly callee: Peer | undefined;
  readonly function_id: string;
  readonly subject: ObservedFunction;
  readonly timeout_ms: number;
  /** Is called when the call has ended. */
  readonly onEnd: EndListener | undefined;
  readonly remainder: CallRemainder;
}

/** The calls that run or are parked. */
export class RunningCalls {
  readonly #clock: Clock;
  readonly #parked: ParkedCalls;
  readonly #observer: CallObserver;
  readonly #invocations: Invocations;
  readonly #deadlines: Deadlines<Invocation>;
  readonly #callPrefix = new Prefix(CALL_PREFIX);
  readonly #resultPrefix = new Prefix(RESULT_PREFIX);
  readonly #onEnd: (callee: Peer) => void;

  constructor({ clock, parked, observer, secret, onDue, onEnd }: RunningCallsOptions) {
    this.#clock = clock;
    this.#parked = parked;
    this.#observer = observer;
    this.#invocations = new Invocations(secret);
    this.#onEnd = onEnd;
    this.#deadlines = new Deadlines(clock, onDue);
  }

  /** Number of calls, void calls included. */
  get size(): number {
    return this.#invocations.size;
  }

  /** The engine's id of a call, also of one that has ended. */
  idOf(slot: number, uses: number): string {
    return this.#invocations.idOf(slot, uses);
  }

  /** The open call whose id is in `view` from `start` to `end`. */
  find(view: DataView, start: number, end: number): Invocation | undefined {
    return this.#invocations.find(view, start, end);
  }

  /** The same for an id as text. */
  findText(id: string): Invocation | undefined {
    const view = viewOf(bytesOf(id));
    return this.find(view, 0, view.byteLength);
  }

  /** The engine's id of a call, as text. */
  textOf({ slot, uses }: Invocation): string {
    return this.idOf(slot, uses);
  }

  /** The open call with this id of the caller. */
  findOfCaller(caller: Peer, ids: CallerId): Invocation | undefined {
    return this.#invocations.findOfCaller(caller, ids);
  }

  /** The calls that a caller waits for, oldest first. */
  ofCaller(caller: Peer): Invocation[] {
    return this.#invocations.ofCaller(caller);
  }

  /** All open calls, oldest first. */
  all(): Invocation[] {
    return this.#invocations.all();
  }

  /** Opens a call that falls due in `due_ms`. */
  open(call: NewCall, due_ms: number = call.timeout_ms): Invocation {
    const { caller, ids, callee, function_id, subject, timeout_ms, onEnd, remainder } = call;
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
      onEnd,
    });
    this.#deadlines.add(invocation, due_ms, since);
    this.#observer.opened(invocation, caller.endpoint, remainder);
    return invocation;
  }

  /** Gives a parked call its callee; `left` is its remaining time in milliseconds. */
  assign(
    invocation: Invocation,
    { callee, far }: Pick<Replica, "callee" | "far">,
    remainder: CallRemainder,
    left: number,
  ): void {
    this.#parked.remove(invocation);
    invocation.onEnd = far;
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
    const { ids, idsView, idAt } = invocation;
    const { memory, view, idStart, idEnd, traceStart, traceEnd, end } = remainder;
    const field = this.#observer.sent(invocation, callee.endpoint, now, candidates);
    const traceBytes = field ? field.memory.length : traceEnd - traceStart;
    const longer = traceBytes - (traceEnd - traceStart);
    const start = idStart - CALL_PREFIX.length - longer;
    if (!callee.isBuiltin && idEnd - idStart === UUID_BYTES && longer >= 0 && start >= 0) {
      // Written in place: the engine's id replaces the caller's, and a longer trace field moves the
      // beginning to the front, over frames that were handled before.
      if (longer > 0) {
        copyWords(view, start, CALL_START, 0, CALL_PREFIX.length);
        copyWords(view, idEnd - longer, view, idEnd, traceStart - idEnd);
      }
      copyWords(view, idStart - longer, idsView, idAt, UUID_BYTES);
      if (field) copyWords(view, traceEnd - traceBytes, field.view, 0, traceBytes);
      callee.connection.forward(NO_BYTES, 0, memory, start, end);
      return;
    }
    const prefix = this.#callPrefix;
    prefix.restart();
    prefix.add(ids, idAt, idAt + UUID_BYTES);
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

  /** Ends a call with a value. */
  settle(invocation: Invocation, remainder: ResultRemainder): void {
    this.#observer.settled(invocation, remainder.memory, remainder.dataStart, remainder.end - 1);
    this.#answer(invocation, remainder);
  }

  /** Ends a call with an error that its callee sent. */
  settleError(invocation: Invocation, remainder: ResultRemainder, error: ErrorBody): void {
    this.#observer.failed(invocation, error, null);
    this.#answer(invocation, remainder);
  }

  /** Ends a call with an error of the engine; `endedBy` says what ended it early. */
  fail(invocation: Invocation, error: ErrorBody, endedBy: string | null): void {
    this.#observer.failed(invocation, error, endedBy);
    this.#answer(invocation, remainderOf(errorRemainder(invocation.function_id, error)));
  }

  /** Ends a call without a reply; the error is for the observer only. */
  drop(invocation: Invocation, error: ErrorBody, endedBy: string | null): void {
    this.#observer.failed(invocation, error, endedBy);
    this.#close(invocation);
  }

  /** Cancels all timers. */
  stop(): void {
    this.#deadlines.clear();
  }

  /** Closes the record, then replies to the caller. */
  #answer(invocation: Invocation, { memory, view, idStart, idEnd, end }: ResultRemainder): void {
    const { caller, callerId, callerIdView, callerIdAt, callerIdBytes } = invocation;
    if (idStart < idEnd && idEnd - idStart === callerIdBytes) {
      copyWords(view, idStart, callerIdView, callerIdAt, callerIdBytes);
      this.#close(invocation);
      caller?.reply(NO_BYTES, 0, memory, idStart - RESULT_PREFIX.length, end);
      return;
    }
    const prefix = this.#resultPrefix;
    prefix.restart();
    prefix.add(callerId, callerIdAt, callerIdAt + callerIdBytes);
    this.#close(invocation);
    caller?.reply(prefix.memory, prefix.length, memory, idEnd, end);
  }

  #close(invocation: Invocation): void {
    const { callee } = invocation;
    invocation.onEnd?.ended(invocation);
    this.#deadlines.remove(invocation);
    this.#invocations.close(invocation);
    if (callee) this.#onEnd(callee);
  }
}

/** The caller's id of a call without a caller. */
const NO_CALLER: CallerId = { view: viewOf(NO_BYTES), idStart: 0, idEnd: 0, hash: 0 };
