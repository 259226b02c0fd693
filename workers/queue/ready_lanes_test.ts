/**
 * The lane whose next job is first comes out first, also when its next job has changed.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Lane } from "./lane.ts";
import { ReadyLanes } from "./ready_lanes.ts";

const ROOM = { lengthMax: 100, take: () => true, release: () => {} };

function laneWith(...orders: number[]): Lane {
  const lane = new Lane(`${orders[0]}`, ROOM, true);
  for (const each of orders) {
    const order = String(each).padStart(4, "0");
    const job = {
      id: order,
      payload: null,
      lane: lane.name,
      priority: 0,
      attempts: 0,
      enqueued_at_ms: each,
      failures: [],
    };
    const entry = { key: [], value: null, json: "null", bytes: 1, version: 1, created: 1 };
    lane.arrive({ order, job, bytes: 1, entry });
  }
  return lane;
}

Deno.test("ReadyLanes gives lanes out by the order of their next job", () => {
  const ready = new ReadyLanes();
  const orders = Array.from({ length: 500 }, (_, i) => (i * 389) % 1_009);
  for (const order of orders) ready.push(laneWith(order));
  assert.equal(ready.oldestAtMs, 0);

  const popped: string[] = [];
  for (let lane = ready.pop(); lane; lane = ready.pop()) popped.push(lane.head!.order);

  assert.deepEqual(popped, orders.map((order) => String(order).padStart(4, "0")).sort());
  assert.equal(ready.oldestAtMs, null);
});

Deno.test("ReadyLanes forgets entries of a lane whose next job is another one", () => {
  const ready = new ReadyLanes();
  const lane = laneWith(5, 7);
  const other = laneWith(6);
  ready.push(lane);
  ready.push(lane);
  ready.push(other);
  lane.shift();
  ready.push(lane);

  assert.equal(ready.pop(), other);
  assert.equal(ready.pop(), lane);
  assert.equal(ready.pop(), undefined);
  ready.push(new Lane("empty", ROOM, true));
  assert.equal(ready.size, 0);
});
