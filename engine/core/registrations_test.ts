/**
 * Bounds of what one worker, and all together, may register.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  announce,
  fakeRouter,
  type FakeWorker,
  only,
  results,
  TRIGGER,
  TYPE,
} from "../../tests/fakes/fake_router.ts";
import { createMemoryBudget } from "../platform/memory_budget.ts";
import type { MemoryBudget } from "../ports/memory.ts";
import { NO_HOLDING, Registrations, WORKER_REGISTRATIONS_BYTES_MAX } from "./registrations.ts";

const MIB = 1024 * 1024;
const LONG = "x".repeat(200_000);
/** Registrations of that size which fit one worker. */
const FIT = Math.floor(WORKER_REGISTRATIONS_BYTES_MAX / 200_100);

function setup(limitBytes = 1024 * MIB) {
  const memory = createMemoryBudget(limitBytes, () => {});
  return { memory, ...fakeRouter({}, undefined, memory) };
}

/** The code of the error frame that a worker was sent. */
function refusal(worker: FakeWorker): string | undefined {
  const message = worker.connection.take().at(-1);
  return message?.type === "error" ? message.error.code : undefined;
}

function fill(worker: FakeWorker, count = FIT): void {
  for (let i = 0; i < count; i++) {
    worker.say({ type: "registerfunction", id: `f${i}`, metadata: LONG });
  }
}

Deno.test("the registrations of one worker have a bound of bytes, which names what to do", () => {
  const { open, router } = setup();
  const [greedy, other] = [open(), open()];

  fill(greedy);
  assert.deepEqual(greedy.connection.take(), []);
  greedy.say({ type: "registerfunction", id: "more", metadata: LONG });

  const answer = only(greedy);
  assert.ok(answer.type === "error");
  assert.equal(answer.error.code, "overloaded");
  assert.match(answer.error.message, /^Function more is refused: .* unregister what is not needed/);
  assert.equal(answer.error.details?.limit_bytes, WORKER_REGISTRATIONS_BYTES_MAX);
  assert.equal(router.directory.function("default", "more"), undefined);
  other.say({ type: "registerfunction", id: "more", metadata: LONG });
  assert.ok(router.directory.function("default", "more"));
});

Deno.test("all kinds of registrations share the bound of a worker", () => {
  const { open } = setup();
  const worker = open();
  fill(worker);

  worker.say({ ...TYPE, description: LONG });
  assert.equal(refusal(worker), "overloaded");
  worker.say({ ...TRIGGER, config: LONG });
  assert.equal(refusal(worker), "overloaded");
  const data = { name: "w", description: LONG };
  const call = { type: "invokefunction", function_id: "engine::workers::register", data };
  worker.say({ ...call, invocation_id: "i1" });
  assert.deepEqual(results(worker), { i1: "overloaded" });
  const register = { ...call, function_id: "engine::register_trigger", data: { ...TRIGGER } };
  worker.say({ ...register, invocation_id: "i2", data: { ...register.data, config: LONG } });
  assert.deepEqual(results(worker), { i2: "overloaded" });
});

Deno.test("what is replaced or unregistered makes room", () => {
  const { open, router } = setup();
  const worker = open();
  fill(worker);

  worker.say({ type: "registerfunction", id: "f0", metadata: `${LONG}1` });
  worker.say({ type: "unregisterfunction", id: "f1" });
  worker.say({ type: "registerfunction", id: "more", metadata: LONG });

  assert.deepEqual(worker.connection.take(), []);
  assert.equal(router.directory.function("default", "f0")?.metadata, `${LONG}1`);
  assert.ok(router.directory.function("default", "more"));
});

Deno.test("all workers share the budget of the process, which a disconnect gives back", () => {
  const { open, memory } = setup(20 * MIB);
  const workers = Array.from({ length: 4 }, () => open());

  for (const worker of workers) fill(worker, 20);

  assert.equal(refusal(workers[3]!), "overloaded");
  assert.ok(memory.usedBytes <= 20 * MIB);
  for (const worker of workers) worker.cut();
  assert.equal(memory.usedBytes, 0);
});

Deno.test("whatever a worker registers and replaces, its disconnect gives back all memory", () => {
  const { open, memory } = setup();
  const [worker, other] = [open(), open()];
  for (const peer of [worker, worker, other]) {
    announce(peer);
    peer.say(TYPE);
    peer.say({ type: "registerfunction", id: "a::b", request_format: { type: "object" } });
    peer.say(TRIGGER);
    peer.say({ ...TRIGGER, id: "t2", trigger_type: "unknown" });
    peer.say({ ...TRIGGER, trigger_type: "other" });
    const data = { ...TRIGGER, trigger_type: "unknown" };
    peer.say({ type: "invokefunction", function_id: "engine::register_trigger", data });
  }
  other.say({ type: "unregistertriggertype", id: TYPE.id });
  assert.ok(memory.used("registrations") > 0);

  worker.cut();
  other.cut();

  assert.equal(memory.usedBytes, 0);
});

Deno.test("the memory of the triggers of a worker that is restarted is given back at last", () => {
  const { open, memory, router } = setup();
  const worker = open();
  announce(worker);
  worker.say(TRIGGER);
  const handover = router.traffic.drain([worker.worker_id], { isComingBack: true });

  worker.cut();
  assert.ok(memory.used("registrations") > 0);
  handover.end();

  assert.equal(memory.usedBytes, 0);
});

Deno.test("a refused trigger takes nothing", () => {
  const { open, memory } = setup();
  const [owner, thief] = [open(), open()];
  owner.say(TRIGGER);
  const before = memory.usedBytes;

  thief.say({ ...TRIGGER, config: LONG });

  assert.equal(memory.usedBytes, before);
});

Deno.test("parked calls count in the budget while they wait, and are refused beyond it", () => {
  const { open, memory, router, clock } = setup(MIB);
  const worker = open();
  worker.say({ type: "registerfunction", id: "f" });
  const caller = open();
  router.traffic.drain([worker.worker_id], { isComingBack: true });
  const call = { type: "invokefunction", function_id: "f", data: "x".repeat(300_000) };

  for (const invocation_id of ["i1", "i2", "i3", "i4"]) caller.say({ ...call, invocation_id });

  assert.deepEqual(results(caller), { i4: "overloaded" });
  assert.ok(memory.used("queues") > 900_000);
  clock.tick(10_000);
  assert.equal(Object.keys(results(caller)).length, 3);
  assert.equal(memory.used("queues"), 0);
});

Deno.test("Registrations.take() counts small JSON values, which take more than their text", () => {
  const memory: MemoryBudget = createMemoryBudget(1024 * MIB, () => {});
  const registrations = new Registrations(memory);
  const text = new TextEncoder().encode("[],".repeat(80_000));
  const worker = { isBuiltin: false, registeredBytes: 0 };

  const holding = registrations.take(worker, "It", { memory: text, start: 0, end: text.length });

  assert.ok("memoryBytes" in holding && holding.memoryBytes > 4 * MIB);
  assert.equal(worker.registeredBytes, text.length);
  registrations.release(worker, holding);
  assert.deepEqual([worker.registeredBytes, memory.usedBytes], [0, 0]);
});

Deno.test("Registrations.take() takes nothing for built-in workers", () => {
  const range = { memory: new Uint8Array(100), start: 0, end: 100 };
  const worker = { isBuiltin: true, registeredBytes: 0 };

  assert.equal(new Registrations(createMemoryBudget(0)).take(worker, "It", range), NO_HOLDING);
});
