import assert from "node:assert/strict";
import { OfflineQueue } from "./offline_queue.ts";

function frame(invocation_id: string | undefined, bytes = 10) {
  return { invocation_id, bytes, write: () => `frame ${invocation_id}` };
}

Deno.test("OfflineQueue.takeAll() gives frames in order and keeps none", () => {
  const queue = new OfflineQueue(100);
  for (const id of ["a", undefined, "b", undefined]) assert.ok(queue.add(frame(id)));

  const taken = queue.takeAll().map(({ invocation_id }) => invocation_id);

  assert.deepEqual(taken, ["a", undefined, "b", undefined]);
  assert.deepEqual(queue.takeAll(), []);
  assert.equal(queue.bytes, 0);
});

Deno.test("OfflineQueue.add() refuses what does not fit and keeps what is there", () => {
  const queue = new OfflineQueue(25);

  assert.deepEqual([queue.add(frame("a")), queue.add(frame("b")), queue.add(frame("c"))], [
    true,
    true,
    false,
  ]);
  assert.ok(queue.add(frame("d", 5)));
  assert.equal(queue.bytes, 25);
});

Deno.test("OfflineQueue.remove() makes room again, once", () => {
  const queue = new OfflineQueue(20);
  queue.add(frame("a"));
  queue.add(frame("b"));

  queue.remove("a");
  queue.remove("a");
  queue.remove("unknown");

  assert.equal(queue.bytes, 10);
  assert.deepEqual(queue.takeAll().map(({ invocation_id }) => invocation_id), ["b"]);
});
