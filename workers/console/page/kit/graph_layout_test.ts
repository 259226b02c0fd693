import assert from "node:assert/strict";
import { layoutGraph, layoutGraphWithin } from "./graph_layout.ts";

const box = (id: string) => ({ id, width: 100, height: 40 });

Deno.test("layoutGraph() places the target to the right of the source", () => {
  const layout = layoutGraph([box("b"), box("a")], [{ id: "ab", from: "a", to: "b" }]);

  const a = layout.boxes.get("a")!;
  const b = layout.boxes.get("b")!;
  assert.ok(b.x >= a.x + a.width);
  const { points } = layout.edges.get("ab")!;
  assert.deepEqual(points[0], { x: a.x + a.width, y: a.y + 20 });
  assert.deepEqual(points.at(-1), { x: b.x, y: b.y + 20 });
});

Deno.test("layoutGraph() never lets boxes overlap", () => {
  const boxes = Array.from({ length: 40 }, (_, i) => ({ ...box(`${i}`), height: 20 + i * 3 }));
  const edges = boxes.slice(1).map(({ id }, i) => ({ id, from: `${Math.floor(i / 3)}`, to: id }));

  const placed = [...layoutGraph(boxes, edges).boxes.values()];

  for (const a of placed) {
    for (const b of placed) {
      const apart = a === b || a.x + a.width <= b.x || b.x + b.width <= a.x ||
        a.y + a.height <= b.y || b.y + b.height <= a.y;
      assert.ok(apart, `${a.id} and ${b.id}`);
    }
  }
});

Deno.test("layoutGraph() handles cycles, loops and parallel edges", () => {
  const layout = layoutGraph([box("a"), box("b")], [
    { id: "ab", from: "a", to: "b" },
    { id: "ba", from: "b", to: "a" },
    { id: "aa", from: "a", to: "a" },
    { id: "ab2", from: "a", to: "b", fromY: 10, toY: -10 },
  ]);

  const edges = [...layout.edges.values()].map(({ points }) => points);
  assert.equal(new Set(edges.map((points) => JSON.stringify(points))).size, 4);
  for (const { x, y } of edges.flat()) assert.ok(Number.isFinite(x) && Number.isFinite(y));
});

Deno.test("layoutGraph() ends an edge at the given height", () => {
  const edge = { id: "l", from: "a", to: "b", fromY: 5, toY: -7 };
  const { boxes, edges } = layoutGraph([box("a"), box("b")], [edge]);

  const { points } = edges.get("l")!;
  assert.equal(points[0]!.y, boxes.get("a")!.y + 20 - 5);
  assert.equal(points.at(-1)!.y, boxes.get("b")!.y + 20 + 7);
});

Deno.test("layoutGraph() leaves out edges to missing boxes", () => {
  const layout = layoutGraph([box("a")], [{ id: "x", from: "a", to: "gone" }]);

  assert.equal(layout.edges.size, 0);
});

Deno.test("layoutGraph() of no boxes has a size", () => {
  const layout = layoutGraph([], []);

  assert.ok(layout.width > 0 && layout.height > 0);
});

Deno.test("layoutGraph() keeps everything within its size", () => {
  const layout = layoutGraph([box("a"), box("b"), box("c")], [{ id: "1", from: "a", to: "c" }]);

  for (const { x, y, width, height } of layout.boxes.values()) {
    assert.ok(x >= 0 && y >= 0);
    assert.ok(x + width <= layout.width && y + height <= layout.height);
  }
});

Deno.test("layoutGraph() leads a backward edge around the boxes between", () => {
  const boxes = ["a", "b", "c"].map(box);
  const layout = layoutGraph(boxes, [
    { id: "ab", from: "a", to: "b" },
    { id: "bc", from: "b", to: "c" },
    { id: "ca", from: "c", to: "a" },
  ]);

  const between = layout.boxes.get("b")!;
  const { points } = layout.edges.get("ca")!;
  const inside = points.filter(({ x, y }) =>
    x > between.x && x < between.x + between.width && y > between.y &&
    y < between.y + between.height
  );
  assert.deepEqual(inside, []);
  assert.ok(points[0]!.x > points.at(-1)!.x);
});

Deno.test("layoutGraph() downwards places the target below the source", () => {
  const layout = layoutGraph([box("a"), box("b")], [{ id: "l", from: "a", to: "b" }], {
    isDown: true,
  });

  const [a, b] = [layout.boxes.get("a")!, layout.boxes.get("b")!];
  assert.deepEqual([a.width, a.height], [100, 40]);
  assert.ok(b.y >= a.y + a.height);
  assert.deepEqual(layout.edges.get("l")!.points[0], { x: a.x + 50, y: a.y + 40 });
});

Deno.test("layoutGraphWithin() lays out downwards where that needs less room", () => {
  const boxes = ["a", "b", "c", "d"].map(box);
  const edges = ["b", "c", "d"].map((to, i) => ({ id: to, from: boxes[i]!.id, to }));

  const narrow = layoutGraphWithin(boxes, edges, { width: 300, height: 800 });
  const wide = layoutGraphWithin(boxes, edges, { width: 1200, height: 300 });

  assert.ok(narrow.height > narrow.width);
  assert.ok(wide.width > wide.height);
});

const LABEL = { width: 60, height: 16 };

Deno.test("layoutGraph() leads an edge past the boxes of the columns between", () => {
  const boxes = ["a", "b", "c", "d", "e"].map(box);
  const edges = [["a", "b"], ["a", "c"], ["a", "d"], ["b", "e"], ["c", "e"], ["d", "e"], ["a", "e"]]
    .map(([from, to]) => ({ id: `${from}${to}`, from: from!, to: to! }));

  for (const isDown of [false, true]) {
    const layout = layoutGraph(boxes, edges, { label: LABEL, isDown });
    const { points } = layout.edges.get("ae")!;
    for (const id of ["b", "c", "d"]) {
      const { x, y, width, height } = layout.boxes.get(id)!;
      const inside = points.filter((at) =>
        at.x > x && at.x < x + width && at.y > y && at.y < y + height
      );
      assert.deepEqual(inside, [], `${id}, isDown ${isDown}`);
    }
  }
});

Deno.test("layoutGraph() keeps labels clear of boxes and of each other", () => {
  const boxes = ["a", "b", "c", "d", "e"].map(box);
  const edges = ["b", "c", "d", "e"].flatMap((to, i) => [
    { id: `a${to}`, from: "a", to },
    { id: `a${to}2`, from: "a", to, fromY: 8 },
    { id: `${to}e`, from: boxes[i]!.id, to: "e" },
  ]).filter(({ from, to }) => from !== to);

  const layout = layoutGraph(boxes, edges, { label: LABEL });

  const words = [...layout.edges.values()].map(({ id, label: { x, y } }) => {
    return { id, x: x - LABEL.width / 2, y: y - LABEL.height / 2, ...LABEL };
  });
  const all = [...words, ...layout.boxes.values()];
  for (const one of words) {
    for (const other of all) {
      const apart = one === other || one.x + one.width <= other.x ||
        other.x + other.width <= one.x || one.y + one.height <= other.y ||
        other.y + other.height <= one.y;
      assert.ok(apart, `${one.id} and ${other.id}`);
    }
  }
});

Deno.test("layoutGraph() leads an edge through the space of its label", () => {
  const edges = [{ id: "ab", from: "a", to: "b" }, { id: "ab2", from: "a", to: "b", fromY: 9 }];
  const layout = layoutGraph([box("a"), box("b")], edges, { label: LABEL });

  for (const { id, points, label } of layout.edges.values()) {
    const near = points.filter(({ x, y }) =>
      Math.abs(x - label.x) <= LABEL.width / 2 && Math.abs(y - label.y) <= 1
    );
    assert.ok(near.length > 0, id);
  }
});

Deno.test("layoutGraph() does not cross edges between the same two boxes", () => {
  const heights = [-12, 4, 12, -4];
  const edges = heights.map((y) => ({ id: `${y}`, from: "a", to: "b", fromY: y, toY: y }));

  const { edges: placed } = layoutGraph([box("a"), box("b")], edges, { label: LABEL });

  const fromAbove = [...placed.values()].sort((a, b) => a.label.y - b.label.y);
  assert.deepEqual(fromAbove.map(({ id }) => Number(id)), [12, 4, -4, -12]);
});
