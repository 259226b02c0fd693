/**
 * @module
 */
import assert from "node:assert/strict";
import { boundsOf, fitViewport, ZOOM_MAX, ZOOM_MIN, zoomViewport } from "./graph_canvas.tsx";

const WINDOW = { width: 1_000, height: 500 };

Deno.test("zoomViewport() keeps the point under the cursor in place", () => {
  const view = zoomViewport({ x: 10, y: 20, scale: 1 }, 2, 110, 70);

  assert.deepEqual(view, { scale: 2, x: -90, y: -30 });
});

Deno.test("zoomViewport() is bounded on both sides", () => {
  assert.equal(zoomViewport({ x: 0, y: 0, scale: 1 }, 1e9, 0, 0).scale, ZOOM_MAX);
  assert.equal(zoomViewport({ x: 0, y: 0, scale: 1 }, 1e-9, 0, 0).scale, ZOOM_MIN);
});

Deno.test("fitViewport() centres a small drawing, and scales a large one down", () => {
  const small = fitViewport({ x: 0, y: 0, width: 200, height: 100 }, WINDOW);
  const large = fitViewport({ x: -500, y: 0, width: 4_000, height: 100 }, WINDOW);

  assert.deepEqual(small, { scale: 1, x: 400, y: 200 });
  assert.equal(large.scale, 952 / 4_000);
  assert.equal(large.x + large.scale * -500, 24);
});

Deno.test("fitViewport() returns finite numbers for an empty view or drawing", () => {
  for (const box of [boundsOf([]), { x: 0, y: 0, width: 0, height: 0 }]) {
    const { x, y, scale } = fitViewport(box, { width: 0, height: 0 });
    assert.ok([x, y, scale].every(Number.isFinite));
  }
});

Deno.test("boundsOf() encloses all boxes", () => {
  const boxes = [{ x: 5, y: 5, width: 10, height: 10 }, { x: -5, y: 0, width: 5, height: 50 }];

  assert.deepEqual(boundsOf(boxes), { x: -5, y: 0, width: 20, height: 50 });
});

Deno.test("fitViewport() shows the upper part of a drawing that would be too small", () => {
  const drawing = { x: 0, y: 0, width: 2_000, height: 4_000 };

  const view = fitViewport(drawing, { width: 400, height: 800 }, 0.7);

  assert.equal(view.scale, 0.7);
  assert.equal(view.y, 24);
  assert.equal(view.x, 200 - 0.7 * 1_000);
  assert.ok(fitViewport(drawing, { width: 400, height: 800 }).scale < 0.2);
});
