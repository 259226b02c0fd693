/**
 * Answers `engine::traces::{list,tree,group_by,map}`: matching spans, one trace as a tree, groups
 * of spans, and the graph of callers, functions and workers.
 *
 * A query searches the newest `TRACE_SCAN_MAX` spans; `sampled` in a map says whether calls may be
 * missing.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import * as v from "../../kit/schema.ts";
import type { Search, Turn } from "../turns.ts";
import { bytesOf } from "./ring.ts";
import { newestFirst, type ScanFilter, sortInTurn } from "./scan.ts";
import {
  attributeOf,
  durationOf,
  isSearchable,
  type SpanSummary,
  type StoredSpan,
  wireSpan,
} from "./span.ts";
import type { SpanStore } from "./store.ts";

/** Default number of spans or traces in one answer. */
export const TRACE_LIST_LIMIT = 100;
/** Spans or traces in one answer. */
export const TRACE_LIST_LIMIT_MAX = 1_000;
/** Spans that one query searches: the newest. */
export const TRACE_SCAN_MAX = 20_000;
/** Estimated memory of what one answer shows. */
export const TRACE_PAGE_BYTES_MAX = 8 * 1024 * 1024;
/** Traces that a list looks up among all spans; for more, it searches the newest spans. */
const TRACE_LOOKUPS_MAX = 20;

/** Attributes in a filter. */
const TRACE_ATTRIBUTE_FILTERS_MAX = 20;
/** Longest text of a filter. */
export const TRACE_TEXT_CHARS_MAX = 1_024;

const Text = v.opt(v.text(0, TRACE_TEXT_CHARS_MAX));
const Limit = v.opt(v.int(1, TRACE_LIST_LIMIT_MAX));
const Attribute = v.pipe(v.text(1), v.check(isSearchable, "payloads cannot be searched"));
const Pairs = v.opt(v.list(v.tuple([Attribute, v.unknown()]), TRACE_ATTRIBUTE_FILTERS_MAX));

/** Payload of `engine::traces::list`; empty: the oldest spans. */
export const ListRequest = v.nullish(
  v.object({
    trace_id: v.opt(v.string()),
    trace_ids: v.opt(v.list(v.string(), 1_000)),
    offset: v.opt(v.int(0)),
    limit: Limit,
    service_name: Text,
    name: Text,
    status: Text,
    min_duration_ms: v.opt(v.number()),
    max_duration_ms: v.opt(v.number()),
    start_time: v.opt(v.number()),
    end_time: v.opt(v.number()),
    sort_by: v.opt(v.picklist(["start_time", "duration", "service_name", "name"])),
    sort_order: v.opt(v.picklist(["asc", "desc"])),
    attributes: Pairs,
    exclude_attributes: Pairs,
    include_internal: v.opt(v.boolean()),
    /** Only what this engine recorded. */
    local: v.opt(v.boolean()),
  }),
  {},
);

/** A parsed {@linkcode ListRequest}. */
export type ListQuery = v.InferOutput<typeof ListRequest>;

/** Payload of `engine::traces::tree`. */
export const TreeRequest = v.object({ trace_id: v.string(), local: v.opt(v.boolean()) });

/** Payload of `engine::traces::group_by`. */
export const GroupRequest = v.object({
  attribute: Attribute,
  since_ms: v.opt(v.number()),
  limit: Limit,
  label_attribute: v.opt(Attribute),
  include_internal: v.opt(v.boolean()),
});

/** A parsed {@linkcode GroupRequest}. */
export type GroupQuery = v.InferOutput<typeof GroupRequest>;

/** Answers `engine::traces::list`; includes payloads only of traces given by id. */
export function* listSpans(
  store: SpanStore,
  query: ListQuery,
  withPayloads: boolean,
  nowMs: number,
  turn: Turn,
): Search<JsonObject> {
  const { offset = 0, limit = TRACE_LIST_LIMIT } = query;
  const ids = [...query.trace_ids ?? [], ...query.trace_id === undefined ? [] : [query.trace_id]];
  const wanted = new Set(ids.map((id) => id.toLowerCase()));
  const isByTrace = wanted.size > 0 && wanted.size <= TRACE_LOOKUPS_MAX;
  using scan = isByTrace
    ? yield* store.scanTraces(wanted, turn)
    : yield* store.scan(wanted.size > 0 ? {} : filterOf(query), TRACE_SCAN_MAX, turn);
  const found: StoredSpan[] = [];
  const lower = lowered(query);
  for (const span of scan.spans) {
    if (turn.isOver()) yield;
    if (wanted.size > 0 && !isByTrace && !wanted.has(span.trace_id)) continue;
    if (fits(span, lower, nowMs)) found.push(span);
  }
  const compare = orderOf(query, nowMs, isByTrace);
  const page = new Page(turn);
  for (const span of (yield* sortInTurn(found, compare, offset + limit, turn)).slice(offset)) {
    if (turn.isOver()) yield;
    if (!page.add(scan.whole(span, withPayloads && isByTrace))) break;
  }
  return {
    spans: page.spans.map((span) => wireSpan(span, withPayloads)),
    total: found.length,
    offset,
    limit,
    storage: "memory",
    ...page.isCut && { is_cut: true },
  };
}

function filterOf({ start_time, end_time, include_internal }: ListQuery): ScanFilter {
  return {
    ...end_time !== undefined && { until_ms: end_time },
    ...start_time !== undefined && { since_ms: start_time },
    excludesInternal: !include_internal,
  };
}

/** Collects spans for an answer as long as they have room. */
class Page {
  readonly #turn: Turn;
  readonly spans: StoredSpan[] = [];
  /** Whether a span had no room. */
  isCut = false;
  #bytes = 0;

  constructor(turn: Turn) {
    this.#turn = turn;
  }

  /** `false`: the page is full. It has one span at least. */
  add(span: StoredSpan): boolean {
    const bytes = bytesOf(span);
    this.#turn.charge(bytes);
    this.#bytes += bytes;
    this.isCut = this.spans.length > 0 && this.#bytes > TRACE_PAGE_BYTES_MAX;
    if (!this.isCut) this.spans.push(span);
    return !this.isCut;
  }
}

/** Deeper spans become children of their ancestor at this depth. */
const TREE_DEPTH_MAX = 200;

type Node = JsonObject & { children: Json[] };

/**
 * Answers `engine::traces::tree`; a span whose parent is not shown is a root. Of a trace that is
 * larger than a page, the spans that started first.
 */
export function* treeOf(
  store: SpanStore,
  trace_id: string,
  withPayloads: boolean,
  turn: Turn,
): Search<JsonObject> {
  using scan = yield* store.scanTraces(new Set([trace_id.toLowerCase()]), turn);
  const page = new Page(turn);
  for (const span of scan.spans) {
    if (turn.isOver()) yield;
    if (!page.add(scan.whole(span, withPayloads))) break;
  }
  const { spans, isCut } = page;
  const known = new Set(spans.map(({ span_id }) => span_id));
  const below = Map.groupBy(spans, ({ parent_span_id }) => parent_span_id ?? "");
  const placed = new Set<string>();
  const roots: Json[] = [];
  const place = function* (top: StoredSpan): Search<void> {
    const waiting = [{ span: top, into: roots, depth: 0 }];
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      if (turn.isOver()) yield;
      const { span, into, depth } = next;
      if (placed.has(span.span_id)) continue;
      placed.add(span.span_id);
      const node: Node = { ...wireSpan(span, withPayloads), children: [] };
      into.push(node);
      const under = depth < TREE_DEPTH_MAX ? node.children : into;
      const children = below.get(span.span_id) ?? [];
      for (const child of children.toReversed()) {
        waiting.push({ span: child, into: under, depth: depth + 1 });
      }
    }
  };
  for (const span of spans) {
    if (span.parent_span_id === null || !known.has(span.parent_span_id)) yield* place(span);
  }
  // Cycles, which the ids of untrusted spans can form.
  for (const span of spans) if (!placed.has(span.span_id)) yield* place(span);
  return { roots, storage: "memory", ...isCut && { is_cut: true } };
}

/**
 * Answers `engine::traces::group_by`: spans with equal attribute values, the latest group first.
 */
export function* groupSpans(
  store: SpanStore,
  query: GroupQuery,
  nowMs: number,
  turn: Turn,
): Search<JsonObject> {
  const { attribute, since_ms, limit = TRACE_LIST_LIMIT, label_attribute } = query;
  const filter = {
    ...since_ms !== undefined && { since_ms },
    excludesInternal: !query.include_internal,
  };
  using scan = yield* store.scan(filter, TRACE_SCAN_MAX, turn);
  const groups = new Map<string, Group>();
  for (const found of yield* sortInTurn(scan.spans, newestFirst, TRACE_SCAN_MAX, turn)) {
    if (turn.isOver()) yield;
    const span = scan.whole(found, false);
    const value = attributeOf(span, attribute);
    if (value === undefined || value === null) continue;
    const key = typeof value === "string" ? value : JSON.stringify(value);
    let group = groups.get(key);
    if (!group) groups.set(key, group = new Group(key));
    group.add(span, label_attribute, nowMs);
  }
  const latest = (a: Group, b: Group): number => b.lastMs - a.lastMs;
  const shown: JsonObject[] = [];
  let bytes = 0;
  let isCut = false;
  for (const group of yield* sortInTurn([...groups.values()], latest, limit, turn)) {
    if (turn.isOver()) yield;
    turn.charge(group.bytes);
    bytes += group.bytes;
    isCut = shown.length > 0 && bytes > TRACE_PAGE_BYTES_MAX;
    if (isCut) break;
    shown.push(group.toJSON());
  }
  return { groups: shown, storage: "memory", ...isCut && { is_cut: true } };
}

/** Trace ids per group. */
const GROUP_TRACES_MAX = 1_000;

class Group {
  readonly value: string;
  lastMs = 0;
  #label: string | undefined;
  #firstMs = Infinity;
  #endMs = 0;
  #spans = 0;
  #errors = 0;
  readonly #traces = new Set<string>();

  constructor(value: string) {
    this.value = value;
  }

  add(span: StoredSpan, labelAttribute: string | undefined, nowMs: number): void {
    if (this.#label === undefined && labelAttribute !== undefined) {
      const label = attributeOf(span, labelAttribute);
      if (label !== undefined) {
        this.#label = typeof label === "string" ? label : JSON.stringify(label);
      }
    }
    this.lastMs = Math.max(this.lastMs, span.start_ms);
    this.#firstMs = Math.min(this.#firstMs, span.start_ms);
    this.#endMs = Math.max(this.#endMs, span.end_ms ?? nowMs);
    this.#spans++;
    if (span.status === "error") this.#errors++;
    if (this.#traces.size < GROUP_TRACES_MAX) this.#traces.add(span.trace_id);
  }

  /** Estimated memory of the answer's group. */
  get bytes(): number {
    const { length } = this.value;
    return 200 + 2 * (length + (this.#label?.length ?? length)) + 80 * this.#traces.size;
  }

  toJSON(): JsonObject {
    return {
      value: this.value,
      label: this.#label ?? this.value,
      trace_ids: [...this.#traces],
      span_count: this.#spans,
      first_seen_ms: this.#firstMs,
      last_seen_ms: this.lastMs,
      duration_ms: this.#endMs - this.#firstMs,
      error_count: this.#errors,
    };
  }
}

/** The query with texts in lower case, as {@linkcode fits} needs them. */
function lowered(query: ListQuery): ListQuery {
  const { service_name, name, status } = query;
  return {
    ...query,
    service_name: service_name?.toLowerCase(),
    name: name?.toLowerCase(),
    status: status?.toLowerCase(),
  };
}

function fits(span: StoredSpan, query: ListQuery, nowMs: number): boolean {
  const { service_name, name, status, min_duration_ms, max_duration_ms } = query;
  return (query.start_time === undefined || span.start_ms >= query.start_time) &&
    (query.end_time === undefined || span.start_ms <= query.end_time) &&
    (min_duration_ms === undefined || durationOf(span, nowMs) >= min_duration_ms) &&
    (max_duration_ms === undefined || durationOf(span, nowMs) <= max_duration_ms) &&
    (service_name === undefined || span.service_name.toLowerCase().includes(service_name)) &&
    (name === undefined || span.name.toLowerCase().includes(name)) &&
    (status === undefined || span.status.includes(status)) &&
    fitsAttributes(span, query);
}

function fitsAttributes(span: StoredSpan, query: ListQuery): boolean {
  const { attributes: wanted = [], exclude_attributes: unwanted = [] } = query;
  if (wanted.length + unwanted.length === 0) return true;
  const { attributes } = span; // Those of a call are made on access.
  return wanted.every((pair) => hasAttribute(attributes, pair)) &&
    !unwanted.some((pair) => hasAttribute(attributes, pair));
}

/** Compares values as text, so that `"5"` matches 5. */
function hasAttribute(
  attributes: StoredSpan["attributes"],
  [name, wanted]: readonly [string, unknown],
): boolean {
  const value = attributes.find(([own]) => own === name)?.[1];
  return value !== undefined && asText(value) === asText(wanted);
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Equal ones as they were found: of given traces as in the trace, else the newest first. */
function orderOf(
  { sort_by = "start_time", sort_order = "asc" }: ListQuery,
  nowMs: number,
  isByTrace: boolean,
): (a: StoredSpan, b: StoredSpan) => number {
  const sign = sort_order === "asc" ? 1 : -1;
  const keyed = (compare: typeof newestFirst): typeof newestFirst => {
    if (isByTrace) return (a, b) => sign * compare(a, b);
    return (a, b) => sign * compare(a, b) || newestFirst(a, b);
  };
  switch (sort_by) {
    case "duration":
      return keyed((a, b) => durationOf(a, nowMs) - durationOf(b, nowMs));
    case "service_name":
      return keyed((a, b) => a.service_name.localeCompare(b.service_name));
    case "name":
      return keyed((a, b) => a.name.localeCompare(b.name));
    case "start_time":
      return keyed((a, b) => a.start_ms - b.start_ms);
  }
}

/** Nodes of a map of calls. */
const TRACE_MAP_NODES_MAX = 5_000;

/** Payload of `engine::traces::map`; all members are optional. */
export const MapRequest = v.nullish(
  v.object({
    since_ms: v.opt(v.number()),
    trace_id: v.opt(v.string()),
  }),
  {},
);

/** A parsed {@linkcode MapRequest}. */
export type MapQuery = v.InferOutput<typeof MapRequest>;

type NodeKind = "worker" | "function" | "http" | "state" | "external";

interface MapNode {
  readonly id: string;
  readonly kind: NodeKind;
  readonly label: string;
  /** Name of the worker behind it; `null`: none. */
  readonly worker: string | null;
}

/** Name under which the command line connects: a user rather than a worker. */
const COMMAND_LINE = "engine-cli";
const STATE = "engine-state";

/** Computes the graph. `isSampled`: not every trace is recorded. */
export function* mapOf(
  store: SpanStore,
  query: MapQuery,
  nowMs: number,
  isSampled: boolean,
  turn: Turn,
): Search<JsonObject> {
  const { since_ms, trace_id } = query;
  const filter = {
    ...since_ms !== undefined && { since_ms },
    ...trace_id !== undefined && { trace_id: trace_id.toLowerCase() },
  };
  using scan = yield* store.scan({ ...filter, excludesInternal: true }, TRACE_SCAN_MAX, turn);
  const spans: SpanSummary[] = [];
  const requests = new Map<string, SpanSummary>();
  let oldest = nowMs;
  for (const found of yield* sortInTurn(scan.spans, newestFirst, TRACE_SCAN_MAX, turn)) {
    if (turn.isOver()) yield;
    const span = scan.summary(found);
    spans.push(span);
    if (span.kind === "http") requests.set(span.span_id, span);
    oldest = Math.min(oldest, span.start_ms);
  }
  const graph = new Graph(nowMs);
  for (const span of spans) {
    if (turn.isOver()) yield;
    graph.add(span, requests);
  }
  return {
    ...yield* graph.view(turn),
    window_ms: Math.max(0, nowMs - (since_ms ?? oldest)),
    sampled: isSampled || spans.length >= TRACE_SCAN_MAX,
  };
}

class Graph {
  readonly #nowMs: number;
  readonly #nodes = new Map<string, MapNode>();
  readonly #edges = new Map<string, Edge>();

  constructor(nowMs: number) {
    this.#nowMs = nowMs;
  }

  /** A call adds two edges: from caller to function, and from function to worker. */
  add(span: SpanSummary, requests: ReadonlyMap<string, SpanSummary>): void {
    if (span.kind !== "call") return;
    const { worker } = span;
    const target = this.#target(span);
    const request = span.parent_span_id === null ? undefined : requests.get(span.parent_span_id);
    const source = request
      ? this.#node("http", request.name, "engine-http")
      : this.#caller(span.caller ?? "unknown");
    this.#edge(source, target).count(span, this.#nowMs);
    if (worker === null || target?.kind !== "function") return;
    this.#edge(target, this.#node("worker", worker, worker)).count(span, this.#nowMs);
  }

  *view(turn: Turn): Search<JsonObject> {
    const edges: JsonObject[] = [];
    for (const edge of this.#edges.values()) {
      if (turn.isOver()) yield;
      edges.push(edge.toJSON());
    }
    return { nodes: [...this.#nodes.values()].map((node) => ({ ...node })), edges };
  }

  #caller(name: string): MapNode | undefined {
    return name === COMMAND_LINE
      ? this.#node("external", "command line", null)
      : this.#node("worker", name, name);
  }

  #target({ name, worker }: SpanSummary): MapNode | undefined {
    if (worker === STATE) return this.#node("state", "state", STATE);
    return this.#node("function", name, worker);
  }

  /** `undefined` when the graph is full. */
  #node(kind: NodeKind, label: string, worker: string | null): MapNode | undefined {
    const id = kind === "state" ? "state" : `${kind}:${label}`;
    const known = this.#nodes.get(id);
    if (known || this.#nodes.size >= TRACE_MAP_NODES_MAX) return known;
    const node = { id, kind, label, worker };
    this.#nodes.set(id, node);
    return node;
  }

  #edge(from: MapNode | undefined, to: MapNode | undefined): Edge {
    if (!from || !to) return new Edge("", "");
    const key = JSON.stringify([from.id, to.id]);
    let edge = this.#edges.get(key);
    if (!edge) this.#edges.set(key, edge = new Edge(from.id, to.id));
    return edge;
  }
}

class Edge {
  readonly #from: string;
  readonly #to: string;
  #calls = 0;
  #errors = 0;
  readonly #durations: number[] = [];

  constructor(from: string, to: string) {
    this.#from = from;
    this.#to = to;
  }

  count(span: SpanSummary, nowMs: number): void {
    this.#calls++;
    if (span.failed) this.#errors++;
    this.#durations.push(Math.max(0, (span.end_ms ?? nowMs) - span.start_ms));
  }

  toJSON(): JsonObject {
    const sorted = Float64Array.from(this.#durations).sort();
    return {
      from: this.#from,
      to: this.#to,
      calls: this.#calls,
      errors: this.#errors,
      p50_ms: quantile(sorted, 0.5),
      p99_ms: quantile(sorted, 0.99),
    };
  }
}

/** By nearest rank. */
function quantile(sorted: Float64Array, part: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? 0;
}
