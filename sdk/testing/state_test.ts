import assert from "node:assert/strict";
import type { Json, JsonObject } from "../typescript/wire/protocol.ts";
import { registerWorker } from "../typescript/register_worker.ts";
import { startTestEngine } from "./engine.ts";

const AT = { scope: "cart", key: "u1" };

Deno.test("the state keeps values with versions, until they expire", async () => {
  await using engine = startTestEngine();
  const call = (name: string, payload: JsonObject) => engine.call(`state::${name}`, payload);

  assert.deepEqual(await call("set", { ...AT, value: { n: 1 } }), {
    old_value: null,
    new_value: { n: 1 },
  });
  assert.deepEqual(await call("get", AT), { n: 1 });
  await assert.rejects(call("set", { ...AT, value: 2, expected_version: 7 }), {
    code: "version_mismatch",
    details: { current_version: 1 },
  });
  await call("set", { scope: "cart", key: "u0", value: 5, ttl_ms: 1_000 });
  assert.deepEqual(await call("list", { scope: "cart" }), [{ n: 1 }, 5]);
  assert.deepEqual(await call("list_entries", { scope: "cart", prefix: "u0" }), {
    entries: [{ key: "u0", value: 5, version: 2 }],
  });
  await engine.advance(1_000);
  assert.equal(await call("get", { scope: "cart", key: "u0" }), undefined);
  assert.deepEqual(await call("list_groups", {}), { groups: ["cart"] });
  assert.deepEqual(await call("delete", AT), { n: 1 });
  assert.equal(await call("entry", AT), undefined);
  await assert.rejects(call("get", { scope: "cart" }), { code: "deserialization_error" });
});

Deno.test("state::update applies operations, and lists those that fail", async () => {
  await using engine = startTestEngine();
  const ops = [
    { type: "increment", path: "n", by: 2 },
    { type: "append", path: "log", value: { at: 1 } },
    { type: "merge", path: ["meta", "ui"], value: { dark: true } },
    { type: "set", path: "x", value: 1 },
    { type: "remove", path: "x" },
    { type: "decrement", path: "log", by: 1 },
  ];

  const { old_value, new_value, errors } = await engine.call<JsonObject>("state::update", {
    ...AT,
    ops,
  });

  assert.equal(old_value, null);
  assert.deepEqual(new_value, { n: 2, log: [{ at: 1 }], meta: { ui: { dark: true } } });
  assert.deepEqual((errors as JsonObject[]).map(({ op_index, code }) => [op_index, code]), [
    [5, "decrement.not_number"],
  ]);
});

Deno.test("changes of the state fire triggers, unless a condition says false", async () => {
  await using engine = startTestEngine();
  const worker = registerWorker();
  const seen: Json[] = [];
  worker.registerFunction(
    "cart::changed",
    (event: JsonObject) => void seen.push(event.event_type!),
  );
  const config = { scope: "cart", condition_function_id: "cart::is_wanted" };
  worker.registerTrigger({ type: "state", function_id: "cart::changed", config });
  engine.fake("cart::is_wanted", (event) => (event as JsonObject).key !== "hidden");

  await engine.call("state::set", { ...AT, value: 1 });
  await engine.call("state::set", { ...AT, value: 2 });
  await engine.call("state::set", { scope: "cart", key: "hidden", value: 2 });
  await engine.call("state::delete", AT);
  await engine.settle();

  assert.deepEqual(seen, ["state:created", "state:updated", "state:deleted"]);
});
