/**
 * Discovery over a real router: what is listed, hidden, described and not found.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Access } from "../../engine/core/access/access.ts";
import { Pattern } from "../../engine/core/access/patterns.ts";
import type { TriggerView } from "../../engine/ports/directory.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import type { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { localDial } from "../../engine/transport/local_connection.ts";
import { LocalEngine } from "../../tests/fakes/local_engine.ts";
import { triggerSummary } from "./directory.ts";
import { engine } from "./mod.ts";

/** An engine with a shop worker and a caller. */
async function setup() {
  const local = new LocalEngine();
  await local.start(engine);
  const shop = await local.connect("shop", { description: "Sells things" });
  shop.registerFunction("orders::price", () => 1, {
    description: "Price an order",
    request_format: { type: "object" },
    response_format: { type: "number" },
    metadata: { team: "shop" },
  });
  shop.registerFunction("orders::audit", () => 1, { metadata: { internal: true } });
  shop.registerFunction("orders::price", () => 2, { namespace: "blue" });
  shop.registerTriggerType({
    id: "till",
    description: "The till rings",
    trigger_request_format: { type: "object" },
  }, { registerTrigger() {}, unregisterTrigger() {} });
  const config = { note: "x".repeat(200) };
  const trigger = { type: "till", function_id: "orders::price", config, metadata: { a: 1 } };
  const { id: trigger_id } = shop.registerTrigger(trigger);
  const asker = await local.connect("asker");
  await local.settle();
  const ask = (function_id: string, payload?: Json): Promise<JsonObject> =>
    asker.trigger<Json | undefined, JsonObject>({ function_id, payload });
  return { local, shop, asker, ask, trigger_id, [Symbol.asyncDispose]: () => dispose(local) };
}

async function dispose(local: LocalEngine): Promise<void> {
  await local[Symbol.asyncDispose]();
}

function ids(result: JsonObject, list: string, key = "id"): Json[] {
  return (result[list] as JsonObject[]).map((each) => each[key]!);
}

Deno.test("engine::functions::list is sorted and hides internal functions", async () => {
  await using it = await setup();

  const result = await it.ask("engine::functions::list");

  assert.deepEqual(result, {
    functions: [
      { function_id: "orders::price", namespace: "blue", worker_name: "shop" },
      {
        function_id: "orders::price",
        namespace: "default",
        worker_name: "shop",
        description: "Price an order",
        metadata: { team: "shop" },
      },
    ],
  });
});

Deno.test("engine::functions::list includes internal functions on request, those of the core too", async () => {
  await using it = await setup();

  const result = await it.ask("engine::functions::list", { include_internal: true });

  const all = ids(result, "functions", "function_id");
  for (
    const id of [
      "orders::audit",
      "engine::functions::list",
      "engine::supervisor::add",
      "engine::workers::register",
      "engine::register_trigger",
      "engine::unregister_trigger",
    ]
  ) assert.equal(all.filter((each) => each === id).length, 1, id);
  for (const each of result.functions as JsonObject[]) {
    if (String(each.function_id).startsWith("engine::")) {
      assert.equal(each.worker_name, "engine");
      assert.equal(typeof each.description, "string", String(each.function_id));
    }
  }
});

for (
  const [query, count] of [
    [{ search: "PRICE an" }, 1],
    [{ search: "price" }, 2],
    [{ search: "nothing" }, 0],
    [{ prefix: "orders::" }, 2],
    [{ prefix: "rders" }, 0],
    [{ worker: "shop" }, 2],
    [{ worker: "asker" }, 0],
    [{ workers: ["asker", "shop"] }, 2],
    [{ search: null, prefix: null, worker: null, workers: null, include_internal: null }, 2],
  ] as [JsonObject, number][]
) {
  Deno.test(`engine::functions::list ${JSON.stringify(query)} returns ${count}`, async () => {
    await using it = await setup();

    const result = await it.ask("engine::functions::list", query);

    assert.equal((result.functions as Json[]).length, count);
  });
}

Deno.test("lists are read in pages", async () => {
  await using it = await setup();

  const first = await it.ask("engine::functions::list", { limit: 1 });
  const cursor = first.next_cursor!;
  const second = await it.ask("engine::functions::list", { limit: 1, cursor });

  assert.deepEqual(ids(first, "functions", "namespace"), ["blue"]);
  assert.deepEqual(ids(second, "functions", "namespace"), ["default"]);
  assert.equal(second.next_cursor, undefined);
  for (const [list, name] of LISTS) {
    const page = await it.ask(list, { limit: 1, include_internal: true });
    assert.equal((page[name] as Json[]).length, 1);
    assert.equal(typeof page.next_cursor, "string", list);
    const all = await it.ask(list, { include_internal: true });
    const next = await it.ask(list, { include_internal: true, cursor: page.next_cursor! });
    assert.deepEqual([...page[name] as Json[], ...next[name] as Json[]], all[name], list);
  }
});

/** Lists with more than one entry in these tests. */
const LISTS = [
  ["engine::functions::list", "functions"],
  ["engine::triggers::list", "triggers"],
  ["engine::workers::list", "workers"],
] as const;

Deno.test("a search of 20 MB is refused, for every list", async () => {
  await using it = await setup();

  for (const list of [...LISTS.map(([id]) => id), "engine::registered-triggers::list"]) {
    await assert.rejects(it.ask(list, { search: "x".repeat(20_000_000) }), {
      code: "invalid_payload",
      message: /: search has 20000000 characters, at most 200 are accepted$/,
    });
  }
  await assert.rejects(it.ask("engine::workers::info", { name: "x".repeat(2_000) }), {
    code: "invalid_payload",
  });
});

Deno.test("no entry makes a list fail or large", async () => {
  await using it = await setup();
  const big = await it.local.connect("big", { description: "d".repeat(200_000) });
  const metadata = { m: "m".repeat(100_000) };
  for (let i = 0; i < 50; i++) big.registerFunction(`big::f${i}`, () => 1, { metadata });
  const config = { note: "x".repeat(100_000) };
  for (let i = 0; i < 50; i++) {
    big.registerTrigger({ type: "till", function_id: "big::f0", config, metadata: { i } });
  }
  await it.local.settle();

  for (
    const [list, name] of [...LISTS, ["engine::registered-triggers::list", "registered_triggers"]]
  ) {
    const page = await it.ask(list!, {});
    assert.ok(JSON.stringify(page).length < 200_000, list);
    if (name !== "triggers") {
      const cut = (page[name!] as JsonObject[]).find(({ truncated }) => truncated !== undefined);
      assert.ok(cut, list);
    }
  }
  const info = await it.ask("engine::functions::info", { function_id: "big::f0" });
  assert.deepEqual(info.metadata, metadata);
  assert.ok(JSON.stringify(info).length < 200_000);
});

Deno.test("engine::functions::info describes a function with its triggers", async () => {
  await using it = await setup();

  const result = await it.ask("engine::functions::info", { function_id: "orders::price" });

  assert.deepEqual(result.request_schema, { type: "object" });
  assert.deepEqual(result.response_schema, { type: "number" });
  assert.equal(result.worker_name, "shop");
  assert.deepEqual(ids(result, "registered_triggers"), [it.trigger_id]);
  const blue = { function_id: "orders::price", namespace: "blue" };
  assert.deepEqual((await it.ask("engine::functions::info", blue)).registered_triggers, []);
});

Deno.test("engine::functions::list and info include replicas on request", async () => {
  await using it = await setup();
  const twin = await it.local.connect("twin");
  twin.registerFunction("orders::price", () => 3);
  await it.local.settle();

  const asked = { include_replicas: true, include_internal: true };
  const { functions } = await it.ask("engine::functions::list", asked);
  const counts = new Map(
    (functions as JsonObject[]).map((each) =>
      [`${each.namespace} ${each.function_id}`, each.replicas] as const
    ),
  );
  const info = await it.ask("engine::functions::info", {
    function_id: "orders::price",
    include_replicas: true,
  });

  assert.equal(counts.get("default orders::price"), 2);
  assert.equal(counts.get("blue orders::price"), 1);
  assert.equal(counts.get("default engine::functions::list"), 1);
  assert.deepEqual(ids(info, "workers", "name"), ["shop", "twin"]);
  assert.equal(new Set(ids(info, "workers", "worker_id")).size, 2);
  assert.equal(
    "workers" in await it.ask("engine::functions::info", {
      function_id: "orders::price",
    }),
    false,
  );
});

Deno.test("engine::functions::info returns errors per id of a batch", async () => {
  await using it = await setup();
  const function_ids = ["orders::price", "orders::prize"];

  const { functions } = await it.ask("engine::functions::info", { function_ids });

  const [price, prize] = functions as JsonObject[];
  assert.equal(price!.function_id, "orders::price");
  assert.deepEqual(prize, {
    function_id: "orders::prize",
    error: { code: "not_found", message: "Function orders::prize not found" },
  });
});

Deno.test("engine::functions::info has the schemas of core functions", async () => {
  await using it = await setup();

  const result = await it.ask("engine::functions::info", { function_id: "engine::triggers::info" });

  const schema = result.request_schema as JsonObject;
  assert.deepEqual(schema.required, ["id"]);
});

for (
  const [function_id, payload, code, text] of [
    ["engine::functions::info", { function_id: "orders::prize" }, "NOT_FOUND", "orders::prize"],
    ["engine::functions::info", {}, "INVALID_ARGUMENTS", "function_id or function_ids"],
    [
      "engine::functions::info",
      { function_id: "a", function_ids: [] },
      "INVALID_ARGUMENTS",
      "both",
    ],
    [
      "engine::functions::info",
      { function_ids: Array.from({ length: 33 }, (_, i) => `f${i}`) },
      "INVALID_ARGUMENTS",
      "at most 32",
    ],
    ["engine::functions::info", { function_id: 5 }, "deserialization_error", "function_id"],
    ["engine::functions::list", "text", "deserialization_error", "expected object"],
    ["engine::functions::list", [], "deserialization_error", "expected object"],
    ["engine::functions::list", { search: 5 }, "deserialization_error", "search"],
    ["engine::triggers::info", { id: "tell" }, "NOT_FOUND", "Trigger type tell"],
    ["engine::triggers::info", {}, "deserialization_error", "id"],
    ["engine::registered-triggers::info", { id: "x" }, "NOT_FOUND", "Trigger x"],
    ["engine::workers::info", { name: "ship" }, "NOT_FOUND", "Worker ship"],
    ["engine::workers::info", { name: "" }, "deserialization_error", "name"],
    ["engine::workers::info", { name: "shop", namespace: "blue" }, "NOT_FOUND", "shop"],
  ] as [string, Json, string, string][]
) {
  Deno.test(`${function_id} answers ${JSON.stringify(payload).slice(0, 40)} with ${code}`, async () => {
    await using it = await setup();

    await assert.rejects(it.ask(function_id, payload), (error: Error & { code: string }) => {
      return error.code === code && error.message.includes(text);
    });
  });
}

Deno.test("The error for an unknown function lists similar ids", async () => {
  await using it = await setup();

  const asked = it.ask("engine::functions::info", { function_id: "order::price" });

  await assert.rejects(asked, { details: { similar: ["orders::price"] } });
});

Deno.test("The search for similar ids has a bound, however many functions there are", async () => {
  await using it = await setup();
  for (let i = 0; i < 1_200; i++) it.shop.registerFunction(`crowd::f${i}`, () => 1);
  await it.local.settle();

  const near = it.ask("engine::functions::info", { function_id: "zoo::prices" });
  await assert.rejects(near, (error: { details?: JsonObject }) => error.details === undefined);
  it.shop.registerFunction("zoo::price", () => 1);
  await it.local.settle();
  const found = it.ask("engine::functions::info", { function_id: "zoo::prices" });
  await assert.rejects(found, { details: { similar: ["zoo::price"] } });
});

Deno.test("engine::triggers::list omits schemas and hides the engine's own types", async () => {
  await using it = await setup();

  assert.deepEqual(await it.ask("engine::triggers::list"), {
    triggers: [
      { id: "till", namespace: "default", worker_name: "shop", description: "The till rings" },
    ],
  });
  const all = await it.ask("engine::triggers::list", { include_internal: true });
  assert.deepEqual(ids(all, "triggers"), [
    "engine::config-changed",
    "engine::functions-available",
    "engine::supervisor-changed",
    "engine::triggers-available",
    "engine::workers-available",
    "till",
  ]);
  const mine = { worker: "engine", include_internal: true };
  assert.equal(((await it.ask("engine::triggers::list", mine)).triggers as Json[]).length, 5);
});

Deno.test("engine::triggers::info describes a type, with null for absent schemas", async () => {
  await using it = await setup();

  assert.deepEqual(await it.ask("engine::triggers::info", { id: "till" }), {
    id: "till",
    namespace: "default",
    worker_name: "shop",
    description: "The till rings",
    configuration_schema: { type: "object" },
    request_schema: null,
    response_schema: null,
    instance_count: 1,
  });
});

Deno.test("engine::registered-triggers::list shows triggers with a short summary", async () => {
  await using it = await setup();

  const result = await it.ask("engine::registered-triggers::list", { trigger_type: "till" });

  const [trigger] = result.registered_triggers as JsonObject[];
  assert.deepEqual(Object.keys(trigger!).sort(), [
    "config",
    "config_summary",
    "function_id",
    "id",
    "status",
    "trigger_type",
    "worker_id",
    "worker_name",
  ]);
  assert.equal(trigger!.config_summary, '{"note":"' + "x".repeat(71) + "…");
  const none = { function_id: "orders::other" };
  assert.deepEqual(await it.ask("engine::registered-triggers::list", none), {
    registered_triggers: [],
  });
});

Deno.test("engine::registered-triggers::info includes the type and the function", async () => {
  await using it = await setup();
  const orphan = it.asker.registerTrigger({ type: "missing", function_id: "not::there" });
  await it.local.settle();

  const known = await it.ask("engine::registered-triggers::info", { id: it.trigger_id });
  const parked = await it.ask("engine::registered-triggers::info", { id: orphan.id });

  assert.deepEqual(known.metadata, { a: 1 });
  assert.equal((known.trigger as JsonObject).instance_count, 1);
  assert.equal((known.function as JsonObject).function_id, "orders::price");
  assert.equal(parked.trigger, null);
  assert.equal(parked.function, null);
  assert.equal(Object.hasOwn(parked, "metadata"), false);
});

Deno.test("engine::workers::list contains announced and built-in workers", async () => {
  await using it = await setup();

  const { workers } = await it.ask("engine::workers::list");

  assert.deepEqual((workers as JsonObject[]).map(({ name }) => name), ["asker", "engine", "shop"]);
  const shop = (workers as JsonObject[])[2]!;
  assert.deepEqual(Object.keys(shop).sort(), [
    "active_invocations",
    "connected_at_ms",
    "description",
    "function_count",
    "id",
    "ip_address",
    "isolation",
    "name",
    "namespace",
    "os",
    "runtime",
    "status",
    "suspect",
    "version",
  ]);
  assert.equal(shop.description, "Sells things");
  assert.equal(shop.function_count, 3);
  assert.equal(shop.isolation, null);
  const other = await it.ask("engine::workers::list", { runtime: "cobol" });
  assert.deepEqual(other, { workers: [] });
  assert.equal(
    ((await it.ask("engine::workers::list", { search: "SELLS" })).workers as Json[]).length,
    1,
  );
});

Deno.test("engine::workers::info lists what a worker offers", async () => {
  await using it = await setup();

  const result = await it.ask("engine::workers::info", { name: "shop" });

  const worker = result.worker as JsonObject;
  assert.equal(worker.internal, false);
  assert.equal(worker.pid, Deno.pid);
  assert.deepEqual(ids(result, "functions", "function_id"), [
    "orders::audit",
    "orders::price",
    "orders::price",
  ]);
  assert.deepEqual(ids(result, "trigger_types"), ["till"]);
  assert.deepEqual(ids(result, "registered_triggers"), [it.trigger_id]);
});

Deno.test("engine::workers::info picks the one that connected last among equals", async () => {
  await using it = await setup();
  (it.local.clock as FakeClock).tick(10);
  const second: Worker = await it.local.connect("shop", { description: "The second" });

  const result = await it.ask("engine::workers::info", { name: "shop" });

  assert.equal((result.worker as JsonObject).description, "The second");
  await second.shutdown();
  await it.local.settle();
  const left = await it.ask("engine::workers::info", { name: "shop" });
  assert.equal((left.worker as JsonObject).description, "Sells things");
});

function wireTrace(config: Json): Json {
  const view: TriggerView = {
    id: "t",
    trigger_type: "http",
    trigger_namespace: "default",
    function_id: "f",
    namespace: "default",
    config,
    state: "offered",
    reason: null,
    worker_id: "w",
    worker_name: "shop",
  };
  return triggerSummary(view).config_summary!;
}

Deno.test("triggerSummary() keeps a short configuration whole", () => {
  assert.equal(wireTrace({}), "{}");
  assert.equal(wireTrace("x".repeat(78)), `"${"x".repeat(78)}"`);
});

Deno.test("triggerSummary() cuts a long configuration after 80 characters", () => {
  const summary = wireTrace("x".repeat(79)) as string;

  assert.equal(summary, `"${"x".repeat(79)}…`);
});

Deno.test("triggerSummary() cuts between characters, not inside one", () => {
  const summary = wireTrace("😀".repeat(1_000)) as string;

  assert.equal([...summary].length, 81);
  assert.ok(summary.isWellFormed());
});

Deno.test("a connection with access rules sees only the functions that it may call", async () => {
  await using it = await setup();
  const engineFunctions = ["engine::functions::*", "engine::registered-triggers::*"];
  const allow = [...engineFunctions, "orders::price"].map(Pattern.glob);
  const access = new Access({ token: { name: "ci", allow } });
  const peer = { address: "127.0.0.1", launch_id: null, builtin: null, access };
  const dial = localDial({ open: (line) => it.local.router.open(line, peer) }, "guest");
  const guest = await it.local.connect("guest", { dial });
  it.shop.registerTrigger({ type: "till", function_id: "orders::audit", config: {} });
  await it.local.settle();
  const ask = (function_id: string, payload: Json = {}): Promise<JsonObject> =>
    guest.trigger<Json, JsonObject>({ function_id, payload });

  const listed = await ask("engine::functions::list", { include_internal: true });
  const ofShop = (listed.functions as JsonObject[])
    .filter(({ worker_name }) => worker_name === "shop");
  assert.deepEqual(ofShop.map(({ function_id, namespace }) => [function_id, namespace]), [
    ["orders::price", "default"],
  ]);
  assert.ok(ids(listed, "functions", "function_id").includes("engine::functions::list"));
  assert.ok(!ids(listed, "functions", "function_id").includes("engine::supervisor::add"));
  const hidden = { function_id: "orders::audit" };
  await assert.rejects(ask("engine::functions::info", hidden), { code: "NOT_FOUND" });
  const triggers = await ask("engine::registered-triggers::list", { include_internal: true });
  assert.deepEqual(ids(triggers, "registered_triggers", "function_id"), ["orders::price"]);
  await assert.rejects(ask("engine::workers::list"), { code: "FORBIDDEN" });

  const rival = await it.local.connect("rival");
  rival.registerFunction("orders::price", () => 2);
  await it.local.settle();
  const price = { function_id: "orders::price", include_replicas: true };
  const seen = await ask("engine::functions::info", price);
  const [found] = (await ask("engine::functions::list", { prefix: "orders::" }))
    .functions as JsonObject[];
  const known = await it.shop.trigger<Json, JsonObject>({
    function_id: "engine::functions::info",
    payload: price,
  });
  assert.deepEqual(known.contenders, ["rival", "shop"]);
  assert.equal((known.workers as unknown[]).length, 2);
  for (const { contenders, workers } of [seen, found!]) {
    assert.deepEqual([contenders, workers], [undefined, undefined]);
  }
  assert.equal(seen.replicas, 2);
});

Deno.test("triggerSummary() shows no secret of a configuration", () => {
  const config = { api_path: "/a", auth_token: "s3cret-of-the-route", client_secret: "abc", n: 1 };

  const summary = String(wireTrace(config));

  assert.match(summary, /"auth_token":"s3cr…"/);
  assert.match(summary, /"client_secret":"…"/);
  assert.match(summary, /"api_path":"\/a"/);
});
