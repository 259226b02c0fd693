/**
 * Lines that end, and lines that come back.
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
  only,
  results,
} from "../../tests/fakes/calling.ts";
import { fakeRouter } from "../../tests/fakes/fake_router.ts";

Deno.test("what a worker leaves behind is cleared in order, all of it before anybody is told", () => {
  const engine = fakeRouter();
  const [leaving, caller, runner, provider] = [0, 1, 2, 3].map(() => engine.open());
  assert.ok(leaving && caller && runner && provider);
  announce(runner);
  leaving.say({ type: "registerfunction", id: "left" });
  leaving.say({ type: "registertriggertype", id: "left", description: "" });
  runner.say({ type: "registerfunction", id: "runs" });
  provider.say({ type: "registertriggertype", id: "stays", description: "" });
  const trigger = { type: "registertrigger", function_id: "left" };
  leaving.say({ ...trigger, id: "t1", trigger_type: "stays" });
  provider.say({ ...trigger, id: "t2", trigger_type: "left" });
  call(caller, "i1", { function_id: "left" });
  call(leaving, "i2", { function_id: "runs" });
  for (const { connection } of [caller, runner, provider]) connection.take();
  engine.events.length = 0;
  const order: string[] = [];
  for (const { connection } of [caller, runner, provider]) {
    connection.onText = (text) => {
      assert.equal(engine.router.directory.function("default", "left"), undefined);
      order.push(JSON.parse(text).type);
    };
  }
  engine.events.push = (event) => order.push(event.type);

  leaving.cut();

  assert.deepEqual(order, [
    "invocationresult",
    "cancelinvocation",
    "unregistertrigger",
    "trigger_parked",
    "worker_disconnected",
    "functions_changed",
    "triggers_changed",
  ]);
  assert.equal(engine.router.directory.trigger("t2")?.state, "parked");
});

Deno.test("callers are told at once when the worker that runs their call leaves", () => {
  const { worker, caller, router } = calling();
  call(caller, "i1");
  call(caller, "i2");

  worker.cut();

  const stopped = { code: "invocation_stopped", message: "Invocation stopped" };
  const errors = caller.connection.take().map((message) => "error" in message && message.error);
  assert.deepEqual(errors, [stopped, stopped]);
  assert.equal(router.runningCalls, 0);
});

Deno.test("a worker is told that a caller left, but not of calls nobody waited for", () => {
  const { worker, caller, router } = calling();
  call(caller, "i1");
  call(caller, "i2", { action: { type: "void" } });
  const [first] = handed(worker);

  caller.cut();

  assert.deepEqual(only(worker), {
    type: "cancelinvocation",
    invocation_id: first!.invocation_id,
    reason: "caller_disconnected",
  });
  assert.equal(router.runningCalls, 1);
});

Deno.test("what a caller that leaves waited for is cancelled in the order in which it came", () => {
  const { worker, caller } = calling();
  const idsOf = (count: number): string[] => {
    for (let i = 0; i < count; i++) call(caller, crypto.randomUUID());
    return handed(worker).map(({ invocation_id }) => invocation_id);
  };
  const [first, over, then] = [idsOf(10), idsOf(30), idsOf(10)];
  // Records that are free are used again, the last one first: their numbers are in no order.
  for (const id of over) answer(worker, id);
  const last = idsOf(40);

  caller.cut();

  const cancelled = worker.connection.take().map((message) =>
    message.type === "cancelinvocation" && message.invocation_id
  );
  assert.deepEqual(cancelled, [...first, ...then, ...last]);
});

Deno.test("reattach ends the old line before the next frame, and says nothing", () => {
  const { worker, caller, open, events } = calling();
  call(caller, "i1");
  handed(worker);
  const again = open();

  again.say({
    type: "reattach",
    previous_worker_id: worker.worker_id,
    reattach_token: worker.reattach_token,
  });
  again.say({ type: "registerfunction", id: "f" });
  call(caller, "i2");

  assert.ok(worker.connection.closing);
  assert.deepEqual(handed(worker), []);
  assert.equal(handed(again).length, 1);
  assert.deepEqual(results(caller), { i1: "invocation_stopped" });
  worker.cut();
  assert.equal(events.filter(({ type }) => type === "worker_disconnected").length, 1);
});

for (
  const [name, change] of [
    ["a wrong token", { reattach_token: "x" }],
    ["an empty token", { reattach_token: "" }],
    ["a token that only starts right", { cut: true }],
    ["an unknown id", { previous_worker_id: "x" }],
    ["no token", { reattach_token: undefined }],
  ] as const
) {
  Deno.test(`reattach with ${name} is ignored quietly`, () => {
    const { worker, open } = calling();
    const again = open();
    const { worker_id: previous_worker_id, reattach_token } = worker;
    const frame = { type: "reattach", previous_worker_id, reattach_token, ...change };
    if ("cut" in change) frame.reattach_token = reattach_token.slice(0, -1);

    again.say(frame);

    assert.deepEqual([again.connection.take(), worker.connection.closing], [[], undefined]);
  });
}

Deno.test("reattach counts as the first frame of a line only, and never for itself", () => {
  const { worker, open } = calling();
  const again = open();
  const { worker_id: previous_worker_id, reattach_token } = worker;

  again.say({ type: "ping" });
  again.say({ type: "reattach", previous_worker_id, reattach_token });
  const third = open();
  third.say({
    type: "reattach",
    previous_worker_id: third.worker_id,
    reattach_token: third.reattach_token,
  });

  const closings = [worker, again, third].map(({ connection }) => connection.closing);
  assert.deepEqual(closings, [undefined, undefined, undefined]);
});

for (
  const [code, reason, said] of [
    [1000, "", "the worker closed"],
    [1005, "", "the worker closed"],
    [1006, "", "the line was lost"],
    [1006, "nothing heard for 60 s", "nothing heard for 60 s"],
  ] as const
) {
  Deno.test(`a line that closes with ${code} ${reason} is reported as: ${said}`, () => {
    const { open, events } = fakeRouter();

    open().cut(code, reason);

    const event = events.at(-1);
    assert.equal(event?.type === "worker_disconnected" && event.reason, said);
  });
}
