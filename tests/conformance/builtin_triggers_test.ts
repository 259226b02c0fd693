/**
 * PROTOCOL 4.1 rule 9, 4.3, 4.5, 4.7, 5.4, 4.8, 4.12 and 4.13 from the other end of the wire: triggers of types
 * that the engine owns, `http` apart.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { RawWsClient } from "../fakes/raw_ws_client.ts";
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

proveOnWire("cron", {
  "a function is called at its times, with the times in its payload": async ({ open }) => {
    const worker = await open();
    await worker.offer("cron::f");
    const trigger = triggerOf("cron", "cron::f", { expression: "* * * * * *" });
    await worker.send({ ...trigger, metadata: { m: 1 } });

    const runs = [await worker.run(), await worker.run()];

    for (const { data, metadata } of runs) {
      const { trigger: type, job_id, scheduled_time, actual_time } = data as JsonObject;
      assert.deepEqual([type, job_id, metadata], ["cron", trigger.id, { m: 1 }]);
      assert.match(scheduled_time as string, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/);
      assert.match(actual_time as string, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?\+00:00$/);
      const late = Date.parse(actual_time as string) - Date.parse(scheduled_time as string);
      assert.ok(late >= 0 && late <= 10_000, `${late} ms late`);
    }
    const [first, second] = runs.map(({ data }) => (data as JsonObject).scheduled_time as string);
    assert.ok(Date.parse(second!) > Date.parse(first!));
  },

  "an empty, a wrong and an impossible expression are refused": async ({ open }) => {
    const client = await open();
    for (
      const [config, message] of [
        [{}, /^Cron expression is required$/],
        [{ expression: "" }, /^Cron expression is required$/],
        [{ expression: "0 61 * * * *" }, /field 2 .* at character 3/],
        [{ expression: "0 0 0 30 2 *" }, /never fires/],
        [{ expression: "* * * * * *", timezone: "Europe/Berln" }, /did you mean Europe\/Berlin/],
      ] as const
    ) {
      const trigger = triggerOf("cron", "any::f", config as unknown as JsonObject);
      await client.send(trigger);
      const { type, id, error } = await client.receive();
      assert.deepEqual([type, id], ["triggerregistrationresult", trigger.id]);
      assert.equal((error as JsonObject).code, "trigger_registration_failed");
      assert.match((error as JsonObject).message as string, message);
    }
  },
});

proveOnWire("pub/sub", {
  "every subscriber gets what is published, with its own metadata": async ({ open }) => {
    const [a, b, user] = [await open(), await open(), await open()];
    for (
      const [client, id, topic] of [[a, "sub::a", "news.eu"], [b, "sub::b", "news.*"]] as const
    ) {
      await client.offer(id);
      await client.send({ ...triggerOf("subscribe", id, { topic }), metadata: { id } });
      await client.receivesNothing();
    }

    const answer = await user.call("publish", { topic: "news.eu", data: { n: 1, none: null } });
    await user.value("publish", { topic: "news", data: 2 });

    assert.equal("result" in answer, false);
    for (const [client, id] of [[a, "sub::a"], [b, "sub::b"]] as const) {
      const { data, metadata, invocation_id } = await client.run();
      assert.deepEqual([data, metadata], [{ n: 1, none: null }, { id }]);
      assert.equal(typeof invocation_id, "string");
      await client.receivesNothing();
    }
  },

  "a message arrives as it was published, with all digits of its numbers": async ({ open }) => {
    const [worker, user] = [await open(), await open()];
    await worker.offer("exact::f");
    await worker.send(triggerOf("subscribe", "exact::f", { topic: "exact" }));
    await worker.receivesNothing();
    const data = '{"n":12345678901234567890,"f":1.0}';

    const head = '{"type":"invokefunction","invocation_id":"exact-1","function_id":"publish"';
    await user.send(`${head},"data":{"topic":"exact","data":${data}}}`);
    await user.receive();

    const { text } = await worker.receiveRaw();
    assert.ok(text.endsWith(`"data":${data}}`), text);
  },

  "removing one subscription leaves the others of its topic": async ({ open }) => {
    const [worker, user] = [await open(), await open()];
    await worker.offer("kept::f");
    const gone = triggerOf("subscribe", "kept::f", { topic: "kept", n: 1 });
    await worker.send(gone, triggerOf("subscribe", "kept::f", { topic: "kept", n: 2 }));
    await worker.receivesNothing();

    await worker.send({ type: "unregistertrigger", id: gone.id!, trigger_type: "subscribe" });
    await worker.receivesNothing();
    await user.value("publish", { topic: "kept", data: 1 });

    assert.equal((await worker.run()).data, 1);
    await worker.receivesNothing();
  },

  "a publish without a topic, and wrong topics, are errors": async ({ open }) => {
    const client = await open();

    assert.equal((await client.failure("publish", { topic: "" })).code, "topic_not_set");
    for (const topic of [1, "a.*", "x".repeat(1024 * 1024)]) {
      const { code } = await client.failure("publish", { topic });
      assert.equal(code, "deserialization_error");
    }
    await client.send(triggerOf("subscribe", "any::f", { topic: "a.>.b" }));
    const refused = await client.receive();
    assert.equal((refused.error as JsonObject).code, "trigger_registration_failed");
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

proveOnWire("websocket triggers", {
  "connect, each message and the close run functions, in order, with one id": async (wire) => {
    const worker = await wire.open();
    await worker.offer("ws::join", "ws::said", "ws::left");
    await worker.send({
      ...triggerOf("websocket", "ws::said", {
        api_path: "/ws/:room",
        connect_function_id: "ws::join",
        close_function_id: "ws::left",
        format: "json",
      }),
      metadata: { m: 1 },
    });
    await worker.receivesNothing();
    const port = Number(new URL(wire.httpUrl).port);
    const connecting = RawWsClient.connect(port, { path: "/ws/a?x=1" });
    const joined = await worker.run({ result: { groups: ["g"], context: { u: 1 }, data: "hi" } });
    using client = await connecting;
    assert.equal(await client.nextText(), "hi");
    await client.text('{"n":1}');
    const said = await worker.run({ result: { ok: true } });
    assert.equal(await client.nextText(), '{"ok":true}');
    await client.close(4000, "done");
    const left = await worker.run();

    const base = { path: "/ws/:room", path_params: { room: "a" } };
    const trigger = { type: "websocket", path: "/ws/:room" };
    const [connect, message, close] = [joined, said, left].map(({ data }) => data as JsonObject);
    const { connection_id, headers: _headers, ...request } = connect!;
    assert.deepEqual(request, {
      event: "connect",
      ...base,
      method: "GET",
      query_params: { x: "1" },
      query_string: "x=1",
      trigger,
    });
    const later = { connection_id, ...base, groups: ["g"], context: { u: 1 }, trigger };
    assert.deepEqual(message, { event: "message", ...later, data: { n: 1 } });
    assert.deepEqual(close, { event: "close", ...later, code: 4000, reason: "done" });
    for (const { metadata } of [joined, said, left]) assert.deepEqual(metadata, { m: 1 });
  },

  "a connect that refuses is answered as a request, and nothing follows": async (wire) => {
    const worker = await wire.open();
    await worker.offer("no::join", "no::said");
    const config = { api_path: "/no", connect_function_id: "no::join" };
    await worker.send(triggerOf("websocket", "no::said", config));
    await worker.receivesNothing();
    const connecting = RawWsClient.connect(Number(new URL(wire.httpUrl).port), { path: "/no" });

    await worker.run({ result: { status_code: 403, body: { why: "no" } } });

    using client = await connecting;
    assert.equal(client.status, 403);
    await worker.receivesNothing();
  },

  "websocket::send reaches a group, and an id that is not open is an error": async (wire) => {
    const [worker, user] = [await wire.open(), await wire.open()];
    await worker.offer("to::join", "to::said");
    const config = { api_path: "/to", connect_function_id: "to::join" };
    await worker.send(triggerOf("websocket", "to::said", config));
    await worker.receivesNothing();
    const connecting = RawWsClient.connect(Number(new URL(wire.httpUrl).port), { path: "/to" });
    await worker.run({ result: { groups: ["to"] } });
    using client = await connecting;

    const sent = await user.value("websocket::send", { group: "to", data: [1] });
    const { error } = await user.call("websocket::send", { connection_id: "x", data: 1 });

    assert.deepEqual(sent, { reached: 1, closed: 0 });
    assert.equal(await client.nextText(), "[1]");
    assert.equal((error as JsonObject).code, "connection_not_found");
  },
});
