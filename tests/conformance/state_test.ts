/**
 * PROTOCOL 5.1 from the other end of the wire: values by scope and key.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { until } from "../fakes/until.ts";
import { proveOnWire, type WireClient } from "../fakes/wire_engine.ts";

interface Updated {
  readonly old_value: Json;
  readonly new_value: Json;
  readonly errors?: readonly { op_index: number; code: string; message: string }[];
}

/** Sets a value, applies ops to it, and returns the outcome. */
async function update(
  client: WireClient,
  value: Json | undefined,
  ...ops: Json[]
): Promise<Updated> {
  const place = { scope: "ops", key: crypto.randomUUID() };
  if (value !== undefined) await client.value("state::set", { ...place, value });
  const result = await client.value<Updated>("state::update", { ...place, ops });
  assert.deepEqual(await client.value("state::get", place) ?? null, result.new_value);
  return result;
}

proveOnWire("state", {
  "a missing value has no `result` key": async ({ open }) => {
    const client = await open();
    const place = { scope: "missing", key: "k" };

    for (const name of ["get", "entry", "delete"]) {
      const answer = await client.call(`state::${name}`, place);
      assert.deepEqual(Object.keys(answer), ["type", "invocation_id", "function_id"], name);
    }
    assert.deepEqual(await client.value("state::list", { scope: "missing" }), []);
  },

  "`set` answers both values, `get` the value, `delete` the old one": async ({ open }) => {
    const client = await open();
    const place = { scope: "basic", key: "k" };

    const first = await client.value<JsonObject>("state::set", {
      ...place,
      value: { n: 1, x: null },
    });
    const second = await client.value("state::set", { ...place, data: [2] });
    const got = await client.value("state::get", place);
    const deleted = await client.value("state::delete", place);

    assert.deepEqual(Object.keys(first), ["old_value", "new_value"]);
    assert.deepEqual(first, { old_value: null, new_value: { n: 1, x: null } });
    assert.deepEqual(second, { old_value: { n: 1, x: null }, new_value: [2] });
    assert.deepEqual([got, deleted], [[2], [2]]);
    assert.ok(!("result" in await client.call("state::get", place)));
  },

  "falsy values are values": async ({ open }) => {
    const client = await open();

    for (const value of [0, false, "", [], {}]) {
      const place = { scope: "falsy", key: JSON.stringify(value) };
      await client.value("state::set", { ...place, value });
      assert.deepEqual(await client.value("state::get", place), value);
    }
  },

  "`entry` adds a version that grows, also over a delete, and times": async ({ open }) => {
    const client = await open();
    const place = { scope: "entry", key: "k" };
    const entry = async () => await client.value<Record<string, number>>("state::entry", place);
    const before = Date.now();

    await client.value("state::set", { ...place, value: 1 });
    const first = await entry();
    await client.value("state::set", { ...place, value: 1 });
    const second = await entry();
    await client.value("state::delete", place);
    await client.value("state::set", { ...place, value: 1, ttl_ms: 60_000 });
    const third = await entry();

    assert.deepEqual(Object.keys(first), ["value", "version", "updated_at_ms"]);
    assert.ok(first.version! > 0 && second.version! > first.version!);
    assert.ok(third.version! > second.version!);
    assert.ok(first.updated_at_ms! >= before && first.updated_at_ms! <= Date.now());
    assert.ok(third.expires_at_ms! > Date.now() + 30_000);
  },

  "a version that is not the expected one changes nothing": async ({ open }) => {
    const client = await open();
    const place = { scope: "versions", key: "k" };
    const set = { ...place, value: 1 };

    await client.value("state::set", { ...set, expected_version: 0 });
    const { version } = await client.value<{ version: number }>("state::entry", place);
    const exists = await client.failure("state::set", { ...set, value: 2, expected_version: 0 });
    const wrong = await client.failure("state::set", {
      ...set,
      value: 2,
      expected_version: version + 1,
    });
    assert.equal(await client.value("state::get", place), 1);
    await client.value("state::set", { ...set, value: 3, expected_version: version });

    for (const { code, details } of [exists, wrong]) {
      assert.deepEqual([code, details], ["version_mismatch", { current_version: version }]);
    }
    assert.equal(await client.value("state::get", place), 3);
  },

  "a `ttl_ms` ends an entry for every function; `update` keeps it, `set` does not": async (
    { open },
  ) => {
    const client = await open();
    const scope = "expiry";
    for (const key of ["short", "updated", "set"]) {
      await client.value("state::set", { scope, key, value: {}, ttl_ms: 1_500 });
    }
    await client.value("state::update", { scope, key: "updated", ops: [] });
    await client.value("state::set", { scope, key: "set", value: "stays" });

    let left: Json[] = [];
    await until(async () => {
      left = await client.value("state::list", { scope });
      return left.length === 1;
    });

    assert.deepEqual(left, ["stays"]);
    for (const name of ["get", "entry", "delete"]) {
      assert.ok(!("result" in await client.call(`state::${name}`, { scope, key: "short" })));
    }
    const again = await client.value("state::set", { scope, key: "updated", value: 1 });
    assert.deepEqual(again, { old_value: null, new_value: 1 });
  },

  "`list` is in the order of insertion, `list_groups` names scopes sorted": async ({ open }) => {
    const client = await open();
    for (const key of ["z", "a", "m"]) {
      await client.value("state::set", { scope: "listed-b", key, value: key });
    }
    await client.value("state::set", { scope: "listed-b", key: "z", value: "z again" });
    await client.value("state::set", { scope: "listed-a", key: "k", value: 1 });
    await client.value("state::set", { scope: "listed-gone", key: "k", value: 1 });
    await client.value("state::delete", { scope: "listed-gone", key: "k" });

    const { groups } = await client.value<{ groups: string[] }>("state::list_groups");
    const list = await client.value("state::list", { scope: "listed-b" });

    assert.deepEqual(list, ["z again", "a", "m"]);
    assert.deepEqual(groups, [...groups].sort());
    const listed = groups.filter((name) => name.startsWith("listed-"));
    assert.deepEqual(listed, ["listed-a", "listed-b"]);
  },

  "`list_entries` goes page by page, sorted by key": async ({ open }) => {
    const client = await open();
    const scope = "pages";
    for (const key of ["b3", "b1", "c", "b2", "a"]) {
      await client.value("state::set", { scope, key, value: key });
    }
    interface Page {
      readonly entries: readonly JsonObject[];
      readonly cursor?: string;
    }

    const all = await client.value<Page>("state::list_entries", { scope });
    const first = await client.value<Page>("state::list_entries", { scope, prefix: "b", limit: 2 });
    const cursor = first.cursor!;
    const last = await client.value<Page>("state::list_entries", {
      scope,
      prefix: "b",
      limit: 2,
      cursor,
    });

    assert.deepEqual(Object.keys(all), ["entries"]);
    assert.deepEqual(Object.keys(all.entries[0]!), ["key", "value", "version"]);
    assert.deepEqual(all.entries.map(({ key }) => key), ["a", "b1", "b2", "b3", "c"]);
    assert.deepEqual(first.entries.map(({ key }) => key), ["b1", "b2"]);
    assert.deepEqual([last.entries.map(({ key }) => key), last.cursor], [["b3"], undefined]);
  },

  "a wrong shape is `deserialization_error` with the function's id": async ({ open }) => {
    const client = await open();
    const wrong: [string, Json | undefined][] = [
      ["get", undefined],
      ["get", {}],
      ["get", { scope: "s", key: 5 }],
      ["set", { scope: "s", key: "k" }],
      ["set", { scope: "s", key: "k", value: 1, expected_version: "1" }],
      ["set", { scope: "s", key: "k", value: 1, ttl_ms: -1 }],
      ["delete", []],
      ["list", { scope: null }],
      ["list_entries", { scope: "s", limit: 0 }],
      ["update", { scope: "s", key: "k" }],
      ["update", { scope: "s", key: "k", ops: [{ type: "multiply", path: "n", by: 2 }] }],
    ];

    for (const [name, payload] of wrong) {
      const { code, message } = await client.failure(`state::${name}`, payload);
      assert.equal(code, "deserialization_error", `${name} ${JSON.stringify(payload)}`);
      assert.ok((message as string).startsWith(`Failed to deserialize input for state::${name}: `));
    }
  },

  "a thousand increments at once are a thousand": async ({ open }) => {
    const client = await open();
    const place = { scope: "counter", key: "k" };
    const ops = [{ type: "increment", path: "n", by: 1 }];

    const type = "invokefunction";
    const function_id = "state::update";
    for (let i = 0; i < 1_000; i++) {
      await client.send({ type, invocation_id: `${i}`, function_id, data: { ...place, ops } });
    }
    for (let i = 0; i < 1_000; i++) assert.ok((await client.receive()).result);

    assert.deepEqual(await client.value("state::get", place), { n: 1_000 });
  },
}, { traces: false });

proveOnWire("state::update", {
  "a missing item starts from `{}`, its old value is null": async ({ open }) => {
    const client = await open();

    const result = await update(client, undefined, { type: "set", path: "a.b", value: 1 });

    assert.deepEqual(result, { old_value: null, new_value: { "a.b": 1 } });
    assert.deepEqual(Object.keys(result), ["old_value", "new_value"]);
  },

  "every op does what it says": async ({ open }) => {
    const client = await open();
    const cases: [Json, Json, Json][] = [
      [{ a: 1 }, { type: "set", path: "", value: [1] }, [1]],
      [{ a: 1 }, { type: "set", path: "a", value: null }, { a: null }],
      [{ a: 1 }, { type: "merge", value: { b: 2 } }, { a: 1, b: 2 }],
      [{ a: { x: 1 } }, { type: "merge", path: "a", value: { y: 2 } }, { a: { x: 1, y: 2 } }],
      [{}, { type: "merge", path: ["a", "b"], value: { c: 1 } }, { a: { b: { c: 1 } } }],
      [{ n: 1 }, { type: "increment", path: "n", by: 2 }, { n: 3 }],
      [{}, { type: "increment", path: "n", by: 2 }, { n: 2 }],
      [{}, { type: "decrement", path: "n", by: 2 }, { n: -2 }],
      [{ l: [1] }, { type: "append", path: "l", value: 2 }, { l: [1, 2] }],
      [{ l: "ab" }, { type: "append", path: "l", value: "c" }, { l: "abc" }],
      [{}, { type: "append", path: "l", value: "c" }, { l: "c" }],
      [{ l: null }, { type: "append", path: "l", value: 5 }, { l: [5] }],
      [{}, { type: "append", path: ["a", "l"], value: "c" }, { a: { l: ["c"] } }],
      [[1], { type: "append", value: 2 }, [1, 2]],
      [{ a: 1, b: 2 }, { type: "remove", path: "a" }, { b: 2 }],
      [{ a: 1 }, { type: "remove", path: "" }, null],
    ];

    for (const [value, op, expected] of cases) {
      const { old_value, new_value, errors } = await update(client, value, op);
      assert.deepEqual(
        [old_value, new_value, errors],
        [value, expected, undefined],
        JSON.stringify(op),
      );
    }
  },

  "an op that fails is skipped and reported, the others apply": async ({ open }) => {
    const client = await open();
    const deep = Array.from({ length: 33 }, () => "x");
    const keys = Object.fromEntries(Array.from({ length: 1025 }, (_, i) => [`k${i}`, i]));
    const nested = JSON.parse('{"a":'.repeat(17) + "{}" + "}".repeat(17));
    const cases: [Json, Json, string][] = [
      [5, { type: "set", path: "a", value: 1 }, "set.target_not_object"],
      [{}, { type: "merge", value: 5 }, "merge.value.not_an_object"],
      [{ n: "x" }, { type: "increment", path: "n", by: 1 }, "increment.not_number"],
      [[], { type: "increment", path: "n", by: 1 }, "increment.target_not_object"],
      [{ n: "x" }, { type: "decrement", path: "n", by: 1 }, "decrement.not_number"],
      [5, { type: "decrement", path: "n", by: 1 }, "decrement.target_not_object"],
      [{ l: 5 }, { type: "append", path: "l", value: 1 }, "append.type_mismatch"],
      [5, { type: "append", path: "l", value: 1 }, "append.target_not_object"],
      [{}, { type: "merge", path: deep, value: {} }, "merge.path.too_deep"],
      [{}, { type: "append", path: deep, value: 1 }, "append.path.too_deep"],
      [{}, { type: "merge", path: ["x".repeat(257)], value: {} }, "merge.path.segment_too_long"],
      [{}, { type: "append", path: ["a", ""], value: 1 }, "append.path.empty_segment"],
      [{}, { type: "merge", path: ["__proto__"], value: {} }, "merge.path.proto_polluted"],
      [{}, { type: "merge", value: keys }, "merge.value.too_many_keys"],
      [{}, { type: "merge", value: nested }, "merge.value.too_deep"],
      [{}, { type: "merge", value: { constructor: 1 } }, "merge.value.proto_polluted"],
    ];

    for (const [value, op, code] of cases) {
      const remove = { type: "remove", path: "nothing" };
      const { new_value, errors } = await update(client, value, remove, op);
      assert.deepEqual(new_value, value, code);
      const [error] = errors!.filter(({ op_index }) => op_index === 1);
      assert.deepEqual([error?.code, typeof error?.message], [code, "string"]);
      const allowed = new Set(["op_index", "code", "message", "doc_url"]);
      assert.ok(Object.keys(error!).every((key) => allowed.has(key)));
    }
  },
});
