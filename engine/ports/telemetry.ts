/**
 * What the router remembers of calls, and who else reports what happened.
 *
 * Two things are kept apart. *Spans* are single calls, sampled, in a ring of bounded memory.
 * *Meters* count every call of a function, sampled or not. Reading makes objects; recording makes
 * none.
 *
 * @module
 */
import type { LogFields, LogLevel } from "./log.ts";

/** One end of a call. */
export interface CallEndpoint {
  /** Id of its connection. */
  readonly worker_id: string;
  /** As it was called then: announced, else the first part of the function's id. */
  readonly name: string;
}

/** A replica that could have run a call. */
export interface Candidate extends CallEndpoint {
  /** Calls it was running when one was chosen. */
  readonly in_flight: number;
  /** Why it was out of the question, such as `draining` or `at its bound`; `null`: it was not. */
  readonly passed_over: string | null;
}

/** One call, as the router saw it. Times are milliseconds since 1970, with fractions. */
export interface CallSpan {
  /** Grows with every call that started; never used twice in an engine's life. */
  readonly seq: number;
  /** 32 hexadecimal digits. */
  readonly trace_id: string;
  /** 16 hexadecimal digits; what the callee got as parent. */
  readonly span_id: string;
  /** From the caller's `traceparent`; `null` when the call began a trace. */
  readonly parent_span_id: string | null;
  readonly function_id: string;
  readonly namespace: string;
  /**
   * The engine's id of the call; the caller's own is `caller_invocation_id`. Empty for a call that
   * never began, or that the engine itself answered at once.
   */
  readonly invocation_id: string;
  /** `null` when nobody waits for the result. */
  readonly caller_invocation_id: string | null;
  readonly caller: CallEndpoint;
  /** `null` when nobody ran it. */
  readonly callee: CallEndpoint | null;
  readonly start_ms: number;
  /** When it went to the callee, later than the start when it was held; `null`: it never did. */
  readonly sent_ms: number | null;
  /** When its result came, or what else ended it; `null` while it runs. */
  readonly end_ms: number | null;
  /** Code of the error it ended with; `null` when it ended well or runs. */
  readonly error_code: string | null;
  readonly error_message: string | null;
  /** Who ended it before its time, such as `the caller cancelled` or `the caller left`. */
  readonly ended_by: string | null;
  /** The limit that held, in milliseconds. */
  readonly timeout_ms: number;
  /** Characters of the payload and of the result, at most; `null`: none. */
  readonly request_chars: number | null;
  readonly response_chars: number | null;
  /** JSON text as it passed, not redacted; `null` when it is not kept (too large, or too many). */
  readonly request: string | null;
  readonly response: string | null;
  /** W3C baggage as it came; `null`: none. */
  readonly baggage: string | null;
  /** Who could have run it, the chosen one included; `null` when that is not kept. */
  readonly candidates: readonly Candidate[] | null;
}

/** What to record; PROTOCOL 5.8 calls the ratio `default_ratio`. */
export interface TraceSettings {
  /** `false`: no spans, no ids, and not a nanosecond per call. Meters go on. */
  readonly enabled: boolean;
  /** Part of new traces that is recorded, 0 to 1. A trace that came with a decision keeps it. */
  readonly ratio: number;
  /** The first that fits the id of a new trace's first function wins over `ratio`. */
  readonly rules: readonly SamplingRule[];
  /** Memory of the ring; the oldest spans make room. */
  readonly memory_bytes: number;
  /** Longest payload or result that is kept whole, in characters; 0: none is kept. */
  readonly payload_chars: number;
}

/** An exception from the sampling ratio. */
export interface SamplingRule {
  /** Function id; `*` stands for any characters. */
  readonly operation: string;
  /** Part of the traces, 0 to 1. */
  readonly rate: number;
}

/** The calls that were recorded. Every list is a copy, made when asked for. */
export interface CallTraces {
  /** What holds now. */
  readonly settings: TraceSettings;
  /** Changes what is recorded from the next call on. A smaller ring forgets the oldest at once. */
  configure(settings: TraceSettings): void;
  /**
   * Calls that ended, whose number of ending is above `cursor`, oldest first. The answer's `cursor`
   * is the number of the last one in it; of the newest there is, when none is above.
   */
  ended(cursor: number, limit: number): { readonly spans: CallSpan[]; readonly cursor: number };
  /** The newest calls that fit, newest first, running ones too. */
  find(filter: CallFilter, limit: number): CallSpan[];
  /** Forgets all but the running ones. */
  clear(): void;
  /** How full the ring is. */
  readonly usage: TraceUsage;
  /** A `traceparent` for work outside of calls, such as an HTTP request; see {@linkcode Spans}. */
  readonly spans: Spans;
}

/** Which calls; all that is given has to fit. */
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

/** How full the ring is. */
export interface TraceUsage {
  /** Spans in the ring, and how many fit. */
  readonly spans: number;
  readonly capacity: number;
  /** Memory, at most, in bytes. */
  readonly bytes: number;
  /** Recorded since the engine started, and overwritten since by newer ones. */
  readonly recorded: number;
  readonly overwritten: number;
}

/** Spans of built-in workers that are no calls. */
export interface Spans {
  /**
   * A `traceparent` for something that begins under `parent` (what a stranger sent; anything that
   * is none counts as absent) or begins a trace, sampled as `operation`. `null` when nothing is
   * traced and there was no parent. Hand it to the calls that belong to it.
   */
  open(parent: string | null, operation: string): string | null;
  /** Tells whoever listens, if its traceparent says that it is sampled; keeps nothing itself. */
  record(span: EndedSpan): void;
  /** Hears of what is recorded from now on; must not throw. Call the result to stop. */
  listen(listener: (span: EndedSpan) => void): () => void;
}

/** Something that a built-in worker did. */
export interface EndedSpan {
  /** As {@linkcode Spans.open} gave it. */
  readonly traceparent: string;
  /** As it came from outside. */
  readonly parent: string | null;
  /** Such as `GET /orders/:id`. */
  readonly name: string;
  /** Which built-in worker, such as `engine-http`. */
  readonly service: string;
  readonly start_ms: number;
  readonly end_ms: number;
  /** `null` when it ended well. */
  readonly error: string | null;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
}

/** Every call of one function since the engine started. */
export interface FunctionMeter {
  readonly function_id: string;
  readonly namespace: string;
  /** Those that run and those that did not begin are counted, too. */
  readonly calls: number;
  readonly in_flight: number;
  /** By code; what the handler threw under a code of its own included. */
  readonly errors: ReadonlyMap<string, number>;
  readonly duration_sum_ms: number;
  /** Ended calls by duration: one count per bound of {@linkcode Meters.bounds_ms}, one beyond. */
  readonly durations: ArrayLike<number>;
}

/** How busy the router is at this moment. */
export interface RouterLoad {
  /** Calls that run or wait to start. */
  readonly running: number;
  /** Of those, calls that wait for a worker that is being restarted. */
  readonly parked: number;
  readonly connections: number;
  /** Bytes that peers have not taken yet, over all lines. */
  readonly queued_bytes: number;
}

/** Counts. The objects are live: read them, keep copies. */
export interface Meters {
  /** Upper bounds of the durations' buckets, in milliseconds, rising. */
  readonly bounds_ms: readonly number[];
  functions(): Iterable<FunctionMeter>;
  /** Functions without a meter of their own (too many) count here; `function_id` is `(other)`. */
  readonly other: FunctionMeter;
  load(): RouterLoad;
}

/** Telemetry that a worker sent: OTLP/JSON behind four letters. */
export interface TelemetryFrame {
  /** Traces, metrics or logs. */
  readonly kind: "OTLP" | "MTRC" | "LOGS";
  /** The JSON in UTF-8; valid until the listener returns. */
  readonly bytes: Uint8Array;
  /** Connection it came on, when that is a worker's own line; `null`: a line of telemetry only. */
  readonly worker_id: string | null;
  /** Address of the sender, such as `127.0.0.1`; `null` inside this process. */
  readonly address: string | null;
}

/** Hears of telemetry; must not throw. */
export type TelemetryListener = (frame: TelemetryFrame) => void;

/** A line that a supervised worker printed. */
export interface PrintedLine {
  readonly worker: string;
  /** From 1. */
  readonly replica: number;
  readonly stream: "stdout" | "stderr";
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly at_ms: number;
  /** The call in whose handler it was printed, as far as the SDK said so. */
  readonly trace: { readonly trace_id: string; readonly span_id: string } | null;
  /** The SDK's logger printed it, which sends the same as telemetry. */
  readonly isLogger: boolean;
}

/** Hears of what workers print; must not throw. */
export type PrintListener = (line: PrintedLine) => void;

/** A line of the engine's own log. */
export interface EngineLogLine {
  readonly level: LogLevel;
  readonly text: string;
  readonly fields: LogFields;
  /** Milliseconds since 1970. */
  readonly at_ms: number;
}

/** Hears of the engine's own log, every level; must not throw. */
export type EngineLogListener = (line: EngineLogLine) => void;

/** A GET request to a path of the worker port. */
export interface PageRequest {
  /** Such as `/metrics`. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Headers;
}
