/**
 * What the router tells of calls while they happen.
 *
 * Told on the hottest path there is: nothing here is made for one call only, and texts are handed
 * over as places in a frame. For each call that was opened, exactly one of `settled` and `failed`
 * follows; a call that was never opened is `refused` or `answered`, once.
 *
 * @module
 */
import type { ErrorBody } from "../../sdk/typescript/wire/protocol.ts";
import type { Candidate, RouterLoad } from "./telemetry.ts";

/** A function whose calls are counted together; made by the observer, kept by the router. */
export interface ObservedFunction {
  readonly function_id: string;
  readonly namespace: string;
}

/** A worker that calls or runs; made by the observer, kept by the router. */
export interface ObservedEndpoint {
  readonly worker_id: string;
}

/** A running call. The object serves other calls later: nobody keeps it beyond the end. */
export interface ObservedCall {
  /** A small number that no other running call has. */
  readonly slot: number;
  /** Grows whenever the slot is used again. */
  readonly uses: number;
  /** The caller's id, as it stands between quotes in JSON: its first bytes. */
  readonly callerId: Uint8Array;
  /** So many; 0: nobody waits. */
  readonly callerIdBytes: number;
  readonly timeout_ms: number;
  /** When it was opened, on the clock's now(). */
  readonly since: number;
  readonly subject: ObservedFunction;
}

/** Where in memory a call lies, and what goes with it; valid while it is told of. */
export interface CallLayout {
  /** UTF-8. */
  readonly memory: Uint8Array;
  /** `,"traceparent":"…"`, or where it would have to stand. */
  readonly traceStart: number;
  /** Behind it; equal to the start when there is none. `,"baggage":"…"` may follow. */
  readonly traceEnd: number;
  /** The payload, which ends before the brace; -1: there is none. */
  readonly dataStart: number;
  /** Behind the brace that ends the call. */
  readonly end: number;
}

/** A field of a call, all of it. */
export interface TraceBytes {
  /** UTF-8. */
  readonly memory: Uint8Array;
  /** The same, to be read in words. */
  readonly view: DataView;
}

/** A call that was never opened. */
export interface UnopenedCall {
  readonly function_id: string;
  readonly namespace: string;
  /** The caller's id; `undefined`: nobody waits. */
  readonly caller_invocation_id: string | undefined;
  readonly caller: ObservedEndpoint;
  readonly traceparent: string | undefined;
  readonly baggage: string | undefined;
  readonly timeout_ms: number;
  /** JSON text of the payload, made only when it is wanted. */
  request(): string | undefined;
}

/** What the router can be asked. */
export interface CallSource {
  /**
   * The engine's id of a call, from the two numbers that name it; it begins with the slot in eight
   * hexadecimal digits.
   */
  callId(slot: number, uses: number): string;
  load(): RouterLoad;
}

/** Hears of calls; must not throw. */
export interface CallObserver {
  /** The router that tells, before anything else. */
  attach(source: CallSource): void;
  /** The function of that name; ask once and keep it. */
  functionOf(namespace: string, function_id: string): ObservedFunction;
  /** A worker under its name, empty while it has none; ask once and keep it. */
  endpointOf(worker_id: string, name: string): ObservedEndpoint;
  /** A call has begun; it may have to wait before it is sent. */
  opened(call: ObservedCall, caller: ObservedEndpoint, places: CallLayout): void;
  /** Whether somebody will want to know who could have run it. */
  wantsCandidates(call: ObservedCall): boolean;
  /**
   * It goes to a worker, or the engine itself runs it. What is to stand instead of the caller's
   * `traceparent`, such as `,"traceparent":"…"`, valid until the next call of the observer;
   * `undefined`: what the caller sent.
   */
  sent(
    call: ObservedCall,
    callee: ObservedEndpoint,
    now: number,
    candidates: readonly Candidate[] | undefined,
  ): TraceBytes | undefined;
  /** It ended well: the value is `memory` from `start` to `end`; -1 as start: there is none. */
  settled(call: ObservedCall, memory: Uint8Array, start: number, end: number): void;
  /** It ended with an error; `endedBy` says who ended it before its time. */
  failed(call: ObservedCall, error: ErrorBody, endedBy: string | null): void;
  /** A call did not begin. */
  refused(call: UnopenedCall, error: ErrorBody): void;
  /** The engine ran and answered a call at once; `result` makes its JSON text. */
  answered(call: UnopenedCall, result: () => string): void;
}
