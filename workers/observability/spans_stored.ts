/**
 * One shape for all spans: calls that the router saw, what built-in workers did, and what workers
 * sent as OTLP.
 *
 * @module
 */
import type { Json } from "../../sdk/typescript/protocol.ts";

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
  /** Function id of a call, `execute <function id>` of a handler, `GET /orders/:id` of a request. */
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
   * collected while somebody listens. Call the result to stop.
   */
  listen(listener: (spans: readonly StoredSpan[]) => void): () => void;
}
