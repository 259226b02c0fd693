/**
 * PROTOCOL 4.14 and 5.9 from the other end of the wire: configurations and their events.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { proveOnWire } from "../fakes/wire_engine.ts";

const SCHEMA = { properties: { port: { type: "integer" }, key: { "x-secret": true } } };

proveOnWire("configurations", {
  "a value is registered, set and read; its events follow in the shape of the protocol": async (
    { open },
  ) => {
    const client = await open();
    const worker = await open();
    await worker.offer("shop::configured");
    await worker.send({
      type: "registertrigger",
      id: "t",
      trigger_type: "configuration",
      function_id: "shop::configured",
      config: { configuration_id: "shop", event_types: ["configuration:updated"] },
    });
    await worker.receivesNothing();

    const entry = await client.value<JsonObject>("configuration::register", {
      id: "shop",
      name: "Shop",
      description: "d",
      schema: SCHEMA,
      initial_value: { port: 1, key: "k" },
    });
    assert.deepEqual([entry.id, entry.value], ["shop", { port: 1, key: "[redacted]" }]);
    assert.deepEqual(await client.value("configuration::set", { id: "shop", value: { port: 2 } }), {
      old_value: { port: 1, key: "[redacted]" },
      new_value: { port: 2 },
    });
    const { value } = await client.value<JsonObject>("configuration::get", { id: "shop" });
    assert.deepEqual(value, { port: 2 });
    assert.deepEqual(await client.value("configuration::schema", { id: "shop" }), SCHEMA);
    const { data } = await worker.receive();
    assert.deepEqual(data, {
      type: "configuration",
      event_type: "configuration:updated",
      id: "shop",
      name: "Shop",
      description: "d",
      schema: SCHEMA,
      old_value: { port: 1, key: "[redacted]" },
      new_value: { port: 2 },
    });
  },

  "errors have the codes of the protocol": async ({ open }) => {
    const client = await open();
    await client.value("configuration::register", { id: "strict", schema: SCHEMA });
    const cases: [op: string, payload: JsonObject, code: string][] = [
      ["get", { id: "nothing" }, "NOT_REGISTERED"],
      ["get", { id: "Not An Id" }, "INVALID_ID"],
      ["get", { id: "strict" }, "NOT_FOUND"],
      ["set", { id: "strict", value: { port: "x" } }, "SCHEMA_INVALID"],
      ["set", { id: "strict", value: { key: "${HOME}" } }, "EXPAND_FAILED"],
      ["register", { id: "a", schema: { type: 7 } }, "SCHEMA_INVALID"],
    ];
    for (const [op, payload, code] of cases) {
      assert.equal((await client.failure(`configuration::${op}`, payload)).code, code, op);
    }
    await client.value("configuration::register", { id: "plain", initial_value: 1 });
    const { code } = await client.failure("configuration::schema", { id: "plain" });
    assert.equal(code, "SCHEMA_UNAVAILABLE");
  },
});
