/**
 * Peers with thousands of registrations whose connections have ended: these are removed in steps,
 * as if the peer took them back itself.
 *
 * @module
 */
import assert from "node:assert/strict";
import { call, calling, results, withTriggerType } from "../../tests/fakes/fake_router.ts";
import { RETIRED_AT_ONCE, RETIRED_DOWN_TO } from "./handovers.ts";

const MANY = RETIRED_DOWN_TO + 2 * RETIRED_AT_ONCE;

Deno.test("the functions of a peer that has gone are removed in steps, and no call gets there", () => {
  const { router, open, caller } = calling();
  const worker = open();
  for (let i = 0; i < MANY; i++) worker.say({ type: "registerfunction", id: `many::f${i}` });
  const count = (): number => router.directory.functionsOf(worker.worker_id).length;

  const steps = [worker.events.retire!()];
  assert.equal(count(), MANY - RETIRED_AT_ONCE);
  call(caller, "i0", { function_id: "many::f0" });
  steps.push(worker.events.retire!());
  assert.equal(count(), RETIRED_DOWN_TO);
  worker.cut();

  assert.deepEqual(steps, [true, false]);
  assert.match(JSON.stringify(results(caller)), /function_not_found/);
  assert.equal(router.directory.worker(worker.worker_id), undefined);
  assert.equal(worker.events.retire!(), false, "after its end there is nothing left");
});

Deno.test("the triggers of a peer that has gone are removed in steps, behind its functions", () => {
  const { router, open } = withTriggerType();
  const worker = open();
  for (let i = 0; i < MANY; i++) {
    const ids = { id: `t${i}`, trigger_type: "file-watch", function_id: "f" };
    worker.say({ type: "registertrigger", ...ids, config: { i } });
  }
  const first = router.directory.trigger("t0");

  const steps = [worker.events.retire!(), worker.events.retire!()];

  assert.deepEqual(steps, [true, false]);
  assert.notEqual(first, undefined);
  assert.equal(router.directory.trigger("t0"), undefined);
  assert.notEqual(router.directory.trigger(`t${MANY - 1}`), undefined);
  worker.cut();
  assert.equal(router.directory.trigger(`t${MANY - 1}`), undefined);
});

for (const isComingBack of [true, false]) {
  const what = isComingBack ? "stays for its successor" : "is removed in steps without one";
  Deno.test(`what a drained peer registered ${what}`, () => {
    const { router, open } = calling();
    const worker = open();
    for (let i = 0; i < MANY; i++) worker.say({ type: "registerfunction", id: `many::f${i}` });

    router.traffic.drain([worker.worker_id], { isComingBack });

    assert.equal(worker.events.retire!(), !isComingBack);
    const isThere = router.directory.function("default", "many::f0") !== undefined;
    assert.equal(isThere, isComingBack);
  });
}

Deno.test("a peer with few registrations ends at once", () => {
  const { worker } = calling();

  assert.equal(worker.events.retire!(), false);
});
