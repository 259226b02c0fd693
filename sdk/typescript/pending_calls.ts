/**
 * Calls on their way: what answers them, and what ends them when nothing does.
 *
 * All deadlines share one timer. It is set for the earliest of them and left alone when a call
 * ends, so a call costs no timer of its own; a sweep that finds nothing due sets it anew.
 *
 * @module
 */
import type { WorkerClock } from "./platform.ts";
import { errorBody, InvocationError } from "./wire/errors.ts";
import { TIMEOUT_GRACE_MS } from "./wire/limits.ts";
import type { CallRequest } from "./options.ts";
import type { ErrorBody, Json } from "./wire/protocol.ts";
import { TurnoverMap } from "./turnover_map.ts";

/** A call whose result somebody waits for. */
export interface OpenCall {
  /** What its id counts to; unlike all others of the worker. */
  readonly count: number;
  readonly invocation_id: string;
  readonly function_id: string;
  /** The same as JSON text. */
  readonly quotedFunctionId: string;
  /** Milliseconds it may take, counted from the call. */
  readonly timeoutMs: number;
  /** When that is over, on the worker's clock. */
  readonly deadline: number;
  /** Whether the frame has left; until then nobody but this process knows of the call. */
  sent: boolean;
  readonly resolve: (value: Json | undefined) => void;
  readonly reject: (error: InvocationError) => void;
  readonly onProgress: ((data: Json) => void) | undefined;
  /** What the caller may end it with, and who listens there until the call has ended. */
  readonly signal: CallRequest["signal"];
  /**
   * Made before the call: V8 keeps a function that is put into an object later, with all it knows,
   * until its next full collection.
   */
  readonly aborted: (() => void) | undefined;
}

/** Sweeps are at least so far apart, however close the deadlines are. */
const SWEEP_GAP_MS = 5;

/** The calls of one worker that have no result yet. */
export class Waiting {
  /** Whether the engine ends calls at their deadline itself; then its word is waited for. */
  engineEndsCalls = false;
  readonly #calls = new TurnoverMap<number, OpenCall>();
  readonly #clock: WorkerClock;
  readonly #expired: (call: OpenCall) => void;
  #sweepAt = Infinity;
  #cancelSweep: (() => void) | undefined;

  /** `expired` hears of each call that ended because its time was over. */
  constructor(clock: WorkerClock, expired: (call: OpenCall) => void) {
    this.#clock = clock;
    this.#expired = expired;
  }

  /** Calls that have no result yet. */
  get size(): number {
    return this.#calls.size;
  }

  /** From now on the call waits. */
  add(call: OpenCall): void {
    this.#calls.set(call.count, call);
    this.#sweepBy(call.deadline);
  }

  /** The call of this count, if it still waits. */
  get(count: number): OpenCall | undefined {
    return this.#calls.get(count);
  }

  /** Ends a call with what it returned; one that does not wait any more is left alone. */
  resolve(count: number, value: Json | undefined): void {
    this.#take(count)?.resolve(value);
  }

  /** Ends a call with a failure; one that does not wait any more is left alone. */
  fail(count: number, error: ErrorBody): void {
    const call = this.#take(count);
    call?.reject(new InvocationError(error, call.function_id, call.invocation_id));
  }

  /** Ends all calls, or only those whose frame has left. */
  failAll(error: ErrorBody, which: "all" | "sent"): void {
    for (const call of this.#calls.values()) {
      if (which === "all" || call.sent) this.fail(call.count, error);
    }
  }

  /** Sets no timer any more; to be called once no call waits and none will. */
  stop(): void {
    this.#cancelSweep?.();
    this.#cancelSweep = undefined;
    this.#sweepAt = Infinity;
  }

  #take(count: number): OpenCall | undefined {
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

  #endOf(call: OpenCall): number {
    return call.sent && this.engineEndsCalls ? call.deadline + TIMEOUT_GRACE_MS : call.deadline;
  }

  #expire(call: OpenCall): void {
    this.fail(call.count, timeoutError(call.timeoutMs));
    this.#expired(call);
  }
}

/** The failure of a call that took too long, as seen from its caller. */
export function timeoutError(timeoutMs: number): ErrorBody {
  return errorBody("TIMEOUT", `invocation timed out after ${timeoutMs}ms`);
}
