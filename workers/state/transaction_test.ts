import assert from "node:assert/strict";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { LocalEngine } from "../../tests/fakes/local_engine.ts";
import { until } from "../../tests/fakes/until.ts";
import { state } from "./mod.ts";
import { OPERATIONS_MAX } from "./transaction.ts";

async function setup() {
  const [clock, store] = [new FakeClock(1_000), new MemoryStore()];
  const engine = new LocalEngine({ clock, store });
  await engine.start(state);
  const worker = await engine.connect("caller");
  const call = (name: string, payload: JsonObject): Promise<JsonObject> =>
    worker.trigger<JsonObject, JsonObject>({ function_id: `state::${name}`, payload });
  const all = async (): Promise<Json[]> =>
    (await store.list(["state"], 100)).map(({ key, value }) => [
      key.slice(1).join("/"),
      (value as JsonObject).value!,
    ]);
  return {
    clock,
    worker,
    call,
    all,
    transaction: (...operations: Json[]) => call("transaction", { operations }),
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

const at = (key: string, scope = "bank") => ({ scope, key });
const increment = (by: number) => [{ type: "increment", path: "balance", by }];

Deno.test("state::transaction sets, updates and deletes together, and returns the versions", async () => {
  await using it = await setup();
  await it.call("set", { ...at("a"), value: { balance: 10 } });
  await it.call("set", { ...at("gone", "other"), value: 1 });

  const { versions } = await it.transaction(
    { type: "update", ...at("a"), ops: increment(-4) },
    { type: "update", ...at("b"), ops: increment(4) },
    { type: "set", ...at("log"), value: ["moved 4"] },
    { type: "delete", ...at("gone", "other") },
  );

  assert.deepEqual(await it.all(), [
    ["bank/a", { balance: 6 }],
    ["bank/b", { balance: 4 }],
    ["bank/log", ["moved 4"]],
  ]);
  const expected = await Promise.all(["a", "b", "log"].map((key) => it.call("entry", at(key))));
  assert.deepEqual(versions, [...expected.map(({ version }) => version), null]);
  assert.deepEqual(await it.call("list_groups", {}), { groups: ["bank"] });
});

Deno.test("state::transaction changes nothing when a version is another one, and names it", async () => {
  await using it = await setup();
  await it.call("set", { ...at("a"), value: 1 });
  const { version } = await it.call("entry", at("a"));
  await it.call("set", { ...at("a"), value: 2 });
  const { version: current } = await it.call("entry", at("a"));
  const before = await it.all();

  for (
    const operation of [
      { type: "set", value: 3 },
      { type: "delete" },
      { type: "check" },
      { type: "update", ops: increment(1) },
    ]
  ) {
    const outcome = it.transaction(
      { type: "set", ...at("b"), value: 1 },
      { ...operation, ...at("a"), expected_version: version! },
    );
    await assert.rejects(outcome, {
      code: "version_mismatch",
      message: `version_mismatch: bank/a has version ${current}, not ${version}`,
      details: { operation: 1, current_version: current! },
    });
  }

  assert.deepEqual(await it.all(), before);
});

Deno.test("a check keeps its entry and its version; 0 expects that there is none", async () => {
  await using it = await setup();
  await it.call("set", { ...at("a"), value: 1 });
  const { version } = await it.call("entry", at("a"));

  const { versions } = await it.transaction(
    { type: "check", ...at("a"), expected_version: version! },
    { type: "check", ...at("none"), expected_version: 0 },
    { type: "set", ...at("b"), value: 2, expected_version: 0 },
  );

  assert.deepEqual((versions as Json[]).slice(0, 2), [version, null]);
  assert.deepEqual(await it.call("entry", at("a")), {
    value: 1,
    version,
    updated_at_ms: 1_000,
  });
  await assert.rejects(it.transaction({ type: "check", ...at("b"), expected_version: 0 }), {
    code: "version_mismatch",
  });
});

Deno.test("an operation of an update that cannot be applied fails the transaction", async () => {
  await using it = await setup();
  await it.call("set", { ...at("a"), value: { balance: "much" } });

  const outcome = it.transaction(
    { type: "set", ...at("b"), value: 1 },
    { type: "update", ...at("a"), ops: increment(1) },
  );

  await assert.rejects(outcome, (thrown: Error & { code: string; details: JsonObject }) => {
    assert.equal(thrown.code, "UPDATE_ERROR");
    assert.match(thrown.message, /: operations\[1\]\.ops\[0\], of bank\/a: .*nothing was changed$/);
    assert.equal(thrown.details.operation, 1);
    return true;
  });
  assert.deepEqual(await it.all(), [["bank/a", { balance: "much" }]]);
});

Deno.test("values of a transaction expire, and its changes run triggers", async () => {
  await using it = await setup();
  const events: Json[] = [];
  it.worker.registerFunction("seen", (event) => void events.push(event));
  it.worker.registerTrigger({ type: "state", function_id: "seen", config: { scope: "bank" } });
  await it.call("set", { ...at("a"), value: 1 });

  await it.transaction(
    {
      type: "check",
      ...at("a"),
      expected_version: Number((await it.call("entry", at("a"))).version),
    },
    { type: "set", ...at("b"), value: 2, ttl_ms: 500 },
  );
  assert.equal(await it.call("get", at("b")), 2);
  it.clock.tick(500);

  assert.equal(await it.call("get", at("b")), undefined);
  await until(() => events.length >= 2);
  assert.deepEqual(events.slice(0, 2).map((event) => (event as JsonObject).key), ["a", "b"]);
});

Deno.test("state::transaction says what is wrong with its payload, and where", async () => {
  await using it = await setup();
  const many = Array.from({ length: OPERATIONS_MAX + 1 }, (_, i) => ({
    type: "delete",
    ...at(`${i}`),
  }));
  const set = { type: "set", ...at("a"), value: 1 };
  for (
    const [payload, expected] of [
      [{}, /operations/],
      [{ operations: [] }, /operations.*at least 1 operation/],
      [{ operations: many }, /operations: .*<=100 items/],
      [{ operations: [set, set] }, /operations.*each scope and key once/],
      [{ operations: [{ ...set, type: "put" }] }, /operations\.?\[?0\]?\.type/],
      [{ operations: [set, { type: "check", ...at("b") }] }, /operations.*1.*expected_version/],
      [{ operations: [{ type: "update", ...at("b"), ops: [{ type: "add" }] }] }, /ops/],
      [{ operations: [{ ...set, ttl_ms: -1 }] }, /ttl_ms/],
      [{ operations: [{ ...set, key: "" }] }, /key.*at least 1 character/],
    ] as [JsonObject, RegExp][]
  ) {
    await assert.rejects(it.call("transaction", payload), (thrown: Error & { code: string }) => {
      assert.equal(thrown.code, "deserialization_error");
      assert.match(thrown.message, expected);
      return true;
    });
  }
  assert.deepEqual(await it.all(), []);
});
