import assert from "node:assert/strict";
import type { FlowCard, FlowGraph } from "./flow_graph.ts";
import { CARD, layOutFlow, sizeOf } from "./flow_layout.ts";

Deno.test("sizeOf() makes room for each row, and for saying how many are hidden", () => {
  const none = sizeOf(card("a", 0)).height;

  assert.equal(sizeOf(card("a", 3)).height, none + 3 * CARD.row + CARD.foot);
  assert.equal(sizeOf({ ...card("a", 3), hidden: 9 }).height, none + 4 * CARD.row + CARD.foot);
});

Deno.test("sizeOf() is as wide as the longest name needs, within bounds", () => {
  assert.equal(sizeOf(card("a", 1)).width, CARD.minWidth);
  assert.equal(sizeOf(card("a".repeat(500), 1)).width, CARD.maxWidth);
});

Deno.test("layOutFlow() ends lines at the middle of their rows, or at the head", () => {
  const graph: FlowGraph = {
    cards: [card("a", 2), card("b", 3)],
    lines: [
      line("1", { card: "a", row: "a1" }, { card: "b", row: "b2" }),
      line("2", { card: "a", row: null }, { card: "b", row: null }),
    ],
    hidden: 0,
  };

  const { boxes, lines } = layOutFlow(graph);

  const [a, b] = [boxes.get("a")!, boxes.get("b")!];
  const row = lines.get("1")!.points;
  const head = lines.get("2")!.points;
  assert.equal(row[0]!.y - a.y, CARD.frame + CARD.head + 1.5 * CARD.row);
  assert.equal(row.at(-1)!.y - b.y, CARD.frame + CARD.head + 2.5 * CARD.row);
  assert.equal(head[0]!.y - a.y, CARD.frame + CARD.head / 2);
  assert.ok(a.x < b.x);
});

Deno.test("layOutFlow() in a narrow window goes down, from card to card", () => {
  const ends = [{ card: "a", row: "a1" }, { card: "b", row: "b2" }] as const;
  const graph = { cards: [card("a", 2), card("b", 3)], lines: [line("1", ...ends)], hidden: 0 };

  const { boxes, lines } = layOutFlow(graph, true);

  const [a, b] = [boxes.get("a")!, boxes.get("b")!];
  assert.ok(b.y > a.y + a.height - 1);
  assert.deepEqual(lines.get("1")!.points[0], { x: a.x + a.width / 2, y: a.y + a.height });
});

Deno.test("layOutFlow() of nothing is nothing", () => {
  assert.equal(layOutFlow({ cards: [], lines: [], hidden: 0 }).boxes.size, 0);
});

function card(id: string, rows: number): FlowCard {
  const made = Array.from({ length: rows }, (_, i) => ({
    id: `${id}${i}`,
    label: `${id}::${i}`,
    functionId: null,
  }));
  return { id, kind: "worker", title: id, rows: made, hidden: 0 };
}

function line(id: string, from: FlowGraph["lines"][0]["from"], to: FlowGraph["lines"][0]["to"]) {
  return { id, from, to, kind: "call" as const, functionId: null, edges: [] };
}
