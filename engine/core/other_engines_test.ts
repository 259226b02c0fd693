/**
 * What the router does on a connection that leads to another engine of the cluster.
 *
 * @module
 */
import assert from "node:assert/strict";
import { NO_ABSENCES } from "../ports/absences.ts";
import {
  answer,
  call,
  fakeRouter,
  type FakeWorker,
  handed,
  only,
  results,
  TRIGGER,
  triggersSentTo,
  TYPE,
} from "../../tests/fakes/fake_router.ts";

function offer(worker: FakeWorker, more: Record<string, unknown> = {}): void {
  worker.say({ type: "registerfunction", id: "f", ...more });
}

Deno.test("a call of another engine for what only engines offer fails, to be called elsewhere", () => {
  const { open } = fakeRouter();
  const [b, c] = [open({ engine: "b" }), open({ engine: "c" })];
  offer(b);

  call(c, "1");

  const { error } = only(c) as { error?: { code: string; retryable?: boolean } };
  assert.equal(error!.code, "function_not_found");
  assert.equal(error!.retryable, true);
  assert.deepEqual(handed(b), []);
});

Deno.test("a call goes out to another engine, and its result comes back", () => {
  const { open } = fakeRouter();
  const [b, caller] = [open({ engine: "b" }), open()];
  offer(b);

  call(caller, "1");
  const [sent] = handed(b);
  answer(b, sent!.invocation_id, { sum: 3 });

  assert.deepEqual(results(caller), { "1": { sum: 3 } });
});

Deno.test("calls of other engines are not checked against request_format again", () => {
  const { open } = fakeRouter();
  const [b, worker, caller] = [open({ engine: "b" }), open(), open()];
  offer(worker, { request_format: { type: "object", required: ["a"] } });

  call(b, "1", { data: {} });
  call(caller, "1", { data: {} });

  assert.equal(handed(worker).length, 1);
  assert.deepEqual(results(caller), { "1": "invalid_payload" });
});

Deno.test("the format of another engine's function is checked here", () => {
  const { open } = fakeRouter();
  const [b, caller] = [open({ engine: "b" }), open()];
  offer(b, { request_format: { type: "object", required: ["a"] } });

  call(caller, "1", { data: {} });
  call(caller, "2", { data: { a: 1 } });

  assert.equal(handed(b).length, 1);
  assert.deepEqual(results(caller), { "1": "invalid_payload" });
});

Deno.test("calls that were refused or have ended are no load of another engine", () => {
  const { open } = fakeRouter({ cluster: { far_calls: 0 } });
  const [b, near, caller] = [open({ engine: "b" }), open(), open()];
  for (const one of [b, near]) {
    offer(one, { request_format: { type: "object", required: ["a"] } });
  }
  call(caller, "kept", { data: { a: 1 } });
  assert.equal(handed(near).length, 1);

  call(caller, "bad", { data: {} });
  for (let i = 0; i < 3; i++) {
    call(caller, `good-${i}`, { data: { a: 1 } });
    const [sent] = handed(b);
    answer(b, sent!.invocation_id);
  }

  const ended = { "good-0": "done", "good-1": "done", "good-2": "done" };
  assert.deepEqual(results(caller), { bad: "invalid_payload", ...ended });
});

Deno.test("the load that a worker reports of itself has no effect", () => {
  const { open, router } = fakeRouter();
  const [worker, caller] = [open(), open()];
  offer(worker);

  router.reportLoad(worker.worker_id, "f", "default", { replicas: 1, running: 1_000 });
  router.reportLoad("unknown", "f", "default", { replicas: 1, running: 1_000 });
  call(caller, "1");

  assert.equal(handed(worker).length, 1);
});

Deno.test("engines may offer engine::* and what shared_functions does not list, workers may not", () => {
  const { open, router } = fakeRouter({ shared_functions: [] });
  const [a, b, worker, other] = [open(), open({ engine: "b" }), open(), open()];
  offer(a);
  offer(b);
  b.say({ type: "registerfunction", id: "engine::queue::enqueue" });
  offer(worker);
  other.say({ type: "registerfunction", id: "engine::mine" });

  const ids = router.directory.functions().filter(({ worker_ids }) => worker_ids.length > 0)
    .map(({ function_id, worker_ids }) => [function_id, worker_ids]);

  assert.deepEqual(ids, [
    ["f", [b.worker_id, a.worker_id]],
    ["engine::queue::enqueue", [b.worker_id]],
  ]);
  assert.equal(only(worker).type, "registrationrejected");
});

Deno.test("an engine is the provider of a type only while no worker here is", () => {
  const { open } = fakeRouter();
  const [provider, b, originator] = [open(), open({ engine: "b" }), open()];
  provider.say(TYPE);
  b.say(TYPE);
  originator.say(TRIGGER);

  assert.deepEqual(triggersSentTo(provider), ["registertrigger t1"]);
  assert.deepEqual(triggersSentTo(b), []);
  provider.cut();
  assert.deepEqual(triggersSentTo(b), ["registertrigger t1"]);

  const again = open();
  again.say(TYPE);
  assert.deepEqual(triggersSentTo(b), ["unregistertrigger t1"]);
  assert.deepEqual(triggersSentTo(again), ["registertrigger t1"]);
});

Deno.test("an engine whose provider has left gives triggers back, since it would keep them", () => {
  const { open } = fakeRouter();
  const [b, originator] = [open({ engine: "b" }), open()];
  b.say(TYPE);
  originator.say(TRIGGER);
  triggersSentTo(b);

  b.say({ type: "unregistertriggertype", id: TYPE.id });

  assert.deepEqual(triggersSentTo(b), ["unregistertrigger t1"]);
});

Deno.test("an unknown function may be at another engine while those are away", () => {
  let isAway = true;
  const absences = { ...NO_ABSENCES, isClusterAway: () => isAway };
  const { open } = fakeRouter({}, undefined, undefined, absences);
  const caller = open();
  const details = (): unknown => {
    call(caller, "1");
    return (only(caller) as { error?: { details?: unknown } }).error!.details;
  };

  assert.deepEqual(details(), { cluster: "away" });
  isAway = false;
  assert.equal(details(), undefined);
});

Deno.test("when an engine disconnects, its calls end and its functions are gone", () => {
  const { open, router } = fakeRouter();
  const [b, caller] = [open({ engine: "b" }), open()];
  offer(b);
  call(caller, "1");

  b.cut();
  call(caller, "2");

  assert.deepEqual(results(caller), { "1": "invocation_stopped", "2": "function_not_found" });
  assert.equal(router.runningCalls, 0);
});

Deno.test("an engine is no operator and no worker, and its rows have its name", () => {
  const { open, router: { directory } } = fakeRouter();
  const b = open({ engine: "b" });
  offer(b);
  b.say(TYPE);
  b.say(TRIGGER);

  const { operator, announced, name, engine } = directory.worker(b.worker_id)!;
  assert.deepEqual([operator, announced, name, engine], [false, false, null, "b"]);
  assert.equal(directory.function("default", "f")!.engine, "b");
  assert.equal(directory.triggerType("default", TYPE.id)!.engine, "b");
  assert.equal(directory.trigger("t1")!.engine, "b");
});
