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
async function list(line: WireClient, what: string, query: JsonObject = {}): Promise<JsonObject[]> {
  const result = await line.value<Record<string, JsonObject[]>>(`engine::${what}::list`, query);
  const key = what.replaceAll("-", "_");
  assert.deepEqual(Object.keys(result), [key]);
  return result[key]!;
}

/** What one says of a thing, in the order of a list. */
function column(rows: readonly JsonObject[], name: string): (Json | undefined)[] {
  return rows.map((row) => row[name]);
}

proveOnWire("lists of functions", {
  "an entry has exactly its keys, optional ones only when set": async ({ open }) => {
    const line = await open();
    await line.offer(
      { id: "shape::b", description: "d", metadata: { team: "x" }, request_format: ASKED },
      { id: "shape::a", namespace: "shop" },
    );

    const functions = await list(line, "functions", { prefix: "shape::" });

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
    await line.announce("shapely");
    const names = column(await list(line, "functions", { prefix: "shape::" }), "worker_name");
    assert.deepEqual(names, ["shapely", "shapely"]);
  },

  "the engine's own and internal ones are hidden unless asked for": async ({ open }) => {
    const line = await open();
    await line.offer({ id: "hide::f", metadata: { internal: true } }, "hide::g");

    const shown = column(await list(line, "functions"), "function_id") as string[];
    const all = column(
      await list(line, "functions", { include_internal: true }),
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
    const line = await open();
    await line.announce("narrower");
    await line.offer({ id: "narrow::apple" }, {
      id: "narrow::pear",
      description: "An APPLE of sorts",
    }, "narrow::x");
    const ids = async (query: JsonObject) =>
      column(await list(line, "functions", query), "function_id");

    assert.deepEqual(await ids({ search: "apple" }), ["narrow::apple", "narrow::pear"]);
    assert.deepEqual(await ids({ prefix: "narrow::p" }), ["narrow::pear"]);
    assert.equal((await ids({ worker: "narrower" })).length, 3);
    assert.equal((await ids({ workers: ["narrower", "nobody"] })).length, 3);
    assert.deepEqual(await ids({ worker: "nobody" }), []);
    const states = await ids({ worker: "engine-state" });
    for (const name of ["get", "set", "delete", "list", "list_groups", "update"]) {
      assert.ok(states.includes(`state::${name}`), name);
    }
  },

  "details have schemas and the triggers of a function": async ({ open }) => {
    const line = await open();
    const config = { scope: "s" };
    const trigger = { id: "detail-t", trigger_type: "state", config };
    await line.offer(
      { id: "detail::f", request_format: ASKED, response_format: ANSWERED },
      "detail::g",
    );
    await line.send({ type: "registertrigger", function_id: "detail::f", ...trigger });
    await line.hearsNothing();
    const info = (data: JsonObject) => line.value("engine::functions::info", data);

    const summary = { namespace: "default", worker_name: "detail" };
    const f = {
      function_id: "detail::f",
      ...summary,
      request_schema: ASKED,
      response_schema: ANSWERED,
      registered_triggers: [trigger],
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

  "what is not there or asked wrongly has its code": async ({ open }) => {
    const line = await open();
    const id = "engine::functions::info";
    const ids = Array.from({ length: 33 }, (_, i) => `f${i}`);

    assert.equal((await line.failure(id, { function_id: "no::such" })).code, "NOT_FOUND");
    assert.equal((await line.failure(id, {})).code, "INVALID_ARGUMENTS");
    assert.equal((await line.failure(id, { function_ids: ids })).code, "INVALID_ARGUMENTS");
    assert.equal((await line.failure(id, { function_id: 5 })).code, "deserialization_error");
    const list = "engine::functions::list";
    assert.equal((await line.failure(list, { search: 5 })).code, "deserialization_error");
    assert.ok(await line.value(list));
  },
});

proveOnWire("lists of triggers", {
  "types have no schema in the list, and all of them in the details": async ({ open }) => {
    const line = await open();
    await line.announce("typist");
    await line.send({
      type: "registertriggertype",
      id: "typed",
      description: "a type",
      trigger_request_format: ASKED,
    });
    const trigger = { id: "typed-t", trigger_type: "typed", function_id: "any::f" };
    await line.send({ type: "registertrigger", ...trigger });
    await line.receive();

    const types = await list(line, "triggers", { search: "typed" });
    const info = await line.value("engine::triggers::info", { id: "typed" });

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
    assert.equal((await line.failure("engine::triggers::info", { id: "none" })).code, "NOT_FOUND");
  },

  "built-in types have the names of their workers": async ({ open }) => {
    const line = await open();

    const types = await list(line, "triggers", { include_internal: true });

    const workers = Object.fromEntries(types.map(({ id, worker_name }) => [id, worker_name]));
    assert.deepEqual([workers.http, workers.state], ["engine-http", "engine-state"]);
    const own = ["engine::functions-available", "engine::workers-available"];
    assert.deepEqual(own.map((id) => workers[id]), ["engine", "engine"]);
    const shown = column(await list(line, "triggers"), "id");
    assert.ok(shown.includes("http") && !own.some((id) => shown.includes(id)));
  },

  "an instance has exactly its keys, and a summary of 80 characters": async ({ open }) => {
    const line = await open();
    await line.announce("instancer");
    const config = { scope: "x".repeat(100) };
    const trigger = { id: "inst-1", trigger_type: "state", function_id: "inst::f", config };
    await line.offer("inst::f");
    await line.send({ type: "registertrigger", ...trigger, metadata: { m: 1 } });
    await line.send({ type: "registertrigger", ...trigger, id: "inst-2", config: {} });
    await line.hearsNothing();

    const all = await list(line, "registered-triggers", { function_id: "inst::f" });

    const config_summary = `${JSON.stringify(config).slice(0, 80)}…`;
    const first = { ...trigger, worker_name: "instancer", config_summary };
    assert.deepEqual(all, [
      first,
      { ...first, id: "inst-2", config: {}, config_summary: "{}" },
    ]);
    const ids = async (query: JsonObject) =>
      column(await list(line, "registered-triggers", query), "id");
    assert.deepEqual(await ids({ worker: "instancer", trigger_type: "state" }), [
      "inst-1",
      "inst-2",
    ]);
    assert.deepEqual(await ids({ search: "inst-2" }), ["inst-2"]);
    const info = await line.value<JsonObject>("engine::registered-triggers::info", {
      id: "inst-1",
    });
    const { trigger: type, function: target, ...rest } = info;
    assert.deepEqual(rest, { ...first, metadata: { m: 1 } });
    assert.equal((type as JsonObject).id, "state");
    assert.equal((target as JsonObject).function_id, "inst::f");
  },

  "details of a parked trigger have nulls where nobody is": async ({ open }) => {
    const line = await open();
    const trigger = { id: "parked-1", trigger_type: "nobody's", function_id: "none::f" };
    await line.send({ type: "registertrigger", ...trigger });

    const info = await line.value<JsonObject>("engine::registered-triggers::info", {
      id: "parked-1",
    });

    assert.deepEqual([info.trigger, info.function], [null, null]);
    assert.ok(!("metadata" in info));
    const id = "engine::registered-triggers::info";
    assert.equal((await line.failure(id, { id: "none" })).code, "NOT_FOUND");
  },
});

proveOnWire("lists of workers", {
  "an entry has exactly its keys, unknown ones null": async ({ open }) => {
    const line = await open();
    const before = Date.now();
    await line.offer("listed::f");
    const data = { runtime: "go", version: "1.2", name: "listed", os: "linux (x64)", pid: 77 };
    await line.value("engine::workers::register", { ...data, description: "d", isolation: null });

    const [entry, ...rest] = await list(line, "workers", { search: "listed" });

    const { connected_at_ms, ...others } = entry!;
    assert.deepEqual(rest, []);
    assert.ok(Math.abs(connected_at_ms as number - before) < 60_000);
    assert.deepEqual(others, {
      name: "listed",
      description: "d",
      version: "1.2",
      id: line.id,
      namespace: null,
      runtime: "go",
      os: "linux (x64)",
      status: "connected",
      function_count: 1,
      active_invocations: 0,
      isolation: null,
      ip_address: "127.0.0.1",
    });
  },

  "only those that announced themselves are named, and the built-in ones": async ({ open }) => {
    const line = await open();
    await line.offer("quiet::f");

    const workers = await list(line, "workers");

    assert.ok(!column(workers, "id").includes(line.id));
    const names = column(workers, "name");
    for (const name of ["engine", "engine-state", "engine-http"]) assert.ok(names.includes(name));
    assert.deepEqual(await list(line, "workers", { runtime: "cobol" }), []);
  },

  "running calls are counted": async ({ open }) => {
    const [line, other] = [await open(), await open()];
    await line.announce("busy");
    await line.offer("busy::f");
    await other.send({ type: "invokefunction", invocation_id: "1", function_id: "busy::f" });
    const call = await line.receive();
    const active = async () =>
      column(await list(line, "workers", { search: "busy" }), "active_invocations");

    const during = await active();
    await line.answer(call);

    assert.deepEqual([during, await active()], [[1], [0]]);
  },

  "details list what a worker offers; of one name, the last that came": async ({ open }) => {
    const [first, line] = [await open(), await open()];
    await first.announce("detailed");
    await line.announce("detailed");
    await line.offer("detailed::f");
    await line.send({ type: "registertriggertype", id: "detailed-type", description: "d" });
    const trigger = { id: "detailed-t", trigger_type: "unknown", function_id: "detailed::f" };
    await line.send({ type: "registertrigger", ...trigger });

    const info = await line.value<JsonObject>("engine::workers::info", { name: "detailed" });

    const keys = ["worker", "functions", "trigger_types", "registered_triggers"];
    assert.deepEqual(Object.keys(info), keys);
    const worker = info.worker as JsonObject;
    assert.deepEqual([worker.id, worker.pid, worker.internal], [line.id, 1, false]);
    assert.deepEqual(column(info.functions as JsonObject[], "function_id"), ["detailed::f"]);
    assert.deepEqual(column(info.trigger_types as JsonObject[], "id"), ["detailed-type"]);
    assert.deepEqual(column(info.registered_triggers as JsonObject[], "id"), ["detailed-t"]);
    assert.equal((await line.failure("engine::workers::info", { name: "no" })).code, "NOT_FOUND");
  },

  "what leaves is gone from every list": async ({ open }) => {
    const [line, other] = [await open(), await open()];
    await line.announce("gone");
    await line.offer("gone::f");
    await line.send({ type: "registertriggertype", id: "gone-type", description: "d" });
    const trigger = { id: "gone-t", trigger_type: "state", function_id: "gone::f" };
    await line.send({ type: "registertrigger", ...trigger });
    await line.hearsNothing();

    await line[Symbol.asyncDispose]();

    for (const what of ["functions", "triggers", "registered-triggers", "workers"]) {
      assert.deepEqual(await list(other, what, { search: "gone" }), [], what);
    }
  },
});

proveOnWire("logging functions", {
  "each answers nothing": async ({ open }) => {
    const line = await open();

    for (const level of ["trace", "debug", "info", "warn"]) {
      const payload = { message: "m", data: { n: 1 }, trace_id: null, service_name: "s" };
      const answer = await line.call(`engine::log::${level}`, payload);
      assert.ok(!("result" in answer) && !("error" in answer), level);
    }
    const { code } = await line.failure("engine::log::info", { data: 1 });
    assert.equal(code, "deserialization_error");
  },
});
