/**
 * Answers `engine::traces::map`: callers, functions and workers as a graph, with calls, errors and
 * latencies on its edges.
 *
 * Built from the newest `TRACE_SCAN_MAX` spans; `sampled` in the answer says whether calls may be
 * missing.
 *
 * @module
 */
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import * as v from "../../kit/schema.ts";
import { TRACE_SCAN_MAX } from "./query.ts";
import { type SpanSummary, summaryOfCall, summaryOfSpan } from "./span.ts";
import type { SpanStore } from "./store.ts";

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
export async function mapOf(
  store: SpanStore,
  query: MapQuery,
  nowMs: number,
  isSampled: boolean,
): Promise<JsonObject> {
  const { since_ms, trace_id } = query;
  const filter = {
    ...since_ms !== undefined && { since_ms },
    ...trace_id !== undefined && { trace_id: trace_id.toLowerCase() },
  };
  const spans = await store.scan({ ...filter, excludesInternal: true }, TRACE_SCAN_MAX, {
    ofCall: summaryOfCall,
    ofSpan: summaryOfSpan,
  });
  const graph = new Graph(nowMs);
  const requests = new Map(
    spans.filter(({ kind }) => kind === "http").map((span) => [span.span_id, span]),
  );
  for (const span of spans) graph.add(span, requests);
  const oldest = spans.reduce((least, { start_ms }) => Math.min(least, start_ms), nowMs);
  return {
    ...graph.toJSON(),
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

  toJSON(): JsonObject {
    return {
      nodes: [...this.#nodes.values()].map((node) => ({ ...node })),
      edges: [...this.#edges.values()].map((edge) => edge.toJSON()),
    };
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
    const sorted = this.#durations.sort((a, b) => a - b);
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
function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? 0;
}
