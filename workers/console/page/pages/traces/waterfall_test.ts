import assert from "node:assert/strict";
import { span } from "../../../../../tests/fakes/samples.ts";
import { spanTree } from "./span_tree.ts";
import { barOf, panWindow, ticksOf, wholeWindow, zoomWindow } from "./waterfall.ts";

const WINDOW = { startMs: 1000, endMs: 1100 };

Deno.test("barOf() is a fraction of the window", () => {
  const bar = barOf(row({ startMs: 1010, endMs: 1060 }), WINDOW, 0);

  assert.deepEqual(bar, { left: 0.1, width: 0.5, queued: null, handler: null, isOpen: false });
});

Deno.test("barOf() has parts for queue and handler", () => {
  const attributes = { "engine.queued_ms": 20 };
  const waited = { ...row({ startMs: 1000, endMs: 1100, attributes }) };

  const bar = barOf({ ...waited, handler: { id: "h", startMs: 1030, endMs: 1090 } }, WINDOW, 0)!;

  assert.deepEqual(bar.queued, { left: 0, width: 0.2 });
  assert.equal(bar.handler!.left, 0.3);
  assert.ok(Math.abs(bar.handler!.width - 0.6) < 1e-9);
});

Deno.test("barOf() cuts a handler to its call", () => {
  const call = {
    ...row({ startMs: 1020, endMs: 1040 }),
    handler: { id: "h", startMs: 1000, endMs: 2000 },
  };

  const { handler } = barOf(call, WINDOW, 0)!;

  assert.ok(Math.abs(handler!.left - 0.2) < 1e-9);
  assert.ok(Math.abs(handler!.width - 0.2) < 1e-9);
});

Deno.test("barOf() leaves out a handler outside of its call", () => {
  const call = {
    ...row({ startMs: 1020, endMs: 1040 }),
    handler: { id: "h", startMs: 1050, endMs: 1060 },
  };

  assert.equal(barOf(call, WINDOW, 0)!.handler, null);
});

Deno.test("barOf() of a running span ends now and is open", () => {
  const bar = barOf(row({ startMs: 1050, endMs: null }), WINDOW, 1075)!;

  assert.deepEqual([bar.left, bar.width, bar.isOpen], [0.5, 0.25, true]);
});

Deno.test("barOf() is null outside of the window and cut at its edges", () => {
  assert.equal(barOf(row({ startMs: 0, endMs: 999 }), WINDOW, 0), null);
  assert.equal(barOf(row({ startMs: 1101, endMs: 1102 }), WINDOW, 0), null);
  const cut = barOf(row({ startMs: 900, endMs: 1300 }), WINDOW, 0)!;
  assert.deepEqual([cut.left, cut.width], [0, 1]);
});

Deno.test("wholeWindow() is never empty", () => {
  const tree = spanTree([span({ id: "a", startMs: 5, endMs: 5 })]);
  const window = wholeWindow(tree, 9_000);

  assert.ok(window.endMs > window.startMs && window.endMs < 6);
});

Deno.test("wholeWindow() of a running trace ends now", () => {
  const tree = spanTree([span({ id: "a", startMs: 5, endMs: null })]);

  assert.deepEqual(wholeWindow(tree, 50), { startMs: 5, endMs: 50 });
});

Deno.test("ticksOf() are round times since the start of the trace", () => {
  const ms = (window: typeof WINDOW, count: number) =>
    ticksOf(window, 1000, count).map((tick) => Math.round(tick.ms * 1e6) / 1e6);

  assert.deepEqual(ms(WINDOW, 5), [0, 20, 40, 60, 80, 100]);
  assert.deepEqual(ms({ startMs: 1013, endMs: 1020 }, 4), [14, 16, 18, 20]);
  assert.deepEqual(ms({ startMs: 1000, endMs: 1000.3 }, 3), [0, 0.1, 0.2, 0.3]);
  assert.deepEqual(ms({ startMs: 1000, endMs: 1000 }, 3), []);
});

Deno.test("zoomWindow() keeps its fixed point, within the trace", () => {
  const near = zoomWindow(WINDOW, WINDOW, 0.5, 0.1);

  assert.ok(Math.abs(near.startMs - 1045) < 1e-9 && Math.abs(near.endMs - 1055) < 1e-9);
  assert.deepEqual(zoomWindow(near, WINDOW, 0.5, 1000), WINDOW);
  const tiny = zoomWindow(near, WINDOW, 0.5, 1e-12);
  assert.ok(tiny.endMs - tiny.startMs >= 0.0099);
});

Deno.test("panWindow() stops at the edges of the trace", () => {
  const near = { startMs: 1010, endMs: 1020 };

  assert.deepEqual(panWindow(near, WINDOW, 0.5), { startMs: 1015, endMs: 1025 });
  assert.deepEqual(panWindow(near, WINDOW, -9), { startMs: 1000, endMs: 1010 });
  assert.deepEqual(panWindow(near, WINDOW, 99), { startMs: 1090, endMs: 1100 });
});

function row(fields: Omit<Parameters<typeof span>[0], "id">) {
  return spanTree([span({ id: "a", ...fields })]).rows[0]!;
}
