import assert from "node:assert/strict";
import { span } from "../../../../../tests/fakes/samples.ts";
import { boxAt, boxesToDraw, flameInTime, flameMerged } from "./flame.ts";
import { spanTree } from "./span_tree.ts";

const WINDOW = { startMs: 0, endMs: 100 };

Deno.test("flameInTime() places children below their parent, at their time", () => {
  const flame = flameInTime(
    spanTree([
      span({ id: "a", startMs: 0, endMs: 100 }),
      span({ id: "b", parentId: "a", startMs: 10, endMs: 30 }),
      span({ id: "c", parentId: "a", startMs: 40, endMs: 60 }),
    ]),
    WINDOW,
  );

  const boxes = flame.lanes.flat().map(({ label, lane, left, width }) => [
    label,
    lane,
    left,
    width,
  ]);
  assert.deepEqual(boxes, [["a", 0, 0, 1], ["b", 1, 0.1, 0.2], ["c", 1, 0.4, 0.2]]);
});

Deno.test("flameInTime() places spans that ran at once in different lanes", () => {
  const flame = flameInTime(
    spanTree([
      span({ id: "a", startMs: 0, endMs: 100 }),
      span({ id: "b", parentId: "a", startMs: 10, endMs: 50 }),
      span({ id: "c", parentId: "a", startMs: 20, endMs: 60 }),
      span({ id: "below-b", parentId: "b", startMs: 22, endMs: 30 }),
    ]),
    WINDOW,
  );

  const lanes = Object.fromEntries(flame.lanes.flat().map(({ label, lane }) => [label, lane]));
  assert.deepEqual(lanes, { a: 0, b: 1, c: 2, "below-b": 3 });
});

Deno.test("flameInTime() keeps a child with a wrong clock below its parent", () => {
  const spans = [
    span({ id: "b", parentId: "a", startMs: 1, endMs: 9 }),
    span({ id: "a", startMs: 2, endMs: 9 }),
  ];

  const flame = flameInTime(spanTree(spans), WINDOW);

  assert.deepEqual(flame.lanes.map(([box]) => box!.label), ["a", "b"]);
});

Deno.test("flameInTime() counts time that no child covers as self time", () => {
  const flame = flameInTime(
    spanTree([
      span({ id: "a", startMs: 0, endMs: 100 }),
      span({ id: "b", parentId: "a", startMs: 10, endMs: 50 }),
      span({ id: "c", parentId: "a", startMs: 20, endMs: 60 }),
      span({ id: "late", parentId: "a", startMs: 90, endMs: 500 }),
    ]),
    WINDOW,
  );

  assert.equal(flame.lanes[0]![0]!.selfMs, 40);
});

Deno.test("flameMerged() merges equal calls, the widest box first", () => {
  const flame = flameMerged(
    spanTree([
      span({ id: "1", name: "root", startMs: 0, endMs: 100 }),
      span({ id: "2", name: "get", parentId: "1", startMs: 0, endMs: 10 }),
      span({ id: "3", name: "put", parentId: "1", startMs: 10, endMs: 60 }),
      span({ id: "4", name: "get", parentId: "1", startMs: 60, endMs: 80, failed: true }),
    ]),
    100,
  );

  const boxes = flame.lanes.flat().map(({ label, count, width, left, ms }) => [
    label,
    count,
    width,
    left,
    ms,
  ]);
  assert.deepEqual(boxes, [["root", 1, 1, 0, 100], ["put", 1, 0.5, 0, 50], [
    "get",
    2,
    0.3,
    0.5,
    30,
  ]]);
  assert.deepEqual([flame.lanes[1]![1]!.failed, flame.lanes[1]![1]!.row], [true, 3]);
});

Deno.test("flameMerged() is as wide as the sum of all spans", () => {
  const flame = flameMerged(
    spanTree([
      span({ id: "a", startMs: 0, endMs: 100 }),
      span({ id: "b", parentId: "a", startMs: 0, endMs: 100 }),
      span({ id: "c", parentId: "a", startMs: 0, endMs: 100 }),
    ]),
    100,
  );

  assert.equal(flame.totalMs, 200);
  assert.deepEqual(flame.lanes[1]!.map(({ width }) => width), [0.5, 0.5]);
});

Deno.test("flame graphs of no spans, or of empty spans, are finite", () => {
  const instant = spanTree([span({ id: "a", startMs: 5, endMs: 5 })]);

  assert.deepEqual(flameMerged(spanTree([]), 0).lanes, []);
  assert.deepEqual(flameInTime(spanTree([]), WINDOW).lanes, []);
  assert.equal(flameMerged(instant, 5).lanes[0]![0]!.width, 0);
});

Deno.test("boxAt() finds the box at a position, and null between boxes", () => {
  const flame = flameInTime(
    spanTree([
      span({ id: "a", startMs: 10, endMs: 30 }),
      span({ id: "b", startMs: 50, endMs: 60 }),
    ]),
    WINDOW,
  );

  assert.equal(boxAt(flame, 0, 0.2)!.label, "a");
  assert.equal(boxAt(flame, 0, 0.55)!.label, "b");
  assert.equal(boxAt(flame, 0, 0.4), null);
  assert.equal(boxAt(flame, 7, 0.4), null);
});

Deno.test("boxesToDraw() returns no more boxes than fit, of a hundred thousand", () => {
  const spans = Array.from(
    { length: 100_000 },
    (_, i) => span({ id: `${i}`, startMs: i, endMs: i + 1 }),
  );
  const flame = flameInTime(spanTree(spans), { startMs: 0, endMs: 100_000 });

  const drawn = boxesToDraw(flame.lanes[0]!, 0, 1, 1 / 1000);
  const near = boxesToDraw(flame.lanes[0]!, 0.5, 0.5001, 1e-8);

  assert.ok(drawn.length <= 1100 && drawn.length > 500);
  assert.ok(near.length >= 10 && near.length <= 12);
});
