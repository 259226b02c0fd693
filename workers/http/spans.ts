/**
 * An HTTP request as a span: the trace it belongs to, and its outcome.
 *
 * The calls of the request continue the trace, and the client gets it back as `traceparent`. Where
 * tracing is off, a client's own `traceparent` is forwarded as it came.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { EndedSpan, Spans } from "../../engine/ports/telemetry.ts";
import { looksSampled } from "../../sdk/typescript/trace_context.ts";
import type { HttpTriggerConfig } from "./config.ts";
import type { Reply } from "./response.ts";

/** Opens and records spans. */
export type RequestSpanSink = Pick<Spans, "open" | "record">;

/** Longest `baggage` that the calls of a request take over, the limit of W3C. */
const BAGGAGE_CHARS_MAX = 8_192;
/** Longest `traceparent` that is read; those of version 00 have 55 characters. */
const TRACEPARENT_CHARS_MAX = 256;
/** A wall clock that was set back by more than this is accepted, in milliseconds. */
const CLOCK_TOLERANCE_MS = 10;
const NO_FIELDS: TraceFields = {};
/** Characters of the names of the attributes that each request has, its kind, and its status. */
const FIXED_CHARS = "engine.kind".length + "http".length + "http.request.method".length +
  "http.route".length + "url.path".length + "http.response.status_code".length + 8 +
  "http.function_id".length;

/** Trace fields that the calls of a request carry. */
export interface TraceFields {
  readonly traceparent?: string;
  readonly baggage?: string;
}

/** A request when its route is known. */
export interface RequestStart {
  readonly method: string;
  /** Path of the request, without its query. */
  readonly path: string;
  readonly target: RequestTarget;
  readonly headers: Readonly<Record<string, string>>;
  /** On the clock. */
  readonly startedAt: number;
}

/** The part of a route that its spans describe. */
export interface RequestTarget {
  /** See {@linkcode operationOf}. */
  readonly operation: string;
  readonly function_id: string;
  readonly config: Pick<HttpTriggerConfig, "api_path">;
}

/** Name of the spans of a route, such as `GET /orders/:id`. */
export function operationOf({ http_method, api_path }: HttpTriggerConfig): string {
  return `${http_method} ${api_path.startsWith("/") ? "" : "/"}${api_path}`;
}

/** Begins the spans of requests. */
export class RequestSpans {
  readonly #spans: RequestSpanSink;
  readonly #clock: Clock;
  /** The clock's wall() at now() 0; both are whole milliseconds, so the largest value is exact. */
  #epoch = -Infinity;

  constructor(spans: RequestSpanSink, clock: Clock) {
    this.#spans = spans;
    this.#clock = clock;
  }

  /** Opens the span of a request that has a route. */
  begin(start: RequestStart): RequestSpan {
    const { traceparent = null } = start.headers;
    // The span keeps its parent as it came, so one that is too long is ignored.
    const isUsable = traceparent !== null && traceparent.length <= TRACEPARENT_CHARS_MAX;
    const parent = isUsable ? traceparent : null;
    return new RequestSpan(this, start, parent, this.#spans.open(parent, start.target.operation));
  }

  /** Records a request that ends now. */
  record(
    start: RequestStart,
    traceparent: string,
    parent: string | null,
    status: number,
    code: string | undefined,
  ): void {
    const now = this.#clock.now();
    const outcome = { epoch: this.#epochAt(now), now, status, code };
    this.#spans.record(new EndedRequest(start, traceparent, parent, outcome));
  }

  #epochAt(now: number): number {
    const epoch = this.#clock.wall() - now;
    if (epoch > this.#epoch || epoch < this.#epoch - CLOCK_TOLERANCE_MS) this.#epoch = epoch;
    return this.#epoch;
  }
}

/**
 * A request as the recorder keeps it: one small object whose attributes are computed on demand,
 * because thousands are kept and most are never read.
 */
class EndedRequest implements EndedSpan {
  readonly traceparent: string;
  readonly parent: string | null;
  readonly service = "engine-http";
  readonly start_ms: number;
  readonly end_ms: number;
  readonly name: string;
  readonly #route: string;
  readonly #function_id: string;
  readonly #method: string;
  readonly #path: string;
  readonly #status: number;
  readonly #code: string | undefined;

  constructor(
    { method, path, target, startedAt }: RequestStart,
    traceparent: string,
    parent: string | null,
    outcome: { epoch: number; now: number; status: number; code: string | undefined },
  ) {
    this.traceparent = traceparent;
    this.parent = parent;
    this.start_ms = outcome.epoch + startedAt;
    this.end_ms = outcome.epoch + outcome.now;
    this.name = target.operation;
    this.#route = target.config.api_path;
    this.#function_id = target.function_id;
    this.#method = method;
    this.#path = ` ${path}`.slice(1); // A copy: as a part of the URL it would keep all of that.
    this.#status = outcome.status;
    this.#code = outcome.code;
  }

  get error(): string | null {
    return this.#status >= 500 ? `HTTP ${this.#status}` : null;
  }

  get attributes(): Record<string, string | number> {
    const attributes: Record<string, string | number> = {
      "engine.kind": "http",
      "http.request.method": this.#method,
      "http.route": this.#route,
      "url.path": this.#path,
      "http.response.status_code": this.#status,
      "http.function_id": this.#function_id,
    };
    if (this.#code !== undefined) attributes["engine.error_code"] = this.#code;
    return attributes;
  }

  get attributeCount(): number {
    return this.#code === undefined ? 6 : 7;
  }

  get attributeChars(): number {
    const texts = this.#method.length + this.#route.length + this.#path.length +
      this.#function_id.length;
    const code = this.#code === undefined ? 0 : "engine.error_code".length + this.#code.length;
    return FIXED_CHARS + texts + code;
  }
}

/** The span of one request. */
export class RequestSpan {
  /** For the calls of the request. */
  readonly fields: TraceFields;
  /** Code of the error that ended the request, once there is one. */
  errorCode: string | undefined;
  readonly #spans: RequestSpans;
  readonly #start: RequestStart;
  readonly #parent: string | null;
  /** `null` when the request is no span of its own. */
  readonly #traceparent: string | null;

  constructor(
    spans: RequestSpans,
    start: RequestStart,
    parent: string | null,
    traceparent: string | null,
  ) {
    this.#spans = spans;
    this.#start = start;
    this.#parent = parent;
    this.fields = fieldsOf(traceparent, start.headers.baggage);
    // Where tracing is off, the client's own value is sent back unchanged.
    this.#traceparent = traceparent === parent ? null : traceparent;
  }

  /** The trace, for the log; `undefined` when there is none. */
  get trace_id(): string | undefined {
    return this.fields.traceparent?.slice(3, 35);
  }

  /** Ends the span and returns the reply with its `traceparent`. */
  end(reply: Reply): Reply {
    const traceparent = this.#traceparent;
    if (traceparent === null) return reply;
    const { status, headers } = reply;
    if (looksSampled(traceparent)) {
      this.#spans.record(this.#start, traceparent, this.#parent, status, this.errorCode);
    }
    if (headers.some(([name]) => name === "traceparent")) return reply; // The handler's own.
    return { ...reply, headers: [...headers, ["traceparent", traceparent]] };
  }
}

function fieldsOf(traceparent: string | null, baggage: string | undefined): TraceFields {
  const isUsable = baggage !== undefined && baggage.length <= BAGGAGE_CHARS_MAX;
  if (traceparent === null) return isUsable ? { baggage } : NO_FIELDS;
  return isUsable ? { traceparent, baggage } : { traceparent };
}
