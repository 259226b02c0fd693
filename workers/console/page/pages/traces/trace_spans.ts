/**
 * The spans of one trace, read in parts and read anew while it grows.
 *
 * @module
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { TRACE_BATCH_MS } from "./trace_summary.ts";
import type { JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";
import { type CallFailure, type Live, useShell, useTrigger } from "../../kit/mod.ts";
import { type SpanTree, spanTree } from "./span_tree.ts";
import { numberOf, objectOf } from "../../kit/stored_json.ts";
import { readSpan, type TraceSpan } from "./trace_span.ts";

/** Spans fetched at once. */
const PAGE_SPANS = 1_000;
/** Spans of one trace that the page holds. */
const SPANS_MAX = 200_000;
/** A growing trace is read again after this many times the time that reading took. */
const REREAD_FACTOR = 10;

/** What is known of a trace. */
export interface TraceSpans {
  readonly status: "loading" | "ready" | "failed";
  readonly tree: SpanTree;
  /** Spans as they came, those of handlers too. */
  readonly spans: readonly TraceSpan[];
  /** Spans that the engine has; more than are shown when there are too many. */
  readonly total: number;
  readonly error: CallFailure | null;
  readonly retry: () => void;
}

interface Read {
  readonly status: TraceSpans["status"];
  readonly spans: readonly TraceSpan[];
  readonly total: number;
  readonly error: CallFailure | null;
}

/** Reads a trace and follows it. */
export function useTraceSpans(trace_id: string): TraceSpans {
  const { live } = useShell();
  const [read, setRead] = useState<Read>({ status: "loading", spans: [], total: 0, error: null });
  const reading = useRef<{ again: boolean } | null>(null);
  const gone = useRef(new AbortController());
  const readAll = () => {
    if (reading.current !== null) {
      reading.current.again = true;
      return;
    }
    const mine = reading.current = { again: false };
    const began = performance.now();
    readSpans(live, trace_id, gone.current.signal)
      .then((all) => setRead({ status: "ready", ...all, error: null }))
      .catch((error: CallFailure) => {
        if (!gone.current.signal.aborted) setRead((was) => ({ ...was, status: "failed", error }));
      })
      .finally(() => {
        // A large trace is not read without pause for as long as it grows.
        const pauseMs = (performance.now() - began) * REREAD_FACTOR;
        setTimeout(() => {
          reading.current = null;
          if (mine.again && !gone.current.signal.aborted) readAll();
        }, pauseMs);
      });
  };
  useEffect(() => {
    const leaving = gone.current = new AbortController();
    readAll();
    return () => leaving.abort();
  }, [trace_id]);
  const isBack = live.connection.value.engine === true;
  const wasBack = useRef(isBack);
  useEffect(() => {
    if (isBack && !wasBack.current) readAll();
    wasBack.current = isBack;
  }, [isBack]);
  useTrigger<JsonObject>(
    { type: "trace", config: { batch_ms: TRACE_BATCH_MS } },
    ({ trace_ids }) => {
      if (Array.isArray(trace_ids) && trace_ids.includes(trace_id)) readAll();
    },
    readAll,
  );
  const tree = useMemo(() => spanTree(read.spans), [read.spans]);
  return { ...read, tree, retry: readAll };
}

async function readSpans(
  live: Live,
  trace_id: string,
  signal: AbortSignal,
): Promise<{ spans: TraceSpan[]; total: number }> {
  const spans: TraceSpan[] = [];
  for (let total = Infinity; spans.length < Math.min(total, SPANS_MAX);) {
    const answer = objectOf(
      await live.call("engine::traces::list", {
        trace_id,
        limit: PAGE_SPANS,
        offset: spans.length,
        include_internal: true,
      }, { signal }),
    );
    const part = Array.isArray(answer.spans) ? answer.spans : [];
    for (const span of part) spans.push(readSpan(span));
    total = numberOf(answer.total, spans.length);
    if (part.length === 0) return { spans, total: spans.length };
    if (spans.length >= total) return { spans, total };
  }
  return { spans, total: SPANS_MAX };
}
