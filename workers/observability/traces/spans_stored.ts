/**
 * One shape for all spans: calls that the router saw, what built-in workers did, and what workers
 * sent as OTLP.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";

/** A name and its value; names do not repeat. */
export type SpanAttribute = readonly [name: string, value: Json];

/** A span of any origin. Times are milliseconds since 1970, with fractions. */
export interface StoredSpan {
  /** 32 hexadecimal digits. */
  readonly trace_id: string;
  /** 16 hexadecimal digits. */
  readonly span_id: string;
  /** `null`: it began the trace. */
  readonly parent_span_id: string | null;
  /** Id of a function that was called, `execute <id>` of its handler, `GET /orders/:id`. */
  readonly name: string;
  /** Name of the worker that did it; `engine` when nobody did. */
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
  /** Library that made the span; `null`: the engine. */
  readonly scope_name: string | null;
  readonly scope_version: string | null;
}

/** Spans that ended, of all origins, as they become known. */
export interface SpanFeed {
  /**
   * Hears of heaps of ended spans, within a second of their end; must not throw. Calls are only
   * collected while somebody listens, and are without their payloads unless those are asked for.
   * Call the result to stop.
   */
  listen(
    listener: (spans: readonly StoredSpan[]) => void,
    withPayloads?: boolean,
  ): () => void;
}

/** What a span tells of; the value of its attribute `engine.kind`. */
export type SpanKind = "call" | "http" | "handler" | "work";

/** Attributes that only operators may see: what was sent and what came back. */
const PAYLOADS: ReadonlySet<string> = new Set(["engine.request", "engine.response"]);

/**
 * Whether spans can be looked for by an attribute. Not by what only operators see: who asks whether
 * there is a span with such a payload would learn what is in it.
 */
export function isSearchable(attribute: string): boolean {
  return !PAYLOADS.has(attribute);
}

/** The value of an attribute; `undefined` when there is none. */
export function attributeOf(span: StoredSpan, name: string): Json | undefined {
  return span.attributes.find(([own]) => own === name)?.[1];
}

/** The text of an attribute; `undefined` when there is none, or no text. */
export function attributeText(span: StoredSpan, name: string): string | undefined {
  const value = attributeOf(span, name);
  return typeof value === "string" ? value : undefined;
}

/** Milliseconds from start to end; to `nowMs` while it runs. */
export function durationOf(span: StoredSpan, nowMs: number): number {
  return Math.max(0, (span.end_ms ?? nowMs) - span.start_ms);
}

/** A span as PROTOCOL 5.8 has it. Nanoseconds are numbers, exact to a quarter of a microsecond. */
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
    flags: 1, // Only sampled spans are kept.
    ...end_ms === null && { pending: true },
  };
}

/** Nanoseconds since 1970 of milliseconds with fractions. */
export function nanosOf(ms: number): number {
  return Math.round(ms * 1e3) * 1e3;
}
