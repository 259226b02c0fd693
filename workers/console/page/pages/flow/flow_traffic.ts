/**
 * The traffic on the edges of the Flow page.
 *
 * The rate of each function is known exactly, its callers only from the newest spans. So the rate
 * of a function is divided among the edges that lead to it in proportion to their calls. Without
 * spans it is divided evenly among its callers; a trigger is not drawn as alive unless it was seen.
 *
 * @module
 */
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { type FlowEdge, mapEdgeKey } from "./flow_graph.ts";
import type { MapEdge, ServiceMap } from "../traces/service_map.ts";
import { numberOf, objectOf, textOf } from "../../kit/json.ts";

/** The rates of a function. */
export interface FunctionRate {
  readonly callsPerS: number;
  readonly errorsPerS: number;
  readonly p99Ms: number;
  readonly inFlight: number;
}

/** The traffic on an edge. */
export interface EdgeTraffic {
  readonly callsPerS: number;
  /** Whether calls of the edge have failed. */
  readonly hasErrors: boolean;
  /** Calls in the newest spans. */
  readonly calls: number;
}

/** Rates by function id from `engine::metrics-sampled`; namespaces are added up. */
export function readFunctionRates(fired: Json): ReadonlyMap<string, FunctionRate> {
  const { functions } = objectOf(fired);
  const rates = new Map<string, FunctionRate>();
  for (const raw of Array.isArray(functions) ? functions : []) {
    const sample = objectOf(raw);
    const id = textOf(sample.function_id);
    const known = rates.get(id);
    rates.set(id, {
      callsPerS: numberOf(sample.calls_per_s) + (known?.callsPerS ?? 0),
      errorsPerS: numberOf(sample.errors_per_s) + (known?.errorsPerS ?? 0),
      p99Ms: Math.max(numberOf(sample.p99_ms), known?.p99Ms ?? 0),
      inFlight: numberOf(sample.in_flight) + (known?.inFlight ?? 0),
    });
  }
  return rates;
}

/** The traffic on each edge, by its id. */
export function edgeTraffic(
  edges: readonly FlowEdge[],
  map: ServiceMap,
  rates: ReadonlyMap<string, FunctionRate>,
): ReadonlyMap<string, EdgeTraffic> {
  const seenEdges = new Map(map.edges.map((edge) => [mapEdgeKey(edge), edge]));
  const seen = new Map(edges.map((edge) => [edge.id, sumOf(edge, seenEdges)]));
  const calls = new Map<string, number>();
  const callers = new Map<string, number>();
  for (const edge of edges) {
    const target = targetOf(edge);
    calls.set(target, (calls.get(target) ?? 0) + seen.get(edge.id)!.calls);
    if (edge.kind === "call") callers.set(target, (callers.get(target) ?? 0) + 1);
  }
  return new Map(edges.map((edge) => {
    const target = targetOf(edge);
    const mine = seen.get(edge.id)!;
    const all = calls.get(target)!;
    const even = edge.kind === "call" ? 1 / callers.get(target)! : 0;
    const share = all > 0 ? mine.calls / all : even;
    const rate = rateInto(edge, rates);
    const hasErrors = mine.errors > 0 && (rate.errorsPerS > 0 || rate.callsPerS === 0);
    return [edge.id, { callsPerS: rate.callsPerS * share, hasErrors, calls: mine.calls }];
  }));
}

/** Adds the edges of the old map to the new one, without calls, so that edges stay visible. */
export function rememberEdges(old: ServiceMap, now: ServiceMap, most: number): ServiceMap {
  const nodes = new Map([...old.nodes, ...now.nodes].map((node) => [node.id, node]));
  const edges = new Map<string, MapEdge>(
    old.edges.map((edge) => [mapEdgeKey(edge), { ...edge, calls: 0, errors: 0 }]),
  );
  for (const edge of now.edges) edges.set(mapEdgeKey(edge), edge);
  const kept = [...edges.values()];
  return { ...now, nodes: [...nodes.values()], edges: kept.slice(Math.max(0, kept.length - most)) };
}

function sumOf(
  edge: FlowEdge,
  seenEdges: ReadonlyMap<string, MapEdge>,
): { calls: number; errors: number } {
  let calls = 0;
  let errors = 0;
  for (const key of edge.mapEdges) {
    calls += seenEdges.get(key)?.calls ?? 0;
    errors += seenEdges.get(key)?.errors ?? 0;
  }
  return { calls, errors };
}

function targetOf({ functionId, to }: FlowEdge): string {
  return functionId ?? to.card;
}

/** Of a built-in worker, whose functions are one box of the map, all functions count. */
function rateInto(
  { functionId, to }: FlowEdge,
  rates: ReadonlyMap<string, FunctionRate>,
): { callsPerS: number; errorsPerS: number } {
  if (functionId !== null) return rates.get(functionId) ?? { callsPerS: 0, errorsPerS: 0 };
  if (to.card !== "worker:engine-state") return { callsPerS: 0, errorsPerS: 0 };
  let callsPerS = 0;
  let errorsPerS = 0;
  for (const [id, rate] of rates) {
    if (!id.startsWith("state::")) continue;
    callsPerS += rate.callsPerS;
    errorsPerS += rate.errorsPerS;
  }
  return { callsPerS, errorsPerS };
}
