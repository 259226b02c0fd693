import assert from "node:assert/strict";
import type { FlowEdge } from "./flow_graph.ts";
import { edgeTraffic, readFunctionRates, rememberEdges } from "./flow_traffic.ts";
import type { ServiceMap } from "../traces/service_map.ts";

Deno.test("readFunctionRates() adds up the namespaces of a function", () => {
  const rates = readFunctionRates({
    functions: [
      {
        function_id: "a::b",
        namespace: "x",
        calls_per_s: 2,
        errors_per_s: 1,
        p99_ms: 5,
        in_flight: 1,
      },
      {
        function_id: "a::b",
        namespace: "y",
        calls_per_s: 3,
        errors_per_s: 0,
        p99_ms: 9,
        in_flight: 2,
      },
    ],
  });

  assert.deepEqual(rates.get("a::b"), { callsPerS: 5, errorsPerS: 1, p99Ms: 9, inFlight: 3 });
  assert.equal(readFunctionRates(null).size, 0);
});

Deno.test("edgeTraffic() divides a function's rate in proportion to its calls", () => {
  const edges = [flowEdge("1", "f", ["a f"]), flowEdge("2", "f", ["b f"]), flowEdge("3", "g", [])];
  const rates = new Map([["f", rate(40)], ["g", rate(7)]]);

  const traffic = edgeTraffic(edges, map(["a f", 3, 0], ["b f", 1, 0]), rates);

  assert.deepEqual([...traffic.values()].map(({ callsPerS }) => callsPerS), [30, 10, 7]);
});

Deno.test("edgeTraffic() divides evenly when no calls were seen", () => {
  const edges = [flowEdge("1", "f", []), flowEdge("2", "f", [])];

  const traffic = edgeTraffic(edges, map(), new Map([["f", rate(10)]]));

  assert.deepEqual([...traffic.values()].map(({ callsPerS }) => callsPerS), [5, 5]);
});

Deno.test("edgeTraffic() draws no trigger as alive that was not seen to fire", () => {
  const trigger = { ...flowEdge("1", "f", ["http f"]), kind: "trigger" as const };
  const edges = [trigger, flowEdge("2", "f", ["a f"])];
  const rates = new Map([["f", rate(40)]]);
  const callsOf = (...seen: Parameters<typeof map>) =>
    [...edgeTraffic(edges, map(...seen), rates).values()].map(({ callsPerS }) => callsPerS);

  assert.deepEqual(callsOf(), [0, 40]);
  assert.deepEqual(callsOf(["http f", 0, 0]), [0, 40]);
  assert.deepEqual(callsOf(["http f", 3, 0], ["a f", 1, 0]), [30, 10]);
});

Deno.test("edgeTraffic() marks an edge whose function fails now", () => {
  const edges = [flowEdge("1", "f", ["a f"])];
  const seen = map(["a f", 3, 1]);

  assert.equal(edgeTraffic(edges, seen, new Map([["f", rate(4, 1)]])).get("1")!.hasErrors, true);
  assert.equal(edgeTraffic(edges, seen, new Map([["f", rate(4)]])).get("1")!.hasErrors, false);
});

Deno.test("edgeTraffic() adds up all state functions for edges to the state", () => {
  const to = { card: "worker:engine-state", row: null };
  const edges = [{ ...flowEdge("1", null, ["a s"]), to }, { ...flowEdge("2", null, ["b s"]), to }];
  const rates = new Map([["state::get", rate(6)], ["state::set", rate(2)], ["other", rate(9)]]);

  const traffic = edgeTraffic(edges, map(["a s", 1, 0], ["b s", 1, 0]), rates);

  assert.deepEqual([...traffic.values()].map(({ callsPerS }) => callsPerS), [4, 4]);
});

Deno.test("rememberEdges() keeps old edges without calls, up to a bound", () => {
  const old = map(["a f", 3, 1], ["b f", 2, 0]);
  const now = map(["b f", 5, 0], ["c f", 1, 0]);

  const all = rememberEdges(old, now, 10);
  assert.deepEqual(all.edges.map(({ from, calls }) => [from, calls]), [["a", 0], ["b", 5], [
    "c",
    1,
  ]]);
  assert.deepEqual(rememberEdges(old, now, 2).edges.map(({ from }) => from), ["b", "c"]);
});

function flowEdge(id: string, functionId: string | null, edges: string[]): FlowEdge {
  const ends = { from: { card: "x", row: null }, to: { card: "y", row: null } };
  const keys = edges.map((edge) => edge.replace(" ", "\n"));
  return { id, ...ends, kind: "call", functionId, mapEdges: keys };
}

function rate(callsPerS: number, errorsPerS = 0) {
  return { callsPerS, errorsPerS, p99Ms: 1, inFlight: 0 };
}

function map(...edges: [ends: string, calls: number, errors: number][]): ServiceMap {
  return {
    nodes: [],
    edges: edges.map(([ends, calls, errors]) => {
      const [from, to] = ends.split(" ") as [string, string];
      return { from, to, calls, errors, p50Ms: 1, p99Ms: 2 };
    }),
    windowMs: 1000,
    sampled: false,
  };
}
