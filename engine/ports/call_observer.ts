/**
 * The router's events about calls, for recording and counting.
 *
 * Called on the hot path; implementations must not allocate per call. Texts are passed as ranges of
 * the frame's memory. Each opened call is followed by exactly one `settled` or `failed`; a call
 * that is not opened is reported by one `refused` or `answered`.
 *
 * @module
 */
import type { ErrorBody } from "../../sdk/typescript/wire/protocol.ts";
import type { Candidate, RouterLoad } from "./telemetry.ts";

/** Handle of a function whose calls are counted together; created by the observer. */
export interface ObservedFunction {
  readonly function_id: string;
  readonly namespace: string;
}

/** Handle of a caller or callee; created by the observer. */
export interface ObservedEndpoint {
  readonly worker_id: string;
}

/**
 * A running call. The object is reused for later calls: keep no reference beyond the call's end.
 */
export interface ObservedCall {
  /** A small number, unique among running calls. */
  readonly slot: number;
  /** Number of uses of the slot. */
  readonly uses: number;
  /** Has the caller's id as JSON text without quotes. */
  readonly callerId: Uint8Array;
  /** Where it starts. */
  readonly callerIdAt: number;
  /** Length of the caller's id; 0 when the caller does not wait. */
  readonly callerIdBytes: number;
  readonly timeout_ms: number;
  /** When it was opened, by the clock's now(). */
  readonly since: number;
  readonly subject: ObservedFunction;
}

/** Offsets in the memory of a call's frame; valid during the event. */
export interface CallLayout {
  /** UTF-8. */
  readonly memory: Uint8Array;
  /** Start of `,"traceparent":"…"`, or where that would have to be. */
  readonly traceStart: number;
  /** Offset behind it; equal to the start without one. `,"baggage":"…"` may follow. */
  readonly traceEnd: number;
  /** Start of the payload, which ends before the last brace; -1 without a payload. */
  readonly dataStart: number;
  /** Offset behind the last brace. */
  readonly end: number;
}

/** A whole field of a frame. */
export interface TraceBytes {
  /** UTF-8. */
  readonly memory: Uint8Array;
  /** The same memory, for access by words. */
  readonly view: DataView;
}

/** A call that was not opened. */
export interface UnopenedCall {
  readonly function_id: string;
  readonly namespace: string;
  /** The caller's id; `undefined` when it does not wait. */
  readonly caller_invocation_id: string | undefined;
  readonly caller: ObservedEndpoint;
  readonly traceparent: string | undefined;
  readonly baggage: string | undefined;
  readonly timeout_ms: number;
  /** JSON text of the payload, produced on demand. */
  request(): string | undefined;
}

/** What an observer can ask of the router. */
export interface CallSource {
  /** The engine's id of a call; it starts with the slot as eight hexadecimal digits. */
  callId(slot: number, uses: number): string;
  load(): RouterLoad;
}

/** Receives the events of calls; must not throw. */
export interface CallObserver {
  /** Called once, before any event. */
  attach(source: CallSource): void;
  /** The handle of a function; request it once and keep it. */
  functionOf(namespace: string, function_id: string): ObservedFunction;
  /**
   * The handle of a worker with its name, empty if unknown; request it once and keep it. No worker
   * that connects over the network is `builtin`.
   */
  endpointOf(worker_id: string, name: string, isBuiltin: boolean): ObservedEndpoint;
  /** A call was opened; it may be parked before it is sent. */
  opened(call: ObservedCall, caller: ObservedEndpoint, layout: CallLayout): void;
  /** Whether the observer wants the candidates of this call. */
  wantsCandidates(call: ObservedCall): boolean;
  /**
   * A call is sent to a worker, or executed by the engine itself. Returns the field that replaces
   * the caller's `traceparent`, such as `,"traceparent":"…"`, valid until the next event;
   * `undefined` keeps the caller's.
   */
  sent(
    call: ObservedCall,
    callee: ObservedEndpoint,
    now: number,
    candidates: readonly Candidate[] | undefined,
  ): TraceBytes | undefined;
  /**
   * The call ended with the value in `memory` from `start` to `end`; `start` is -1 without a value.
   */
  settled(call: ObservedCall, memory: Uint8Array, start: number, end: number): void;
  /** The call ended with an error; `endedBy` says what ended it early. */
  failed(call: ObservedCall, error: ErrorBody, endedBy: string | null): void;
  /** A call was rejected. */
  refused(call: UnopenedCall, error: ErrorBody): void;
  /** The engine executed a call at once; `result` produces its JSON text. */
  answered(call: UnopenedCall, result: () => string): void;
}
