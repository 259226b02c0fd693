/**
 * PROTOCOL 4.9, 4.10, 5.2 and 5.3 from the other end of the wire: items of streams, their events,
 * functions of workers that replace the store, and subscribers.
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

  "items are listed with their ids, sorted, page by page": async ({ open }) => {
    const client = await open();
    const group = { stream_name: "paged", group_id: "g" };
    for (const item_id of ["b", "a"]) {
      await client.value("stream::set", { ...group, item_id, data: item_id });
    }

    const first = await client.value<JsonObject>("stream::list_items", { ...group, limit: 1 });
    assert.deepEqual(first, { items: [{ id: "a", data: "a" }], cursor: "a" });
    const rest = await client.value("stream::list_items", { ...group, cursor: first.cursor! });
    assert.deepEqual(rest, { items: [{ id: "b", data: "b" }] });
  },

  "a handler of `stream:join` with a `stream_name` is not asked about others": async (
    { open, ask },
  ) => {
    const worker = await open();
    await worker.offer("only::join");
    await worker.send({
      type: "registertrigger",
      id: "only",
      trigger_type: "stream:join",
      function_id: "only::join",
      config: { stream_name: "elsewhere" },
    });
    await worker.receivesNothing();
    const one = await ask({ path: "/stream" });
    const data = { subscriptionId: "s1", streamName: "free", groupId: "g" };
    await one.text(JSON.stringify({ type: "join", data }));

    assert.equal(JSON.parse(await one.nextText() ?? "null").event.type, "sync");
    await worker.receivesNothing();
    await worker.send({ type: "unregistertrigger", id: "only", trigger_type: "stream:join" });
    one.destroy();
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

  "a subscriber gets `sync`, then events, with members in the order of the protocol": async (
    { open, ask },
  ) => {
    const client = await open();
    const group = { stream_name: "joined", group_id: "g" };
    await client.value("stream::set", { ...group, item_id: "a", data: 1 });
    const one = await ask({ path: "/stream" });
    assert.equal(one.status, 101, one.head);

    await one.text(JSON.stringify({
      type: "join",
      data: { subscriptionId: "s1", streamName: "joined", groupId: "g" },
    }));
    const sync = await one.nextText();
    await client.value("stream::set", { ...group, item_id: "b", data: 2 });
    const event = await one.nextText();

    const head = (id: string): string =>
      `{"type":"stream","timestamp":0,"streamName":"joined","groupId":"g","id":${id},"event":`;
    const timeless = (text: string | undefined): string =>
      text!.replace(/"timestamp":\d{13}/, '"timestamp":0');
    assert.equal(timeless(sync), `${head("null")}{"type":"sync","data":[1],"ids":["a"]}}`);
    assert.equal(timeless(event), `${head('"b"')}{"type":"create","data":2}}`);
  },

  "a handler of `stream:join` refuses, and one of `stream:leave` hears of the end": async (
    { open, ask },
  ) => {
    const worker = await open();
    await worker.offer("guard::join", "guard::leave");
    for (const name of ["join", "leave"]) {
      await worker.send({
        type: "registertrigger",
        id: name,
        trigger_type: `stream:${name}`,
        function_id: `guard::${name}`,
        config: {},
      });
    }
    await worker.receivesNothing();
    const one = await ask({ path: "/stream" });
    const join = async (groupId: string, result: JsonObject | null): Promise<JsonObject> => {
      const data = { subscriptionId: "s1", streamName: "guarded", groupId };
      await one.text(JSON.stringify({ type: "join", data }));
      const { invocation_id, function_id, data: payload } = await worker.receive();
      assert.deepEqual(payload, {
        subscription_id: "s1",
        stream_name: "guarded",
        group_id: groupId,
        id: null,
        context: null,
      });
      const answer = { type: "invocationresult", invocation_id: invocation_id!, result };
      await worker.send({ ...answer, function_id: function_id! });
      return JSON.parse(await one.nextText() ?? "null").event;
    };

    assert.deepEqual(await join("secret", { unauthorized: true }), { type: "unauthorized" });
    assert.equal((await join("open", null)).type, "sync");
    one.destroy();

    const left = await worker.receive();
    assert.deepEqual([left.function_id, (left.data as JsonObject).group_id], [
      "guard::leave",
      "open",
    ]);
  },

  "what a subscriber may not say is answered, and the connection goes on": async ({ ask }) => {
    const one = await ask({ path: "/stream" });

    await one.text('{"type":"join","data":{"subscriptionId":"s1"}}');
    const { type, subscriptionId, error } = JSON.parse(await one.nextText() ?? "null");

    assert.deepEqual([type, subscriptionId, error.code], ["error", "s1", "bad_message"]);
    await one.text("{");
    assert.match(await one.nextText() ?? "", /"subscriptionId":null.*not JSON/);
  },
});
