/**
 * The spans of one trace, read from the store's format (PROTOCOL 5.8) and ordered as a tree.
 *
 * Workers in any language make spans, so reading never fails: missing members become empty. The
 * rows are one flat list in which each row precedes its descendants; so a collapsed row skips its
 * `descendants`, and a hundred thousand rows need no recursion. The SDK's span of a handler
 * (`execute <function>`) is no row: it becomes part of the row of its call.
 *
 * @module
 */
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { type Attributes, attributesOf, isObject, msOf, numberOf, textOf } from "../../kit/json.ts";

/** The number of series colours in the style sheet: `--series-1` and so on. */
export const SERVICE_COLOURS = 6;

/** A call, the handler that ran it, or other work. */
type SpanKind = "call" | "handler" | "work";

/** A span. Times are milliseconds since 1970, with fractions. */
export interface TraceSpan {
  readonly id: string;
  readonly trace_id: string;
  /** `null` for the first span of the trace. */
  readonly parentId: string | null;
  readonly name: string;
  /** The name of its worker. */
  readonly service: string;
  /** Name of the other engine that recorded it; `null`: this one did. */
  readonly engine: string | null;
  readonly kind: SpanKind;
  readonly startMs: number;
  /** `null` while it is running. */
  readonly endMs: number | null;
  readonly failed: boolean;
  /** The error code; `null` without one, even if the span failed. */
  readonly errorCode: string | null;
  readonly errorMessage: string | null;
  readonly attributes: Attributes;
}

/** Reads a span; missing members become empty. */
export function readSpan(raw: Json): TraceSpan {
  const span = isObject(raw) ? raw : {};
  const attributes = attributesOf(span.attributes);
  const name = textOf(span.name) || "(without a name)";
  const startMs = msOf(span.start_time_unix_nano);
  const endNano = span.end_time_unix_nano;
  const isPending = span.pending === true || endNano === null || endNano === undefined ||
    Number(endNano) === 0;
  const status = statusOf(span.status);
  const code = textOf(attributes["engine.error_code"]);
  const failed = status.text.includes("error") || code !== "";
  return {
    id: textOf(span.span_id),
    trace_id: textOf(span.trace_id),
    parentId: textOf(span.parent_span_id) || null,
    name,
    service: textOf(span.service_name) || textOf(attributes["engine.worker"]) || "?",
    engine: textOf(span.engine) || null,
    kind: kindOf(name, attributes),
    startMs,
    endMs: isPending ? null : Math.max(msOf(endNano), startMs),
    failed,
    errorCode: failed && code !== "" ? code : null,
    errorMessage: failed ? textOf(span.status_description) || status.message || null : null,
    attributes,
  };
}

/** The duration in milliseconds; until `nowMs` while it is running. */
export function durationOf(span: TraceSpan, nowMs: number): number {
  return Math.max(0, (span.endMs ?? nowMs) - span.startMs);
}

/** The text of an attribute; empty when it is missing. */
export function attributeText(span: TraceSpan, name: string): string {
  return textOf(span.attributes[name]);
}

/** The number of an attribute; 0 when it is missing or no number. */
export function attributeNumber(span: TraceSpan, name: string): number {
  return numberOf(span.attributes[name]);
}

/** The function that was called; `null` for other work. */
export function functionOf(span: TraceSpan): string | null {
  return attributeText(span, "engine.function_id") ||
    attributeText(span, "engine.function.id") || null;
}

function kindOf(name: string, attributes: Attributes): SpanKind {
  const kind = attributes["engine.kind"];
  if (kind === "call" || kind === "handler") return kind;
  return name.startsWith("execute ") ? "handler" : "work";
}

function statusOf(raw: Json | undefined): { text: string; message: string } {
  if (isObject(raw)) return { text: textOf(raw.code).toLowerCase(), message: textOf(raw.message) };
  return { text: textOf(raw).toLowerCase(), message: "" };
}

/** When the handler of a call ran. */
interface HandlerTime {
  /** The id of the handler's span. */
  readonly id: string;
  readonly startMs: number;
  /** `null` while it is running. */
  readonly endMs: number | null;
}

/** A span in the tree. */
export interface SpanRow {
  readonly span: TraceSpan;
  /** 0 for a root. */
  readonly depth: number;
  /** Index of the parent's row; -1 for a root. */
  readonly parent: number;
  readonly children: number;
  /** Rows below it, of all levels, which follow it. */
  readonly descendants: number;
  /** How many of its descendants failed. */
  readonly errorsBelow: number;
  /** `null` when the worker sent no span for it. */
  readonly handler: HandlerTime | null;
}

/** A whole trace. */
export interface SpanTree {
  readonly rows: readonly SpanRow[];
  /** The start of the first span. */
  readonly startMs: number;
  /** The end of the last span; of a running one its start. */
  readonly endMs: number;
  readonly isPending: boolean;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * Orders spans as a tree. Spans without a known parent are roots; of spans with the same id the
 * last one is used; a cycle of parents is broken at its first span.
 */
export function spanTree(spans: readonly TraceSpan[]): SpanTree {
  const byId = new Map<string, TraceSpan>();
  for (const span of spans) {
    if (byId.get(span.id)?.endMs == null || span.endMs !== null) byId.set(span.id, span);
  }
  const handlers = foldHandlers(byId);
  const { roots, childrenOf } = groupByParent(byId);
  const rows: Writable<SpanRow>[] = [];
  const seen = new Set<string>();
  const place = (root: TraceSpan): void => {
    const open: { span: TraceSpan; depth: number; parent: number }[] = [
      { span: root, depth: 0, parent: -1 },
    ];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const { span, depth, parent } = next;
      if (seen.has(span.id)) continue;
      seen.add(span.id);
      const children = childrenOf.get(span.id) ?? [];
      const handler = handlers.get(span.id) ?? null;
      const index = rows.push({
        span,
        depth,
        parent,
        children: children.length,
        descendants: 0,
        errorsBelow: 0,
        handler,
      }) - 1;
      for (let i = children.length - 1; i >= 0; i--) {
        open.push({ span: children[i]!, depth: depth + 1, parent: index });
      }
    }
  };
  for (const root of roots) place(root);
  // The other spans are in cycles: each cycle begins at its first span.
  for (const span of byId.values()) if (!seen.has(span.id)) place(span);
  countBelow(rows);
  return { rows, ...extentOf(rows) };
}

/** Indices of the visible rows while the spans with these ids are collapsed. */
export function visibleRows(tree: SpanTree, closed: ReadonlySet<string>): number[] {
  const visible: number[] = [];
  for (let i = 0; i < tree.rows.length; i++) {
    const { span, descendants } = tree.rows[i]!;
    visible.push(i);
    if (closed.has(span.id)) i += descendants;
  }
  return visible;
}

/** Indices of a row's ancestors, the nearest first. */
export function ancestorsOf(tree: SpanTree, index: number): number[] {
  const found: number[] = [];
  for (let at = tree.rows[index]?.parent ?? -1; at >= 0; at = tree.rows[at]!.parent) found.push(at);
  return found;
}

/** The first span that failed without a failed one below it: where the error came from. */
export function failedRow({ rows }: SpanTree): SpanRow | undefined {
  return rows.find(({ span, errorsBelow }) => span.failed && errorsBelow === 0);
}

/** Indices of the rows whose name or service contains a text, ignoring case; none for no text. */
export function matchingRows(tree: SpanTree, text: string): number[] {
  const word = text.trim().toLowerCase();
  if (word === "") return [];
  return tree.rows.flatMap(({ span }, index) =>
    span.name.toLowerCase().includes(word) || span.service.toLowerCase().includes(word)
      ? [index]
      : []
  );
}

/**
 * The start of each row, but never before that of its parent: the clocks of workers differ, and a
 * cause must precede its effect.
 */
export function startTimes(tree: SpanTree): number[] {
  const starts: number[] = [];
  for (const { span, parent } of tree.rows) {
    starts.push(parent < 0 ? span.startMs : Math.max(span.startMs, starts[parent]!));
  }
  return starts;
}

/** Removes handler spans whose call is known; their children become those of the call. */
function foldHandlers(byId: Map<string, TraceSpan>): Map<string, HandlerTime> {
  const handlers = new Map<string, HandlerTime>();
  const moved = new Map<string, string>();
  for (const span of [...byId.values()]) {
    const call = span.kind === "handler" && span.parentId !== null && byId.get(span.parentId);
    if (!call || call.kind === "handler") continue;
    const called = functionOf(call);
    if (called !== null && span.name !== `execute ${called}`) continue;
    handlers.set(call.id, { id: span.id, startMs: span.startMs, endMs: span.endMs });
    moved.set(span.id, call.id);
    byId.delete(span.id);
  }
  if (moved.size === 0) return handlers;
  for (const span of byId.values()) {
    const parentId = span.parentId === null ? undefined : moved.get(span.parentId);
    if (parentId !== undefined) byId.set(span.id, { ...span, parentId });
  }
  return handlers;
}

function groupByParent(byId: ReadonlyMap<string, TraceSpan>): {
  roots: TraceSpan[];
  childrenOf: Map<string, TraceSpan[]>;
} {
  const roots: TraceSpan[] = [];
  const childrenOf = new Map<string, TraceSpan[]>();
  const sorted = [...byId.values()].sort((a, b) => a.startMs - b.startMs);
  for (const span of sorted) {
    if (span.parentId === null || span.parentId === span.id || !byId.has(span.parentId)) {
      roots.push(span);
      continue;
    }
    const siblings = childrenOf.get(span.parentId);
    if (siblings === undefined) childrenOf.set(span.parentId, [span]);
    else siblings.push(span);
  }
  return { roots, childrenOf };
}

/** Counts in reverse order, so that children are complete before their parent. */
function countBelow(rows: Writable<SpanRow>[]): void {
  for (let i = rows.length - 1; i >= 0; i--) {
    const row = rows[i]!;
    const above = rows[row.parent];
    if (above === undefined) continue;
    above.descendants += row.descendants + 1;
    above.errorsBelow += row.errorsBelow + (row.span.failed ? 1 : 0);
  }
}

function extentOf(rows: readonly SpanRow[]): Omit<SpanTree, "rows"> {
  let startMs = Infinity;
  let endMs = -Infinity;
  let isPending = false;
  for (const { span } of rows) {
    startMs = Math.min(startMs, span.startMs);
    endMs = Math.max(endMs, span.endMs ?? span.startMs);
    if (span.endMs === null) isPending = true;
  }
  return rows.length === 0 ? { startMs: 0, endMs: 0, isPending } : { startMs, endMs, isPending };
}

/** The number of each service's colour, from 1, in the order of appearance. */
export function serviceColours(tree: SpanTree): ReadonlyMap<string, number> {
  const colours = new Map<string, number>();
  for (const { span } of tree.rows) {
    if (!colours.has(span.service)) {
      colours.set(span.service, colours.size % SERVICE_COLOURS + 1);
    }
  }
  return colours;
}
