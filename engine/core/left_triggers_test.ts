/**
 * Triggers that stay while the worker that asked for them is restarted.
 *
 * @module
 */
import assert from "node:assert/strict";
import { PROVIDER_ANSWER_MS } from "../../sdk/typescript/wire/limits.ts";
import type { Handover } from "../ports/traffic.ts";
import { call, results } from "../../tests/fakes/calling.ts";
import {
  answers,
  setup,
  told,
  TRIGGER,
  type TriggerSetup,
  TYPE,
} from "../../tests/fakes/trigger_setup.ts";

const COMES = { isComingBack: true };
const OTHER_ID = { ...TRIGGER, id: "t2" };

/** The originator of a trigger has left and is to come back. */
interface Restarting extends TriggerSetup {
  readonly handover: Handover;
}

function restarting(builtin: string | null, trigger: object = TRIGGER): Restarting {
  const engine = setup(builtin);
  engine.originator.say(trigger);
  const { worker_id } = engine.originator;
  const handover = engine.router.traffic.drain([worker_id], COMES);
  engine.originator.cut();
  told(engine.provider);
  return { ...engine, handover };
}

for (const builtin of ["engine-watch", null]) {
  const whose = builtin ? "the engine" : "a worker";

  Deno.test(`a trigger that nobody takes over ends once, for a type of ${whose}`, () => {
    const { provider, router, handover, events } = restarting(builtin);
    assert.equal(router.directory.trigger("t1")?.state, "offered");
    events.length = 0;

    handover.end();
    handover.end();

    assert.deepEqual(told(provider), ["unregistertrigger t1"]);
    assert.deepEqual(router.directory.triggers(), []);
    assert.deepEqual(events.map(({ type }) => type), ["triggers_changed"]);
  });

  Deno.test(`an equal trigger with the same id takes over in silence, for a type of ${whose}`, () => {
    const { provider, open, router, handover } = restarting(builtin);
    const again = open();

    again.say({ ...TRIGGER, config: { ...TRIGGER.config } });
    handover.end();

    assert.deepEqual(told(provider), []);
    assert.equal(router.directory.trigger("t1")?.worker_id, again.worker_id);
    again.cut();
    assert.deepEqual(told(provider), ["unregistertrigger t1"]);
  });

  Deno.test(`a trigger with the id of a left one and another meaning replaces it, for a type of ${whose}`, () => {
    const { provider, open, handover } = restarting(builtin);

    open().say({ ...TRIGGER, config: { dir: "outbox" } });
    handover.end();

    assert.deepEqual(told(provider), ["unregistertrigger t1", "registertrigger t1"]);
  });

  Deno.test(`a left trigger that was refused is offered anew, for a type of ${whose}`, () => {
    const { provider, originator, open, router } = setup(builtin);
    originator.say(TRIGGER);
    answers(provider, "t1", { code: "no", message: "no" });
    const handover = router.traffic.drain([originator.worker_id], COMES);
    originator.cut();
    told(provider);

    open().say(TRIGGER);
    open().say(OTHER_ID);
    handover.end();

    const expected = builtin
      ? ["registertrigger t1"]
      : ["registertrigger t1", "registertrigger t2"];
    assert.deepEqual(told(provider), expected);
  });

  Deno.test(`what a worker ends itself while it drains is not kept, for a type of ${whose}`, () => {
    const { provider, originator, router } = setup(builtin);
    originator.say(TRIGGER);
    originator.say({ ...OTHER_ID, config: 2 });
    router.traffic.drain([originator.worker_id], COMES);
    told(provider);

    originator.say({ type: "unregistertrigger", id: "t1" });
    assert.deepEqual(told(provider), ["unregistertrigger t1"]);
    originator.cut();

    assert.deepEqual(told(provider), []);
  });

  Deno.test(`without a return a trigger ends with its worker, for a type of ${whose}`, () => {
    const { provider, originator, router } = setup(builtin);
    originator.say(TRIGGER);
    const handover = router.traffic.drain([originator.worker_id], { isComingBack: false });
    told(provider);

    originator.cut();
    handover.end();

    assert.deepEqual(told(provider), ["unregistertrigger t1"]);
  });

  Deno.test(`a left trigger is delivered once to a provider that comes back, for a type of ${whose}`, () => {
    const { provider, open, handover, router } = restarting(builtin);
    provider.cut();
    assert.equal(router.directory.trigger("t1")?.state, "parked");
    const again = open({ builtin });

    again.say(TYPE);
    open().say(TRIGGER);
    handover.end();

    assert.deepEqual(told(again), ["registertrigger t1"]);
  });
}

Deno.test("an equal trigger with another id joins the left one, for a type of the engine", () => {
  const { provider, open, handover, router } = restarting("engine-watch");
  const again = open();

  again.say(OTHER_ID);
  handover.end();

  assert.deepEqual(told(provider), []);
  assert.deepEqual(router.directory.triggers().map(({ id }) => id), ["t2"]);
  again.cut();
  assert.deepEqual(told(provider), ["unregistertrigger t1"]);
});

Deno.test("an equal trigger with another id is offered before the left one ends, for a type of a worker", () => {
  const { provider, open, handover } = restarting(null);
  const again = open();

  again.say(OTHER_ID);
  assert.deepEqual(told(provider), ["registertrigger t2", "unregistertrigger t1"]);
  handover.end();
  again.cut();

  assert.deepEqual(told(provider), ["unregistertrigger t2"]);
});

Deno.test("each equal trigger takes the place of one that was left, for a type of a worker", () => {
  const { provider, originator, open, router } = setup();
  for (const id of ["t1", "t2", "t3"]) originator.say({ ...TRIGGER, id });
  const handover = router.traffic.drain([originator.worker_id], COMES);
  originator.cut();
  told(provider);
  const again = open();

  again.say({ ...TRIGGER, id: "u1" });
  again.say({ ...TRIGGER, id: "u2" });
  again.say({ ...TRIGGER, id: "u3", config: { dir: "outbox" } });
  assert.deepEqual(told(provider), [
    "registertrigger u1",
    "unregistertrigger t1",
    "registertrigger u2",
    "unregistertrigger t2",
    "registertrigger u3",
  ]);
  handover.end();

  assert.deepEqual(told(provider), ["unregistertrigger t3"]);
});

Deno.test("equal triggers that come back with their ids are all taken over, for a type of a worker", () => {
  const { provider, originator, open, router } = setup();
  for (const id of ["t1", "t2", "t3"]) originator.say({ ...TRIGGER, id });
  answers(provider, "t3", { code: "no", message: "no" });
  const handover = router.traffic.drain([originator.worker_id], COMES);
  originator.cut();
  told(provider);
  const again = open();

  for (const id of ["t3", "t1", "t2", "t2"]) again.say({ ...TRIGGER, id });
  handover.end();

  assert.deepEqual(told(provider), [
    "registertrigger t3",
    "unregistertrigger t2",
    "registertrigger t2",
  ]);
  assert.equal(router.directory.triggers().length, 3);
});

Deno.test("an equal trigger replaces one that was left while nobody provides the type", () => {
  const { provider, open, router } = restarting(null);
  provider.cut();

  open().say(OTHER_ID);

  assert.deepEqual(router.directory.triggers().map(({ id }) => id), ["t2"]);
});

Deno.test("two equal triggers that were left are two again, for a type of the engine", () => {
  const { provider, originator, open, router } = setup("engine-watch");
  for (const id of ["t1", "t2"]) originator.say({ ...TRIGGER, id });
  const handover = router.traffic.drain([originator.worker_id], COMES);
  originator.cut();
  told(provider);
  const again = open();

  for (const id of ["u1", "u2", "u3"]) again.say({ ...TRIGGER, id });
  handover.end();

  assert.deepEqual(told(provider), ["registertrigger u3"]);
});

Deno.test("a worker that comes back and crashes leaves the trigger to the next, for a type of the engine", () => {
  const { provider, open, handover } = restarting("engine-watch");
  const second = open();
  second.say(OTHER_ID);
  second.cut();
  assert.deepEqual(told(provider), []);

  open().say({ ...TRIGGER, id: "t3" });
  handover.end();

  assert.deepEqual(told(provider), []);
});

Deno.test("a left trigger stays until the last handover of its worker ends", () => {
  const { provider, originator, router } = setup("engine-watch");
  originator.say(TRIGGER);
  const [first, second] = [1, 2].map(() => router.traffic.drain([originator.worker_id], COMES));
  originator.cut();
  told(provider);

  first!.end();
  assert.deepEqual(told(provider), []);
  second!.end();

  assert.deepEqual(told(provider), ["unregistertrigger t1"]);
});

Deno.test("a handover that ends before its worker leaves keeps no trigger of it", () => {
  const { provider, originator, router } = setup("engine-watch");
  originator.say(TRIGGER);
  const handover = router.traffic.drain([originator.worker_id], COMES);
  told(provider);

  handover.end();
  assert.deepEqual(told(provider), []);
  originator.cut();

  assert.deepEqual(told(provider), ["unregistertrigger t1"]);
});

Deno.test("a trigger whose registration still waits for the provider is not left", () => {
  const { provider, originator, router, clock } = setup();
  const data = { trigger_type: "file-watch", function_id: "docs::index", config: 1 };
  call(originator, "i1", { function_id: "engine::register_trigger", data });
  const handover = router.traffic.drain([originator.worker_id], COMES);
  const [given] = told(provider);

  originator.cut();

  assert.deepEqual(told(provider), [given!.replace("register", "unregister")]);
  assert.deepEqual([router.directory.triggers(), router.runningCalls], [[], 0]);
  clock.tick(PROVIDER_ANSWER_MS);
  handover.end();
  assert.deepEqual(told(provider), []);
});

Deno.test("a trigger that a registration by function made is left like any other", () => {
  const { provider, originator, open, router } = setup("engine-watch");
  const data = { trigger_type: "file-watch", function_id: "docs::index", config: 1 };
  call(originator, "i1", { function_id: "engine::register_trigger", data });
  const [given] = told(provider).map((text) => text.split(" ")[1]!);
  answers(provider, given!);
  const handover = router.traffic.drain([originator.worker_id], COMES);
  originator.cut();
  const again = open();

  call(again, "i1", { function_id: "engine::register_trigger", data });
  handover.end();

  assert.equal(Object.keys(results(again)).length, 1);
  assert.deepEqual(told(provider), []);
  again.cut();
  assert.deepEqual(told(provider), [`unregistertrigger ${given}`]);
});

Deno.test("an equal trigger with the id of one whose line is there replaces it as ever", () => {
  const { provider, originator, open, router } = setup();
  originator.say(TRIGGER);
  router.traffic.drain([originator.worker_id], COMES);
  told(provider);

  open().say(TRIGGER);

  assert.deepEqual(told(provider), ["unregistertrigger t1", "registertrigger t1"]);
});

Deno.test("a left trigger cannot be ended by anybody else", () => {
  const { provider, open, router } = restarting("engine-watch");

  open().say({ type: "unregistertrigger", id: "t1" });

  assert.deepEqual(told(provider), []);
  assert.equal(router.directory.trigger("t1")?.state, "offered");
});

Deno.test("a refusal of a left trigger goes to nobody and counts", () => {
  const { provider, router, handover } = restarting(null);

  answers(provider, "t1", { code: "no", message: "no" });
  assert.equal(router.directory.trigger("t1")?.state, "refused");
  handover.end();

  assert.deepEqual(told(provider), []);
});

for (const isCut of [true, false]) {
  const when = isCut ? "lost before" : "replaced when";

  Deno.test(`a line that is ${when} its draining worker comes back leaves no trigger for long`, () => {
    const { provider, originator, open, router } = setup("engine-watch");
    originator.say(TRIGGER);
    const handover = router.traffic.drain([originator.worker_id], COMES);
    if (isCut) originator.cut();
    const { worker_id: previous_worker_id, reattach_token } = originator;
    const again = open();
    told(provider);

    again.say({ type: "reattach", previous_worker_id, reattach_token });
    again.say(OTHER_ID);
    assert.deepEqual(told(provider), ["unregistertrigger t1", "registertrigger t2"]);
    again.cut();
    assert.deepEqual(told(provider), []);
    handover.end();

    assert.deepEqual(told(provider), ["unregistertrigger t2"]);
  });
}

Deno.test("a worker that provides a type and drains takes the type along", () => {
  const { provider, originator, router, open } = setup();
  originator.say(TRIGGER);
  const handover = router.traffic.drain([provider.worker_id], COMES);

  provider.cut();
  assert.equal(router.directory.trigger("t1")?.state, "parked");
  const again = open();
  again.say(TYPE);

  assert.deepEqual(told(again), ["registertrigger t1"]);
  handover.end();
  assert.deepEqual(told(again), []);
});
