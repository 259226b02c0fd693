/**
 * How much runs along the lines of the flow picture right now.
 *
 * Rates are known per function, exactly; who calls a function is known from the newest spans. So a
 * function's rate is shared out among the lines that lead to it as its calls were lately.
 *
 * @module
 */
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { edgeKey, type FlowLine } from "./flow_graph.ts";
import type { MapEdge, ServiceMap } from "../traces/service_map.ts";
import { numberOf, objectOf, textOf } from "../../kit/json.ts";

/** How busy a function is. */
export interface FunctionRate {
  readonly callsPerS: number;
  readonly errorsPerS: number;
  readonly p99Ms: number;
  readonly inFlight: number;
}

/** What runs along a line. */
export interface LineTraffic {
  readonly callsPerS: number;
  /** Of the calls that are known, some failed. */
  readonly hasErrors: boolean;
  /** Calls seen in the newest spans. */
  readonly calls: number;
}

/** Reads what `engine::metrics-sampled` fires: function id to its rates, namespaces together. */
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

/** What runs along each line, by the line's id. */
export function lineTraffic(
  lines: readonly FlowLine[],
  map: ServiceMap,
  rates: ReadonlyMap<string, FunctionRate>,
): ReadonlyMap<string, LineTraffic> {
  const edges = new Map(map.edges.map((edge) => [edgeKey(edge), edge]));
  const seen = new Map(lines.map((line) => [line.id, sumOf(line, edges)]));
  const calls = new Map<string, number>();
  const count = new Map<string, number>();
  for (const line of lines) {
    const target = targetOf(line);
    calls.set(target, (calls.get(target) ?? 0) + seen.get(line.id)!.calls);
    count.set(target, (count.get(target) ?? 0) + 1);
  }
  return new Map(lines.map((line) => {
    const target = targetOf(line);
    const mine = seen.get(line.id)!;
    const all = calls.get(target)!;
    const share = all > 0 ? mine.calls / all : 1 / count.get(target)!;
    const rate = rateInto(line, rates);
    const hasErrors = mine.errors > 0 && (rate.errorsPerS > 0 || rate.callsPerS === 0);
    return [line.id, { callsPerS: rate.callsPerS * share, hasErrors, calls: mine.calls }];
  }));
}

/** Old and new edges of the map; what was seen once stays, with no calls when it is gone. */
export function remembered(old: ServiceMap, now: ServiceMap, most: number): ServiceMap {
  const nodes = new Map([...old.nodes, ...now.nodes].map((node) => [node.id, node]));
  const edges = new Map<string, MapEdge>(
    old.edges.map((edge) => [edgeKey(edge), { ...edge, calls: 0, errors: 0 }]),
  );
  for (const edge of now.edges) edges.set(edgeKey(edge), edge);
  const kept = [...edges.values()];
  return { ...now, nodes: [...nodes.values()], edges: kept.slice(Math.max(0, kept.length - most)) };
}

function sumOf(
  line: FlowLine,
  edges: ReadonlyMap<string, MapEdge>,
): { calls: number; errors: number } {
  let calls = 0;
  let errors = 0;
  for (const key of line.edges) {
    calls += edges.get(key)?.calls ?? 0;
    errors += edges.get(key)?.errors ?? 0;
  }
  return { calls, errors };
}

function targetOf({ functionId, to }: FlowLine): string {
  return functionId ?? to.card;
}

/** Of a built-in worker, whose functions are one box of the map, all functions count. */
function rateInto(
  { functionId, to }: FlowLine,
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
