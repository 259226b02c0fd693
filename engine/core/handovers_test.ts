/**
 * Workers that are relieved of their calls: who gets them, and when a handover is over.
 *
 * @module
 */
import assert from "node:assert/strict";
import { CALL_HOLD_MS, FUNCTIONS_PER_WORKER_MAX } from "../../sdk/typescript/wire/limits.ts";
import { announce, answer, call, calling, handed, results } from "../../tests/fakes/calling.ts";
import type { FakeWorker } from "../../tests/fakes/fake_router.ts";

const COMES = { isComingBack: true };
const GOES = { isComingBack: false };

function offers(line: FakeWorker, id = "f", fields: object = {}): void {
  line.say({ type: "registerfunction", id, ...fields });
}

function comesBack(line: FakeWorker, { worker_id, reattach_token }: FakeWorker): void {
  line.say({ type: "reattach", previous_worker_id: worker_id, reattach_token });
}

Deno.test("others take over at once from a worker that drains, and what it runs goes on", () => {
  const { router, worker, caller, open } = calling();
  call(caller, "i0");
  const [running] = handed(worker);
  const other = open();
  offers(other);

  const handover = router.traffic.drain([worker.worker_id], COMES);
  for (const id of ["i1", "i2", "i3"]) call(caller, id);

  assert.deepEqual([handed(worker).length, handed(other).length], [0, 3]);
  assert.equal(handover.runningCalls, 1);
  answer(worker, running!.invocation_id);
  assert.deepEqual(results(caller), { i0: "done" });
  assert.equal(handover.runningCalls, 0);
});

Deno.test("a worker that drains is shown so, and what it offers stays listed until it leaves", () => {
  const { router, worker, caller } = calling();

  router.traffic.drain([worker.worker_id], COMES);

  const { directory } = router;
  const statuses = [worker, caller].map(({ worker_id }) => directory.worker(worker_id)?.status);
  assert.deepEqual(statuses, ["draining", "connected"]);
  assert.deepEqual(directory.function("default", "f")?.worker_ids, [worker.worker_id]);
  worker.cut();
  assert.equal(directory.function("default", "f"), undefined);
});

Deno.test("a worker that drains may call others, take back what it offers and offer more", () => {
  const { router, worker, caller, open } = calling();
  const other = open();
  offers(other, "g");
  router.traffic.drain([worker.worker_id], GOES);

  call(worker, "w1", { function_id: "g" });
  answer(other, handed(other)[0]!.invocation_id);
  worker.say({ type: "unregisterfunction", id: "f" });
  offers(worker, "h");
  call(caller, "i1", { function_id: "h" });

  assert.deepEqual(results(worker), { w1: "done" });
  assert.deepEqual(router.directory.function("default", "h")?.worker_ids, [worker.worker_id]);
  assert.deepEqual(results(caller), { i1: "function_not_found" });
});

Deno.test("without a return, calls that only draining workers could run fail at once", () => {
  const { router, worker, caller } = calling();
  router.traffic.drain([worker.worker_id], GOES);

  call(caller, "i1");

  const [message] = caller.connection.take();
  assert.deepEqual(message?.type === "invocationresult" && message.error, {
    code: "function_not_found",
    message: "Function f not found",
  });
  assert.deepEqual([handed(worker), router.runningCalls], [[], 0]);
});

Deno.test("a call that a draining worker runs may call what only that worker offers", () => {
  const { router, worker, caller } = calling();
  offers(worker, "own");
  call(caller, "i1");
  const [outer] = handed(worker);
  router.traffic.drain([worker.worker_id], COMES);

  call(worker, "w1", { function_id: "own" });
  call(caller, "i2", { function_id: "own" });

  const nested = handed(worker);
  assert.deepEqual(nested.map(({ function_id }) => function_id), ["own"]);
  answer(worker, nested[0]!.invocation_id, "inner");
  answer(worker, outer!.invocation_id);
  assert.deepEqual(results(worker), { w1: "inner" });
  assert.deepEqual(results(caller), { i1: "done" });
  assert.equal(router.runningCalls, 1);
});

Deno.test("a draining worker that runs nothing gets its own calls no more than others", () => {
  const { router, worker, caller, open } = calling();
  router.traffic.drain([worker.worker_id], GOES);
  call(worker, "w1");
  assert.deepEqual(results(worker), { w1: "function_not_found" });

  const other = open();
  offers(other);
  offers(other, "g");
  offers(worker, "g");
  call(caller, "i1");
  call(worker, "w2", { function_id: "g" });

  assert.deepEqual([handed(worker).length, handed(other).length], [0, 2]);
});

Deno.test("lines that are over or never were are passed over", () => {
  const { router, worker, caller } = calling();
  worker.cut();

  const handover = router.traffic.drain([worker.worker_id, "nobody", "", caller.worker_id], COMES);
  call(caller, "i1");

  assert.equal(handover.runningCalls, 0);
  assert.equal(router.directory.worker(caller.worker_id)?.status, "draining");
  assert.deepEqual(results(caller), { i1: "function_not_found" });
  router.traffic.drain([], COMES).end();
});

Deno.test("a handover that ends early leaves its lines relieved and lets nothing wait", () => {
  const { router, worker, caller } = calling();
  const handover = router.traffic.drain([worker.worker_id], COMES);
  call(caller, "i1");

  handover.end();
  call(caller, "i2");

  assert.deepEqual(results(caller), { i1: "function_not_found", i2: "function_not_found" });
  assert.deepEqual(handed(worker), []);
  assert.equal(router.directory.worker(worker.worker_id)?.status, "draining");
});

Deno.test("a handover ends once, and takes nothing from one that is open", () => {
  const { router, worker, caller } = calling();
  const first = router.traffic.drain([worker.worker_id], COMES);
  const second = router.traffic.drain([worker.worker_id, worker.worker_id], COMES);
  worker.cut();
  call(caller, "i1");

  first.end();
  first.end();

  assert.deepEqual(results(caller), {});
  second.end();
  assert.deepEqual(results(caller), { i1: "function_not_found" });
  second.end();
  assert.equal(router.runningCalls, 0);
});

Deno.test("two workers that drain at once leave calls waiting for either of them", () => {
  const { router, worker, caller, open } = calling();
  const other = open();
  offers(other);
  const first = router.traffic.drain([worker.worker_id], COMES);
  call(caller, "i1");
  assert.equal(handed(other).length, 1);
  const second = router.traffic.drain([other.worker_id], COMES);
  call(caller, "i2");

  worker.cut();
  const again = open();
  offers(again);

  assert.equal(handed(again).length, 1);
  first.end();
  call(caller, "i3");
  assert.deepEqual([handed(again).length, handed(other).length], [1, 0]);
  second.end();
});

Deno.test("of two handovers of one line, either makes its calls wait", () => {
  const { router, worker, caller, open } = calling();
  const stop = router.traffic.drain([worker.worker_id], GOES);
  const restart = router.traffic.drain([worker.worker_id], COMES);
  call(caller, "i1");
  stop.end();
  worker.cut();
  call(caller, "i2");

  const again = open();
  offers(again);

  assert.equal(handed(again).length, 2);
  restart.end();
});

Deno.test("a line that left for good is expected after all while its handover is open", () => {
  const { router, worker, caller, open } = calling();
  const stop = router.traffic.drain([worker.worker_id], GOES);
  worker.cut();
  call(caller, "i1");
  assert.deepEqual(results(caller), { i1: "function_not_found" });

  const start = router.traffic.drain([worker.worker_id], COMES);
  stop.end();
  call(caller, "i2");
  const again = open();
  offers(again);

  assert.equal(handed(again).length, 1);
  start.end();
  assert.equal(router.traffic.drain([worker.worker_id], COMES).runningCalls, 0);
  again.cut();
  call(caller, "i3");
  assert.deepEqual(results(caller), { i2: "invocation_stopped", i3: "function_not_found" });
});

Deno.test("a second restart while the first is open hands over twice", () => {
  const { router, worker, caller, open } = calling();
  const first = router.traffic.drain([worker.worker_id], COMES);
  worker.cut();
  const second = open();
  offers(second);
  const again = router.traffic.drain([second.worker_id], COMES);
  call(caller, "i1");
  first.end();
  second.cut();
  call(caller, "i2");
  assert.deepEqual(results(caller), {});

  const third = open();
  offers(third);

  assert.equal(handed(third).length, 2);
  again.end();
});

Deno.test("a worker that crashes while it drains is waited for like one that left", () => {
  const { router, worker, caller, open } = calling();
  call(caller, "i1");
  const handover = router.traffic.drain([worker.worker_id], COMES);
  call(caller, "i2");

  worker.cut(1006);

  assert.deepEqual(results(caller), { i1: "invocation_stopped" });
  const again = open();
  offers(again);
  assert.equal(handed(again).length, 1);
  handover.end();
});

for (const [when, cut] of [["before", true], ["after", false]] as const) {
  Deno.test(`a draining worker whose line ends ${when} it is on another is relieved there too`, () => {
    const { router, worker, caller, open } = calling();
    const handover = router.traffic.drain([worker.worker_id], COMES);
    if (cut) worker.cut();
    const again = open();
    comesBack(again, worker);
    offers(again);
    offers(again, "g");
    call(caller, "i1");
    call(caller, "i2", { function_id: "g" });

    assert.deepEqual([handed(again), results(caller)], [[], {}]);
    assert.equal(router.directory.worker(again.worker_id)?.status, "draining");
    const successor = open();
    offers(successor);
    offers(successor, "g");
    assert.equal(handed(successor).length, 2);
    handover.end();
  });
}

Deno.test("a wrong token does not make a line the successor of one that drains", () => {
  const { router, worker, caller, open } = calling();
  router.traffic.drain([worker.worker_id], COMES);
  worker.cut();
  const again = open();

  comesBack(again, { ...worker, reattach_token: "x" });
  offers(again);
  call(caller, "i1");

  assert.equal(handed(again).length, 1);
});

Deno.test("a line that came back after its handover is a line like any other", () => {
  const { router, worker, caller, open } = calling();
  const handover = router.traffic.drain([worker.worker_id], COMES);
  worker.cut();
  handover.end();
  const again = open();

  comesBack(again, worker);
  offers(again);
  call(caller, "i1");

  assert.equal(handed(again).length, 1);
});

Deno.test("calls wait for their function in its own namespace", () => {
  const { router, worker, caller, open } = calling();
  offers(worker, "f", { namespace: "eu" });
  router.traffic.drain([worker.worker_id], COMES);
  worker.cut();
  call(caller, "i1", { namespace: "eu" });
  call(caller, "i2", { namespace: "us" });

  const again = open();
  offers(again);
  assert.deepEqual([handed(again).length, results(caller)], [0, { i2: "function_not_found" }]);
  offers(again, "f", { namespace: "eu" });
  assert.equal(handed(again).length, 1);
});

Deno.test("functions that a draining worker offers and takes back do not add up for ever", () => {
  const { router, worker, caller, clock } = calling();
  router.traffic.drain([worker.worker_id], COMES);
  for (let i = 1; i <= FUNCTIONS_PER_WORKER_MAX; i++) {
    offers(worker, `f${i}`);
    worker.say({ type: "unregisterfunction", id: `f${i}` });
  }

  call(caller, "i1", { function_id: `f${FUNCTIONS_PER_WORKER_MAX - 1}` });
  call(caller, "i2", { function_id: `f${FUNCTIONS_PER_WORKER_MAX}` });

  assert.deepEqual(results(caller), { i2: "function_not_found" });
  clock.tick(CALL_HOLD_MS);
  assert.deepEqual(results(caller), { i1: "function_not_found" });
});

Deno.test("an engine that has closed relieves nobody and ends handovers quietly", () => {
  const { router, worker, caller, clock } = calling();
  const handover = router.traffic.drain([worker.worker_id], COMES);
  call(caller, "i1");
  call(caller, "i2", { action: { type: "void" } });
  announce(worker);

  router.close();

  assert.deepEqual([router.runningCalls, clock.waiting], [0, 0]);
  handover.end();
  assert.equal(router.traffic.drain([worker.worker_id], COMES).runningCalls, 0);
});
