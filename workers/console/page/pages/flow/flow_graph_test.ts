import assert from "node:assert/strict";
import {
  CARD,
  type FlowCard,
  type FlowGraph,
  flowGraph,
  type FlowInput,
  type FlowView,
  layoutFlow,
  sizeOf,
} from "./flow_graph.ts";

const VIEW: FlowView = { text: "", focus: "", cardsMax: 50, rowsMax: 10 };

const INPUT: FlowInput = {
  functions: [
    { function_id: "web::order", worker_name: "web" },
    { function_id: "shop::buy", worker_name: "shop" },
    { function_id: "shop::audit", worker_name: "shop" },
    { function_id: "state::set", worker_name: "engine-state" },
    { function_id: "state::never-called", worker_name: "engine-state" },
  ],
  triggers: [
    {
      id: "1",
      trigger_type: "http",
      function_id: "web::order",
      config: { api_path: "/orders", http_method: "POST" },
    },
    { id: "2", trigger_type: "state", function_id: "shop::audit", config: { scope: "orders" } },
    { id: "3", trigger_type: "http", function_id: "engine::hidden", config: {} },
  ],
  workers: ["web", "shop", "idle"],
  providers: new Map([["http", "engine-http"], ["state", "engine-state"]]),
  map: {
    nodes: [
      { id: "h", kind: "http", label: "POST /orders", worker: "engine-http" },
      { id: "f1", kind: "function", label: "web::order", worker: "web" },
      { id: "f2", kind: "function", label: "shop::buy", worker: "shop" },
      { id: "w", kind: "worker", label: "web", worker: "web" },
      { id: "s", kind: "function", label: "state::set", worker: "engine-state" },
      { id: "shop", kind: "worker", label: "shop", worker: "shop" },
      { id: "x", kind: "external", label: "command edge", worker: "" },
    ],
    edges: [
      edge("h", "f1"),
      edge("f1", "w"),
      edge("w", "f2"),
      edge("f2", "shop"),
      edge("shop", "s"),
      edge("x", "f2"),
      edge("gone", "f2"),
    ],
    windowMs: 1000,
    sampled: false,
  },
};

Deno.test("flowGraph() makes cards of trigger types, workers and other callers", () => {
  const { cards } = flowGraph(INPUT, VIEW);

  const seen = cards.map(({ title, kind, rows }) => [kind, title, ...rows.map((r) => r.label)]);
  assert.deepEqual(seen, [
    ["trigger", "http", "POST /orders"],
    ["trigger", "state", "orders"],
    ["worker", "engine-state", "state::set"],
    ["worker", "shop", "shop::audit", "shop::buy"],
    ["worker", "web", "web::order"],
    ["other", "command edge"],
  ]);
});

Deno.test("flowGraph() shows of another engine only functions that something calls", () => {
  const engine = "berlin";
  const far = ["shop::buy", "shop::audit", "state::get"].map((function_id) => {
    return { function_id, worker_name: engine, engine };
  });
  const kept = INPUT.functions.filter(({ function_id }) => {
    return !far.some((each) => each.function_id === function_id);
  });

  const { cards } = flowGraph({ ...INPUT, functions: [...kept, ...far] }, VIEW);

  const card = cards.find(({ title }) => title === engine)!;
  assert.deepEqual(card.rows.map(({ label }) => label), ["shop::audit", "shop::buy"]);
});

Deno.test("flowGraph() shows a trigger once that each replica registers", () => {
  const [route] = INPUT.triggers;
  const other = { ...route!, id: "5", config: { api_path: "/orders", http_method: "GET" } };
  const triggers = [...INPUT.triggers, { ...route!, id: "4" }, other];

  const { cards, edges } = flowGraph({ ...INPUT, triggers }, VIEW);

  const http = cards.find(({ title }) => title === "http")!;
  assert.deepEqual(http.rows.map(({ label }) => label), ["GET /orders", "POST /orders"]);
  assert.equal(edges.filter(({ from }) => from.card === http.id).length, 2);
});

Deno.test("flowGraph() has an edge per trigger and per call, without duplicates", () => {
  const { edges } = flowGraph(INPUT, VIEW);

  const ends = edges.map(({ from, to, kind }) => `${kind}: ${from.row ?? from.card} > ${to.row}`);
  assert.deepEqual(ends, [
    "trigger: trigger:1 > function:web::order",
    "trigger: trigger:2 > function:shop::audit",
    "call: worker:web > function:shop::buy",
    "call: worker:shop > function:state::set",
    "call: other:x > function:shop::buy",
  ]);
});

Deno.test("flowGraph() assigns map edges to edges, to a route only its own", () => {
  const other = { ...INPUT.triggers[0]!, id: "9", config: { api_path: "/other" } };
  const { edges } = flowGraph({ ...INPUT, triggers: [...INPUT.triggers, other] }, VIEW);

  const mapEdges = Object.fromEntries(edges.map(({ id, mapEdges }) => [id, mapEdges]));
  assert.deepEqual(mapEdges["trigger 1"], ["h\nf1"]);
  assert.deepEqual(mapEdges["trigger 9"], []);
  assert.deepEqual(mapEdges["call w\nf2"], ["w\nf2"]);
});

Deno.test("flowGraph() has an edge for a worker that calls itself, but none to the functions that it offers", () => {
  const map = { ...INPUT.map, edges: [edge("shop", "f2"), edge("f2", "shop")] };

  const { edges } = flowGraph({ ...INPUT, map, triggers: [] }, VIEW);

  const ends = edges.map(({ from, to }) => [from.card, from.row, to.row]);
  assert.deepEqual(ends, [["worker:shop", null, "function:shop::buy"]]);
});

Deno.test("flowGraph() has a card for the state, which is one node of the map", () => {
  const state = { id: "state", kind: "state", label: "state", worker: "engine-state" };
  const map = { ...INPUT.map, nodes: [...INPUT.map.nodes, state], edges: [edge("shop", "state")] };

  const { cards, edges } = flowGraph({ ...INPUT, map, triggers: [] }, VIEW);

  assert.ok(cards.some(({ id }) => id === "worker:engine-state"));
  assert.deepEqual(edges.map(({ to }) => to), [{ card: "worker:engine-state", row: null }]);
});

Deno.test("flowGraph() with a focus keeps that worker and its neighbours", () => {
  const { cards } = flowGraph(INPUT, { ...VIEW, focus: "web" });

  assert.deepEqual(cards.map(({ title }) => title), ["http", "shop", "web"]);
});

Deno.test("flowGraph() of a text keeps the cards that contain it, and their neighbours", () => {
  const { cards } = flowGraph(INPUT, { ...VIEW, text: "AUDIT" });

  assert.deepEqual(cards.map(({ title }) => title).sort(), [
    "command edge",
    "engine-state",
    "shop",
    "state",
    "web",
  ]);
  assert.deepEqual(flowGraph(INPUT, { ...VIEW, text: "nothing" }).cards, []);
});

Deno.test("flowGraph() prefers rows with edges on long cards, and ends other edges at the card", () => {
  const many = Array.from({ length: 10_000 }, (_, i) => ({
    function_id: `web::f${i}`,
    worker_name: "web",
  }));
  const functions = [...INPUT.functions, ...many];

  const graph = flowGraph({ ...INPUT, functions }, { ...VIEW, rowsMax: 1 });

  const web = graph.cards.find(({ title }) => title === "web")!;
  assert.deepEqual([web.rows[0]!.label, web.hidden], ["web::order", 10_000]);
  const shop = graph.cards.find(({ title }) => title === "shop")!;
  assert.equal(shop.rows.length, 1);
  assert.ok(graph.edges.some(({ to }) => to.card === "worker:shop" && to.row === null));
});

Deno.test("flowGraph() prefers cards with edges, and counts the ones left out", () => {
  const functions = Array.from({ length: 1000 }, (_, i) => ({
    function_id: `a${i}::f`,
    worker_name: `a${i}`,
  }));

  const graph = flowGraph({ ...INPUT, functions: [...functions, ...INPUT.functions] }, {
    ...VIEW,
    cardsMax: 8,
  });

  assert.equal(graph.cards.length, 8);
  assert.ok(graph.cards.some(({ title }) => title === "shop"));
  assert.equal(graph.hidden, 998);
});

Deno.test("flowGraph() of no input is empty", () => {
  const nothing = {
    functions: [],
    triggers: [],
    workers: [],
    providers: new Map(),
    map: { nodes: [], edges: [], windowMs: 0, sampled: false },
  };

  assert.deepEqual(flowGraph(nothing, VIEW), { cards: [], edges: [], hidden: 0 });
});

function edge(from: string, to: string) {
  return { from, to, calls: 1, errors: 0, p50Ms: 1, p99Ms: 1 };
}

Deno.test("sizeOf() has space for each row, and for the number of hidden ones", () => {
  const none = sizeOf(card("a", 0)).height;

  assert.equal(sizeOf(card("a", 3)).height, none + 3 * CARD.row + CARD.foot);
  assert.equal(sizeOf({ ...card("a", 3), hidden: 9 }).height, none + 4 * CARD.row + CARD.foot);
});

Deno.test("sizeOf() is as wide as the longest name needs, within bounds", () => {
  assert.equal(sizeOf(card("a", 1)).width, CARD.minWidth);
  assert.equal(sizeOf(card("a".repeat(500), 1)).width, CARD.maxWidth);
});

Deno.test("layoutFlow() ends edges at the middle of rows, or at the head", () => {
  const graph: FlowGraph = {
    cards: [card("a", 2), card("b", 3)],
    edges: [
      flowEdge("1", { card: "a", row: "a1" }, { card: "b", row: "b2" }),
      flowEdge("2", { card: "a", row: null }, { card: "b", row: null }),
    ],
    hidden: 0,
  };

  const { boxes, edges } = layoutFlow(graph);

  const [a, b] = [boxes.get("a")!, boxes.get("b")!];
  const row = edges.get("1")!.points;
  const head = edges.get("2")!.points;
  assert.equal(row[0]!.y - a.y, CARD.frame + CARD.head + 1.5 * CARD.row);
  assert.equal(row.at(-1)!.y - b.y, CARD.frame + CARD.head + 2.5 * CARD.row);
  assert.equal(head[0]!.y - a.y, CARD.frame + CARD.head / 2);
  assert.ok(a.x < b.x);
});

Deno.test("layoutFlow() of a narrow view is one column that fits a phone", () => {
  const ends = [{ card: "a", row: "a1" }, { card: "b", row: "b2" }] as const;
  const graph = { cards: [card("a", 2), card("b", 3)], edges: [flowEdge("1", ...ends)], hidden: 0 };

  const { boxes, edges, width } = layoutFlow(graph, true);

  const [a, b] = [boxes.get("a")!, boxes.get("b")!];
  assert.ok(b.y > a.y + a.height - 1);
  assert.deepEqual([a.x, a.width], [b.x, b.width]);
  const { points } = edges.get("1")!;
  assert.equal(points[0]!.x, a.x + a.width);
  assert.equal(points.at(-1)!.y - b.y, CARD.frame + CARD.head + 2.5 * CARD.row);
  assert.ok(width <= 390, `${width}`);
});

Deno.test("layoutFlow() of no cards is empty", () => {
  assert.equal(layoutFlow({ cards: [], edges: [], hidden: 0 }).boxes.size, 0);
});

function card(id: string, rows: number): FlowCard {
  const made = Array.from({ length: rows }, (_, i) => ({
    id: `${id}${i}`,
    label: `${id}::${i}`,
    functionId: null,
  }));
  return { id, kind: "worker", title: id, rows: made, hidden: 0 };
}

function flowEdge(
  id: string,
  from: FlowGraph["edges"][0]["from"],
  to: FlowGraph["edges"][0]["to"],
) {
  return { id, from, to, kind: "call" as const, functionId: null, mapEdges: [] };
}

Deno.test("flowGraph() leaves out triggers that do not fire, and so do its edges", () => {
  const [http, state, ...rest] = INPUT.triggers;
  const triggers = [
    { ...http!, status: "active" as const },
    { ...state!, status: "refused" as const },
    { ...state!, id: "9", trigger_type: "crn", status: "parked" as const },
    ...rest,
  ];

  const { cards, edges } = flowGraph({ ...INPUT, triggers }, VIEW);

  const types = cards.filter(({ kind }) => kind === "trigger").map(({ title }) => title);
  assert.deepEqual(types, ["http"]);
  assert.deepEqual(edges.filter(({ kind }) => kind === "trigger").length, 1);
});
