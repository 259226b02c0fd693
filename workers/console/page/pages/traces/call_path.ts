/**
 * A trace as what its workers said to each other: who called whom with what, and what came back.
 *
 * Only what passed through the engine counts, since its clock alone gives all of it one order. Work
 * inside of a worker belongs to the waterfall.
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

/** One message. */
export interface PathStep {
  /** Place of its span's row in the tree. */
  readonly row: number;
  readonly type: "call" | "answer";
  /** Places in {@linkcode CallPath.parties}. */
  readonly from: number;
  readonly to: number;
  readonly label: string;
  /** Milliseconds since the trace began. */
  readonly atMs: number;
  /** How long the caller waited; of answers only. */
  readonly tookMs: number | null;
  /** Milliseconds before a worker took it; of calls only. */
  readonly queuedMs: number;
  readonly failed: boolean;
  readonly errorCode: string | null;
  readonly errorMessage: string | null;
  /** JSON text as it was kept, for {@linkcode keptPayload}; empty when it was not. */
  readonly payload: string;
}

/** What passed: its value, or why it cannot be shown. */
export type KeptPayload =
  | { readonly type: "json"; readonly value: Json }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "missing" };

/** All of it. */
export interface CallPath {
  /** Names of those who spoke, in the order in which they first did. */
  readonly parties: readonly string[];
  readonly steps: readonly PathStep[];
}

/** What a request from outside is called as a party. */
export const OUTSIDE = "outside";

/** The messages of a trace, in the order in which the engine saw them. */
export function callPath(tree: SpanTree): CallPath {
  const parties = new Map<string, number>();
  const party = (name: string): number => {
    const known = parties.get(name);
    if (known !== undefined) return known;
    parties.set(name, parties.size);
    return parties.size - 1;
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
    const from = party(ends.from);
    const to = party(ends.to);
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
      // At the same time, what is below ends first.
      order: row + descendants + 0.5 - row / (tree.rows.length + 1) / 2,
    });
  });
  steps.sort((a, b) => a.atMs - b.atMs || a.order - b.order);
  return { parties: [...parties.keys()], steps: steps.map(({ order: _, ...step }) => step) };
}

/** Reads a payload that was kept; one that is no JSON (cut off, say) stays text. */
export function keptPayload(text: string): KeptPayload {
  if (text === "") return { type: "missing" };
  try {
    return { type: "json", value: JSON.parse(text) as Json };
  } catch {
    return { type: "text", text };
  }
}

/** Who spoke to whom; `null` for work within a worker. */
function endsOf(span: TraceSpan, parent: number): { from: string; to: string } | null {
  if (span.kind === "call") {
    return { from: attributeText(span, "engine.caller") || OUTSIDE, to: span.service };
  }
  const isRequest = parent < 0 && /^[A-Z]+ \//.test(span.name);
  return isRequest ? { from: OUTSIDE, to: span.service } : null;
}
