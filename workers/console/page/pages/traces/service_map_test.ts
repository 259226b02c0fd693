import assert from "node:assert/strict";
import { readServiceMap, shownMap, workersOnly } from "./service_map.ts";

const RAW = {
  nodes: [
    { id: "http:GET /a", kind: "http", label: "GET /a", worker: "engine-http" },
    { id: "fn:shop::buy", kind: "function", label: "shop::buy", worker: "shop" },
    { id: "fn:shop::list", kind: "function", label: "shop::list", worker: "shop" },
    { id: "w:shop", kind: "worker", label: "shop", worker: null },
    { id: "fn:stock::take", kind: "function", label: "stock::take", worker: "stock" },
    { id: "x", kind: "external", label: "command line", worker: null },
  ],
  edges: [
    { from: "http:GET /a", to: "fn:shop::buy", calls: 10, errors: 1, p50_ms: 2, p99_ms: 9 },
    { from: "fn:shop::buy", to: "w:shop", calls: 10, errors: 1, p50_ms: 2, p99_ms: 9 },
    { from: "w:shop", to: "fn:stock::take", calls: 7, errors: 0, p50_ms: 1, p99_ms: 3 },
    { from: "x", to: "fn:shop::list", calls: 1, errors: 0, p50_ms: 4, p99_ms: 4 },
    { from: "http:GET /a", to: "fn:shop::list", calls: 2, errors: 2, p50_ms: 8, p99_ms: 20 },
  ],
  window_ms: 60_000,
  sampled: true,
};

Deno.test("readServiceMap() reads nodes and edges; a worker belongs to itself", () => {
  const map = readServiceMap(RAW);

  assert.equal(map.nodes[3]!.worker, "shop");
  assert.equal(map.edges[0]!.p99Ms, 9);
  assert.deepEqual([map.windowMs, map.sampled], [60_000, true]);
});

Deno.test("readServiceMap() of anything else is an empty map", () => {
  for (const raw of [null, [], "map", { nodes: 5, edges: {} }]) {
    assert.deepEqual(readServiceMap(raw), { nodes: [], edges: [], windowMs: 0, sampled: false });
  }
});

Deno.test("workersOnly() merges functions and routes into their workers", () => {
  const map = workersOnly(readServiceMap(RAW));

  assert.deepEqual(map.nodes.map(({ label }) => label), [
    "engine-http",
    "shop",
    "stock",
    "command line",
  ]);
  const edges = map.edges.map(({ from, to, calls, errors, p99Ms }) =>
    `${from} ${to} ${calls} ${errors} ${p99Ms}`
  );
  assert.deepEqual(edges, [
    "worker:engine-http worker:shop 12 3 20",
    "worker:shop worker:stock 7 0 3",
    "x worker:shop 1 0 4",
  ]);
});

Deno.test("shownMap() keeps the busiest nodes and their edges, and counts the ones left out", () => {
  const shown = shownMap(workersOnly(readServiceMap(RAW)), 2);

  assert.deepEqual(shown.nodes.map(({ label, calls }) => [label, calls]), [["engine-http", 12], [
    "shop",
    13,
  ]]);
  assert.equal(shown.edges.length, 1);
  assert.equal(shown.hidden, 2);
});

Deno.test("shownMap() of a text keeps nodes that contain it, and their neighbours", () => {
  const shown = shownMap(workersOnly(readServiceMap(RAW)), 50, " STOCK ");

  assert.deepEqual(shown.nodes.map(({ label }) => label), ["shop", "stock"]);
  assert.equal(shown.hidden, 0);
});

Deno.test("shownMap() counts the calls from a node that is never called", () => {
  const shown = shownMap(readServiceMap(RAW), 50);

  assert.equal(shown.nodes.find(({ id }) => id === "x")!.calls, 1);
});
