/**
 * Who calls whom (`engine::traces::map`), made small enough to be looked at.
 *
 * @module
 */
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { numberOf, objectOf, textOf } from "../../kit/json.ts";

/** Somebody or something that takes part. */
export interface MapNode {
  readonly id: string;
  /** `worker`, `function`, `http`, `state` or `external`; others may come. */
  readonly kind: string;
  readonly label: string;
  /** Worker that it belongs to; its own name for workers; empty when there is none. */
  readonly worker: string;
}

/** Calls from one to another, within the map's window. */
export interface MapEdge {
  readonly from: string;
  readonly to: string;
  readonly calls: number;
  readonly errors: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** A map. */
export interface ServiceMap {
  readonly nodes: readonly MapNode[];
  readonly edges: readonly MapEdge[];
  /** Time that it tells of. */
  readonly windowMs: number;
  /** Not every call was looked at. */
  readonly sampled: boolean;
}

/** A node with its traffic. */
export interface BusyNode extends MapNode {
  /** Calls that came to it, or for one that is never called, calls that it made. */
  readonly calls: number;
  readonly errors: number;
}

/** A part of a map that fits on the screen. */
export interface ShownMap {
  readonly nodes: readonly BusyNode[];
  readonly edges: readonly MapEdge[];
  /** Nodes that are left out, those with the least traffic. */
  readonly hidden: number;
}

/** Reads a map; missing members become empty. */
export function readServiceMap(raw: Json): ServiceMap {
  const map = objectOf(raw);
  const nodes = (Array.isArray(map.nodes) ? map.nodes : []).map((raw): MapNode => {
    const node = objectOf(raw);
    const kind = textOf(node.kind);
    const label = textOf(node.label) || textOf(node.id);
    const worker = textOf(node.worker) || (kind === "worker" ? label : "");
    return { id: textOf(node.id), kind, label, worker };
  });
  const edges = (Array.isArray(map.edges) ? map.edges : []).map((raw): MapEdge => {
    const edge = objectOf(raw);
    return {
      from: textOf(edge.from),
      to: textOf(edge.to),
      calls: numberOf(edge.calls),
      errors: numberOf(edge.errors),
      p50Ms: numberOf(edge.p50_ms),
      p99Ms: numberOf(edge.p99_ms),
    };
  });
  return { nodes, edges, windowMs: numberOf(map.window_ms), sampled: map.sampled === true };
}

/** The map with functions and routes counted as the workers that they belong to. */
export function workersOnly(map: ServiceMap): ServiceMap {
  const nodes = new Map<string, MapNode>();
  const group = new Map<string, string>();
  for (const node of map.nodes) {
    const isWorker = node.kind === "worker" || node.worker !== "";
    const id = isWorker ? `worker:${node.worker || node.label}` : node.id;
    group.set(node.id, id);
    if (nodes.has(id)) continue;
    const label = isWorker ? node.worker || node.label : node.label;
    nodes.set(id, isWorker ? { id, kind: "worker", label, worker: label } : node);
  }
  const edges = new Map<string, MapEdge>();
  for (const edge of map.edges) {
    const from = group.get(edge.from);
    const to = group.get(edge.to);
    if (from === undefined || to === undefined || from === to) continue;
    const key = `${from}\n${to}`;
    const known = edges.get(key);
    edges.set(key, known === undefined ? { ...edge, from, to } : joined(known, edge));
  }
  return { ...map, nodes: [...nodes.values()], edges: [...edges.values()] };
}

/** The busiest nodes, at most `most`, of those that have to do with `text`, and their edges. */
export function shownMap(map: ServiceMap, most: number, text = ""): ShownMap {
  const word = text.trim().toLowerCase();
  const wanted = word === "" ? null : nodesAbout(map, word);
  const nodes = busyNodes(map).filter(({ id }) => wanted === null || wanted.has(id));
  // Equal ones by name, so that the picture is the same each time.
  nodes.sort((a, b) => b.calls - a.calls || (a.id < b.id ? -1 : 1));
  const shown = nodes.slice(0, most).sort((a, b) => (a.id < b.id ? -1 : 1));
  const ids = new Set(shown.map(({ id }) => id));
  const edges = map.edges.filter(({ from, to }) => ids.has(from) && ids.has(to));
  return { nodes: shown, edges, hidden: nodes.length - shown.length };
}

/** Two edges between the same ends as one; of percentiles the larger: nothing better is known. */
export function joined(a: MapEdge, b: MapEdge): MapEdge {
  return {
    ...a,
    calls: a.calls + b.calls,
    errors: a.errors + b.errors,
    p50Ms: Math.max(a.p50Ms, b.p50Ms),
    p99Ms: Math.max(a.p99Ms, b.p99Ms),
  };
}

/** Nodes whose name holds the word, and those next to them. */
function nodesAbout(map: ServiceMap, word: string): Set<string> {
  const named = map.nodes.filter(({ label, worker }) =>
    label.toLowerCase().includes(word) || worker.toLowerCase().includes(word)
  );
  const found = new Set(named.map(({ id }) => id));
  const near = map.edges.flatMap(({ from, to }) =>
    found.has(from) ? [to] : found.has(to) ? [from] : []
  );
  return new Set([...found, ...near]);
}

function busyNodes(map: ServiceMap): BusyNode[] {
  const into = new Map<string, { calls: number; errors: number }>();
  const outOf = new Map<string, { calls: number; errors: number }>();
  for (const { from, to, calls, errors } of map.edges) {
    for (const [sums, id] of [[outOf, from], [into, to]] as const) {
      const sum = sums.get(id) ?? { calls: 0, errors: 0 };
      sum.calls += calls;
      sum.errors += errors;
      sums.set(id, sum);
    }
  }
  return map.nodes.map((node) => ({
    ...node,
    ...into.get(node.id) ?? outOf.get(node.id) ?? { calls: 0, errors: 0 },
  }));
}
