import assert from "node:assert/strict";
import { TaskQueue } from "./task_queue.ts";

Deno.test("TaskQueue runs one task at a time, in order, and returns their results", async () => {
  const queue = new TaskQueue();
  const steps: string[] = [];
  const first = Promise.withResolvers<void>();

  const results = Promise.all([
    queue.run(async () => {
      steps.push("first begins");
      await first.promise;
      steps.push("first ends");
      return 1;
    }),
    queue.run(() => {
      steps.push("second");
      return Promise.resolve(2);
    }),
  ]);
  first.resolve();

  assert.deepEqual(await results, [1, 2]);
  assert.deepEqual(steps, ["first begins", "first ends", "second"]);
});

Deno.test("TaskQueue gives an error to the caller of the task and runs the next one", async () => {
  const queue = new TaskQueue();

  const failing = queue.run(() => Promise.reject(new Error("broken")));
  const next = queue.run(() => Promise.resolve("ran"));

  await assert.rejects(failing, { message: "broken" });
  assert.equal(await next, "ran");
});

Deno.test("TaskQueue.idle() waits for every task that was added, also for one that fails", async () => {
  const queue = new TaskQueue();
  let isDone = false;
  queue.run(() => Promise.reject(new Error("broken"))).catch(() => {});
  void queue.run(async () => {
    await Promise.resolve();
    isDone = true;
  });

  await queue.idle();

  assert.ok(isDone);
});
