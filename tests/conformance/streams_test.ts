/**
 * PROTOCOL 4.9 and 5.2 from the other end of the wire: items of streams, their events, and
 * functions of workers that replace the store.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { proveOnWire } from "../fakes/wire_engine.ts";

proveOnWire("streams", {
  "a missing item has no `result` key, and a removed one answers its old value": async (
    { open },
  ) => {
    const client = await open();
    const place = { stream_name: "chat", group_id: "missing", item_id: "m1" };

    const answer = await client.call("stream::get", place);
    assert.equal("error" in answer || "result" in answer, false);
    assert.deepEqual(await client.value("stream::delete", place), { old_value: null });
    assert.deepEqual(await client.value("stream::set", { ...place, data: [1] }), {
      old_value: null,
      new_value: [1],
    });
    assert.deepEqual(await client.value("stream::delete", place), { old_value: [1] });
  },

  "lists have items in their order, groups and streams": async ({ open }) => {
    const client = await open();
    const group = { stream_name: "listed", group_id: "g" };
    for (const item_id of ["b", "a"]) {
      await client.value("stream::set", { ...group, item_id, data: item_id });
    }

    assert.deepEqual(await client.value("stream::list", group), ["b", "a"]);
    assert.deepEqual(await client.value("stream::list_groups", { stream_name: "listed" }), ["g"]);
    const { stream } = await client.value<JsonObject>("stream::list_all", {});
    const listed = (stream as JsonObject[]).find(({ id }) => id === "listed");
    assert.deepEqual(listed, { id: "listed", groups: ["g"] });
  },

  "payloads of the wrong shape are JSON_ERRORs": async ({ open }) => {
    const client = await open();
    const bad: [string, Json][] = [
      ["set", { stream_name: "s", group_id: "g", item_id: "i" }],
      ["get", { stream_name: "", group_id: "g", item_id: "i" }],
      ["list", {}],
      ["send", { stream_name: "s", group_id: "g" }],
    ];

    for (const [op, payload] of bad) {
      const { error } = await client.call(`stream::${op}`, payload);
      assert.equal((error as JsonObject).code, "JSON_ERROR", op);
    }
  },
});
