/**
 * Calls that have no result yet, and their deadlines.
 *
 * All deadlines share one timer, set for the earliest. It is not changed when a call ends, so that
 * a call costs no timer of its own; if it fires early, it is set again.
 *
 * @module
 */
import type { CallRequest } from "./options.ts";
import type { WorkerClock } from "./platform.ts";
import { TurnoverMap } from "./turnover_map.ts";
import { errorBody, InvocationError } from "./wire/errors.ts";
import type { ErrorBody, Json } from "./wire/protocol.ts";

/** How long after a deadline the SDK waits for the `timeout` error of the engine. */
const TIMEOUT_GRACE_MS = 1_000;
/** Shortest interval between two checks of all deadlines. */
const SWEEP_GAP_MS = 5;

/** A call whose caller waits for the result. */
export interface PendingCall {
  /** The counter in its id; unique within the worker. */
  readonly count: number;
  readonly invocation_id: string;
  readonly function_id: string;
  /** `function_id` as JSON text. */
  readonly quotedFunctionId: string;
  /** Milliseconds from the call to the deadline. */
  readonly timeoutMs: number;
  /** The deadline, on the worker's clock. */
  readonly deadline: number;
  /** Whether the frame has been sent; until then, the engine does not know the call. */
  sent: boolean;
  readonly resolve: (value: Json | undefined) => void;
  readonly reject: (error: InvocationError) => void;
  readonly onProgress: ((data: Json) => void) | undefined;
  /** The signal that cancels the call. */
  readonly signal: CallRequest["signal"];
  /**
   * Listens to the signal until the call ends. Created before this object: V8 keeps a function that
   * is added to an existing object, with its closure, until the next full collection.
   */
  readonly aborted: (() => void) | undefined;
}

/** The pending calls of one worker. */
export class PendingCalls {
  /** Whether the engine ends calls at their deadline; then its error is waited for. */
  engineEndsCalls = false;
  readonly #calls = new TurnoverMap<number, PendingCall>();
  readonly #clock: WorkerClock;
  readonly #expired: (call: PendingCall) => void;
  #sweepAt = Infinity;
  #cancelSweep: (() => void) | undefined;

  /** `expired` is called after a call has failed at its deadline. */
  constructor(clock: WorkerClock, expired: (call: PendingCall) => void) {
    this.#clock = clock;
    this.#expired = expired;
  }

  get size(): number {
    return this.#calls.size;
  }

  add(call: PendingCall): void {
    this.#calls.set(call.count, call);
    this.#sweepBy(call.deadline);
  }

  /** The call with this counter, if it is pending. */
  get(count: number): PendingCall | undefined {
    return this.#calls.get(count);
  }

  /** Resolves a call; ignored if it is not pending. */
  resolve(count: number, value: Json | undefined): void {
    this.#take(count)?.resolve(value);
  }

  /** Rejects a call; ignored if it is not pending. */
  fail(count: number, error: ErrorBody): void {
    const call = this.#take(count);
    call?.reject(new InvocationError(error, call.function_id, call.invocation_id));
  }

  /** Rejects all calls, or only those whose frame has been sent. */
  failAll(error: ErrorBody, which: "all" | "sent"): void {
    for (const call of this.#calls.values()) {
      if (which === "all" || call.sent) this.fail(call.count, error);
    }
  }

  /** Cancels the timer; to be called when no call is pending and none will be added. */
  stop(): void {
    this.#cancelSweep?.();
    this.#cancelSweep = undefined;
    this.#sweepAt = Infinity;
  }

  #take(count: number): PendingCall | undefined {
    const call = this.#calls.take(count);
    if (call?.aborted) call.signal?.removeEventListener("abort", call.aborted);
    return call;
  }

  #sweepBy(time: number): void {
    if (time >= this.#sweepAt) return;
    this.#cancelSweep?.();
    const ms = Math.max(SWEEP_GAP_MS, time - this.#clock.now());
    this.#sweepAt = this.#clock.now() + ms;
    this.#cancelSweep = this.#clock.after(ms, () => this.#sweep());
  }

  #sweep(): void {
    this.#sweepAt = Infinity;
    this.#cancelSweep = undefined;
    const now = this.#clock.now();
    let next = Infinity;
    for (const call of this.#calls.values()) {
      const end = this.#endOf(call);
      if (end <= now) this.#expire(call);
      else next = Math.min(next, end);
    }
    if (next < Infinity) this.#sweepBy(next);
  }

  #endOf(call: PendingCall): number {
    return call.sent && this.engineEndsCalls ? call.deadline + TIMEOUT_GRACE_MS : call.deadline;
  }

  #expire(call: PendingCall): void {
    this.fail(call.count, timeoutError(call.timeoutMs));
    this.#expired(call);
  }
}

/** The error of a call whose deadline passed in the SDK. */
export function timeoutError(timeoutMs: number): ErrorBody {
  return errorBody("TIMEOUT", `invocation timed out after ${timeoutMs}ms`);
}
