import assert from "node:assert/strict";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { LocalEngine, outcome } from "../../tests/fakes/local_engine.ts";
import { configuration } from "./mod.ts";
import { CHANGES_KEPT, ENTRIES_MAX } from "./records.ts";

const SCHEMA = {
  type: "object",
  properties: {
    port: { type: "integer", minimum: 1 },
    key: { type: "string", "x-secret": true },
  },
  required: ["port"],
};

async function setup(
  config: Json = { environment: ["CONFIGURATION_TEST_*"] },
  store = new MemoryStore(),
) {
  const clock = new FakeClock();
  const engine = new LocalEngine({ clock, store });
  const stop = await engine.start(configuration, config);
  const worker = await engine.connect("shop");
  /** The result, or the error. */
  const ask = async (op: string, payload: Json = {}): Promise<JsonObject> => {
    const answer = outcome(worker, { function_id: `configuration::${op}`, payload });
    for (let i = 0; i < 3; i++) await engine.settle();
    return await answer as JsonObject;
  };
  const register = (more: JsonObject = {}) => {
    return ask("register", { id: "shop", name: "Shop", description: "d", schema: SCHEMA, ...more });
  };
  const hear = async (config: JsonObject): Promise<JsonObject[]> => {
    const heard: JsonObject[] = [];
    const function_id = `hear::${crypto.randomUUID()}`;
    worker.registerFunction(function_id, (event: JsonObject) => void heard.push(event));
    worker.registerTrigger({ type: "configuration", function_id, config });
    await engine.settle();
    return heard;
  };
  return {
    engine,
    clock,
    store,
    stop,
    worker,
    ask,
    register,
    hear,
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

Deno.test("an entry is registered with its first value, changed and read, secrets masked", async () => {
  await using at = await setup();

  const entry = await at.register({
    initial_value: { port: 80, key: "k1" },
    metadata: { team: 1 },
  });
  assert.deepEqual(entry, {
    id: "shop",
    name: "Shop",
    description: "d",
    schema: SCHEMA,
    value: { port: 80, key: "[redacted]" },
    has_value: true,
    has_secrets: true,
    metadata: { team: 1 },
    version: 1,
    updated_at_ms: at.clock.wall(),
    problem: null,
  });
  assert.deepEqual(await at.ask("set", { id: "shop", value: { port: 81, key: "[redacted]" } }), {
    old_value: { port: 80, key: "[redacted]" },
    new_value: { port: 81, key: "[redacted]" },
  });
  assert.deepEqual(await at.ask("get", { id: "shop" }), {
    id: "shop",
    value: { port: 81, key: "k1" },
    version: 2,
  });
  assert.deepEqual((await at.ask("get", { id: "shop", raw: true })).value, {
    port: 81,
    key: "[redacted]",
  });
  assert.deepEqual(await at.ask("schema", { id: "shop" }), SCHEMA);
  assert.doesNotMatch(JSON.stringify(await at.ask("list")), /k1/);
});

Deno.test("a value outlives the engine, and a worker that registers again keeps it", async () => {
  const store = new MemoryStore();
  {
    await using at = await setup({}, store);
    await at.register({ initial_value: { port: 80 } });
    await at.ask("set", { id: "shop", value: { port: 81 } });
  }
  await using at = await setup({}, store);

  await at.register({ name: "Shop 2", initial_value: { port: 90 } });

  assert.deepEqual((await at.ask("get", { id: "shop" })).value, { port: 81 });
  const { configurations } = await at.ask("list") as { configurations: JsonObject[] };
  assert.deepEqual(configurations.map(({ name, version }) => [name, version]), [["Shop 2", 2]]);
});

Deno.test("history has the last changes, who made them, and no secrets", async () => {
  await using at = await setup();
  await at.register({ initial_value: { port: 1, key: "k1" } });
  for (let port = 2; port <= CHANGES_KEPT + 5; port++) {
    await at.ask("set", { id: "shop", value: { port, key: `k${port}` } });
  }

  const { changes } = await at.ask("history", { id: "shop" }) as { changes: JsonObject[] };

  assert.equal(changes.length, CHANGES_KEPT);
  assert.deepEqual(changes[0], {
    version: CHANGES_KEPT + 5,
    at_ms: at.clock.wall(),
    by: "shop",
    old_value: { port: CHANGES_KEPT + 4, key: "[redacted]" },
    new_value: { port: CHANGES_KEPT + 5, key: "[redacted]" },
  });
});

Deno.test("references are expanded by get, and only what the operator lists", async () => {
  Deno.env.set("CONFIGURATION_TEST_PORT", "8080");
  await using at = await setup();
  await at.register({ initial_value: { port: "${CONFIGURATION_TEST_PORT}" } });

  assert.deepEqual((await at.ask("get", { id: "shop" })).value, { port: 8080 });
  assert.deepEqual((await at.ask("get", { id: "shop", raw: true })).value, {
    port: "${CONFIGURATION_TEST_PORT}",
  });
  const refused = await at.ask("set", { id: "shop", value: { port: 1, key: "${HOME}" } });
  assert.deepEqual([refused.code, /HOME may not be used/.test(refused.message as string)], [
    "EXPAND_FAILED",
    true,
  ]);
  Deno.env.set("CONFIGURATION_TEST_PORT", "none");
  assert.equal((await at.ask("get", { id: "shop" })).code, "SCHEMA_INVALID");
  Deno.env.delete("CONFIGURATION_TEST_PORT");
  const { configurations } = await at.ask("list") as { configurations: JsonObject[] };
  assert.match(configurations[0]!.problem as string, /no variable CONFIGURATION_TEST_PORT/);
});

Deno.test("functions hear of what is registered and changed, with secrets masked", async () => {
  await using at = await setup();
  const all = await at.hear({});
  const updates = await at.hear({
    configuration_id: "shop",
    event_types: ["configuration:updated"],
  });
  const other = await at.hear({ configuration_id: "other" });

  await at.register({ initial_value: { port: 1, key: "k1" } });
  await at.register();
  await at.ask("set", { id: "shop", value: { port: 2, key: "k2" } });

  assert.deepEqual(all.map(({ event_type }) => event_type), [
    "configuration:registered",
    "configuration:updated",
  ]);
  assert.deepEqual(updates, [{
    type: "configuration",
    event_type: "configuration:updated",
    id: "shop",
    name: "Shop",
    description: "d",
    schema: SCHEMA,
    old_value: { port: 1, key: "[redacted]" },
    new_value: { port: 2, key: "[redacted]" },
  }]);
  assert.deepEqual(other, []);
});

Deno.test("what does not fit is refused with what is wrong, and changes nothing", async () => {
  await using at = await setup();
  await at.register({ initial_value: { port: 1, key: "k1" } });
  await at.ask("register", { id: "empty", schema: SCHEMA });
  const cases: [op: string, payload: Json, code: string, message: RegExp][] = [
    ["set", { id: "shop", value: { port: "x" } }, "SCHEMA_INVALID", /\/port must be integer/],
    ["set", { id: "shop", value: { port: 0 } }, "SCHEMA_INVALID", /\/port must be >= 1/],
    ["set", { id: "shop", value: {} }, "SCHEMA_INVALID", /port/],
    ["set", { id: "shop" }, "INVALID_ARGUMENTS", /value: expected a value/],
    ["set", { id: "shpo", value: 1 }, "NOT_REGISTERED", /did you mean shop\?/],
    ["set", { id: "Shop", value: 1 }, "INVALID_ID", /lower case/],
    ["set", { id: "x".repeat(65), value: 1 }, "INVALID_ID", /1 to 64/],
    ["set", { id: "x".repeat(1_000_000), value: 1 }, "INVALID_ID", /1 to 64/],
    ["register", { id: "x".repeat(1_000_000) }, "INVALID_ID", /1 to 64/],
    ["set", { id: 7, value: 1 }, "INVALID_ARGUMENTS", /id: expected string/],
    ["set", { id: "shop", value: "x".repeat(300_000) }, "VALUE_TOO_LARGE", /262144/],
    ["get", { id: "none" }, "NOT_REGISTERED", /no configuration none/],
    ["get", { id: "empty" }, "NOT_FOUND", /no value yet/],
    ["register", { id: "a", schema: { type: "nonsense" } }, "SCHEMA_INVALID", /cannot be used/],
    ["register", { id: "a", schema: 7 }, "SCHEMA_INVALID", /object or a boolean/],
    ["register", { id: "a", schema: SCHEMA, initial_value: {} }, "SCHEMA_INVALID", /port/],
    ["register", { id: "a b" }, "INVALID_ID", /"a b"/],
    ["register", {}, "INVALID_ARGUMENTS", /id/],
    ["register", { id: "a", metadata: "x".repeat(20_000) }, "VALUE_TOO_LARGE", /metadata/],
  ];
  for (const [op, payload, code, message] of cases) {
    const error = await at.ask(op, payload);
    assert.equal(error.code, code, JSON.stringify(error).slice(0, 300));
    assert.match(error.message as string, message);
  }
  assert.deepEqual((await at.ask("get", { id: "shop" })).value, { port: 1, key: "k1" });
  await at.ask("register", { id: "plain", initial_value: 1 });
  assert.equal((await at.ask("schema", { id: "plain" })).code, "SCHEMA_UNAVAILABLE");
});

Deno.test("an error of a value with secrets repeats none of them", async () => {
  await using at = await setup();
  const schema = { properties: { key: { const: "k1", "x-secret": true } } };
  await at.ask("register", { id: "shop", schema });

  const error = await at.ask("set", { id: "shop", value: { key: "guess" } });

  assert.equal(error.code, "SCHEMA_INVALID");
  assert.doesNotMatch(JSON.stringify(error), /k1|guess/);
});

Deno.test("there are so many entries and no more", async () => {
  await using at = await setup();
  for (let i = 0; i < ENTRIES_MAX; i++) await at.ask("register", { id: `c${i}` });

  assert.equal((await at.ask("register", { id: "more" })).code, "overloaded");
  assert.equal((await at.ask("register", { id: "c0", initial_value: 1 })).version, 1);
});

Deno.test("a set names the version that it is about, and fails if there is another", async () => {
  await using at = await setup();
  await at.register({ initial_value: { port: 80 } });
  const set = (port: number, expected_version: Json) =>
    at.ask("set", { id: "shop", value: { port }, expected_version });

  assert.deepEqual((await set(81, 1)).new_value, { port: 81 });
  const refused = await set(82, 1);
  assert.equal(refused.code, "version_mismatch");
  assert.deepEqual(refused.details, { expected_version: 1, version: 2 });
  assert.deepEqual((await set(82, null)).new_value, { port: 82 });
});

Deno.test("a masked secret without one to keep is refused, at its place", async () => {
  await using at = await setup();
  await at.register({ initial_value: { port: 80 } });

  const refused = await at.ask("set", { id: "shop", value: { port: 80, key: "[redacted]" } });

  assert.equal(refused.code, "SCHEMA_INVALID");
  assert.deepEqual((refused.details as JsonObject).errors, [{
    path: "/key",
    message: "is a masked secret that cannot be kept; set it again",
  }]);
});

Deno.test("get expands what is not masked, and reads nothing for a secret", async () => {
  await using at = await setup({ environment: ["HOME"] });
  const schema = {
    properties: { home: { type: "string" }, key: { "x-secret": true }, port: { type: "integer" } },
  };
  const value = { home: "${HOME}", key: "k1", port: "${HOME_PORT_NOT_SET:80}" };
  await at.ask("register", { id: "home", schema });
  const refused = await at.ask("set", { id: "home", value });
  assert.equal(refused.code, "EXPAND_FAILED"); // Only HOME is listed.

  await at.ask("set", { id: "home", value: { ...value, port: 80 } });

  assert.deepEqual((await at.ask("get", { id: "home", masked: true })).value, {
    home: Deno.env.get("HOME"),
    key: "[redacted]",
    port: 80,
  });
});

Deno.test("history masks what the schema calls a secret now", async () => {
  await using at = await setup();
  await at.ask("register", { id: "shop", initial_value: { port: 1, key: "early" } });
  await at.register();

  assert.doesNotMatch(JSON.stringify(await at.ask("history", { id: "shop" })), /early/);
});

Deno.test("a list is in pages, each read of the store at once", async () => {
  await using at = await setup();
  const text = "v".repeat(250_000);
  for (let i = 0; i < 40; i++) {
    await at.register({ id: `c${String(i).padStart(2, "0")}`, schema: true, initial_value: text });
  }

  const first = await at.ask("list");
  const page = first["configurations"] as JsonObject[];
  assert.ok(page.length >= 33 && page.length < 40, `${page.length} entries`);
  assert.equal(first["cursor"], page.at(-1)!["id"]);
  const second = await at.ask("list", { cursor: first["cursor"]! });
  const rest = second["configurations"] as JsonObject[];
  assert.equal(page.length + rest.length, 40);
  assert.equal(second["cursor"], undefined);
  assert.equal((await at.ask("register", { id: "more" }))["id"], "more");
});
