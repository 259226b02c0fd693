import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { ExportQueue } from "./queue.ts";

function setup(more: { most?: number; batch?: number } = {}) {
  const clock = new FakeClock();
  const sent: number[][] = [];
  const turns: PromiseWithResolvers<void>[] = [];
  const queue = new ExportQueue<number>({
    clock,
    most: more.most ?? 10,
    batch: more.batch ?? 3,
    delayMs: 1_000,
    send: (items) => {
      sent.push([...items]);
      const turn = Promise.withResolvers<void>();
      turns.push(turn);
      return turn.promise;
    },
  });
  const push = (...items: number[]) => items.forEach((item) => queue.push(item));
  /** The receiver answers. */
  const answer = async () => {
    turns.shift()!.resolve();
    for (let i = 0; i < 10; i++) await Promise.resolve();
  };
  return { clock, queue, sent, push, answer };
}

Deno.test("Items wait for others and leave together", () => {
  const it = setup();
  it.push(1, 2);
  it.clock.tick(999);
  assert.deepEqual(it.sent, []);
  it.clock.tick(1);

  assert.deepEqual(it.sent, [[1, 2]]);
});

Deno.test("A full batch waits for nobody", () => {
  const it = setup();
  it.push(1, 2, 3);

  assert.deepEqual(it.sent, [[1, 2, 3]]);
  assert.equal(it.clock.waiting, 0);
});

Deno.test("One batch is on its way at a time; what fills one meanwhile follows at once", async () => {
  const it = setup();
  it.push(1, 2, 3, 4, 5, 6, 7);
  assert.deepEqual(it.sent, [[1, 2, 3]]);
  await it.answer();
  assert.deepEqual(it.sent, [[1, 2, 3], [4, 5, 6]]);
  await it.answer();
  assert.equal(it.sent.length, 2);
  it.clock.tick(1_000);

  assert.deepEqual(it.sent[2], [7]);
});

Deno.test("What does not fit is dropped and counted, and the rest goes on", async () => {
  const it = setup({ most: 4 });
  it.push(1, 2, 3);
  it.push(4, 5, 6, 7, 8, 9);

  assert.deepEqual([it.queue.waiting, it.queue.dropped], [4, 2]);
  await it.answer();
  it.push(10);
  assert.deepEqual(it.sent[1], [4, 5, 6]);
  assert.equal(it.queue.dropped, 2);
});

Deno.test("flush() sends all that waits and returns when it has ended", async () => {
  const it = setup();
  it.push(1, 2, 3, 4);
  let isDone = false;
  const flushed = it.queue.flush().then(() => isDone = true);
  await it.answer();
  assert.deepEqual([it.sent.length, isDone], [2, false]);
  await it.answer();
  await flushed;

  assert.deepEqual(it.sent, [[1, 2, 3], [4]]);
});

Deno.test("flush() of an empty queue returns at once", async () => {
  await setup().queue.flush();
});

Deno.test("A closed queue sends nothing by itself", () => {
  const it = setup();
  it.push(1);
  it.queue.close();
  it.clock.tick(5_000);

  assert.deepEqual(it.sent, []);
});
