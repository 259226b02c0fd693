/**
 * Calls that end otherwise than by a result: late, cancelled. And news of those that run.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  announce,
  answer,
  call,
  calling,
  handed,
  type HandedCall,
  only,
  results,
} from "../../tests/fakes/calling.ts";

Deno.test("a call ends at its deadline, its worker is told, and a late result is dropped", () => {
  const { worker, caller, clock, router } = calling();
  call(caller, "i1", { timeout_ms: 5_000 });
  const [{ invocation_id, timeout_ms }] = handed(worker) as [
    HandedCall,
  ];
  assert.equal(timeout_ms, 5_000);

  clock.tick(4_999);
  assert.deepEqual(results(caller), {});
  clock.tick(1);

  const message = only(caller);
  assert.deepEqual(message.type === "invocationresult" && message.error, {
    code: "timeout",
    message: "Invocation of f timed out after 5000 ms",
  });
  assert.deepEqual(only(worker), { type: "cancelinvocation", invocation_id, reason: "timeout" });
  assert.equal(router.runningCalls, 0);
  answer(worker, invocation_id);
  assert.deepEqual(results(caller), {});
});

Deno.test("a call without a time-out has the engine's, which is not passed on", () => {
  const { worker, caller, clock } = calling({ invocation_timeout_ms: 700 });
  call(caller, "i1");
  assert.equal(handed(worker)[0]?.timeout_ms, undefined);

  clock.tick(700);

  assert.deepEqual(results(caller), { i1: "timeout" });
});

Deno.test("a call that was answered has no deadline any more", () => {
  const { worker, caller, clock } = calling();
  call(caller, "i1", { timeout_ms: 10 });
  answer(worker, handed(worker)[0]!.invocation_id);
  results(caller);

  clock.tick(1_000);

  assert.deepEqual([caller.connection.take(), worker.connection.take()], [[], []]);
});

Deno.test("a cancelled call ends at once, and its worker is told why", () => {
  const { worker, caller } = calling();
  call(caller, "i1");
  const [{ invocation_id }] = handed(worker) as [HandedCall];

  caller.say({ type: "cancelinvocation", invocation_id: "i1", reason: "user left" });
  caller.say({ type: "cancelinvocation", invocation_id: "i1" });
  answer(worker, invocation_id);

  assert.deepEqual(only(worker), {
    type: "cancelinvocation",
    invocation_id,
    reason: "user left",
  });
  const message = only(caller);
  assert.deepEqual(message.type === "invocationresult" && message.error, {
    code: "cancelled",
    message: "Invocation cancelled",
  });
});

Deno.test("only the connection that made a call can cancel it", () => {
  const { worker, caller, open } = calling();
  call(caller, "i1");
  const [{ invocation_id }] = handed(worker) as [HandedCall];

  const stranger = open();
  for (const id of ["i1", invocation_id]) {
    stranger.say({ type: "cancelinvocation", invocation_id: id });
    worker.say({ type: "cancelinvocation", invocation_id: id });
  }
  answer(worker, invocation_id);

  assert.deepEqual(results(caller), { i1: "done" });
});

Deno.test("a worker that did not ask for it is not told of cancellations", () => {
  const { worker, caller, clock } = calling();
  announce(worker, ["timeout", "teleport"]);
  call(caller, "i1");
  call(caller, "i2", { timeout_ms: 5 });
  handed(worker);

  caller.say({ type: "cancelinvocation", invocation_id: "i1" });
  clock.tick(5);

  assert.deepEqual(worker.connection.take(), []);
});

Deno.test("progress reaches a caller that wants it, in order, under its own id", () => {
  const { worker, caller, open } = calling();
  const deaf = open();
  call(caller, "i1");
  call(deaf, "i2");
  const [first, second] = handed(worker);
  const type = "invocationprogress";

  worker.say(`{"type":"${type}","invocation_id":"${first!.invocation_id}","data": 1.0}`);
  worker.say({ type, invocation_id: first!.invocation_id, data: null });
  worker.say({ type, invocation_id: second!.invocation_id, data: 3 });
  open().say({ type, invocation_id: first!.invocation_id, data: "forged" });
  answer(worker, first!.invocation_id);
  worker.say({ type, invocation_id: first!.invocation_id, data: "late" });

  assert.deepEqual(caller.connection.takeTexts(), [
    '{"type":"invocationprogress","invocation_id":"i1","data":1.0}',
    '{"type":"invocationprogress","invocation_id":"i1","data":null}',
    '{"type":"invocationresult","invocation_id":"i1","function_id":"f","result":"done"}',
  ]);
  assert.deepEqual(deaf.connection.take(), []);
});
