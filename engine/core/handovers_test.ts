/**
 * Draining workers, parked calls and orphaned triggers until a handover ends.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  announce,
  answer,
  answerTrigger,
  call,
  calling,
  type FakeWorker,
  handed,
  results,
  TRIGGER,
  type TriggerSetup,
  triggersSentTo,
  TYPE,
  withTriggerType,
} from "../../tests/fakes/fake_router.ts";
import type { Handover } from "../ports/traffic.ts";
import { PROVIDER_ANSWER_MS } from "./core_functions.ts";
import { FUNCTIONS_PER_WORKER_MAX } from "./function_table.ts";
import { CALL_PARK_MS } from "./parked_calls.ts";

const COMES = { isComingBack: true };
const GOES = { isComingBack: false };

function register(peer: FakeWorker, id = "f", fields: object = {}): void {
  peer.say({ type: "registerfunction", id, ...fields });
}

function comesBack(peer: FakeWorker, { worker_id, reattach_token }: FakeWorker): void {
  peer.say({ type: "reattach", previous_worker_id: worker_id, reattach_token });
}

Deno.test("other replicas take over from a draining worker at once, and its running calls go on", () => {
  const { router, worker, caller, open } = calling();
  call(caller, "i0");
  const [running] = handed(worker);
  const other = open();
  register(other);

  const handover = router.traffic.drain([worker.worker_id], COMES);
  for (const id of ["i1", "i2", "i3"]) call(caller, id);

  assert.deepEqual([handed(worker).length, handed(other).length], [0, 3]);
  assert.equal(handover.runningCalls, 1);
  answer(worker, running!.invocation_id);
  assert.deepEqual(results(caller), { i0: "done" });
  assert.equal(handover.runningCalls, 0);
});

Deno.test("a draining worker is listed as such, and its functions until it disconnects", () => {
  const { router, worker, caller } = calling();

  router.traffic.drain([worker.worker_id], COMES);

  const { directory } = router;
  const statuses = [worker, caller].map(({ worker_id }) => directory.worker(worker_id)?.status);
  assert.deepEqual(statuses, ["draining", "connected"]);
  assert.deepEqual(directory.function("default", "f")?.worker_ids, [worker.worker_id]);
  worker.cut();
  assert.equal(directory.function("default", "f"), undefined);
});

Deno.test("a draining worker may call others, unregister functions and register more", () => {
  const { router, worker, caller, open } = calling();
  const other = open();
  register(other, "g");
  router.traffic.drain([worker.worker_id], GOES);

  call(worker, "w1", { function_id: "g" });
  answer(other, handed(other)[0]!.invocation_id);
  worker.say({ type: "unregisterfunction", id: "f" });
  register(worker, "h");
  call(caller, "i1", { function_id: "h" });

  assert.deepEqual(results(worker), { w1: "done" });
  assert.deepEqual(router.directory.function("default", "h")?.worker_ids, [worker.worker_id]);
  assert.deepEqual(results(caller), { i1: "function_not_found" });
});

Deno.test("calls of functions of workers that will not come back fail at once", () => {
  const { router, worker, caller } = calling();
  router.traffic.drain([worker.worker_id], GOES);

  call(caller, "i1");

  const [message] = caller.connection.take();
  assert.deepEqual(message?.type === "invocationresult" && message.error, {
    code: "function_not_found",
    message: "Function f not found",
    details: { caller: "w" },
  });
  assert.deepEqual([handed(worker), router.runningCalls], [[], 0]);
});

Deno.test("a call that a draining worker executes may call functions of that worker only", () => {
  const { router, worker, caller } = calling();
  register(worker, "own");
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

Deno.test("a draining worker that executes nothing does not get its own calls", () => {
  const { router, worker, caller, open } = calling();
  router.traffic.drain([worker.worker_id], GOES);
  call(worker, "w1");
  assert.deepEqual(results(worker), { w1: "function_not_found" });

  const other = open();
  register(other);
  register(other, "g");
  register(worker, "g");
  call(caller, "i1");
  call(worker, "w2", { function_id: "g" });

  assert.deepEqual([handed(worker).length, handed(other).length], [0, 2]);
});

Deno.test("ids of closed or unknown connections are ignored", () => {
  const { router, worker, caller } = calling();
  worker.cut();

  const handover = router.traffic.drain([worker.worker_id, "unknown", "", caller.worker_id], COMES);
  call(caller, "i1");

  assert.equal(handover.runningCalls, 0);
  assert.equal(router.directory.worker(caller.worker_id)?.status, "draining");
  assert.deepEqual(results(caller), { i1: "function_not_found" });
  router.traffic.drain([], COMES).end();
});

Deno.test("a handover that ends early keeps draining its connections and parks nothing", () => {
  const { router, worker, caller } = calling();
  const handover = router.traffic.drain([worker.worker_id], COMES);
  call(caller, "i1");

  handover.end();
  call(caller, "i2");

  assert.deepEqual(results(caller), { i1: "function_not_found", i2: "function_not_found" });
  assert.deepEqual(handed(worker), []);
  assert.equal(router.directory.worker(worker.worker_id)?.status, "draining");
});

Deno.test("a handover ends once, and leaves other open handovers alone", () => {
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

Deno.test("two workers that drain at once park calls for either of them", () => {
  const { router, worker, caller, open } = calling();
  const other = open();
  register(other);
  const first = router.traffic.drain([worker.worker_id], COMES);
  call(caller, "i1");
  assert.equal(handed(other).length, 1);
  const second = router.traffic.drain([other.worker_id], COMES);
  call(caller, "i2");

  worker.cut();
  const again = open();
  register(again);

  assert.equal(handed(again).length, 1);
  first.end();
  call(caller, "i3");
  assert.deepEqual([handed(again).length, handed(other).length], [1, 0]);
  second.end();
});

Deno.test("either of two handovers of one connection parks its calls", () => {
  const { router, worker, caller, open } = calling();
  const stop = router.traffic.drain([worker.worker_id], GOES);
  const restart = router.traffic.drain([worker.worker_id], COMES);
  call(caller, "i1");
  stop.end();
  worker.cut();
  call(caller, "i2");

  const again = open();
  register(again);

  assert.equal(handed(again).length, 2);
  restart.end();
});

Deno.test("a second handover may expect a worker that disconnected in an open one", () => {
  const { router, worker, caller, open } = calling();
  const stop = router.traffic.drain([worker.worker_id], GOES);
  worker.cut();
  call(caller, "i1");
  assert.deepEqual(results(caller), { i1: "function_not_found" });

  const start = router.traffic.drain([worker.worker_id], COMES);
  stop.end();
  call(caller, "i2");
  const again = open();
  register(again);

  assert.equal(handed(again).length, 1);
  start.end();
  assert.equal(router.traffic.drain([worker.worker_id], COMES).runningCalls, 0);
  again.cut();
  call(caller, "i3");
  assert.deepEqual(results(caller), { i2: "invocation_stopped", i3: "function_not_found" });
});

Deno.test("a second restart during the first one hands over twice", () => {
  const { router, worker, caller, open } = calling();
  const first = router.traffic.drain([worker.worker_id], COMES);
  worker.cut();
  const second = open();
  register(second);
  const again = router.traffic.drain([second.worker_id], COMES);
  call(caller, "i1");
  first.end();
  second.cut();
  call(caller, "i2");
  assert.deepEqual(results(caller), {});

  const third = open();
  register(third);

  assert.equal(handed(third).length, 2);
  again.end();
});

Deno.test("a worker that crashes while draining is expected like one that disconnected", () => {
  const { router, worker, caller, open } = calling();
  call(caller, "i1");
  const handover = router.traffic.drain([worker.worker_id], COMES);
  call(caller, "i2");

  worker.cut(1006);

  assert.deepEqual(results(caller), { i1: "invocation_stopped" });
  const again = open();
  register(again);
  assert.equal(handed(again).length, 1);
  handover.end();
});

for (const [when, cut] of [["before", true], ["after", false]] as const) {
  Deno.test(`a draining worker whose connection closes ${when} it reattaches is drained there, too`, () => {
    const { router, worker, caller, open } = calling();
    const handover = router.traffic.drain([worker.worker_id], COMES);
    if (cut) worker.cut();
    const again = open();
    comesBack(again, worker);
    register(again);
    register(again, "g");
    call(caller, "i1");
    call(caller, "i2", { function_id: "g" });

    assert.deepEqual([handed(again), results(caller)], [[], {}]);
    assert.equal(router.directory.worker(again.worker_id)?.status, "draining");
    const successor = open();
    register(successor);
    register(successor, "g");
    assert.equal(handed(successor).length, 2);
    handover.end();
  });
}

Deno.test("a wrong token does not make a connection the successor of a draining one", () => {
  const { router, worker, caller, open } = calling();
  router.traffic.drain([worker.worker_id], COMES);
  worker.cut();
  const again = open();

  comesBack(again, { ...worker, reattach_token: "x" });
  register(again);
  call(caller, "i1");

  assert.equal(handed(again).length, 1);
});

Deno.test("a connection that reattaches after its handover is not draining", () => {
  const { router, worker, caller, open } = calling();
  const handover = router.traffic.drain([worker.worker_id], COMES);
  worker.cut();
  handover.end();
  const again = open();

  comesBack(again, worker);
  register(again);
  call(caller, "i1");

  assert.equal(handed(again).length, 1);
});

Deno.test("calls are parked for a function in its own namespace", () => {
  const { router, worker, caller, open } = calling();
  register(worker, "f", { namespace: "eu" });
  router.traffic.drain([worker.worker_id], COMES);
  worker.cut();
  call(caller, "i1", { namespace: "eu" });
  call(caller, "i2", { namespace: "us" });

  const again = open();
  register(again);
  assert.deepEqual([handed(again).length, results(caller)], [0, { i2: "function_not_found" }]);
  register(again, "f", { namespace: "eu" });
  assert.equal(handed(again).length, 1);
});

Deno.test("functions that a draining worker registers and unregisters do not add up", () => {
  const { router, worker, caller, clock } = calling();
  router.traffic.drain([worker.worker_id], COMES);
  for (let i = 1; i <= FUNCTIONS_PER_WORKER_MAX; i++) {
    register(worker, `f${i}`);
    worker.say({ type: "unregisterfunction", id: `f${i}` });
  }

  call(caller, "i1", { function_id: `f${FUNCTIONS_PER_WORKER_MAX - 1}` });
  call(caller, "i2", { function_id: `f${FUNCTIONS_PER_WORKER_MAX}` });

  assert.deepEqual(results(caller), { i2: "function_not_found" });
  clock.tick(CALL_PARK_MS);
  assert.deepEqual(results(caller), { i1: "function_not_found" });
});

Deno.test("a closed engine drains no connection and ends handovers silently", () => {
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

const OTHER_ID = { ...TRIGGER, id: "t2" };

/** A router whose originator has disconnected and is to come back. */
interface Restarting extends TriggerSetup {
  readonly handover: Handover;
}

function restarting(builtin: string | null, trigger: object = TRIGGER): Restarting {
  const engine = withTriggerType(builtin);
  announce(engine.originator);
  engine.originator.say(trigger);
  const { worker_id } = engine.originator;
  const handover = engine.router.traffic.drain([worker_id], COMES);
  engine.originator.cut();
  triggersSentTo(engine.provider);
  return { ...engine, handover };
}

for (const builtin of ["engine-watch", null]) {
  const whose = builtin ? "a built-in worker" : "a worker";

  Deno.test(`an orphaned trigger that is not taken over ends once, for a type of ${whose}`, () => {
    const { provider, router, handover, events } = restarting(builtin);
    assert.equal(router.directory.trigger("t1")?.state, "offered");
    events.length = 0;

    handover.end();
    handover.end();

    assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t1"]);
    assert.deepEqual(router.directory.triggers(), []);
    assert.deepEqual(events.map(({ type }) => type), ["triggers_changed"]);
  });

  Deno.test(`an equal trigger with the same id takes over silently, for a type of ${whose}`, () => {
    const { provider, open, router, handover } = restarting(builtin);
    const again = open();

    again.say({ ...TRIGGER, config: { ...TRIGGER.config } });
    handover.end();

    assert.deepEqual(triggersSentTo(provider), []);
    assert.equal(router.directory.trigger("t1")?.worker_id, again.worker_id);
    again.cut();
    assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t1"]);
  });

  Deno.test(`a different trigger with the id of an orphaned one replaces it, for a type of ${whose}`, () => {
    const { provider, open, handover } = restarting(builtin);

    const again = open();
    announce(again);
    again.say({ ...TRIGGER, config: { dir: "outbox" } });
    handover.end();

    assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t1", "registertrigger t1"]);
  });

  Deno.test(`a refused orphaned trigger is delivered again, for a type of ${whose}`, () => {
    const { provider, originator, open, router } = withTriggerType(builtin);
    originator.say(TRIGGER);
    answerTrigger(provider, "t1", { code: "no", message: "no" });
    const handover = router.traffic.drain([originator.worker_id], COMES);
    originator.cut();
    triggersSentTo(provider);

    open().say(TRIGGER);
    open().say(OTHER_ID);
    handover.end();

    const expected = builtin
      ? ["registertrigger t1"]
      : ["registertrigger t1", "registertrigger t2"];
    assert.deepEqual(triggersSentTo(provider), expected);
  });

  Deno.test(`triggers that a draining worker ends itself are not kept, for a type of ${whose}`, () => {
    const { provider, originator, router } = withTriggerType(builtin);
    originator.say(TRIGGER);
    originator.say({ ...OTHER_ID, config: 2 });
    router.traffic.drain([originator.worker_id], COMES);
    triggersSentTo(provider);

    originator.say({ type: "unregistertrigger", id: "t1" });
    assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t1"]);
    originator.cut();

    assert.deepEqual(triggersSentTo(provider), []);
  });

  Deno.test(`a trigger ends with a worker that will not come back, for a type of ${whose}`, () => {
    const { provider, originator, router } = withTriggerType(builtin);
    originator.say(TRIGGER);
    const handover = router.traffic.drain([originator.worker_id], { isComingBack: false });
    triggersSentTo(provider);

    originator.cut();
    handover.end();

    assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t1"]);
  });

  Deno.test(`an orphaned trigger is delivered once to a returning provider, for a type of ${whose}`, () => {
    const { provider, open, handover, router } = restarting(builtin);
    provider.cut();
    assert.equal(router.directory.trigger("t1")?.state, "parked");
    const again = open({ builtin });

    again.say(TYPE);
    open().say(TRIGGER);
    handover.end();

    assert.deepEqual(triggersSentTo(again), ["registertrigger t1"]);
  });
}

Deno.test("an equal trigger with another id joins the orphaned one, for a built-in type", () => {
  const { provider, open, handover, router } = restarting("engine-watch");
  const again = open();

  again.say(OTHER_ID);
  handover.end();

  assert.deepEqual(triggersSentTo(provider), []);
  assert.deepEqual(router.directory.triggers().map(({ id }) => id), ["t2"]);
  again.cut();
  assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t1"]);
});

Deno.test("an equal trigger with another id is delivered before the orphaned one ends, for a type of a worker", () => {
  const { provider, open, handover } = restarting(null);
  const again = open();

  again.say(OTHER_ID);
  assert.deepEqual(triggersSentTo(provider), ["registertrigger t2", "unregistertrigger t1"]);
  handover.end();
  again.cut();

  assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t2"]);
});

Deno.test("each equal trigger replaces one orphaned trigger, for a type of a worker", () => {
  const { provider, originator, open, router } = withTriggerType();
  for (const id of ["t1", "t2", "t3"]) originator.say({ ...TRIGGER, id });
  const handover = router.traffic.drain([originator.worker_id], COMES);
  originator.cut();
  triggersSentTo(provider);
  const again = open();

  again.say({ ...TRIGGER, id: "u1" });
  again.say({ ...TRIGGER, id: "u2" });
  again.say({ ...TRIGGER, id: "u3", config: { dir: "outbox" } });
  assert.deepEqual(triggersSentTo(provider), [
    "registertrigger u1",
    "unregistertrigger t1",
    "registertrigger u2",
    "unregistertrigger t2",
    "registertrigger u3",
  ]);
  handover.end();

  assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t3"]);
});

Deno.test("equal triggers that come back with their ids are all taken over, for a type of a worker", () => {
  const { provider, originator, open, router } = withTriggerType();
  for (const id of ["t1", "t2", "t3"]) originator.say({ ...TRIGGER, id });
  answerTrigger(provider, "t3", { code: "no", message: "no" });
  const handover = router.traffic.drain([originator.worker_id], COMES);
  originator.cut();
  triggersSentTo(provider);
  const again = open();

  for (const id of ["t3", "t1", "t2", "t2"]) again.say({ ...TRIGGER, id });
  handover.end();

  assert.deepEqual(triggersSentTo(provider), [
    "registertrigger t3",
    "unregistertrigger t2",
    "registertrigger t2",
  ]);
  assert.equal(router.directory.triggers().length, 3);
});

Deno.test("an equal trigger replaces an orphaned one while the type has no provider", () => {
  const { provider, open, router } = restarting(null);
  provider.cut();

  open().say(OTHER_ID);

  assert.deepEqual(router.directory.triggers().map(({ id }) => id), ["t2"]);
});

Deno.test("two equal orphaned triggers are two again, for a built-in type", () => {
  const { provider, originator, open, router } = withTriggerType("engine-watch");
  for (const id of ["t1", "t2"]) originator.say({ ...TRIGGER, id });
  const handover = router.traffic.drain([originator.worker_id], COMES);
  originator.cut();
  triggersSentTo(provider);
  const again = open();

  for (const id of ["u1", "u2", "u3"]) again.say({ ...TRIGGER, id });
  handover.end();

  assert.deepEqual(triggersSentTo(provider), ["registertrigger u3"]);
});

Deno.test("a worker that comes back and crashes leaves its trigger to the next one, for a built-in type", () => {
  const { provider, open, handover } = restarting("engine-watch");
  const second = open();
  second.say(OTHER_ID);
  second.cut();
  assert.deepEqual(triggersSentTo(provider), []);

  open().say({ ...TRIGGER, id: "t3" });
  handover.end();

  assert.deepEqual(triggersSentTo(provider), []);
});

Deno.test("an orphaned trigger stays until the last handover of its worker ends", () => {
  const { provider, originator, router } = withTriggerType("engine-watch");
  originator.say(TRIGGER);
  const [first, second] = [1, 2].map(() => router.traffic.drain([originator.worker_id], COMES));
  originator.cut();
  triggersSentTo(provider);

  first!.end();
  assert.deepEqual(triggersSentTo(provider), []);
  second!.end();

  assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t1"]);
});

Deno.test("a handover that ends before its worker disconnects keeps no trigger", () => {
  const { provider, originator, router } = withTriggerType("engine-watch");
  originator.say(TRIGGER);
  const handover = router.traffic.drain([originator.worker_id], COMES);
  triggersSentTo(provider);

  handover.end();
  assert.deepEqual(triggersSentTo(provider), []);
  originator.cut();

  assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t1"]);
});

Deno.test("a trigger whose registration still waits for the provider is not orphaned", () => {
  const { provider, originator, router, clock } = withTriggerType();
  const data = { trigger_type: "file-watch", function_id: "docs::index", config: 1 };
  call(originator, "i1", { function_id: "engine::register_trigger", data });
  const handover = router.traffic.drain([originator.worker_id], COMES);
  const [given] = triggersSentTo(provider);

  originator.cut();

  assert.deepEqual(triggersSentTo(provider), [given!.replace("register", "unregister")]);
  assert.deepEqual([router.directory.triggers(), router.runningCalls], [[], 0]);
  clock.tick(PROVIDER_ANSWER_MS);
  handover.end();
  assert.deepEqual(triggersSentTo(provider), []);
});

Deno.test("a trigger that was registered by a call is orphaned like any other", () => {
  const { provider, originator, open, router } = withTriggerType("engine-watch");
  const data = { trigger_type: "file-watch", function_id: "docs::index", config: 1 };
  call(originator, "i1", { function_id: "engine::register_trigger", data });
  const [given] = triggersSentTo(provider).map((text) => text.split(" ")[1]!);
  answerTrigger(provider, given!);
  const handover = router.traffic.drain([originator.worker_id], COMES);
  originator.cut();
  const again = open();

  call(again, "i1", { function_id: "engine::register_trigger", data });
  handover.end();

  assert.equal(Object.keys(results(again)).length, 1);
  assert.deepEqual(triggersSentTo(provider), []);
  again.cut();
  assert.deepEqual(triggersSentTo(provider), [`unregistertrigger ${given}`]);
});

Deno.test("an equal trigger with the id of a connected worker's trigger replaces it as usual", () => {
  const { provider, originator, open, router } = withTriggerType();
  announce(originator);
  originator.say(TRIGGER);
  router.traffic.drain([originator.worker_id], COMES);
  triggersSentTo(provider);

  const again = open();
  announce(again);
  again.say(TRIGGER);

  assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t1", "registertrigger t1"]);
});

Deno.test("a different trigger of another worker cannot take the id of an orphaned one", () => {
  const { provider, open, router } = restarting(null);
  const thief = open();
  announce(thief, [], "thief");

  thief.say({ ...TRIGGER, function_id: "thief::route" });

  assert.deepEqual(triggersSentTo(provider), []);
  assert.equal(router.directory.trigger("t1")?.function_id, "docs::index");
});

Deno.test("another worker cannot end an orphaned trigger", () => {
  const { provider, open, router } = restarting("engine-watch");

  open().say({ type: "unregistertrigger", id: "t1" });

  assert.deepEqual(triggersSentTo(provider), []);
  assert.equal(router.directory.trigger("t1")?.state, "offered");
});

Deno.test("a refusal of an orphaned trigger is recorded and sent to no worker", () => {
  const { provider, router, handover } = restarting(null);

  answerTrigger(provider, "t1", { code: "no", message: "no" });
  assert.equal(router.directory.trigger("t1")?.state, "refused");
  handover.end();

  assert.deepEqual(triggersSentTo(provider), []);
});

for (const isCut of [true, false]) {
  const when = isCut ? "lost before" : "replaced when";

  Deno.test(`a connection that is ${when} its draining worker reattaches keeps no orphaned triggers`, () => {
    const { provider, originator, open, router } = withTriggerType("engine-watch");
    originator.say(TRIGGER);
    const handover = router.traffic.drain([originator.worker_id], COMES);
    if (isCut) originator.cut();
    const { worker_id: previous_worker_id, reattach_token } = originator;
    const again = open();
    triggersSentTo(provider);

    again.say({ type: "reattach", previous_worker_id, reattach_token });
    again.say(OTHER_ID);
    assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t1", "registertrigger t2"]);
    again.cut();
    assert.deepEqual(triggersSentTo(provider), []);
    handover.end();

    assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t2"]);
  });
}

Deno.test("a draining worker that provides a type takes it along when it disconnects", () => {
  const { provider, originator, router, open } = withTriggerType();
  originator.say(TRIGGER);
  const handover = router.traffic.drain([provider.worker_id], COMES);

  provider.cut();
  assert.equal(router.directory.trigger("t1")?.state, "parked");
  const again = open();
  again.say(TYPE);

  assert.deepEqual(triggersSentTo(again), ["registertrigger t1"]);
  handover.end();
  assert.deepEqual(triggersSentTo(again), []);
});
