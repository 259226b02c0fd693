/**
 * What the router records of calls, and other sources of telemetry.
 *
 * *Spans* are single calls, sampled, in a ring of limited memory. *Meters* count every call of a
 * function, sampled or not. Recording allocates nothing; reading creates objects.
 *
 * @module
 */

/** Caller or callee. */
export interface CallEndpoint {
  /** Worker id of its connection. */
  readonly worker_id: string;
  /** Its name at that time: announced, else the group of the function id. */
  readonly name: string;
}

/** A replica that could have executed a call. */
export interface Candidate extends CallEndpoint {
  /** Calls in flight at the time of the choice. */
  readonly in_flight: number;
  /** Why it was skipped, such as `draining` or `at its bound of calls`; `null` if it was not. */
  readonly passed_over: string | null;
}

/** One recorded call. Times are milliseconds since 1970, with fractions. */
export interface CallSpan {
  /** Sequence number, by start; never reused while the engine runs. */
  readonly seq: number;
  /** 32 hexadecimal digits. */
  readonly trace_id: string;
  /** 16 hexadecimal digits; the callee's parent span. */
  readonly span_id: string;
  /** From the caller's `traceparent`; `null` when the call started a trace. */
  readonly parent_span_id: string | null;
  readonly function_id: string;
  readonly namespace: string;
  /**
   * The engine's id of the call; the caller's is `caller_invocation_id`. Empty for a call that was
   * not opened.
   */
  readonly invocation_id: string;
  /** `null` when the caller does not wait. */
  readonly caller_invocation_id: string | null;
  readonly caller: CallEndpoint;
  /** `null` when it was not sent. */
  readonly callee: CallEndpoint | null;
  readonly start_ms: number;
  /** When it was sent, later than the start if it was parked; `null` when it was not sent. */
  readonly sent_ms: number | null;
  /** When it ended; `null` while it runs. */
  readonly end_ms: number | null;
  /** Code of its error; `null` after a success and while it runs. */
  readonly error_code: string | null;
  readonly error_message: string | null;
  /** Of the handler that failed, if its worker sent one; shortened. */
  readonly stacktrace: string | null;
  /** What ended it early, such as `the caller cancelled` or `the caller left`. */
  readonly ended_by: string | null;
  /** The applied time limit, in milliseconds. */
  readonly timeout_ms: number;
  /** Upper bound of the characters of payload and result; `null` without one. */
  readonly request_chars: number | null;
  readonly response_chars: number | null;
  /** The JSON text, not redacted; `null` when it was not kept (too large, or too many calls). */
  readonly request: string | null;
  readonly response: string | null;
  /** W3C baggage as received; `null` without any. */
  readonly baggage: string | null;
  /** Possible replicas, including the chosen one; `null` when not kept. */
  readonly candidates: readonly Candidate[] | null;
}

/** What to record; PROTOCOL 5.8 calls the ratio `default_ratio`. */
export interface TraceSettings {
  /** `false`: no spans, no ids, no cost per call. Meters stay on. */
  readonly enabled: boolean;
  /**
   * Share of new traces to record, 0 to 1. A trace that was sampled elsewhere keeps its decision.
   */
  readonly ratio: number;
  /** The first rule that matches the first function of a new trace overrides `ratio`. */
  readonly rules: readonly SamplingRule[];
  /** Memory of the ring; the oldest spans are overwritten. */
  readonly memory_bytes: number;
  /** Longest payload or result to keep, in characters; 0 keeps none. */
  readonly payload_chars: number;
}

/** An exception to the sampling ratio. */
export interface SamplingRule {
  /** Function id; `*` matches any characters. */
  readonly operation: string;
  /** Share of the traces, 0 to 1. */
  readonly rate: number;
}

/** Access to the recorded calls. Every list is a copy. */
export interface CallTraces {
  /** The current settings. */
  readonly settings: TraceSettings;
  /**
   * Changes what is recorded from the next call on. A smaller ring drops its oldest spans at once.
   */
  configure(settings: TraceSettings): void;
  /**
   * Calls that ended after position `cursor`, oldest first. The returned `cursor` is the position
   * of the last one returned, or of the newest call if there are none.
   */
  ended(cursor: number, limit: number): { readonly spans: CallSpan[]; readonly cursor: number };
  /** The newest matching calls, newest first, running ones included. */
  find(filter: CallFilter, limit: number): CallSpan[];
  /** At most `limit` running calls, the newest first, then the last `limit` that ended. */
  rows(limit: number): CallRows;
  /** Removes all but the running calls. */
  clear(): void;
  /** Usage of the ring. */
  readonly usage: TraceUsage;
  /** Spans of work other than calls, such as HTTP requests. */
  readonly spans: Spans;
}

/**
 * Recorded calls at one moment, to be read in slices: the rows stay as they are until disposal.
 * First the running calls, the newest first, then the ended ones, the oldest first. Reading a
 * single value of a row allocates nothing.
 */
export interface CallRows extends Disposable {
  /** Number of rows. */
  readonly size: number;
  /** The function of a row; the same object for each row of the function. */
  functionAt(row: number): Pick<CallSpan, "function_id" | "namespace">;
  /** {@linkcode CallSpan.caller}'s name. */
  callerNameAt(row: number): string;
  /** {@linkcode CallSpan.callee}'s name. */
  calleeNameAt(row: number): string | null;
  /** {@linkcode CallSpan.seq} */
  seqAt(row: number): number;
  /** {@linkcode CallSpan.start_ms} */
  startAt(row: number): number;
  /** {@linkcode CallSpan.end_ms} */
  endAt(row: number): number | null;
  /** {@linkcode CallSpan.error_code} */
  errorCodeAt(row: number): string | null;
  /** {@linkcode CallSpan.trace_id} */
  traceAt(row: number): string;
  /** Whether the call may belong to one of some traces; for heads see {@linkcode traceHeadOf}. */
  mayBeOf(row: number, heads: ReadonlySet<number>): boolean;
  /** {@linkcode CallSpan.span_id} */
  spanAt(row: number): string;
  /** {@linkcode CallSpan.parent_span_id} */
  parentAt(row: number): string | null;
  /** The whole call. */
  read(row: number): CallSpan;
}

/** The first eight digits of a trace id as a number; `NaN` when they are none. */
export function traceHeadOf(trace_id: string): number {
  return /^[0-9a-f]{8}/.test(trace_id) ? parseInt(trace_id.slice(0, 8), 16) : NaN;
}

/** Conditions on calls; all given ones must match. */
export interface CallFilter {
  readonly trace_id?: string;
  readonly span_id?: string;
  /** The engine's id of a call or the caller's. */
  readonly invocation_id?: string;
  readonly function_id?: string;
  /** Started at or after, in milliseconds since 1970. */
  readonly since_ms?: number;
  readonly until_ms?: number;
  readonly running?: boolean;
}

/** Usage of the ring. */
export interface TraceUsage {
  /** Number of spans, and how many fit. */
  readonly spans: number;
  readonly capacity: number;
  /** Memory limit in bytes. */
  readonly bytes: number;
  /** Spans recorded since the engine's start, and how many of them were overwritten. */
  readonly recorded: number;
  readonly overwritten: number;
}

/** Spans of built-in workers that are not calls. */
export interface Spans {
  /**
   * Returns a `traceparent` for work that starts under `parent` (received from outside; an invalid
   * one counts as none) or starts a trace, sampled as `operation`. `null` when tracing is off and
   * there is no parent. Pass it to the calls of this work.
   */
  open(parent: string | null, operation: string): string | null;
  /** Passes a span to the listeners if its traceparent is sampled; does not store it. */
  record(span: EndedSpan): void;
  /** Receives the spans recorded from now on; must not throw. Call the result to stop. */
  listen(listener: (span: EndedSpan) => void): () => void;
}

/** A finished piece of work of a built-in worker. */
export interface EndedSpan {
  /** From {@linkcode Spans.open}. */
  readonly traceparent: string;
  /** As received from outside. */
  readonly parent: string | null;
  /** Such as `GET /orders/:id`. */
  readonly name: string;
  /** The built-in worker, such as `engine-http`. */
  readonly service: string;
  readonly start_ms: number;
  readonly end_ms: number;
  /** `null` after a success. */
  readonly error: string | null;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** How many attributes there are, where that is known without making them. */
  readonly attributeCount?: number;
  /** Characters of their names and values, a number being 8; with {@linkcode attributeCount}. */
  readonly attributeChars?: number;
}

/** Counts of one function since the engine's start. */
export interface FunctionMeter {
  readonly function_id: string;
  readonly namespace: string;
  /** Includes running calls and rejected ones. */
  readonly calls: number;
  readonly in_flight: number;
  /** By code, including codes of handlers. */
  readonly errors: ReadonlyMap<string, number>;
  readonly duration_sum_ms: number;
  /** Ended calls by duration: one count per bound of {@linkcode Meters.bounds_ms}, plus one. */
  readonly durations: ArrayLike<number>;
}

/** Current load of the router. */
export interface RouterLoad {
  /** Calls that run or are parked. */
  readonly running: number;
  /** Of those, the parked ones. */
  readonly parked: number;
  readonly connections: number;
  /** Bytes that peers have not received yet, over all connections. */
  readonly queued_bytes: number;
}

/** Counts of calls. The objects are live: copy what you keep. */
export interface Meters {
  /** Upper bounds of the duration buckets in milliseconds, ascending. */
  readonly bounds_ms: readonly number[];
  functions(): Iterable<FunctionMeter>;
  /** Counts of all functions beyond the limit; `function_id` is `(other)`. */
  readonly other: FunctionMeter;
  /** Removes the counts of a function that no worker offers any more, unless a call of it runs. */
  forget(namespace: string, function_id: string): void;
  load(): RouterLoad;
}

/** Telemetry of a worker: four letters followed by OTLP/JSON. */
export interface TelemetryFrame {
  /** Traces, metrics or logs. */
  readonly kind: "OTLP" | "MTRC" | "LOGS";
  /** The JSON in UTF-8; valid until the listener returns. */
  readonly bytes: Uint8Array;
  /** Its connection, if that is a worker connection; `null` for one that carries only telemetry. */
  readonly worker_id: string | null;
  /** Address of the sender, such as `127.0.0.1`; `null` inside this process. */
  readonly address: string | null;
}

/** Receives telemetry; must not throw. */
export type TelemetryListener = (frame: TelemetryFrame) => void;

/** A line of output of a supervised worker. */
export interface PrintedLine {
  readonly worker: string;
  /** From 1. */
  readonly replica: number;
  readonly stream: "stdout" | "stderr";
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly at_ms: number;
  /** The call whose handler printed it, if the SDK marked it. */
  readonly trace: { readonly trace_id: string; readonly span_id: string } | null;
  /** Printed by the SDK's logger, which also sends it as telemetry. */
  readonly isLogger: boolean;
}

/** Receives the output of workers; must not throw. */
export type PrintListener = (line: PrintedLine) => void;
