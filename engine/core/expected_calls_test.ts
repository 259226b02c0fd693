/**
 * Calls of functions that no worker offers and that are expected, such as those of a cluster whose
 * state is about to be kept by another engine.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  announce,
  answer,
  call,
  fakeRouter,
  handed,
  results,
} from "../../tests/fakes/fake_router.ts";
import { type Absences, NO_ABSENCES } from "../ports/absences.ts";
import { UNLIMITED_MEMORY } from "../ports/memory.ts";
import { CALL_PARK_MS } from "./parked_calls.ts";

function expecting() {
  const expected = new Set(["kept::get", "engine::queue::enqueue"]);
  const absences: Absences = { ...NO_ABSENCES, isExpected: (id) => expected.has(id) };
  const engine = fakeRouter({}, undefined, UNLIMITED_MEMORY, absences);
  const caller = engine.open();
  announce(caller);
  return { ...engine, caller, expected };
}

Deno.test("a call of an expected function waits until it is offered", () => {
  const { caller, open } = expecting();
  call(caller, "1", { function_id: "kept::get" });
  assert.deepEqual(results(caller), {});

  const worker = open();
  worker.say({ type: "registerfunction", id: "kept::get" });
  answer(worker, handed(worker)[0]!.invocation_id, "value");

  assert.deepEqual(results(caller), { 1: "value" });
});

Deno.test("a call of an expected function fails when it was not offered in time", () => {
  const { caller, clock } = expecting();
  call(caller, "1", { function_id: "kept::get" });

  clock.tick(CALL_PARK_MS);

  assert.deepEqual(results(caller), { 1: "function_not_found" });
});

Deno.test("a call of another engine does not wait for what a third one will offer", () => {
  const { open } = expecting();
  const engine = open({ engine: "b" });

  call(engine, "1", { function_id: "kept::get" });

  assert.deepEqual(results(engine), { 1: "function_not_found" });
});

Deno.test("an enqueue waits for the worker that provides queues", () => {
  const { caller, openBuiltin } = expecting();
  const action = { type: "enqueue", queue: "jobs" } as const;
  call(caller, "1", { function_id: "jobs::do", data: { n: 1 }, action });
  assert.deepEqual(results(caller), {});

  const queues = openBuiltin("engine-queue");
  queues.say({ type: "registerfunction", id: "engine::queue::enqueue" });

  const { data } = handed(queues)[0]! as { data?: Record<string, unknown> };
  assert.deepEqual([data?.queue, data?.function_id, data?.data], ["jobs", "jobs::do", { n: 1 }]);
});
