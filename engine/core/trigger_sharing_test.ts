/**
 * Equal triggers of several workers, which act as one for types of the engine.
 *
 * @module
 */
import assert from "node:assert/strict";
import { fakeRouter } from "../../tests/fakes/fake_router.ts";
import { answers, setup, told, TRIGGER, TYPE } from "../../tests/fakes/trigger_setup.ts";

Deno.test("equal triggers of two workers are one for a type of the engine", () => {
  const { provider, originator, open, router } = setup("engine-watch");
  const replica = open();

  originator.say(TRIGGER);
  replica.say({ ...TRIGGER, id: "t2", config: { dir: "inbox" } });

  assert.deepEqual(told(provider), ["registertrigger t1"]);
  assert.equal(router.directory.trigger("t2")?.state, "offered");
  originator.cut();
  assert.deepEqual(told(provider), []);
  replica.cut();
  assert.deepEqual(told(provider), ["unregistertrigger t1"]);
});

Deno.test("equal triggers are recognised whatever the order of their keys", () => {
  const { provider, originator, open } = setup("engine-watch");

  originator.say({ ...TRIGGER, config: { a: { x: 1, y: [1, { p: 1, q: 2 }] }, b: 2 } });
  open().say({ ...TRIGGER, id: "t2", config: { b: 2, a: { y: [1, { q: 2, p: 1 }], x: 1 } } });

  assert.deepEqual(told(provider), ["registertrigger t1"]);
});

for (
  const [what, change] of [
    ["config", { config: { dir: "outbox" } }],
    ["metadata", { metadata: { a: 1 } }],
    ["function", { function_id: "docs::other" }],
    ["namespace", { namespace: "eu" }],
  ] as const
) {
  Deno.test(`triggers that differ in ${what} are two`, () => {
    const { provider, originator, open } = setup("engine-watch");
    originator.say(TRIGGER);
    open().say({ ...TRIGGER, ...change, id: "t2" });

    assert.deepEqual(told(provider), ["registertrigger t1", "registertrigger t2"]);
  });
}

Deno.test("equal triggers of one worker are two", () => {
  const { provider, originator } = setup("engine-watch");
  originator.say(TRIGGER);
  originator.say({ ...TRIGGER, id: "t2" });

  assert.deepEqual(told(provider), ["registertrigger t1", "registertrigger t2"]);
});

Deno.test("equal triggers of two workers are two for a type of a worker", () => {
  const { provider, originator, open } = setup();
  originator.say(TRIGGER);
  open().say({ ...TRIGGER, id: "t2" });

  assert.deepEqual(told(provider), ["registertrigger t1", "registertrigger t2"]);
});

Deno.test("equal triggers that waited for their type become one when it appears", () => {
  const { open, openBuiltin } = fakeRouter();
  open().say(TRIGGER);
  open().say({ ...TRIGGER, id: "t2" });

  const provider = openBuiltin("engine-watch");
  provider.say(TYPE);

  assert.deepEqual(told(provider), ["registertrigger t1"]);
});

Deno.test("a refusal of a shared trigger reaches every originator under its own id", () => {
  const { provider, originator, open } = setup("engine-watch");
  const replica = open();
  originator.say(TRIGGER);
  replica.say({ ...TRIGGER, id: "t2" });

  answers(provider, "t1", { code: "no", message: "no" });

  assert.deepEqual(told(originator), ["triggerregistrationresult t1"]);
  assert.deepEqual(told(replica), ["triggerregistrationresult t2"]);
});

Deno.test("an id that a shared trigger outlived can be used anew", () => {
  const { provider, originator, open } = setup("engine-watch");
  const replica = open();
  originator.say(TRIGGER);
  replica.say({ ...TRIGGER, id: "t2" });
  told(provider);

  originator.say({ ...TRIGGER, config: { dir: "outbox" } });
  assert.deepEqual(told(provider), [
    "unregistertrigger t1",
    "registertrigger t2",
    "registertrigger t1",
  ]);

  replica.cut();
  originator.cut();
  assert.deepEqual(told(provider), ["unregistertrigger t2", "unregistertrigger t1"]);
});

Deno.test("a trigger that comes back unchanged joins the shared one again", () => {
  const { provider, originator, open } = setup("engine-watch");
  open().say({ ...TRIGGER, id: "t2" });
  originator.say(TRIGGER);
  told(provider);

  originator.say(TRIGGER);
  originator.cut();
  open().say(TRIGGER);

  assert.deepEqual(told(provider), []);
});
