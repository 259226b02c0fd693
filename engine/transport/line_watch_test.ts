import assert from "node:assert/strict";
import { LineWatch } from "./line_watch.ts";

Deno.test("LineWatch asks for a ping whenever its time has come", () => {
  const watch = new LineWatch(0, 100, 30);
  const found = [10, 29, 30, 40, 59, 60].map((now) => {
    watch.wasHeard = true;
    return watch.look(now, false, true);
  });

  assert.deepEqual(found, [undefined, undefined, "ping", undefined, undefined, "ping"]);
});

Deno.test("LineWatch asks for the first ping when it was told to, and then as ever", () => {
  const watch = new LineWatch(0, 100, 30, 10);
  const found = [9, 10, 39, 40].map((now) => watch.look(now, false, true));

  assert.deepEqual(found, [undefined, "ping", undefined, "ping"]);
});

Deno.test("LineWatch finds a peer silent that long after the last look at which it was heard", () => {
  const watch = new LineWatch(0, 100, 1_000);
  assert.equal(watch.look(50, false, true), undefined);
  assert.equal(watch.look(149, false, true), undefined);
  assert.equal(watch.look(150, false, true), "silent");
});

Deno.test("LineWatch does not take a peer for silent from which nobody reads", () => {
  const watch = new LineWatch(0, 100, 1_000);
  assert.equal(watch.look(1, false, true), undefined);
  assert.equal(watch.look(500, true, true), undefined);
  assert.equal(watch.look(599, false, true), undefined);
  assert.equal(watch.look(600, false, true), "silent");
});

Deno.test("LineWatch finds a peer stuck that takes nothing of what is due, and only then", () => {
  const watch = new LineWatch(0, 100, 1_000);
  const look = (now: number, isIdle: boolean): unknown => {
    watch.wasHeard = true;
    return watch.look(now, false, isIdle);
  };
  assert.equal(look(10, false), undefined);
  assert.equal(look(90, true), undefined);
  assert.equal(look(189, false), undefined);
  watch.hasMoved = true;
  assert.equal(look(190, false), undefined);
  assert.equal(look(290, false), "stuck");
});
