/**
 * PROTOCOL 4.1 rule 9, 4.3, 4.8, 4.12 and 4.13 from the other end of the wire: triggers of types
 * that the engine owns, `http` apart.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { proveOnWire } from "../fakes/wire_engine.ts";

interface Available {
  readonly event: string;
  readonly functions: readonly JsonObject[];
}

function triggerOf(trigger_type: string, function_id: string, config?: JsonObject): JsonObject {
  const id = crypto.randomUUID();
  return { type: "registertrigger", id, trigger_type, function_id, ...config && { config } };
}

proveOnWire("state triggers", {
  "every change is reported once, with both values": async ({ open }) => {
    const [worker, user] = [await open(), await open()];
    await worker.offer("on::change");
    await worker.send({
      ...triggerOf("state", "on::change", { scope: "told" }),
      metadata: { m: 1 },
    });
    await worker.receivesNothing();

    await user.value("state::set", { scope: "told", key: "k", value: { n: 1 } });
    await user.value("state::set", { scope: "told", key: "k", value: { n: 2 } });
    await user.value("state::set", { scope: "other", key: "k", value: 1 });
    await user.value("state::delete", { scope: "told", key: "k" });
    await user.call("state::delete", { scope: "told", key: "k" });

    const calls = [await worker.run(), await worker.run(), await worker.run()];
    const told = { type: "state", scope: "told", key: "k" };
    assert.deepEqual(calls.map(({ data }) => data), [
      { ...told, event_type: "state:created", old_value: null, new_value: { n: 1 } },
      { ...told, event_type: "state:updated", old_value: { n: 1 }, new_value: { n: 2 } },
      { ...told, event_type: "state:deleted", old_value: { n: 2 }, new_value: null },
    ]);
    for (const { metadata } of calls) assert.deepEqual(metadata, { m: 1 });
    await user.receivesNothing();
    await worker.receivesNothing();
  },

  "a condition suppresses a firing by `false` or an error, by nothing else": async ({ open }) => {
    const [worker, user] = [await open(), await open()];
    await worker.offer("cond::handler", "cond::ask");
    const condition_function_id = "cond::ask";
    await worker.send(
      triggerOf("state", "cond::handler", { scope: "cond", condition_function_id }),
    );
    await worker.receivesNothing();
    const outcomes = [{ result: false }, { error: "broken" }, { result: null }, {}, { result: 0 }];

    const ran = [];
    for (const [i, outcome] of outcomes.entries()) {
      await user.value("state::set", { scope: "cond", key: `k${i}`, value: i });
      const asked = await worker.run(outcome);
      assert.equal(asked.function_id, "cond::ask");
      if (i < 2) continue;
      const call = await worker.run();
      assert.deepEqual([call.function_id, call.data], ["cond::handler", asked.data]);
      ran.push(i);
    }

    assert.deepEqual(ran, [2, 3, 4]);
  },

  "an invalid config is reported to the originator": async ({ open }) => {
    const client = await open();
    const trigger = triggerOf("state", "any::f", { scope: 5 });

    await client.send(trigger);

    const { type, id, trigger_type, function_id, error } = await client.receive();
    assert.deepEqual([type, id], ["triggerregistrationresult", trigger.id]);
    assert.deepEqual([trigger_type, function_id], ["state", "any::f"]);
    assert.equal((error as JsonObject).code, "trigger_registration_failed");
  },

  "a wrong config by `engine::register_trigger` is the caller's error": async ({ open }) => {
    const client = await open();
    const data = { trigger_type: "http", function_id: "any::f", config: {} };

    const { code, message } = await client.failure("engine::register_trigger", data);

    assert.equal(code, "trigger_registration_failed");
    assert.match(message as string, /api_path/);
  },

  "equal triggers of two workers fire once, until the last is gone": async ({ open }) => {
    const [a, b, user] = [await open(), await open(), await open()];
    const scope = "shared";
    for (const client of [a, b]) {
      await client.offer("shared::f");
      await client.send(triggerOf("state", "shared::f", { scope }));
      await client.receivesNothing();
    }
    const set = (value: number) => user.value("state::set", { scope, key: "k", value });

    await set(1);
    await a.run();
    await a[Symbol.asyncDispose]();
    await set(2);
    const second = await b.run();
    await b.receivesNothing();

    assert.deepEqual((second.data as JsonObject).new_value, 2);
    await user.receivesNothing();
  },
});

proveOnWire("triggers of the engine itself", {
  "`engine::functions-available` lists all functions whenever they change": async (
    { open },
  ) => {
    const [worker, other] = [await open(), await open()];
    await worker.offer("hear::functions");
    await worker.send(triggerOf("engine::functions-available", "hear::functions"));
    await worker.receivesNothing();

    await other.offer({ id: "brand::new", description: "d", metadata: { team: "x" } });
    let seen: JsonObject | undefined;
    while (!seen) {
      const { event, functions } = (await worker.run()).data as unknown as Available;
      assert.equal(event, "functions_changed");
      seen = functions.find(({ function_id }) => function_id === "brand::new");
    }

    assert.deepEqual(seen, {
      function_id: "brand::new",
      namespace: "default",
      worker_name: "brand",
      description: "d",
      metadata: { team: "x" },
    });
  },

  "`engine::workers-available` reports workers that connect, announce themselves and leave": async (
    { open },
  ) => {
    const worker = await open();
    await worker.offer("hear::workers");
    await worker.send(triggerOf("engine::workers-available", "hear::workers"));
    await worker.receivesNothing();

    const other = await open();
    const came = await worker.run();
    await other.announce("coming");
    const said = await worker.run();
    await other[Symbol.asyncDispose]();
    const left = await worker.run();

    const worker_id = other.id;
    assert.deepEqual([came, said, left].map(({ data }) => data), [
      { event: "worker_connected", worker_id },
      { event: "worker_metadata_updated", worker_id },
      { event: "worker_disconnected", worker_id },
    ]);
  },
});
