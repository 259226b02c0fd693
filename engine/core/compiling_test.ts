/**
 * Calls that wait until the schema of their function is compiled.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  announce,
  answer,
  call,
  fakeRouter,
  fakeSchemas,
  handed,
  only,
  results,
} from "../../tests/fakes/fake_router.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { SchemaCheck } from "../ports/schemas.ts";
import { CALL_PARK_MS, PARKED_CALLS_MAX } from "./parked_calls.ts";

const FORMAT = { type: "object", required: ["a"] };
const VOID = { action: { type: "void" } } as const;
const ENQUEUE = { action: { type: "enqueue", queue: "q" } } as const;

/** A worker that offers `f` and a caller; schemas are compiled when the test says so. */
function setup(request_format: Json = FORMAT) {
  const jobs: (() => Iterable<void>)[] = [];
  const compileSoon = (
    schema: Json,
    _owner: object,
    onCompiled: (outcome: SchemaCheck | Error) => Iterable<void>,
  ): boolean => {
    jobs.push(() => {
      let outcome: SchemaCheck | Error;
      try {
        outcome = fakeSchemas.compile(schema);
      } catch (thrown) {
        outcome = thrown as Error;
      }
      return onCompiled(outcome);
    });
    return true;
  };
  const schemas = { ...fakeSchemas, compileSoon };
  const none = [undefined, undefined, undefined, undefined] as const;
  const engine = fakeRouter({}, ...none, schemas);
  const [worker, caller] = [engine.open(), engine.open()];
  for (const peer of [worker, caller]) announce(peer);
  worker.say({ type: "registerfunction", id: "f", request_format });
  /** Compiles all schemas that wait; returns how many. */
  const compile = (): number => {
    const due = jobs.splice(0);
    for (const job of due) Array.from(job());
    return due.length;
  };
  /** Compiles a schema; each step of the result starts a call. */
  const compileNext = (): Iterator<void> => jobs.shift()!()[Symbol.iterator]();
  return { ...engine, worker, caller, compile, compileNext };
}

Deno.test("calls wait until the schema is compiled, and start in the order of their arrival", () => {
  const { worker, caller, open, compile } = setup();
  const other = open();

  call(caller, "i1", { data: { a: 1 } });
  call(other, "i1", { data: { a: 2 } });
  call(caller, "i2", { data: { a: 3 }, ...VOID });
  assert.deepEqual(handed(worker), []);

  assert.equal(compile(), 1);
  call(other, "i2", { data: { a: 4 } });
  assert.deepEqual(handed(worker).map(({ data }) => data), [{ a: 1 }, { a: 2 }, { a: 3 }, {
    a: 4,
  }]);
  assert.equal(compile(), 0);
});

Deno.test("calls that waited start one at a time, and others do not wait for them", () => {
  const { worker, caller, compileNext } = setup();
  for (let i = 1; i <= 3; i++) call(caller, `i${i}`, { data: { a: i } });

  const starts = compileNext();
  starts.next();
  call(caller, "i4", { data: { a: 4 } });
  starts.next();
  assert.deepEqual(handed(worker).map(({ data }) => data), [{ a: 1 }, { a: 4 }, { a: 2 }]);
  starts.next();
  assert.equal(starts.next().done, true);

  assert.deepEqual(handed(worker).map(({ data }) => data).at(-1), { a: 3 });
});

Deno.test("a call whose turn comes too late can be made again", () => {
  const { worker, caller, clock, compileNext } = setup();
  call(caller, "i1", { data: { a: 1 } });
  call(caller, "i2", { data: { a: 2 } });

  const starts = compileNext();
  starts.next();
  clock.tick(CALL_PARK_MS);
  assert.equal(starts.next().done, true);

  assert.deepEqual(results(caller), { i2: "overloaded" });
  assert.equal(handed(worker).length, 1);
});

Deno.test("a payload that does not fit is refused once the schema is compiled", () => {
  const { worker, caller, compile } = setup();
  call(caller, "i1", { data: {} });
  call(caller, "i2", { data: { a: 1 } });
  assert.deepEqual(results(caller), {});

  compile();

  assert.deepEqual(results(caller), { i1: "invalid_payload" });
  const [started] = handed(worker);
  answer(worker, started!.invocation_id, 7);
  assert.deepEqual(results(caller), { i2: 7 });
});

Deno.test("a schema that cannot be used is reported, and not enforced", () => {
  const { worker, caller, events, compile } = setup({ type: "string" });
  call(caller, "i1", { data: 5 });

  compile();
  call(caller, "i2", { data: 6 });

  assert.deepEqual(handed(worker).map(({ data }) => data), [5, 6]);
  const warnings = events.filter(({ type }) => type === "warning");
  assert.match(JSON.stringify(warnings), /request_format is not enforced/);
  assert.equal(compile(), 0);
});

Deno.test("a call that waits can be cancelled and falls due", () => {
  const { worker, caller, clock, compile } = setup();
  call(caller, "i1", { data: { a: 1 } });
  call(caller, "i2", { data: { a: 1 }, timeout_ms: 100 });

  caller.say({ type: "cancelinvocation", invocation_id: "i1" });
  clock.tick(100);

  assert.deepEqual(results(caller), { i1: "cancelled", i2: "timeout" });
  compile();
  assert.deepEqual(handed(worker), []);
});

Deno.test("the callee receives the time that a call has left when it has waited", () => {
  const { worker, caller, clock, compile } = setup();
  call(caller, "i1", { data: { a: 1 }, timeout_ms: 1_000 });

  clock.tick(400);
  compile();

  assert.deepEqual(handed(worker).map(({ timeout_ms }) => timeout_ms), [600]);
});

Deno.test("a call whose schema is not compiled in time can be made again", () => {
  const { caller, clock, compile } = setup();
  call(caller, "i1", { data: { a: 1 } });

  clock.tick(CALL_PARK_MS);

  assert.deepEqual(results(caller), { i1: "overloaded" });
  assert.equal(compile(), 1);
});

Deno.test("a bounded number of calls waits", () => {
  const { caller, open, compile, worker } = setup();
  for (let i = 0; i < PARKED_CALLS_MAX; i++) call(open(), "i", { data: { a: 1 } });

  call(caller, "i1", { data: { a: 1 } });

  const { error } = only(caller) as { error?: { code: string; message: string } };
  assert.equal(error?.code, "overloaded");
  assert.match(error.message, /schemas that are being compiled$/);
  compile();
  assert.ok(handed(worker).length > 0);
});

Deno.test("calls that wait end when the worker has left before its schema is compiled", () => {
  const { worker, caller, compile, router } = setup();
  call(caller, "i1", { data: { a: 1 } });

  worker.cut();
  assert.deepEqual(results(caller), {});
  compile();

  assert.deepEqual(results(caller), { i1: "function_not_found" });
  assert.equal(router.runningCalls, 0);
});

Deno.test("calls that wait end when the worker drains before its schema is compiled", () => {
  const { worker, caller, compile, router } = setup();
  call(caller, "i1", { data: { a: 1 } });

  router.traffic.drain([worker.worker_id], { isComingBack: false });
  compile();

  assert.deepEqual(results(caller), { i1: "function_not_found" });
});

Deno.test("calls wait for no schema while another replica has room", () => {
  const { worker, caller, open, compile } = setup();
  call(caller, "i1", { data: { a: 1 } });
  compile();
  const [next, idle] = [open(), open()];
  next.say({ type: "registerfunction", id: "f", request_format: FORMAT });

  for (let i = 2; i <= 4; i++) call(caller, `i${i}`, { data: { a: i } });
  assert.deepEqual(handed(worker).map(({ data }) => data), [1, 2, 3, 4].map((a) => ({ a })));
  idle.say({ type: "registerfunction", id: "f" });
  call(caller, "i5", { data: { a: 5 } });

  assert.deepEqual(handed(idle).map(({ data }) => data), [{ a: 5 }]);
  assert.equal(compile(), 1);
  call(caller, "i6", { data: { a: 6 } });
  assert.deepEqual(handed(next).map(({ data }) => data), [{ a: 6 }]);
});

Deno.test("calls that wait go to the worker that took the place of one that left", () => {
  const { worker, caller, open, compile } = setup();
  call(caller, "i1", { data: { a: 1 } });
  worker.cut();
  const next = open();
  next.say({ type: "registerfunction", id: "f", request_format: FORMAT });

  assert.equal(compile(), 2, "the schemas of both");

  assert.deepEqual(handed(next).map(({ data }) => data), [{ a: 1 }]);
});

Deno.test("a caller that leaves waits no longer", () => {
  const { worker, caller, compile, router } = setup();
  call(caller, "i1", { data: { a: 1 } });

  caller.cut();
  assert.equal(router.runningCalls, 0);
  compile();

  assert.deepEqual(handed(worker), []);
});

Deno.test("a job is put into its queue once the schema of its function is compiled", () => {
  const { caller, openBuiltin, compile } = setup();
  const queues = openBuiltin("engine-queue");
  queues.say({ type: "registerfunction", id: "engine::queue::enqueue" });
  call(caller, "i1", { data: { a: 1 }, ...ENQUEUE });
  call(caller, "i2", { data: {}, ...ENQUEUE });
  assert.deepEqual(handed(queues), []);

  compile();

  assert.deepEqual(results(caller), { i2: "invalid_payload" });
  const [job, ...more] = handed(queues);
  assert.equal((job!.data as { function_id: string }).function_id, "f");
  assert.deepEqual(more, []);
  answer(queues, job!.invocation_id, "receipt");
  assert.deepEqual(results(caller), { i1: "receipt" });
});

Deno.test("a job waits for the schema of the newest worker, also if that came meanwhile", () => {
  const { caller, open, openBuiltin, compile, compileNext } = setup();
  const queues = openBuiltin("engine-queue");
  queues.say({ type: "registerfunction", id: "engine::queue::enqueue" });
  call(caller, "i1", { data: { a: 1 }, ...ENQUEUE });
  open().say({ type: "registerfunction", id: "f", request_format: FORMAT });

  Array.from({ [Symbol.iterator]: compileNext });
  assert.deepEqual([handed(queues), results(caller)], [[], {}]);
  assert.equal(compile(), 1);

  assert.equal(handed(queues).length, 1);
});

Deno.test("a job of which no queue is there ends once the schema is compiled", () => {
  const { caller, compile } = setup();
  call(caller, "i1", { data: { a: 1 }, ...ENQUEUE });

  compile();

  assert.deepEqual(Object.keys(results(caller)), ["i1"]);
});
