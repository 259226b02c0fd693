/**
 * PROTOCOL 5.6 and 5.8 from the other end of the wire: what there is, in exact shapes, and logging.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { proveOnWire, type WireClient } from "../fakes/wire_engine.ts";

const ASKED = { type: "object", properties: { sku: { type: "string" } } };
const ANSWERED = { type: "object" };

/** The list that a function answers with. */
async function list(
  client: WireClient,
  what: string,
  query: JsonObject = {},
): Promise<JsonObject[]> {
  const result = await client.value<Record<string, JsonObject[]>>(`engine::${what}::list`, query);
  const key = what.replaceAll("-", "_");
  assert.deepEqual(Object.keys(result), [key]);
  return result[key]!;
}

/** One field of each entry, in the order of the list. */
function column(rows: readonly JsonObject[], name: string): (Json | undefined)[] {
  return rows.map((row) => row[name]);
}

proveOnWire("lists of functions", {
  "an entry has exactly its keys, optional ones only when set": async ({ open }) => {
    const client = await open();
    await client.offer(
      { id: "shape::b", description: "d", metadata: { team: "x" }, request_format: ASKED },
      { id: "shape::a", namespace: "shop" },
    );

    const functions = await list(client, "functions", { prefix: "shape::" });

    assert.deepEqual(functions, [
      { function_id: "shape::a", namespace: "shop", worker_name: "shape" },
      {
        function_id: "shape::b",
        namespace: "default",
        worker_name: "shape",
        description: "d",
        metadata: { team: "x" },
      },
    ]);
    await client.announce("shapely");
    const names = column(await list(client, "functions", { prefix: "shape::" }), "worker_name");
    assert.deepEqual(names, ["shapely", "shapely"]);
  },

  "the engine's own and internal ones are hidden unless asked for": async ({ open }) => {
    const client = await open();
    await client.offer({ id: "hide::f", metadata: { internal: true } }, "hide::g");

    const shown = column(await list(client, "functions"), "function_id") as string[];
    const all = column(
      await list(client, "functions", { include_internal: true }),
      "function_id",
    ) as string[];

    assert.ok(shown.includes("hide::g") && !shown.includes("hide::f"));
    assert.deepEqual(shown.filter((id) => id.startsWith("engine::")), []);
    const hidden = [
      "hide::f",
      "engine::functions::list",
      "engine::workers::register",
      "engine::log::info",
    ];
    for (const id of hidden) assert.ok(all.includes(id), id);
    assert.deepEqual([shown, all], [[...shown].sort(), [...all].sort()]);
  },

  "search, prefix and worker narrow it": async ({ open }) => {
    const client = await open();
    await client.announce("narrower");
    await client.offer({ id: "narrow::apple" }, {
      id: "narrow::pear",
      description: "An APPLE of sorts",
    }, "narrow::x");
    const ids = async (query: JsonObject) =>
      column(await list(client, "functions", query), "function_id");

    assert.deepEqual(await ids({ search: "apple" }), ["narrow::apple", "narrow::pear"]);
    assert.deepEqual(await ids({ prefix: "narrow::p" }), ["narrow::pear"]);
    assert.equal((await ids({ worker: "narrower" })).length, 3);
    assert.equal((await ids({ workers: ["narrower", "unknown"] })).length, 3);
    assert.deepEqual(await ids({ worker: "unknown" }), []);
    const states = await ids({ worker: "engine-state" });
    for (const name of ["get", "set", "delete", "list", "list_groups", "update"]) {
      assert.ok(states.includes(`state::${name}`), name);
    }
  },

  "details have schemas and the triggers of a function": async ({ open }) => {
    const client = await open();
    const config = { scope: "s" };
    const trigger = { id: "detail-t", trigger_type: "state", config };
    await client.offer(
      { id: "detail::f", request_format: ASKED, response_format: ANSWERED },
      "detail::g",
    );
    await client.send({ type: "registertrigger", function_id: "detail::f", ...trigger });
    await client.receivesNothing();
    const info = (data: JsonObject) => client.value("engine::functions::info", data);

    const summary = { namespace: "default", worker_name: "detail" };
    const f = {
      function_id: "detail::f",
      ...summary,
      request_schema: ASKED,
      response_schema: ANSWERED,
      registered_triggers: [{ ...trigger, status: "active" }],
    };
    const g = { function_id: "detail::g", ...summary, registered_triggers: [] };
    assert.deepEqual(await info({ function_id: "detail::f" }), f);
    const { functions } = await info({
      function_ids: ["detail::g", "detail::none", "detail::f"],
    }) as {
      functions: JsonObject[];
    };
    assert.deepEqual([functions[0], functions[2]], [g, f]);
    assert.deepEqual(Object.keys(functions[1]!), ["function_id", "error"]);
    assert.equal((functions[1]!.error as JsonObject).code, "not_found");
  },

  "an unknown name and an invalid query have their error codes": async ({ open }) => {
    const client = await open();
    const id = "engine::functions::info";
    const ids = Array.from({ length: 33 }, (_, i) => `f${i}`);

    assert.equal((await client.failure(id, { function_id: "no::such" })).code, "NOT_FOUND");
    assert.equal((await client.failure(id, {})).code, "INVALID_ARGUMENTS");
    assert.equal((await client.failure(id, { function_ids: ids })).code, "INVALID_ARGUMENTS");
    assert.equal((await client.failure(id, { function_id: 5 })).code, "deserialization_error");
    const list = "engine::functions::list";
    assert.equal((await client.failure(list, { search: 5 })).code, "deserialization_error");
    assert.ok(await client.value(list));
  },
});

proveOnWire("lists of triggers", {
  "types have no schema in the list, and all of them in the details": async ({ open }) => {
    const client = await open();
    await client.announce("typist");
    await client.send({
      type: "registertriggertype",
      id: "typed",
      description: "a type",
      trigger_request_format: ASKED,
    });
    const trigger = { id: "typed-t", trigger_type: "typed", function_id: "any::f" };
    await client.send({ type: "registertrigger", ...trigger });
    await client.receive();

    const types = await list(client, "triggers", { search: "typed" });
    const info = await client.value("engine::triggers::info", { id: "typed" });

    const summary = {
      id: "typed",
      namespace: "default",
      worker_name: "typist",
      description: "a type",
    };
    assert.deepEqual(types, [summary]);
    assert.deepEqual(info, {
      ...summary,
      configuration_schema: ASKED,
      request_schema: null,
      response_schema: null,
      instance_count: 1,
    });
    assert.equal(
      (await client.failure("engine::triggers::info", { id: "none" })).code,
      "NOT_FOUND",
    );
  },

  "built-in types have the names of their workers": async ({ open }) => {
    const client = await open();

    const types = await list(client, "triggers", { include_internal: true });

    const workers = Object.fromEntries(types.map(({ id, worker_name }) => [id, worker_name]));
    assert.deepEqual([workers.http, workers.state], ["engine-http", "engine-state"]);
    const own = ["engine::functions-available", "engine::workers-available"];
    assert.deepEqual(own.map((id) => workers[id]), ["engine", "engine"]);
    const shown = column(await list(client, "triggers"), "id");
    assert.ok(shown.includes("http") && !own.some((id) => shown.includes(id)));
  },

  "an instance has exactly its keys, and a summary of 80 characters": async ({ open }) => {
    const client = await open();
    await client.announce("instancer");
    const config = { scope: "x".repeat(100) };
    const trigger = { id: "inst-1", trigger_type: "state", function_id: "inst::f", config };
    await client.offer("inst::f");
    await client.send({ type: "registertrigger", ...trigger, metadata: { m: 1 } });
    await client.send({ type: "registertrigger", ...trigger, id: "inst-2", config: {} });
    await client.receivesNothing();

    const all = await list(client, "registered-triggers", { function_id: "inst::f" });

    const config_summary = `${JSON.stringify(config).slice(0, 80)}…`;
    const [{ worker_id } = {}] = all;
    assert.equal(typeof worker_id, "string");
    const facts = { worker_name: "instancer", worker_id: worker_id!, status: "active" };
    const first = { ...trigger, ...facts, config_summary };
    assert.deepEqual(all, [
      first,
      { ...first, id: "inst-2", config: {}, config_summary: "{}" },
    ]);
    const ids = async (query: JsonObject) =>
      column(await list(client, "registered-triggers", query), "id");
    assert.deepEqual(await ids({ worker: "instancer", trigger_type: "state" }), [
      "inst-1",
      "inst-2",
    ]);
    assert.deepEqual(await ids({ search: "inst-2" }), ["inst-2"]);
    const info = await client.value<JsonObject>("engine::registered-triggers::info", {
      id: "inst-1",
    });
    const { trigger: type, function: target, ...rest } = info;
    assert.deepEqual(rest, { ...first, metadata: { m: 1 } });
    assert.equal((type as JsonObject).id, "state");
    assert.equal((target as JsonObject).function_id, "inst::f");
  },

  "details of a parked trigger have null for provider and function": async ({ open }) => {
    const client = await open();
    const trigger = { id: "parked-1", trigger_type: "unknown", function_id: "none::f" };
    await client.send({ type: "registertrigger", ...trigger });

    const info = await client.value<JsonObject>("engine::registered-triggers::info", {
      id: "parked-1",
    });

    assert.deepEqual([info.trigger, info.function], [null, null]);
    assert.ok(!("metadata" in info));
    const id = "engine::registered-triggers::info";
    assert.equal((await client.failure(id, { id: "none" })).code, "NOT_FOUND");
  },
});

proveOnWire("lists of workers", {
  "an entry has exactly its keys, unknown ones null": async ({ open }) => {
    const client = await open();
    const before = Date.now();
    await client.offer("listed::f");
    const data = { runtime: "go", version: "1.2", name: "listed", os: "linux (x64)", pid: 77 };
    await client.value("engine::workers::register", { ...data, description: "d", isolation: null });

    const [entry, ...rest] = await list(client, "workers", { search: "listed" });

    const { connected_at_ms, ...others } = entry!;
    assert.deepEqual(rest, []);
    assert.ok(Math.abs(connected_at_ms as number - before) < 60_000);
    assert.deepEqual(others, {
      name: "listed",
      description: "d",
      version: "1.2",
      id: client.id,
      namespace: null,
      runtime: "go",
      os: "linux (x64)",
      status: "connected",
      suspect: false,
      function_count: 1,
      active_invocations: 0,
      isolation: null,
      ip_address: "127.0.0.1",
    });
  },

  "only workers that announced themselves, and built-in ones, have names": async ({ open }) => {
    const client = await open();
    await client.offer("quiet::f");

    const workers = await list(client, "workers");

    assert.ok(!column(workers, "id").includes(client.id));
    const names = column(workers, "name");
    for (const name of ["engine", "engine-state", "engine-http"]) assert.ok(names.includes(name));
    assert.deepEqual(await list(client, "workers", { runtime: "cobol" }), []);
  },

  "running calls are counted": async ({ open }) => {
    const [client, other] = [await open(), await open()];
    await client.announce("busy");
    await client.offer("busy::f");
    await other.send({ type: "invokefunction", invocation_id: "1", function_id: "busy::f" });
    const call = await client.receive();
    const active = async () =>
      column(await list(client, "workers", { search: "busy" }), "active_invocations");

    const during = await active();
    await client.answer(call);

    assert.deepEqual([during, await active()], [[1], [0]]);
  },

  "details list what a worker offers; among equal names, of the newest connection": async (
    { open },
  ) => {
    const [first, client] = [await open(), await open()];
    await first.announce("detailed");
    await client.announce("detailed");
    await client.offer("detailed::f");
    await client.send({ type: "registertriggertype", id: "detailed-type", description: "d" });
    const trigger = { id: "detailed-t", trigger_type: "unknown", function_id: "detailed::f" };
    await client.send({ type: "registertrigger", ...trigger });

    const info = await client.value<JsonObject>("engine::workers::info", { name: "detailed" });

    const keys = ["worker", "functions", "trigger_types", "registered_triggers"];
    assert.deepEqual(Object.keys(info), keys);
    const worker = info.worker as JsonObject;
    assert.deepEqual([worker.id, worker.pid, worker.internal], [client.id, 1, false]);
    assert.deepEqual(column(info.functions as JsonObject[], "function_id"), ["detailed::f"]);
    assert.deepEqual(column(info.trigger_types as JsonObject[], "id"), ["detailed-type"]);
    assert.deepEqual(column(info.registered_triggers as JsonObject[], "id"), ["detailed-t"]);
    assert.equal((await client.failure("engine::workers::info", { name: "no" })).code, "NOT_FOUND");
  },

  "a worker that leaves disappears from every list": async ({ open }) => {
    const [client, other] = [await open(), await open()];
    await client.announce("gone");
    await client.offer("gone::f");
    await client.send({ type: "registertriggertype", id: "gone-type", description: "d" });
    const trigger = { id: "gone-t", trigger_type: "state", function_id: "gone::f" };
    await client.send({ type: "registertrigger", ...trigger });
    await client.receivesNothing();

    await client[Symbol.asyncDispose]();

    for (const what of ["functions", "triggers", "registered-triggers", "workers"]) {
      assert.deepEqual(await list(other, what, { search: "gone" }), [], what);
    }
  },
});

proveOnWire("logging functions", {
  "each answers nothing": async ({ open }) => {
    const client = await open();

    for (const level of ["trace", "debug", "info", "warn"]) {
      const payload = { message: "m", data: { n: 1 }, trace_id: null, service_name: "s" };
      const answer = await client.call(`engine::log::${level}`, payload);
      assert.ok(!("result" in answer) && !("error" in answer), level);
    }
    const { code } = await client.failure("engine::log::info", { data: 1 });
    assert.equal(code, "deserialization_error");
  },
});
