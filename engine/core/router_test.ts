/**
 * What workers see of the router: connecting, offering, calling.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { type FakeRouter, fakeRouter, type FakeWorker } from "../../tests/fakes/fake_router.ts";
import type { InvokeFunction } from "../../sdk/typescript/protocol.ts";

function offering(engine: FakeRouter, ...ids: string[]): FakeWorker {
  const worker = engine.open();
  for (const id of ids) worker.say({ type: "registerfunction", id });
  return worker;
}

/** The id of the call that a worker was handed last. */
function asked({ connection }: FakeWorker): InvokeFunction & { invocation_id: string } {
  const call = connection.take().findLast((message) => message.type === "invokefunction");
  return call as InvokeFunction & { invocation_id: string };
}

Deno.test("a line is greeted with a worker id, a token and what the engine can do", () => {
  const { router } = fakeRouter();
  const connection = new FakeConnection("c");

  router.open(connection, { address: null, launch_id: null, builtin: null });

  const [greeting] = connection.take();
  assert.equal(greeting?.type, "workerregistered");
  assert.deepEqual(greeting.capabilities, ["cancel", "timeout", "progress"]);
});

Deno.test("a call reaches the worker that offers the function, and its result the caller", () => {
  const engine = fakeRouter();
  const worker = offering(engine, "math::add");
  const caller = engine.open();

  caller.say(
    '{"type":"invokefunction","invocation_id":"i1","function_id":"math::add","data":{"a":2}}',
  );
  const call = asked(worker);
  const { invocation_id } = call;
  worker.say(
    `{"type":"invocationresult","invocation_id":"${invocation_id}","function_id":"math::add","result":{"c":5}}`,
  );

  assert.deepEqual(call, {
    type: "invokefunction",
    invocation_id,
    function_id: "math::add",
    data: { a: 2 },
  });
  assert.deepEqual(caller.connection.takeTexts(), [
    '{"type":"invocationresult","invocation_id":"i1","function_id":"math::add","result":{"c":5}}',
  ]);
  assert.equal(engine.router.runningCalls, 0);
});
