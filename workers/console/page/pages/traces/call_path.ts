/**
 * A trace as a sequence of calls and answers between its workers.
 *
 * Only calls that passed through the engine are included, because its clock alone gives all of them
 * one order. Work inside of a worker is in the waterfall only.
 *
 * @module
 */
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  attributeNumber,
  attributeText,
  type SpanTree,
  startTimes,
  type TraceSpan,
} from "./span_tree.ts";

/** The participant that stands for callers outside of the engine. */
export const OUTSIDE = "outside";

/** A call or its answer. */
export interface PathStep {
  /** Index of its span's row in the tree. */
  readonly row: number;
  readonly type: "call" | "answer";
  /** Indices in {@linkcode CallPath.participants}. */
  readonly from: number;
  readonly to: number;
  readonly label: string;
  /** Milliseconds since the trace began. */
  readonly atMs: number;
  /** How long the caller waited; `null` for calls. */
  readonly tookMs: number | null;
  /** Milliseconds before a worker took the call; 0 for answers. */
  readonly queuedMs: number;
  readonly failed: boolean;
  readonly errorCode: string | null;
  readonly errorMessage: string | null;
  /** The recorded JSON text, see {@linkcode readPayload}; empty when there is none. */
  readonly payload: string;
}

/** A recorded payload. */
export type RecordedPayload =
  | { readonly type: "json"; readonly value: Json }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "missing" };

/** A whole sequence. */
interface CallPath {
  /** Names of callers and workers, in the order of their first step. */
  readonly participants: readonly string[];
  readonly steps: readonly PathStep[];
}

/** The calls and answers of a trace, in the order in which the engine saw them. */
export function callPath(tree: SpanTree): CallPath {
  const participants = new Map<string, number>();
  const indexOf = (name: string): number => {
    const known = participants.get(name);
    if (known !== undefined) return known;
    participants.set(name, participants.size);
    return participants.size - 1;
  };
  const steps: (PathStep & { readonly order: number })[] = [];
  const starts = startTimes(tree);
  tree.rows.forEach(({ span, parent, descendants }, row) => {
    const ends = endsOf(span, parent);
    if (ends === null) return;
    const shared = {
      row,
      label: span.name,
      failed: span.failed,
      errorCode: span.errorCode,
      errorMessage: span.errorMessage,
    };
    const from = indexOf(ends.from);
    const to = indexOf(ends.to);
    steps.push({
      ...shared,
      type: "call",
      from,
      to,
      atMs: starts[row]! - tree.startMs,
      tookMs: null,
      queuedMs: attributeNumber(span, "engine.queued_ms"),
      payload: attributeText(span, "engine.request"),
      order: row,
    });
    if (span.endMs === null) return;
    steps.push({
      ...shared,
      type: "answer",
      from: to,
      to: from,
      atMs: Math.max(span.endMs, starts[row]!) - tree.startMs,
      tookMs: span.endMs - span.startMs,
      queuedMs: 0,
      payload: attributeText(span, "engine.response"),
      // Of calls that end at the same time, the inner ones end first.
      order: row + descendants + 0.5 - row / (tree.rows.length + 1) / 2,
    });
  });
  steps.sort((a, b) => a.atMs - b.atMs || a.order - b.order);
  return {
    participants: [...participants.keys()],
    steps: steps.map(({ order: _, ...step }) => step),
  };
}

/** Reads a recorded payload; one that is no JSON, such as a truncated one, stays text. */
export function readPayload(text: string): RecordedPayload {
  if (text === "") return { type: "missing" };
  try {
    return { type: "json", value: JSON.parse(text) as Json };
  } catch {
    return { type: "text", text };
  }
}

/** Caller and callee; `null` for work within a worker. */
function endsOf(span: TraceSpan, parent: number): { from: string; to: string } | null {
  if (span.kind === "call") {
    return { from: attributeText(span, "engine.caller") || OUTSIDE, to: span.service };
  }
  const isRequest = parent < 0 && /^[A-Z]+ \//.test(span.name);
  return isRequest ? { from: OUTSIDE, to: span.service } : null;
}
