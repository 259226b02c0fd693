/**
 * The life of triggers, as originators and providers see it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { type EngineEvent, WARNINGS_MAX, WARNINGS_WINDOW_MS } from "../ports/events.ts";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import {
  announce,
  answerTrigger,
  fakeRouter,
  only,
  TRIGGER,
  triggersSentTo,
  TYPE,
  withTriggerType,
} from "../../tests/fakes/fake_router.ts";
import { Access } from "./access/access.ts";
import { Pattern } from "./access/patterns.ts";
import { Peer } from "./peer.ts";
import { NO_HOLDING } from "./registrations.ts";
import { type Provider, TriggerTypes } from "./trigger_table.ts";

Deno.test("a trigger is delivered to the provider of its type, and success is not reported", () => {
  const { provider, originator } = withTriggerType();

  originator.say({ ...TRIGGER, metadata: { why: "demo" }, message_type: "registertrigger" });
  const frames = provider.connection.takeTexts();
  answerTrigger(provider, "t1");

  assert.deepEqual(frames, [
    '{"type":"registertrigger","id":"t1","trigger_type":"file-watch","function_id":"docs::index",' +
    '"metadata":{"why":"demo"},"config":{"dir":"inbox"}}',
  ]);
  assert.deepEqual(triggersSentTo(originator), []);
});

Deno.test("a provider receives namespaces other than the default only", () => {
  const { provider, originator } = withTriggerType();

  originator.say({ ...TRIGGER, config: null, namespace: "eu", trigger_namespace: "default" });

  assert.deepEqual(provider.connection.take(), [{
    type: "registertrigger",
    id: "t1",
    trigger_type: "file-watch",
    function_id: "docs::index",
    namespace: "eu",
    config: {},
  }]);
});

Deno.test("a trigger of an unknown type is parked silently and delivered once when the type appears", () => {
  const { open, router } = fakeRouter();
  const originator = open();
  originator.say(TRIGGER);
  assert.deepEqual(triggersSentTo(originator), []);
  assert.equal(router.directory.trigger("t1")?.state, "parked");

  const provider = open();
  provider.say(TYPE);

  assert.deepEqual(triggersSentTo(provider), ["registertrigger t1"]);
  assert.equal(router.directory.trigger("t1")?.state, "offered");
});

Deno.test("a type in another namespace is another type", () => {
  const { provider, originator } = withTriggerType();

  originator.say({ ...TRIGGER, trigger_namespace: "eu" });

  assert.deepEqual(triggersSentTo(provider), []);
});

Deno.test("a provider's refusal is forwarded to the originator, and the trigger stays", () => {
  const { provider, originator, router } = withTriggerType();
  originator.say(TRIGGER);
  triggersSentTo(provider);

  answerTrigger(provider, "t1", {
    code: "trigger_registration_failed",
    message: "No such directory",
  });

  assert.deepEqual(originator.connection.take(), [{
    type: "triggerregistrationresult",
    id: "t1",
    trigger_type: "file-watch",
    function_id: "docs::index",
    error: { code: "trigger_registration_failed", message: "No such directory" },
  }]);
  assert.equal(router.directory.trigger("t1")?.state, "refused");
});

Deno.test("a refused trigger ends without a frame to the provider", () => {
  const { provider, originator } = withTriggerType();
  originator.say(TRIGGER);
  answerTrigger(provider, "t1", { code: "no", message: "no" });
  triggersSentTo(provider);

  originator.say({ type: "unregistertrigger", id: "t1" });

  assert.deepEqual(triggersSentTo(provider), []);
});

Deno.test("a refused trigger is delivered again when its type is registered again", () => {
  const { provider, originator } = withTriggerType();
  originator.say(TRIGGER);
  answerTrigger(provider, "t1", { code: "no", message: "no" });
  triggersSentTo(provider);

  provider.say(TYPE);

  assert.deepEqual(triggersSentTo(provider), ["registertrigger t1"]);
});

Deno.test("only the provider of a trigger can reply", () => {
  const { originator, open, router } = withTriggerType();
  originator.say(TRIGGER);
  const liar = open();

  answerTrigger(liar, "t1", { code: "no", message: "no" });
  answerTrigger(originator, "t1", { code: "no", message: "no" });
  answerTrigger(liar, "unknown", { code: "no", message: "no" });

  assert.deepEqual(triggersSentTo(originator), []);
  assert.equal(router.directory.trigger("t1")?.state, "offered");
});

Deno.test("unregistertrigger reaches the provider once, with id and type only", () => {
  const { provider, originator } = withTriggerType();
  originator.say(TRIGGER);
  provider.connection.take();

  originator.say({ type: "unregistertrigger", id: "t1" });
  originator.say({ type: "unregistertrigger", id: "t1", trigger_type: "file-watch" });

  assert.deepEqual(provider.connection.take(), [
    { type: "unregistertrigger", id: "t1", trigger_type: "file-watch" },
  ]);
});

Deno.test("only its originator can end a trigger", () => {
  const { provider, originator, open } = withTriggerType();
  originator.say(TRIGGER);
  triggersSentTo(provider);

  open().say({ type: "unregistertrigger", id: "t1" });

  assert.deepEqual(triggersSentTo(provider), []);
});

Deno.test("a trigger ends when its originator disconnects", () => {
  const { provider, originator, router } = withTriggerType();
  originator.say(TRIGGER);
  triggersSentTo(provider);

  originator.cut();

  assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t1"]);
  assert.equal(router.directory.trigger("t1"), undefined);
});

Deno.test("a trigger id belongs to the name of its worker", () => {
  const { provider, originator, open, router, events } = withTriggerType();
  announce(originator, [], "shop");
  originator.say(TRIGGER);
  const thief = open();
  announce(thief, [], "thief");
  const unnamed = open();
  provider.connection.take();

  for (const other of [thief, unnamed]) {
    other.connection.take();
    other.say({ ...TRIGGER, function_id: "thief::route" });

    const answer = only(other);
    assert.equal(answer.type, "triggerregistrationresult");
    assert.deepEqual((answer as { error?: unknown }).error, {
      code: "trigger_registration_failed",
      message: "Trigger t1 belongs to worker shop; register it with another id",
      details: { owner: "shop", owner_worker_id: originator.worker_id },
    });
  }
  assert.deepEqual(triggersSentTo(provider), []);
  assert.equal(router.directory.trigger("t1")?.function_id, "docs::index");
  assert.deepEqual(
    events.filter(({ type }) => type === "warning").map((event) =>
      event.type === "warning" && [event.worker_id, event.text]
    ),
    [thief, unnamed].map(({ worker_id }) => [worker_id, "a trigger was refused"]),
  );
});

Deno.test("a worker with access rules does not learn whose a trigger id is", () => {
  const { originator, open } = withTriggerType();
  announce(originator, [], "shop");
  originator.say(TRIGGER);
  const guest = open({
    access: new Access({ token: { name: "ci", allow: [Pattern.glob("docs::*")] } }),
  });

  guest.say(TRIGGER);

  const answer = only(guest);
  assert.deepEqual((answer as { error?: unknown }).error, {
    code: "trigger_registration_failed",
    message: "Trigger t1 belongs to another worker; register it with another id",
  });
});

Deno.test("a connection of the same worker replaces a trigger, and the one before is notified", () => {
  const { originator, open, router, events } = withTriggerType();
  announce(originator, [], "shop");
  originator.say(TRIGGER);
  const replica = open();
  announce(replica, [], "shop");

  replica.say({ ...TRIGGER, function_id: "docs::other" });

  assert.equal(router.directory.trigger("t1")?.worker_id, replica.worker_id);
  const answer = only(originator) as { type: string; id: string; error: { message: string } };
  assert.equal(answer.type, "triggerregistrationresult");
  assert.match(answer.error.message, /^Trigger t1 was registered again by another connection/);
  const warning = events.find(({ type }) => type === "warning");
  assert.ok(warning?.type === "warning" && warning.worker_id === originator.worker_id);
});

Deno.test("a trigger id is free when the last connection of its owner has left", () => {
  const { originator, open, router } = withTriggerType();
  announce(originator, [], "shop");
  originator.say(TRIGGER);
  originator.cut();
  const other = open();
  announce(other, [], "other");

  other.say(TRIGGER);

  assert.equal(router.directory.trigger("t1")?.worker_id, other.worker_id);
});

Deno.test("a worker cannot take the id of a trigger by announcing the name of a built-in worker", () => {
  const { originator, open, openBuiltin, router } = withTriggerType();
  const builtin = openBuiltin("engine-state");
  builtin.say(TRIGGER);
  for (const other of [originator, open()]) {
    announce(other, [], "engine-state");
    other.say(TRIGGER);
  }

  assert.equal(router.directory.trigger("t1")?.worker_id, builtin.worker_id);
});

Deno.test("a trigger with a known id replaces the one before, which ends first", () => {
  const { provider, originator } = withTriggerType();
  originator.say(TRIGGER);
  triggersSentTo(provider);

  originator.say({ ...TRIGGER, config: { dir: "outbox" } });

  assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t1", "registertrigger t1"]);
});

Deno.test("a trigger that was registered again on another connection outlives the first one", () => {
  const { provider, originator, open, router } = withTriggerType();
  announce(originator);
  originator.say(TRIGGER);
  const again = open();
  announce(again);
  again.say(TRIGGER);
  triggersSentTo(provider);

  originator.cut();

  assert.deepEqual(triggersSentTo(provider), []);
  assert.equal(router.directory.trigger("t1")?.worker_id, again.worker_id);
});

Deno.test("triggers outlive their provider and are delivered once to the next one, with the same ids", () => {
  const { provider, originator, open, router } = withTriggerType();
  originator.say(TRIGGER);
  originator.say({ ...TRIGGER, id: "t2" });
  triggersSentTo(provider);

  provider.cut();
  assert.equal(router.directory.trigger("t1")?.state, "parked");
  assert.deepEqual(triggersSentTo(originator), []);
  const next = open();
  next.say(TYPE);

  assert.deepEqual(triggersSentTo(next), ["registertrigger t1", "registertrigger t2"]);
});

Deno.test("a trigger that ends while it is parked is never delivered", () => {
  const { provider, originator, open } = withTriggerType();
  originator.say(TRIGGER);
  provider.say({ type: "unregistertriggertype", id: "file-watch", description: "x" });
  triggersSentTo(provider);

  originator.say({ type: "unregistertrigger", id: "t1" });
  const next = open();
  next.say(TYPE);

  assert.deepEqual([triggersSentTo(provider), triggersSentTo(next)], [[], []]);
});

Deno.test("unregistertriggertype of another worker changes nothing", () => {
  const { provider, originator, open } = withTriggerType();
  open().say({ type: "unregistertriggertype", id: "file-watch" });
  originator.say(TRIGGER);

  assert.deepEqual(triggersSentTo(provider), ["registertrigger t1"]);
});

Deno.test("a provider that registers its type again receives the live triggers again", () => {
  const { provider, originator } = withTriggerType();
  originator.say(TRIGGER);
  triggersSentTo(provider);

  provider.say(TYPE);

  assert.deepEqual(triggersSentTo(provider), ["registertrigger t1"]);
});

Deno.test("a second provider takes the triggers over, and the first gets them back when it disconnects", () => {
  const { provider, originator, open } = withTriggerType();
  originator.say(TRIGGER);
  triggersSentTo(provider);

  const second = open();
  second.say(TYPE);
  assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t1"]);
  assert.deepEqual(triggersSentTo(second), ["registertrigger t1"]);

  second.cut();
  assert.deepEqual(triggersSentTo(provider), ["registertrigger t1"]);
});

Deno.test("an inactive provider disconnects without any effect", () => {
  const { provider, originator, open } = withTriggerType();
  originator.say(TRIGGER);
  const second = open();
  second.say(TYPE);
  triggersSentTo(second);

  provider.cut();

  assert.deepEqual(triggersSentTo(second), []);
});

Deno.test("a late refusal of a replaced trigger is followed by success", () => {
  const { provider, originator, router } = withTriggerType();
  originator.say(TRIGGER);
  originator.say({ ...TRIGGER, config: { dir: "outbox" } });

  answerTrigger(provider, "t1", { code: "no", message: "inbox is missing" });
  answerTrigger(provider, "t1");

  assert.equal(router.directory.trigger("t1")?.state, "offered");
  triggersSentTo(provider);
  originator.cut();
  assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t1"]);
});

Deno.test("a built-in type cannot be replaced, and replaces those of workers", () => {
  const { provider: worker, originator, openBuiltin, open, events } = withTriggerType();
  originator.say(TRIGGER);
  triggersSentTo(worker);

  const builtin = openBuiltin("engine-watch");
  builtin.say(TYPE);
  const late = open();
  late.say(TYPE);

  assert.deepEqual(triggersSentTo(worker), ["unregistertrigger t1"]);
  assert.deepEqual(triggersSentTo(builtin), ["registertrigger t1"]);
  assert.deepEqual(triggersSentTo(late), []);
  const warnings = events.filter((event) => event.type === "warning");
  assert.deepEqual(warnings.map(({ worker_id }) => worker_id), [late.worker_id]);
});

Deno.test("a worker may provide the type of its own triggers and disconnect with both", () => {
  const { provider, router, open } = withTriggerType();
  provider.say(TRIGGER);
  assert.deepEqual(triggersSentTo(provider), ["registertrigger t1"]);

  provider.cut();

  assert.deepEqual([router.directory.triggers(), router.directory.triggerTypes()], [[], []]);
  const next = open();
  next.say(TYPE);
  assert.deepEqual(triggersSentTo(next), []);
});

Deno.test("a config that is nested too deeply is rejected and changes nothing", () => {
  const { provider, originator, router } = withTriggerType();
  const deep = "[".repeat(100_000) + "]".repeat(100_000);

  originator.say(
    `{"type":"registertrigger","id":"t1","trigger_type":"file-watch","function_id":"f","config":${deep}}`,
  );

  assert.deepEqual(triggersSentTo(originator).length, 1);
  assert.deepEqual(triggersSentTo(provider), []);
  assert.deepEqual(router.directory.triggers(), []);
});

function provider(id: string): Provider {
  const info = { address: null, launch_id: null, builtin: null };
  const identity = { id, reattach_token: "", info, connected_at_ms: 0 };
  const registration = { type: "registertriggertype", id: "cron", description: "" } as const;
  return { peer: new Peer(new FakeConnection(id), identity), registration, holding: NO_HOLDING };
}

Deno.test("the newest provider of a type serves it, and then the one before", () => {
  const types = new TriggerTypes();
  const type = types.open("cron");
  const [a, b] = [provider("a"), provider("b")];
  types.addProvider(type, a);
  types.addProvider(type, b);

  assert.equal(type.providers.at(-1), b);
  types.removeProvider(type, b.peer);
  assert.equal(type.providers.at(-1), a);
  assert.deepEqual([types.of(a.peer), types.of(b.peer)], [[type], []]);
});

Deno.test("a provider that registers twice is one provider, the newest", () => {
  const types = new TriggerTypes();
  const type = types.open("cron");
  const [a, b] = [provider("a"), provider("b")];
  for (const each of [a, b, a]) types.addProvider(type, each);

  assert.deepEqual(type.providers, [b, a]);
});

Deno.test("a type is known while it has a provider, per namespace", () => {
  const types = new TriggerTypes();
  const type = types.open("cron", "eu");
  const a = provider("a");
  types.addProvider(type, a);

  assert.equal(types.open("cron", "eu"), type);
  assert.equal(types.find("cron"), undefined);
  types.closeIfEmpty(type);
  assert.equal(types.find("cron", "eu"), type);
  types.removeProvider(type, a.peer);
  types.removeProvider(type, a.peer);
  types.closeIfEmpty(type);
  assert.deepEqual([...types.all()], []);
});

function parkedOf(events: readonly EngineEvent[]): EngineEvent[] {
  return events.filter((event) => event.type === "trigger_parked");
}

Deno.test("a parked trigger is reported, and nothing is sent to its worker", () => {
  const { open, events } = fakeRouter();
  const originator = open();

  originator.say(TRIGGER);

  assert.deepEqual(parkedOf(events), [{
    type: "trigger_parked",
    worker_id: originator.worker_id,
    trigger_id: "t1",
    trigger_type: "file-watch",
    function_id: "docs::index",
    why: "no worker provides the trigger type file-watch",
  }]);
  assert.deepEqual(originator.connection.take(), []);
});

Deno.test("a trigger with a provider is not reported as parked", () => {
  const { open, events } = fakeRouter();
  open().say(TYPE);

  open().say(TRIGGER);

  assert.deepEqual(parkedOf(events), []);
});

Deno.test("a trigger is reported as parked when the last provider of its type disconnects", () => {
  const { open, events } = fakeRouter();
  const [first, second, originator] = [open(), open(), open()];
  first.say(TYPE);
  second.say(TYPE);
  originator.say(TRIGGER);

  second.say({ type: "unregistertriggertype", id: "file-watch" });
  assert.deepEqual(parkedOf(events), []);
  first.cut();

  assert.deepEqual(parkedOf(events).length, 1);
  assert.deepEqual(originator.connection.take(), []);
});

Deno.test("triggers that are parked during shutdown are not reported", () => {
  const { open, events, router } = fakeRouter();
  const provider = open();
  provider.say(TYPE);
  open().say(TRIGGER);

  router.drain();
  provider.cut();

  assert.deepEqual(parkedOf(events), []);
});

Deno.test("the reports of parked triggers are limited per connection, apart from its warnings", () => {
  const { open, events, clock } = fakeRouter();
  const originator = open();
  const ask = (id: string) => originator.say({ ...TRIGGER, id });

  for (let i = 0; i < WARNINGS_MAX + 10; i++) ask(`t${i}`);
  assert.equal(parkedOf(events).length, WARNINGS_MAX);
  originator.say({ type: "invokefunction", function_id: "a::missing", data: null });
  assert.equal(events.at(-1)?.type, "warning");
  clock.tick(WARNINGS_WINDOW_MS);
  ask("later");

  assert.equal(parkedOf(events).length, WARNINGS_MAX + 1);
});

Deno.test("equal triggers of two workers are one delivery for a built-in type", () => {
  const { provider, originator, open, router } = withTriggerType("engine-watch");
  const replica = open();

  originator.say(TRIGGER);
  replica.say({ ...TRIGGER, id: "t2", config: { dir: "inbox" } });

  assert.deepEqual(triggersSentTo(provider), ["registertrigger t1"]);
  assert.equal(router.directory.trigger("t2")?.state, "offered");
  originator.cut();
  assert.deepEqual(triggersSentTo(provider), []);
  replica.cut();
  assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t1"]);
});

Deno.test("equal triggers are recognised in any order of their keys", () => {
  const { provider, originator, open } = withTriggerType("engine-watch");

  originator.say({ ...TRIGGER, config: { a: { x: 1, y: [1, { p: 1, q: 2 }] }, b: 2 } });
  open().say({ ...TRIGGER, id: "t2", config: { b: 2, a: { y: [1, { q: 2, p: 1 }], x: 1 } } });

  assert.deepEqual(triggersSentTo(provider), ["registertrigger t1"]);
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
    const { provider, originator, open } = withTriggerType("engine-watch");
    originator.say(TRIGGER);
    open().say({ ...TRIGGER, ...change, id: "t2" });

    assert.deepEqual(triggersSentTo(provider), ["registertrigger t1", "registertrigger t2"]);
  });
}

Deno.test("equal triggers of one worker are two", () => {
  const { provider, originator } = withTriggerType("engine-watch");
  originator.say(TRIGGER);
  originator.say({ ...TRIGGER, id: "t2" });

  assert.deepEqual(triggersSentTo(provider), ["registertrigger t1", "registertrigger t2"]);
});

Deno.test("equal triggers of two workers are two deliveries for a type of a worker", () => {
  const { provider, originator, open } = withTriggerType();
  originator.say(TRIGGER);
  open().say({ ...TRIGGER, id: "t2" });

  assert.deepEqual(triggersSentTo(provider), ["registertrigger t1", "registertrigger t2"]);
});

Deno.test("equal parked triggers become one delivery when their type appears", () => {
  const { open, openBuiltin } = fakeRouter();
  open().say(TRIGGER);
  open().say({ ...TRIGGER, id: "t2" });

  const provider = openBuiltin("engine-watch");
  provider.say(TYPE);

  assert.deepEqual(triggersSentTo(provider), ["registertrigger t1"]);
});

Deno.test("a refusal of a shared trigger reaches every originator under its own id", () => {
  const { provider, originator, open } = withTriggerType("engine-watch");
  const replica = open();
  originator.say(TRIGGER);
  replica.say({ ...TRIGGER, id: "t2" });

  answerTrigger(provider, "t1", { code: "no", message: "no" });

  assert.deepEqual(triggersSentTo(originator), ["triggerregistrationresult t1"]);
  assert.deepEqual(triggersSentTo(replica), ["triggerregistrationresult t2"]);
});

Deno.test("an id that a shared trigger outlived can be used again", () => {
  const { provider, originator, open } = withTriggerType("engine-watch");
  const replica = open();
  originator.say(TRIGGER);
  replica.say({ ...TRIGGER, id: "t2" });
  triggersSentTo(provider);

  originator.say({ ...TRIGGER, config: { dir: "outbox" } });
  assert.deepEqual(triggersSentTo(provider), [
    "unregistertrigger t1",
    "registertrigger t2",
    "registertrigger t1",
  ]);

  replica.cut();
  originator.cut();
  assert.deepEqual(triggersSentTo(provider), ["unregistertrigger t2", "unregistertrigger t1"]);
});

Deno.test("a trigger that is registered again unchanged joins the shared delivery again", () => {
  const { provider, originator, open } = withTriggerType("engine-watch");
  open().say({ ...TRIGGER, id: "t2" });
  originator.say(TRIGGER);
  triggersSentTo(provider);

  originator.say(TRIGGER);
  originator.cut();
  open().say(TRIGGER);

  assert.deepEqual(triggersSentTo(provider), []);
});
