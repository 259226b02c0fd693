/**
 * PROTOCOL 4.1, 4.2 and 5.7 from the other end of the wire: triggers of types that a worker owns.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { proveOnWire, type Wire, type WireClient } from "../fakes/wire_engine.ts";

const REFUSAL = { code: "trigger_registration_failed", message: "no such folder" };

/** A provider of a type, and a worker that registers triggers of it. */
async function setup({ open }: Wire, type: string): Promise<[WireClient, WireClient]> {
  const [provider, user] = [await open(), await open()];
  await provide(provider, type);
  return [provider, user];
}

async function provide(client: WireClient, id: string, more: JsonObject = {}): Promise<void> {
  await client.send({ type: "registertriggertype", id, description: `about ${id}`, ...more });
}

function triggerOf(id: string, trigger_type: string, more: JsonObject = {}): JsonObject {
  const function_id = "target::f";
  return { type: "registertrigger", id, trigger_type, function_id, config: { dir: "in" }, ...more };
}

/** The provider's reply to a trigger that it received. */
function verdictOn({ id, trigger_type, function_id }: JsonObject, error?: JsonObject): JsonObject {
  const type = "triggerregistrationresult";
  return {
    type,
    id: id!,
    trigger_type: trigger_type!,
    function_id: function_id!,
    ...error && { error },
  };
}

function endOf(id: string, trigger_type: string): JsonObject {
  return { type: "unregistertrigger", id, trigger_type };
}

proveOnWire("triggers of a worker's type", {
  "the provider receives what was registered; the originator receives nothing": async (wire) => {
    const [provider, user] = await setup(wire, "watch-a");
    await user.send({
      ...triggerOf("t1", "watch-a"),
      message_type: "registertrigger",
      metadata: { why: ["demo"] },
      namespace: "default",
    });

    const trigger = await provider.receive();
    await provider.send(verdictOn(trigger));

    assert.deepEqual(trigger, triggerOf("t1", "watch-a", { metadata: { why: ["demo"] } }));
    await provider.receivesNothing();
    await user.receivesNothing();
  },

  "a `config` that is absent or null is `{}`; a namespace goes along": async (wire) => {
    const [provider, user] = await setup(wire, "watch-b");
    const { config: _, ...bare } = triggerOf("b1", "watch-b");

    await user.send(bare, { ...bare, config: null, namespace: "shop" });

    assert.deepEqual(await provider.receive(), { ...bare, config: {} });
    assert.deepEqual(await provider.receive(), endOf("b1", "watch-b"));
    assert.deepEqual(await provider.receive(), { ...bare, config: {}, namespace: "shop" });
  },

  "the refusal of a provider reaches the originator as it was made": async (wire) => {
    const [provider, user] = await setup(wire, "watch-c");
    await user.send(triggerOf("c1", "watch-c"));

    await provider.send(verdictOn(await provider.receive(), { ...REFUSAL, details: { n: null } }));

    const expected = verdictOn(triggerOf("c1", "watch-c"), { ...REFUSAL, details: { n: null } });
    assert.deepEqual(await user.receive(), expected);
    await user.send({ type: "unregistertrigger", id: "c1" });
    await user.receivesNothing();
    await provider.receivesNothing();
  },

  "only the provider's answer counts": async (wire) => {
    const [provider, user] = await setup(wire, "watch-d");
    const other = await wire.open();
    await user.send(triggerOf("d1", "watch-d"));
    const trigger = await provider.receive();

    await other.send(verdictOn(trigger, REFUSAL));
    await user.send(verdictOn(trigger, REFUSAL));
    await provider.send(verdictOn({ ...trigger, id: "unknown" }, REFUSAL));
    await other.receivesNothing();
    await provider.receivesNothing();

    await user.receivesNothing();
  },

  "an unregistered trigger is withdrawn once, by id and type only": async (wire) => {
    const [provider, user] = await setup(wire, "watch-e");
    const other = await wire.open();
    await user.send(triggerOf("e1", "watch-e"));
    await provider.receive();

    await other.send(endOf("e1", "watch-e"));
    await other.receivesNothing();
    await provider.receivesNothing();
    await user.send(
      { type: "unregistertrigger", id: "e1" },
      endOf("e1", "watch-e"),
      endOf("e1", "x"),
    );
    await user.receivesNothing();

    assert.deepEqual(await provider.receive(), endOf("e1", "watch-e"));
    await provider.receivesNothing();
  },

  "triggers of an originator that leaves are withdrawn once each": async (wire) => {
    const [provider, user] = await setup(wire, "watch-f");
    await user.send(triggerOf("f1", "watch-f"), triggerOf("f2", "watch-f"));
    await provider.receive();
    await provider.receive();

    user.destroy();

    const ends = [await provider.receive(), await provider.receive()];
    assert.deepEqual(ends.map(({ id }) => id).sort(), ["f1", "f2"]);
    for (const end of ends) assert.deepEqual(Object.keys(end), ["type", "id", "trigger_type"]);
    await provider.receivesNothing();
  },

  "one with an id that is taken replaces the old one": async (wire) => {
    const [provider, user] = await setup(wire, "watch-g");
    await user.send(
      triggerOf("g1", "watch-g"),
      triggerOf("g1", "watch-g", { config: { dir: "out" } }),
    );

    assert.deepEqual((await provider.receive()).config, { dir: "in" });
    assert.deepEqual(await provider.receive(), endOf("g1", "watch-g"));
    assert.deepEqual((await provider.receive()).config, { dir: "out" });
  },

  "equal triggers of two workers stay two": async (wire) => {
    const [provider, user] = await setup(wire, "watch-h");
    const other = await wire.open();

    await user.send(triggerOf("h1", "watch-h"));
    await user.receivesNothing();
    await other.send(triggerOf("h2", "watch-h"));

    assert.deepEqual([(await provider.receive()).id, (await provider.receive()).id], ["h1", "h2"]);
  },

  "a provider fires by an ordinary call": async (wire) => {
    const [provider, user] = await setup(wire, "watch-i");
    await user.offer("target::i");
    const action = { type: "void" };
    const fire = { type: "invokefunction", function_id: "target::i", action };

    await provider.send({ ...fire, data: { file: "a" }, metadata: { why: "demo" } });

    const { data, metadata } = await user.run();
    assert.deepEqual([data, metadata], [{ file: "a" }, { why: "demo" }]);
  },
});

proveOnWire("parking", {
  "a trigger of an unknown type waits for a provider, without an error": async ({ open }) => {
    const [provider, user] = [await open(), await open()];
    await user.send(triggerOf("p1", "park-a"));
    await user.receivesNothing();

    await provide(provider, "park-a");

    assert.deepEqual(await provider.receive(), triggerOf("p1", "park-a"));
    await user.receivesNothing();
  },

  "when a provider comes back, each trigger is sent once, by its id": async (wire) => {
    const [provider, user] = await setup(wire, "park-b");
    await user.send(
      triggerOf("b1", "park-b"),
      triggerOf("b2", "park-b"),
      triggerOf("b3", "park-b"),
    );
    for (let i = 0; i < 3; i++) await provider.receive();
    await provider[Symbol.asyncDispose]();
    await user.send(endOf("b2", "park-b"));
    await user.receivesNothing();

    const again = await wire.open();
    await provide(again, "park-b");

    assert.deepEqual([(await again.receive()).id, (await again.receive()).id], ["b1", "b3"]);
    await again.receivesNothing();
  },

  "a type that is unregistered parks its triggers": async (wire) => {
    const [provider, user] = await setup(wire, "park-c");
    await user.send(triggerOf("c1", "park-c"));
    await provider.receive();

    await provider.send({ type: "unregistertriggertype", id: "park-c", description: "x" });
    await provider.receivesNothing();
    await user.send(triggerOf("c2", "park-c"));
    await user.receivesNothing();
    await provider.receivesNothing();
    await provide(provider, "park-c");

    assert.deepEqual([(await provider.receive()).id, (await provider.receive()).id], ["c1", "c2"]);
    await provider.receivesNothing();
  },

  "a type that is registered again gets its triggers again": async (wire) => {
    const [provider, user] = await setup(wire, "park-d");
    await user.send(triggerOf("d1", "park-d"));
    await provider.receive();

    await provide(provider, "park-d");

    assert.deepEqual(await provider.receive(), triggerOf("d1", "park-d"));
    await provider.receivesNothing();
  },

  "a trigger that was refused is tried again with the next provider": async (wire) => {
    const [provider, user] = await setup(wire, "park-e");
    await user.send(triggerOf("e1", "park-e"));
    await provider.send(verdictOn(await provider.receive(), REFUSAL));
    assert.equal((await user.receive()).type, "triggerregistrationresult");
    await provider[Symbol.asyncDispose]();

    const again = await wire.open();
    await provide(again, "park-e");

    assert.equal((await again.receive()).id, "e1");
    await user.receivesNothing();
  },

  "types of one name in two namespaces are two": async (wire) => {
    const [provider, user] = await setup(wire, "park-f");
    const other = await wire.open();
    await provide(other, "park-f", { namespace: "shop" });
    await other.receivesNothing();

    await user.send(
      triggerOf("f1", "park-f", { trigger_namespace: "shop" }),
      triggerOf("f2", "park-f", { trigger_namespace: "default" }),
      triggerOf("f3", "park-f", { trigger_namespace: "elsewhere" }),
    );

    assert.equal((await other.receive()).id, "f1");
    assert.equal((await provider.receive()).id, "f2");
    await other.receivesNothing();
    await provider.receivesNothing();
  },
});

proveOnWire("triggers by function", {
  "`engine::register_trigger` waits for the provider and answers an id": async (wire) => {
    const [provider, user] = await setup(wire, "func-a");
    await user.send({
      type: "invokefunction",
      invocation_id: "1",
      function_id: "engine::register_trigger",
      data: {
        trigger_type: "func-a",
        function_id: "target::f",
        config: { dir: "in" },
        metadata: 1,
      },
    });

    const trigger = await provider.receive();
    await user.receivesNothing();
    await provider.send(verdictOn(trigger));

    const id = trigger.id as string;
    assert.match(id, /^[0-9a-f-]{36}$/);
    assert.deepEqual(trigger, triggerOf(id, "func-a", { metadata: 1 }));
    assert.deepEqual((await user.receive()).result, { id });
    const function_id = "engine::unregister_trigger";
    assert.deepEqual(await user.value(function_id, { id }), { removed: true });
    assert.deepEqual(await provider.receive(), endOf(id, "func-a"));
    assert.deepEqual(await user.value(function_id, { id }), { removed: false });
    await provider.receivesNothing();
  },

  "the refusal of a provider is the caller's error, and nothing stays": async (wire) => {
    const [provider, user] = await setup(wire, "func-b");
    await user.send({
      type: "invokefunction",
      invocation_id: "1",
      function_id: "engine::register_trigger",
      data: { trigger_type: "func-b", function_id: "target::f" },
    });

    await provider.send(verdictOn(await provider.receive(), REFUSAL));

    assert.deepEqual((await user.receive()).error, REFUSAL);
    const { registered_triggers } = await user.value<{ registered_triggers: [] }>(
      "engine::registered-triggers::list",
      { trigger_type: "func-b" },
    );
    assert.deepEqual(registered_triggers, []);
  },

  "the wrong shape is `deserialization_error`": async ({ open }) => {
    const client = await open();

    for (const data of [null, 5, {}, { trigger_type: "x" }, { function_id: "x" }]) {
      const { code, message } = await client.failure("engine::register_trigger", data);
      assert.equal(code, "deserialization_error");
      assert.match(
        message as string,
        /^Failed to deserialize input for engine::register_trigger: /,
      );
    }
    const { code } = await client.failure("engine::unregister_trigger", {});
    assert.equal(code, "deserialization_error");
  },
});
