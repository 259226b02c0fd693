/**
 * The service map (`engine::traces::map`): reading, grouping by worker, and filtering.
 *
 * @module
 */
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { numberOf, objectOf, textOf } from "../../kit/json.ts";

/** A node of the map. */
export interface MapNode {
  readonly id: string;
  /** `worker`, `function`, `http`, `state` or `external`; others are possible. */
  readonly kind: string;
  readonly label: string;
  /** The worker it belongs to; of workers their own name; empty: none. */
  readonly worker: string;
}

/** The calls between two nodes within the window of the map. */
export interface MapEdge {
  readonly from: string;
  readonly to: string;
  readonly calls: number;
  readonly errors: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** A service map. */
export interface ServiceMap {
  readonly nodes: readonly MapNode[];
  readonly edges: readonly MapEdge[];
  /** The time range of the map. */
  readonly windowMs: number;
  /** Whether only some of the calls were counted. */
  readonly sampled: boolean;
}

/** A node and its traffic. */
export interface BusyNode extends MapNode {
  /** Calls to it, or of a node that is never called, calls from it. */
  readonly calls: number;
  readonly errors: number;
}

/** A part of a map that can be drawn. */
interface ShownMap {
  readonly nodes: readonly BusyNode[];
  readonly edges: readonly MapEdge[];
  /** How many nodes were left out, those with the least traffic. */
  readonly hidden: number;
}

/** Reads a service map; missing members become empty. */
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

/** The map of workers alone: functions and routes are merged into their worker. */
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
    edges.set(key, known === undefined ? { ...edge, from, to } : joinEdges(known, edge));
  }
  return { ...map, nodes: [...nodes.values()], edges: [...edges.values()] };
}

/** The `most` busiest nodes that contain `text`, or have a neighbour that does, and their edges. */
export function shownMap(map: ServiceMap, most: number, text = ""): ShownMap {
  const word = text.trim().toLowerCase();
  const wanted = word === "" ? null : matchingNodes(map, word);
  const nodes = busyNodes(map).filter(({ id }) => wanted === null || wanted.has(id));
  // Equal ones are sorted by id, so that the graph is stable.
  nodes.sort((a, b) => b.calls - a.calls || (a.id < b.id ? -1 : 1));
  const shown = nodes.slice(0, most).sort((a, b) => (a.id < b.id ? -1 : 1));
  const ids = new Set(shown.map(({ id }) => id));
  const edges = map.edges.filter(({ from, to }) => ids.has(from) && ids.has(to));
  return { nodes: shown, edges, hidden: nodes.length - shown.length };
}

/** Joins two edges; of percentiles the larger is the best estimate. */
function joinEdges(a: MapEdge, b: MapEdge): MapEdge {
  return {
    ...a,
    calls: a.calls + b.calls,
    errors: a.errors + b.errors,
    p50Ms: Math.max(a.p50Ms, b.p50Ms),
    p99Ms: Math.max(a.p99Ms, b.p99Ms),
  };
}

/** Nodes that contain the word, and their neighbours. */
function matchingNodes(map: ServiceMap, word: string): Set<string> {
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
