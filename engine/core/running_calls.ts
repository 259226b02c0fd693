/**
 * The records of running calls: each is opened, perhaps sent, and ended once.
 *
 * Decides nothing. Whatever ends a call closes its record and tells the observer first, and sends
 * afterwards, so nothing that follows can end it again.
 *
 * @module
 */
import type { ErrorBody } from "../../sdk/typescript/protocol.ts";
import type { CallObserver, ObservedFunction } from "../ports/call_observer.ts";
import type { Clock } from "../ports/clock.ts";
import type { Candidate } from "../ports/telemetry.ts";
import { Deadlines } from "./deadlines.ts";
import { CALL_HEAD, type CallTail, RESULT_HEAD, type ResultTail } from "./envelope.ts";
import type { HeldCalls } from "./held_calls.ts";
import { type Invocation, Invocations } from "./invocations.ts";
import type { Peer } from "./peer.ts";
import { errorTail } from "./refusals.ts";

/** What running calls stand on. */
export interface RunningCallsOptions {
  readonly clock: Clock;
  readonly held: HeldCalls;
  readonly observer: CallObserver;
  /** A UUID, part of every id of a call. */
  readonly secret: string;
  /** The time of a call is up, or that for which it may wait; its record is still open. */
  onDue(invocation: Invocation): void;
}

/** What a call begins with. */
export interface Beginning {
  readonly caller: Peer;
  /** The caller's id, as it stands between quotes in JSON; `undefined`: nobody waits. */
  readonly callerId: string | undefined;
  /** Its hash, where that is known already. */
  readonly hash?: number | undefined;
  /** Who runs it; `undefined`: the engine itself, or nobody yet. */
  readonly callee: Peer | undefined;
  readonly function_id: string;
  readonly subject: ObservedFunction;
  readonly timeout_ms: number;
  readonly tail: CallTail;
}

/** The calls that run or wait to start. */
export class RunningCalls {
  readonly #clock: Clock;
  readonly #held: HeldCalls;
  readonly #observer: CallObserver;
  readonly #invocations: Invocations;
  readonly #deadlines: Deadlines<Invocation>;

  /** Makes one in which no call runs. */
  constructor({ clock, held, observer, secret, onDue }: RunningCallsOptions) {
    this.#clock = clock;
    this.#held = held;
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

  /** The call whose id stands in a text, from `start` to `end`; `undefined` when none runs. */
  find(text: string, start?: number, end?: number): Invocation | undefined {
    return this.#invocations.find(text, start, end);
  }

  /** The call that a caller knows under an id of its own, as it stands between quotes. */
  findOfCaller(caller: Peer, callerId: string, hash?: number): Invocation | undefined {
    return this.#invocations.findOfCaller(caller, callerId, hash);
  }

  /** Opens the record of a call, due in `due_ms`. */
  open(beginning: Beginning, due_ms: number = beginning.timeout_ms): Invocation {
    const { caller, callerId, hash, callee, function_id, subject, timeout_ms, tail } = beginning;
    const since = this.#clock.now();
    const invocation = this.#invocations.open({
      caller: callerId === undefined ? undefined : caller,
      callerId: callerId ?? "",
      hash,
      callee,
      function_id,
      subject,
      timeout_ms,
      since,
      bytes: callee ? tail.text.length - tail.idEnd : 0,
    });
    this.#deadlines.add(invocation, due_ms, since);
    this.#observer.opened(invocation, caller.party, tail.text, tail);
    return invocation;
  }

  /** A worker executes from now on a call that nobody did; `left` is what is left of its time. */
  assign(invocation: Invocation, callee: Peer, tail: CallTail, left: number): void {
    this.#held.remove(invocation);
    this.#deadlines.remove(invocation);
    this.#deadlines.add(invocation, left);
    this.#invocations.assign(invocation, callee, tail.text.length - tail.idEnd);
  }

  /** Sends a call to its callee. */
  send(
    invocation: Invocation,
    caller: Peer,
    { text, idEnd, traceStart, traceEnd }: CallTail,
    now: number,
    candidates: readonly Candidate[] | undefined,
  ): void {
    const callee = invocation.callee!;
    const field = this.#observer.sent(invocation, callee.party, now, candidates);
    const id = CALL_HEAD + invocation.id;
    const head = callee.isBuiltin ? `${id}","caller":"${caller.id}` : id;
    if (field === undefined) return callee.connection.send(head, text.slice(idEnd));
    callee.connection.send(head + text.slice(idEnd, traceStart) + field, text.slice(traceEnd));
  }

  /** Ends a call well. */
  settle(invocation: Invocation, { text, idEnd, resultStart }: ResultTail): void {
    const { caller, callerId } = invocation;
    this.#observer.settled(invocation, text, resultStart);
    this.#close(invocation);
    caller?.answer(RESULT_HEAD + callerId, text.slice(idEnd));
  }

  /** Ends a call with what its callee says is an error. */
  settleError(invocation: Invocation, { text, idEnd }: ResultTail, error: ErrorBody): void {
    const { caller, callerId } = invocation;
    this.drop(invocation, error, null);
    caller?.answer(RESULT_HEAD + callerId, text.slice(idEnd));
  }

  /** Ends a call with an error of the engine; `endedBy` says who ended it before its time. */
  fail(invocation: Invocation, error: ErrorBody, endedBy: string | null): void {
    const { caller, callerId, function_id } = invocation;
    this.drop(invocation, error, endedBy);
    caller?.answer(RESULT_HEAD + callerId, errorTail(function_id, error));
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

  #close(invocation: Invocation): void {
    if (!invocation.callee) this.#held.remove(invocation);
    this.#deadlines.remove(invocation);
    this.#invocations.close(invocation);
  }
}
