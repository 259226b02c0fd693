/**
 * Calls that a built-in worker makes for one event to the functions of many triggers.
 *
 * An ordinary call writes its payload into a frame, which the router parses. Where one event goes
 * to thousands of functions, that is most of the work. Here the payload is encoded once and is not
 * parsed; each call is then like any other: it has a record, a deadline, a place in the meters and
 * traces, and its result is ignored.
 *
 * @module
 */
import type { Json } from "../../sdk/typescript/wire/protocol.ts";

/** A longer `traceparent` is left out. */
export const TRACEPARENT_CHARS_MAX = 128;

/** A trigger's function and metadata. */
export interface FiringInput {
  readonly function_id: string;
  /** `undefined` for `default`. */
  readonly namespace: string | undefined;
  readonly metadata: Json | undefined;
}

/** A function to call, prepared once for all events. */
export interface FiringTarget {
  readonly function_id: string;
  readonly namespace: string | undefined;
  /** Beginning of the frame of each call, up to the trace, as UTF-8. */
  readonly head: Uint8Array;
}

/** What one event passes to all functions. */
export interface FiringPayload {
  /** JSON in UTF-8; must not change. */
  readonly json: Uint8Array;
  /** W3C `traceparent` that the calls belong to. */
  readonly traceparent: string | undefined;
}

/** How far a worker may be behind to get one more call. */
export interface FiringBounds {
  /** Calls that it has not answered, those of others included. */
  readonly waitingCalls: number;
  /** Bytes that it has not read. */
  readonly unsentBytes: number;
}

/**
 * `sent`; `behind`: all workers of the function are at a bound, and nothing was sent; `ordinary`:
 * this function has to be called as any other, because no worker offers it now, it is one of the
 * engine's own, or its worker knows it by another name.
 */
export type Fired = "sent" | "behind" | "ordinary";

/** Makes such calls. */
export interface Firings {
  /** Prepares a function. */
  prepare(input: FiringInput): FiringTarget;
  /** Calls a function in the name of a built-in worker, and does not wait. Never throws. */
  fire(
    worker: string,
    target: FiringTarget,
    payload: FiringPayload,
    bounds: FiringBounds,
  ): Fired;
}
