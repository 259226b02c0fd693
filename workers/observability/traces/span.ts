/**
 * Spans: one form for calls recorded by the router, work of built-in workers, and OTLP spans.
 *
 * {@linkcode StoredSpan} is the full form, {@linkcode SpanSummary} the part that lists and maps
 * need of tens of thousands of spans.
 *
 * @module
 */
import type { CallSpan, EndedSpan } from "../../../engine/ports/telemetry.ts";
import { readTraceparent } from "../../../sdk/typescript/trace_context.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { Redactor } from "../redact.ts";

/** A name and its value; names do not repeat. */
export type SpanAttribute = readonly [name: string, value: Json];

/** A span of any origin. Times are milliseconds since 1970, with fractions. */
export interface StoredSpan {
  /** 32 hexadecimal digits. */
  readonly trace_id: string;
  /** 16 hexadecimal digits. */
  readonly span_id: string;
  /** `null`: a root span. */
  readonly parent_span_id: string | null;
  /** Id of the called function, `execute <id>` of its handler, `GET /orders/:id`. */
  readonly name: string;
  /** Name of the worker that ran it; `engine` if no worker did. */
  readonly service_name: string;
  readonly start_ms: number;
  /** `null` while it runs. */
  readonly end_ms: number | null;
  readonly status: "ok" | "error" | "unset";
  readonly status_description: string | null;
  /** `engine.request` and `engine.response` are redacted JSON text. */
  readonly attributes: readonly SpanAttribute[];
  /** As OTLP writes them. */
  readonly events: readonly Json[];
  readonly links: readonly Json[];
  /** Instrumentation library; `null`: the engine. */
  readonly scope_name: string | null;
  readonly scope_version: string | null;
}

/** Delivers ended spans of all origins. */
export interface SpanFeed {
  /**
   * Calls the listener with batches of ended spans, within a second of their end; it must not
   * throw. Call the result to stop.
   *
   * Calls are collected only while there is a listener, by default without payloads.
   */
  listen(
    listener: (spans: readonly StoredSpan[]) => void,
    withPayloads?: boolean,
  ): () => void;
}

/** Values of the attribute `engine.kind`. */
export type SpanKind = "call" | "http" | "handler" | "work";

/** Attributes that only operators may see. */
const PAYLOADS: ReadonlySet<string> = new Set(["engine.request", "engine.response"]);

/** Whether queries may filter by an attribute: a match on a payload would disclose its content. */
export function isSearchable(attribute: string): boolean {
  return !PAYLOADS.has(attribute);
}

/** The value of an attribute, if present. */
export function attributeOf(span: StoredSpan, name: string): Json | undefined {
  return span.attributes.find(([own]) => own === name)?.[1];
}

/** The value of an attribute, if present and text. */
export function attributeText(span: StoredSpan, name: string): string | undefined {
  const value = attributeOf(span, name);
  return typeof value === "string" ? value : undefined;
}

/** Milliseconds from start to end, or to `nowMs` while the span runs. */
export function durationOf(span: StoredSpan, nowMs: number): number {
  return Math.max(0, (span.end_ms ?? nowMs) - span.start_ms);
}

/** A span as PROTOCOL 5.8 specifies it. Nanoseconds are numbers, exact to a quarter microsecond. */
export function wireSpan(span: StoredSpan, withPayloads: boolean): JsonObject {
  const { trace_id, span_id, parent_span_id, name, start_ms, end_ms } = span;
  const attributes = withPayloads
    ? span.attributes
    : span.attributes.filter(([name]) => !PAYLOADS.has(name));
  return {
    trace_id,
    span_id,
    parent_span_id,
    name,
    start_time_unix_nano: nanosOf(start_ms),
    end_time_unix_nano: end_ms === null ? null : nanosOf(end_ms),
    status: span.status,
    ...span.status_description !== null && { status_description: span.status_description },
    attributes: attributes.map(([name, value]) => [name, value]),
    service_name: span.service_name,
    events: [...span.events],
    links: [...span.links],
    ...span.scope_name !== null && { instrumentation_scope_name: span.scope_name },
    ...span.scope_version !== null && { instrumentation_scope_version: span.scope_version },
    flags: 1, // Only sampled spans are stored.
    ...end_ms === null && { pending: true },
  };
}

/** Converts milliseconds since 1970 to nanoseconds. */
function nanosOf(ms: number): number {
  return Math.round(ms * 1e3) * 1e3;
}

/** The members of a span that lists and maps need; cheap to create. */
export interface SpanSummary {
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent_span_id: string | null;
  readonly kind: SpanKind;
  readonly name: string;
  readonly service_name: string;
  readonly start_ms: number;
  readonly end_ms: number | null;
  readonly failed: boolean;
  readonly error_code: string | null;
  readonly namespace: string;
  /** The function that was called, if any. */
  readonly function_id: string | null;
  /** Name of the caller; `null`: not a call. */
  readonly caller: string | null;
  /** Name of the worker that ran it; `null`: none. */
  readonly worker: string | null;
  /** Status of the response; `null`: not an HTTP request. */
  readonly http_status: number | null;
}

/** The summary of a call. */
export function summaryOfCall(call: CallSpan): SpanSummary {
  const { trace_id, span_id, parent_span_id, function_id, namespace, error_code } = call;
  const worker = call.callee?.name ?? null;
  return {
    trace_id,
    span_id,
    parent_span_id,
    kind: "call",
    name: function_id,
    service_name: worker ?? "engine",
    start_ms: call.start_ms,
    end_ms: call.end_ms,
    failed: error_code !== null,
    error_code,
    namespace,
    function_id,
    caller: call.caller.name,
    worker,
    http_status: null,
  };
}

/** The summary of any other span. */
export function summaryOfSpan(span: StoredSpan): SpanSummary {
  const { trace_id, span_id, parent_span_id, name, service_name, start_ms, end_ms, status } = span;
  const failed = status === "error";
  const text = (attribute: string): string | null => attributeText(span, attribute) ?? null;
  const status_code = attributeOf(span, "http.response.status_code");
  return {
    trace_id,
    span_id,
    parent_span_id,
    kind: (text("engine.kind") ?? "work") as SpanKind,
    name,
    service_name,
    start_ms,
    end_ms,
    failed,
    error_code: text("engine.error_code") ?? (failed ? "error" : null),
    namespace: text("engine.namespace") ?? "default",
    function_id: text("engine.function_id"),
    caller: text("engine.caller"),
    worker: text("engine.worker"),
    http_status: typeof status_code === "number" ? status_code : null,
  };
}

/** What each of these spans has besides the attributes of its worker. */
const OWN_ATTRIBUTE = "engine.worker";
/** The form in which the engine writes `traceparent`. */
const OWN_TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
/** The span of a call, with redacted payloads if a redactor is given. */
export function spanOfCall(call: CallSpan, redactor: Redactor | null): StoredSpan {
  return {
    trace_id: call.trace_id,
    span_id: call.span_id,
    parent_span_id: call.parent_span_id,
    name: call.function_id,
    service_name: call.callee?.name ?? "engine",
    start_ms: call.start_ms,
    end_ms: call.end_ms,
    status: call.error_code !== null ? "error" : call.end_ms === null ? "unset" : "ok",
    status_description: call.error_message,
    attributes: attributesOf(call, redactor),
    events: [],
    links: [],
    scope_name: null,
    scope_version: null,
  };
}

/** The span of a built-in worker's work; `undefined` if the engine did not write its trace. */
export function spanOfWork(ended: EndedSpan, redactor: Redactor): WorkSpan | undefined {
  return OWN_TRACEPARENT.test(ended.traceparent) ? new WorkSpan(ended, redactor) : undefined;
}

/**
 * Work of a built-in worker, such as an HTTP request.
 *
 * Most of these spans are dropped without being read, so members are computed on access.
 */
export class WorkSpan implements StoredSpan {
  readonly #ended: EndedSpan;
  readonly #redactor: Redactor;
  #attributes: readonly SpanAttribute[] | undefined;

  constructor(ended: EndedSpan, redactor: Redactor) {
    this.#ended = ended;
    this.#redactor = redactor;
  }

  get trace_id(): string {
    return this.#ended.traceparent.slice(3, 35);
  }

  get span_id(): string {
    return this.#ended.traceparent.slice(36, 52);
  }

  get parent_span_id(): string | null {
    const { parent } = this.#ended;
    const above = parent === null ? undefined : readTraceparent(parent);
    return above?.trace_id === this.trace_id ? above.span_id : null;
  }

  get name(): string {
    return this.#ended.name;
  }

  get service_name(): string {
    return this.#ended.service;
  }

  get start_ms(): number {
    return this.#ended.start_ms;
  }

  get end_ms(): number {
    return this.#ended.end_ms;
  }

  get status(): "ok" | "error" {
    return this.#ended.error === null ? "ok" : "error";
  }

  get status_description(): string | null {
    return this.#ended.error;
  }

  get attributes(): readonly SpanAttribute[] {
    return this.#attributes ??= attributesOfWork(this.#ended, this.#redactor);
  }

  get events(): readonly [] {
    return [];
  }

  get links(): readonly [] {
    return [];
  }

  get scope_name(): null {
    return null;
  }

  get scope_version(): null {
    return null;
  }

  /** Number of characters and attributes, from which `ring.ts` estimates its memory. */
  get size(): { readonly chars: number; readonly attributes: number } {
    const { name, error, service, attributeCount } = this.#ended;
    let chars = name.length + (error?.length ?? 0);
    if (attributeCount !== undefined) {
      chars += this.#ended.attributeChars! + OWN_ATTRIBUTE.length + service.length;
      return { chars, attributes: attributeCount + 1 };
    }
    const { attributes } = this.#ended;
    let count = 0;
    const names = Object.keys(attributes);
    for (const own of names) {
      const value = attributes[own]!;
      chars += own.length + (typeof value === "string" ? value.length : 8);
      count++;
    }
    const worker = OWN_ATTRIBUTE.length + service.length;
    return { chars: chars + worker, attributes: count + 1 };
  }

  /** The plain form, for the disk. */
  toJSON(): StoredSpan {
    const { trace_id, span_id, parent_span_id, name, service_name, start_ms, end_ms } = this;
    const { status, status_description, attributes, events, links } = this;
    return {
      trace_id,
      span_id,
      parent_span_id,
      name,
      service_name,
      start_ms,
      end_ms,
      status,
      status_description,
      attributes,
      events,
      links,
      scope_name: null,
      scope_version: null,
    };
  }
}

function attributesOfWork({ attributes: own, service }: EndedSpan, redactor: Redactor) {
  const attributes: SpanAttribute[] = Object.entries(own)
    .map(([name, value]) => [name, redactor.hits(name) ? "[redacted]" : value]);
  if (own["engine.kind"] === undefined) attributes.unshift(["engine.kind", "work"]);
  if (own["engine.worker"] === undefined) attributes.push(["engine.worker", service]);
  return attributes;
}

function attributesOf(call: CallSpan, redactor: Redactor | null): SpanAttribute[] {
  const { caller, callee, sent_ms, start_ms } = call;
  const attributes: [name: string, value: Json | undefined][] = [
    ["engine.kind", "call"],
    ["engine.function_id", call.function_id],
    ["engine.namespace", call.namespace],
    ["engine.invocation_id", call.invocation_id || undefined],
    ["engine.caller_invocation_id", call.caller_invocation_id ?? undefined],
    ["engine.caller", caller.name],
    ["engine.caller_id", caller.worker_id],
    ["engine.worker", callee?.name],
    ["engine.worker_id", callee?.worker_id],
    ["engine.queued_ms", sent_ms === null ? undefined : Math.max(0, sent_ms - start_ms)],
    ["engine.timeout_ms", call.timeout_ms],
    ["engine.error_code", call.error_code ?? undefined],
    ["engine.ended_by", call.ended_by ?? undefined],
    ["engine.request_chars", call.request_chars ?? undefined],
    ["engine.response_chars", call.response_chars ?? undefined],
    ["engine.baggage", call.baggage ?? undefined],
    ["engine.replicas", call.candidates?.map((candidate) => ({ ...candidate }))],
  ];
  if (redactor && !isSecret(call.function_id)) {
    attributes.push(["engine.request", textOf(call.request, redactor)]);
    attributes.push(["engine.response", textOf(call.response, redactor)]);
    attributes.push(["exception.stacktrace", call.stacktrace ?? undefined]);
  }
  return attributes.filter((pair): pair is [string, Json] => pair[1] !== undefined);
}

/** Values of configurations may be secrets, whatever their names are. */
function isSecret(function_id: string): boolean {
  return function_id.startsWith("configuration::");
}

function textOf(json: string | null, redactor: Redactor): string | undefined {
  return json === null ? undefined : redactor.text(json) ?? undefined;
}
