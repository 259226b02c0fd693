import assert from "node:assert/strict";
import { createMemoryBudget } from "../../engine/platform/memory_budget.ts";
import { type MemoryBudget, UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";
import {
  type Entry,
  type KeyChange,
  type Store,
  VALUE_BYTES_MAX,
} from "../../engine/ports/store.ts";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { LocalEngine } from "../../tests/fakes/local_engine.ts";
import { state } from "./mod.ts";

type Call = (name: string, payload?: Json) => Promise<Json | undefined>;

async function setup(store: Store = new MemoryStore(), memory: MemoryBudget = UNLIMITED_MEMORY) {
  const clock = new FakeClock(1_000);
  const engine = new LocalEngine({ clock, store, memory });
  await engine.start(state);
  const worker = await engine.connect("caller");
  const call: Call = (name, payload) =>
    worker.trigger<Json, Json | undefined>({ function_id: `state::${name}`, payload });
  return {
    engine,
    clock,
    worker,
    call,
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

const AT = { scope: "s", key: "k" };

Deno.test("state::set returns the old and the new value", async () => {
  await using at = await setup();

  assert.deepEqual(await at.call("set", { ...AT, value: { n: 1 } }), {
    old_value: null,
    new_value: { n: 1 },
  });
  assert.deepEqual(await at.call("set", { ...AT, value: null }), {
    old_value: { n: 1 },
    new_value: null,
  });
});

Deno.test("state::set accepts data as an alias of value, which takes precedence", async () => {
  await using at = await setup();

  await at.call("set", { ...AT, data: 1 });
  assert.equal(await at.call("get", AT), 1);
  await at.call("set", { ...AT, data: 1, value: false });
  assert.equal(await at.call("get", AT), false);
});

Deno.test("answers that do not fit into the memory of the engine are overloaded", async () => {
  const memory = createMemoryBudget(16 * 1024 * 1024);
  await using at = await setup(new MemoryStore(), memory);
  const value = "v".repeat(300_000);
  await at.call("set", { ...AT, value });
  const taken = memory.limitBytes - memory.usedBytes - 100_000;
  memory.take("buffers", taken);

  for (const name of ["get", "entry", "list", "list_entries"]) {
    await assert.rejects(at.call(name, name.startsWith("list") ? { scope: "s" } : AT), {
      code: "overloaded",
    });
  }
  memory.release("buffers", taken);
  assert.equal(await at.call("get", AT), value);
  assert.deepEqual(await at.call("list", { scope: "s" }), [value]);
});

Deno.test("state::get and state::entry of a missing key are absent", async () => {
  await using at = await setup();

  assert.equal(await at.call("get", AT), undefined);
  assert.equal(await at.call("entry", AT), undefined);
});

Deno.test("state::entry returns version and times", async () => {
  await using at = await setup();
  await at.call("set", { ...AT, value: 1 });
  const first = await at.call("entry", AT) as JsonObject;

  at.clock.tick(5);
  await at.call("set", { ...AT, value: 2, ttl_ms: 50 });
  const second = await at.call("entry", AT) as JsonObject;

  assert.deepEqual(Object.keys(first), ["value", "version", "updated_at_ms"]);
  assert.equal(first.updated_at_ms, 1_000);
  assert.ok((second.version as number) > (first.version as number));
  const { version: _version, ...rest } = second;
  assert.deepEqual(rest, { value: 2, updated_at_ms: 1_005, expires_at_ms: 1_055 });
});

Deno.test("state::delete returns the removed value, and nothing for a missing key", async () => {
  await using at = await setup();
  await at.call("set", { ...AT, value: ["x"] });

  assert.deepEqual(await at.call("delete", AT), ["x"]);
  assert.equal(await at.call("delete", AT), undefined);
  assert.equal(await at.call("get", AT), undefined);
});

Deno.test("state::set with expected_version writes only over that version", async () => {
  await using at = await setup();
  await at.call("set", { ...AT, value: 1, expected_version: 0 });
  const { version } = await at.call("entry", AT) as { version: number };

  await assert.rejects(at.call("set", { ...AT, value: 2, expected_version: 0 }), {
    code: "version_mismatch",
    details: { current_version: version },
  });
  await assert.rejects(at.call("set", { ...AT, value: 2, expected_version: version + 1 }), {
    code: "version_mismatch",
  });
  assert.equal(await at.call("get", AT), 1);
  await at.call("set", { ...AT, value: 2, expected_version: version });
  await at.call("delete", AT);
  await assert.rejects(at.call("set", { ...AT, value: 3, expected_version: version }), {
    code: "version_mismatch",
    details: { current_version: 0 },
  });
});

Deno.test("state::update applies 1,000 concurrent increments exactly", async () => {
  await using at = await setup();
  const ops = [{ type: "increment", path: "n", by: 1 }];

  await Promise.all(Array.from({ length: 1_000 }, () => at.call("update", { ...AT, ops })));

  assert.deepEqual(await at.call("get", AT), { n: 1_000 });
});

Deno.test("state::update reports skipped operations, if any", async () => {
  await using at = await setup();
  const ops = [{ type: "set", path: "a", value: "x" }, { type: "increment", path: "a", by: 1 }];

  assert.deepEqual(await at.call("update", { ...AT, ops: ops.slice(0, 1) }), {
    old_value: null,
    new_value: { a: "x" },
  });
  const { errors, ...rest } = await at.call("update", { ...AT, ops }) as JsonObject;
  assert.deepEqual(rest, { old_value: { a: "x" }, new_value: { a: "x" } });
  assert.deepEqual((errors as JsonObject[]).map(({ op_index, code }) => [op_index, code]), [
    [1, "increment.not_number"],
  ]);
});

Deno.test("state::list returns values in the order of creation", async () => {
  await using at = await setup();
  for (const key of ["c", "a", "b"]) await at.call("set", { scope: "s", key, value: key });
  await at.call("set", { scope: "s", key: "c", value: "again" });
  await at.call("delete", { scope: "s", key: "a" });
  await at.call("set", { scope: "s", key: "a", value: "back" });
  await at.call("set", { scope: "s2", key: "x", value: "other scope" });

  assert.deepEqual(await at.call("list", { scope: "s" }), ["again", "b", "back"]);
  assert.deepEqual(await at.call("list", { scope: "none" }), []);
});

Deno.test("state::list_groups returns the scopes with keys, sorted", async () => {
  await using at = await setup();
  const put = (scope: string, key: string) => at.call("set", { scope, key, value: 1 });
  for (const [scope, key] of [["b", "1"], ["a", "1"], ["b", "2"], ["c", "1"]]) {
    await put(scope!, key!);
  }
  await put("b", "1");
  await at.call("delete", { scope: "b", key: "1" });
  await at.call("delete", { scope: "c", key: "1" });
  await at.call("delete", { scope: "c", key: "1" });

  assert.deepEqual(await at.call("list_groups"), { groups: ["a", "b"] });
  assert.deepEqual(await at.call("list_groups", { limit: 1 }), { groups: ["a"], cursor: "a" });
  assert.deepEqual(await at.call("list_groups", { limit: 1, cursor: "a" }), { groups: ["b"] });
  await at.call("delete", { scope: "b", key: "2" });
  assert.deepEqual(await at.call("list_groups", { anything: 1 }), { groups: ["a"] });
});

Deno.test("state::list_entries pages through the keys of a prefix, sorted", async () => {
  await using at = await setup();
  for (const key of ["b2", "a", "b", "c", "b1", "b10"]) {
    await at.call("set", { scope: "s", key, value: key });
  }
  const query = { scope: "s", prefix: "b", limit: 2 };
  const first = await at.call("list_entries", query) as JsonObject;
  const second = await at.call("list_entries", { ...query, cursor: first.cursor! }) as JsonObject;

  const keys = (page: JsonObject) => (page.entries as JsonObject[]).map(({ key }) => key);
  assert.deepEqual(keys(first), ["b", "b1"]);
  assert.deepEqual(keys(second), ["b10", "b2"]);
  assert.equal("cursor" in second, false);
  const all = await at.call("list_entries", { scope: "s", prefix: null }) as JsonObject;
  assert.deepEqual(keys(all), ["a", "b", "b1", "b10", "b2", "c"]);
  assert.deepEqual(Object.keys((all.entries as JsonObject[])[0]!), ["key", "value", "version"]);
});

const REFUSED: readonly [string, Json | undefined, string][] = [
  ["set", undefined, "expected object, received null"],
  ["set", { key: "k", value: 1 }, "scope: expected string, received nothing"],
  ["set", { scope: 1, key: null, value: 1 }, "scope: expected string, received 1; key: expected"],
  ["set", { scope: "", key: "k", value: 1 }, "scope: expected at least 1 character"],
  ["set", { scope: "s", key: "\ud800", value: 1 }, "key: expected well-formed Unicode"],
  ["set", { scope: "s", key: "x".repeat(901), value: 1 }, "key: expected at most 900 bytes"],
  ["set", { ...AT }, "value: expected a value, received nothing"],
  ["set", { ...AT, value: 1, ttl_ms: -1 }, "ttl_ms: Too small"],
  ["set", { ...AT, value: 1, ttl_ms: "1" }, "ttl_ms: expected number, received string"],
  ["set", { ...AT, value: 1, expected_version: 1.5 }, "expected_version: expected int"],
  ["get", { scope: "s" }, "key: expected string, received nothing"],
  ["entry", "s", "expected object, received string"],
  ["delete", [], "expected object, received array"],
  ["list", {}, "scope: expected string"],
  ["list_entries", { scope: "s", limit: 0 }, "limit: Too small"],
  ["list_entries", { scope: "s", prefix: "b", cursor: "a" }, "cursor: expected the cursor"],
  ["update", { ...AT }, "ops: expected array, received nothing"],
  ["update", { ...AT, ops: [{ type: "set", path: "a" }, 1] }, "ops[0].value: expected a value"],
];

for (const [name, payload, problem] of REFUSED) {
  Deno.test(`state::${name} refuses ${JSON.stringify(payload)?.slice(0, 60)}`, async () => {
    await using at = await setup();

    await assert.rejects(at.call(name, payload), (error: EngineError) => {
      assert.equal(error.code, "deserialization_error");
      assert.ok(error.message.includes(`Failed to deserialize input for state::${name}: `));
      assert.ok(error.message.includes(problem), error.message);
      assert.deepEqual(error.details, { received: payload ?? null });
      return true;
    });
  });
}

Deno.test("a rejected write changes nothing and leaves no scope behind", async () => {
  await using at = await setup();
  const value = "x".repeat(VALUE_BYTES_MAX);

  await assert.rejects(at.call("set", { ...AT, value }), { code: "VALUE_TOO_LARGE" });
  await assert.rejects(at.call("set", { ...AT, value: 1, expected_version: 7 }));

  assert.deepEqual(await at.call("list_groups"), { groups: [] });
  assert.equal(await at.call("get", AT), undefined);
});

Deno.test("state::set rejects values too large for its answer, state::delete does not", async () => {
  await using at = await setup();
  const value = "x".repeat(VALUE_BYTES_MAX / 2 + 1);
  await at.call("set", { ...AT, value });

  await assert.rejects(at.call("set", { ...AT, value }), { code: "VALUE_TOO_LARGE" });
  const ops = [{ type: "append", path: "", value }];
  await assert.rejects(at.call("update", { ...AT, ops }), { code: "VALUE_TOO_LARGE" });
  const [small, largest] = ["x".repeat(65_000), "x".repeat(VALUE_BYTES_MAX - 1_000)];
  await at.call("set", { scope: "orders", key: "small", value: small });
  const grown = at.call("set", { scope: "orders", key: "small", value: largest });
  await assert.rejects(grown, { code: "VALUE_TOO_LARGE" });
  assert.equal((await at.call("delete", AT) as string).length, value.length);
  await at.call("set", { ...AT, value });
});

for (
  const [name, code] of [["set", "SET_ERROR"], ["delete", "DELETE_ERROR"], [
    "update",
    "UPDATE_ERROR",
  ]] as const
) {
  Deno.test(`state::${name} fails with ${code} when the disk fails`, async () => {
    const store = new MemoryStore();
    const broken: Store = {
      stats: store.stats,
      status: store.status,
      get: (key) => store.get(key),
      list: (...query) => store.list(...query),
      write: (_changes: readonly KeyChange[]) =>
        Promise.reject(
          new EngineError("SET_ERROR", "The disk is full", { details: { unknown: true } }),
        ),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
    await using at = await setup(broken);

    await assert.rejects(at.call(name, { ...AT, value: 1, ops: [] }), {
      code,
      message: `${code}: The disk is full`,
      details: { unknown: true },
    });
  });
}

Deno.test("engine-state rejects a configuration with unknown keys", () => {
  assert.throws(() => state.parse({ path: "x" }), { name: "SchemaError" });
  assert.deepEqual(state.parse(null), { flushMs: undefined });
});

Deno.test("engine-state describes its functions and its trigger type", async () => {
  await using at = await setup();
  const { directory } = at.engine.router;
  const functions = directory.functions().filter(({ function_id }) =>
    function_id.startsWith("state::")
  );

  assert.deepEqual(
    functions.map(({ function_id }) => function_id.slice("state::".length)).sort(),
    [
      "delete",
      "entry",
      "get",
      "list",
      "list_entries",
      "list_groups",
      "set",
      "transaction",
      "update",
    ],
  );
  assert.ok(
    functions.every(({ description, request_schema, worker_name }) =>
      description && request_schema && worker_name === "engine-state"
    ),
  );
  assert.equal(directory.triggerType("default", "state")?.worker_name, "engine-state");
});

Deno.test("a damaged record fails alone, is listed by name, and can be overwritten and deleted", async () => {
  const memory = new MemoryStore();
  const damaged = new Set<string>();
  const store: Store = {
    stats: memory.stats,
    status: memory.status,
    get: (key) => memory.get(key),
    list: async (...query) => (await memory.list(...query)).map(withDamage),
    write: async (changes) => {
      const before = new Set(damaged);
      const show = (entry: Entry | undefined) =>
        entry && before.has(entry.key.join("/")) ? withDamage(entry) : entry;
      const changed = await memory.write(changes.map(([key, change]): KeyChange => [key, (old) => {
        const shown = old && withDamage(old);
        const result = change(shown);
        return result === shown ? old : result;
      }]));
      const written = changed.filter((each) => each.old !== each.new);
      const shown = changed.map((each) => ({ ...each, old: show(each.old) }));
      for (const each of written) damaged.delete((each.new ?? each.old)!.key.join("/"));
      return shown;
    },
    [Symbol.asyncDispose]: () => memory[Symbol.asyncDispose](),
  };
  function withDamage(entry: Entry): Entry {
    const isDamaged = damaged.has(entry.key.join("/"));
    return isDamaged ? { ...entry, value: null, bytes: 0, version: 0, damaged: "flipped" } : entry;
  }
  await using at = await setup(store);
  for (const key of ["a", "b", "c"]) await at.call("set", { scope: "s", key, value: key });
  for (const key of ["state/s/b", "state/s/c", "state_scopes/s"]) damaged.add(key);

  assert.deepEqual(await at.call("list", { scope: "s" }), ["a"]);
  const page = await at.call("list_entries", { scope: "s" }) as JsonObject;
  assert.deepEqual(page.damaged, ["b", "c"]);
  assert.deepEqual(await at.call("set", { scope: "s", key: "b", value: 2 }), {
    old_value: null,
    new_value: 2,
  });
  await at.call("delete", { scope: "s", key: "c" });
  await at.call("delete", { scope: "s", key: "b" });
  assert.deepEqual(await at.call("list_groups", {}), { groups: ["s"] });
  damaged.add("state_scopes/s");
  await at.call("transaction", { operations: [{ type: "delete", scope: "s", key: "a" }] });

  assert.deepEqual(await at.call("list_groups", {}), { groups: [] });
});

Deno.test("durability: interval hands its time to the store, and the listing says it", async () => {
  const store = new MemoryStore();
  const options: unknown[] = [];
  const write = store.write.bind(store);
  store.write = (changes, ...more: unknown[]) => (options.push(more[0]), write(changes));
  const engine = new LocalEngine({ clock: new FakeClock(1_000), store });
  await using _stop = engine;
  const raw = { durability: "interval", flush_ms: 50 };
  const config = state.parse(raw);
  await engine.start(state, raw);
  const worker = await engine.connect("caller");

  await worker.trigger({ function_id: "state::set", payload: { ...AT, value: 1 } });

  assert.deepEqual(options, [{ flushMs: 50 }]);
  assert.match(state.summaryOf!(config), /on disk up to 50 ms after the answer$/);
  assert.equal(state.summaryOf!(state.parse({})), state.summary);
  const late = engine.router.directory.functions().filter(({ description }) =>
    description?.endsWith("; on disk up to 50 ms after the answer")
  );
  assert.deepEqual(late.map(({ function_id }) => function_id).toSorted(), [
    "state::delete",
    "state::set",
    "state::transaction",
    "state::update",
  ]);
  assert.deepEqual(state.parse({ durability: "interval" }), { flushMs: 100 });
});

Deno.test("a durability that is none, and a time without its use, are refused", () => {
  for (
    const [config, expected] of [
      [{ durability: "never" }, /durability.*always.*interval/],
      [{ durability: "interval", flush_ms: 0 }, /flush_ms/],
      [{ durability: "interval", flush_ms: 60_001 }, /flush_ms/],
      [{ flush_ms: 10 }, /flush_ms.*durability: interval/],
      [{ durable: true }, /durable/],
    ] as const
  ) assert.throws(() => state.parse(config), expected);
});
