/**
 * Spans by filter, as trees, in groups and as a map of calls.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { callSpan, idOf, NOON, recorded, storedSpan } from "../../../tests/fakes/spans.ts";
import * as v from "../../kit/schema.ts";
import {
  GroupRequest,
  groupSpans,
  ListRequest,
  listSpans,
  mapOf,
  MapRequest,
  treeOf,
} from "./query.ts";

const NOW = NOON + 1_000;

/** Three calls in two traces; the second one failed. */
function setup() {
  const it = recorded();
  const call = (n: number, changes: object) =>
    callSpan({ span_id: idOf(n, 16), function_id: `f${n}`, start_ms: NOON + n, ...changes });
  it.traces.add(
    call(1, { end_ms: NOON + 101 }),
    call(2, { end_ms: NOON + 7, parent_span_id: idOf(1, 16), error_code: "oops" }),
    call(3, { end_ms: null, trace_id: idOf(9, 32), function_id: "engine::x" }),
    call(4, { end_ms: NOON + 5, trace_id: idOf(9, 32), callee: { worker_id: "s", name: "stock" } }),
  );
  return it;
}

async function names(query: unknown): Promise<string[]> {
  const { spans } = await listSpans(setup().store, v.parse(ListRequest, query), false, NOW);
  return (spans as JsonObject[]).map(({ name }) => name as string);
}

for (
  const [query, expected] of [
    [null, ["f1", "f2", "f4"]],
    [{ include_internal: true }, ["f1", "f2", "engine::x", "f4"]],
    [{ trace_id: idOf(1, 32) }, ["f1", "f2"]],
    [{ trace_ids: [idOf(1, 32).toUpperCase(), idOf(9, 32)] }, ["f1", "f2", "engine::x", "f4"]],
    [{ trace_ids: Array.from({ length: 30 }, (_, n) => idOf(n, 32)), name: "f4" }, ["f4"]],
    [{ trace_id: "nothing" }, []],
    [{ offset: 1, limit: 1 }, ["f2"]],
    [{ service_name: "STO" }, ["f4"]],
    [{ name: "F2" }, ["f2"]],
    [{ status: "err" }, ["f2"]],
    [{ min_duration_ms: 50 }, ["f1"]],
    [{ max_duration_ms: 2 }, ["f4"]],
    [{ start_time: NOON + 2, end_time: NOON + 3 }, ["f2"]],
    [{ sort_by: "duration", sort_order: "desc" }, ["f1", "f2", "f4"]],
    [{ sort_by: "name", sort_order: "desc" }, ["f4", "f2", "f1"]],
    [{ sort_by: "service_name" }, ["f2", "f1", "f4"]],
    [{ sort_order: "desc" }, ["f4", "f2", "f1"]],
    [{ attributes: [["engine.error_code", "oops"]] }, ["f2"]],
    [{ attributes: [["engine.timeout_ms", "30000"]], limit: 1 }, ["f1"]],
    [{ exclude_attributes: [["engine.worker", "orders"]] }, ["f4"]],
  ] as const
) {
  Deno.test(`listSpans() with ${JSON.stringify(query).slice(0, 80)} returns ${expected}`, async () => {
    assert.deepEqual(await names(query), expected);
  });
}

Deno.test("listSpans() counts all matches and shows payloads of given traces to operators", async () => {
  const { store } = setup();

  const all = await listSpans(store, v.parse(ListRequest, { limit: 1 }), true, NOW);
  const one = await listSpans(store, v.parse(ListRequest, { trace_id: idOf(1, 32) }), true, NOW);

  assert.deepEqual([all.total, all.offset, all.limit, all.storage], [3, 0, 1, "memory"]);
  assert.match(JSON.stringify(one), /engine\.request/);
  assert.doesNotMatch(
    JSON.stringify(
      await listSpans(store, v.parse(ListRequest, { trace_id: idOf(1, 32) }), false, NOW),
    ),
    /engine\.request"/,
  );
});

type Node = JsonObject & { children: Node[] };
const shape = (nodes: Node[]): unknown[] => nodes.map((n) => [n.name, shape(n.children)]);
const tree = (store: Parameters<typeof treeOf>[0], id: string) =>
  shape(treeOf(store, id, false).roots as Node[]);

Deno.test("treeOf() nests spans below their parents and makes orphans roots", () => {
  const { store, ring } = setup();
  ring.add(storedSpan({ span_id: idOf(20, 16), name: "execute", parent_span_id: idOf(2, 16) }));
  ring.add(storedSpan({ span_id: idOf(21, 16), name: "orphan", parent_span_id: idOf(77, 16) }));

  assert.deepEqual(tree(store, idOf(1, 32)), [
    ["orphan", []],
    ["f1", [["f2", [["execute", []]]]]],
  ]);
  assert.deepEqual(tree(store, "unknown"), []);
});

Deno.test("treeOf() contains each span once when parents form a cycle", () => {
  const { store, ring } = recorded();
  const span = (n: number, parent: number) =>
    storedSpan({ span_id: idOf(n, 16), name: `s${n}`, parent_span_id: idOf(parent, 16) });
  for (const each of [span(1, 2), span(2, 1), span(3, 3), span(4, 2)]) ring.add(each);

  const text = JSON.stringify(tree(store, idOf(1, 32)));

  for (const name of ["s1", "s2", "s3", "s4"]) assert.equal(text.split(name).length, 2, name);
});

Deno.test("treeOf() bounds the depth", () => {
  const { store, ring } = recorded();
  for (let n = 0; n < 1_000; n++) {
    ring.add(storedSpan({
      span_id: idOf(n, 16),
      name: `s${n}`,
      start_ms: NOON + n,
      parent_span_id: n === 0 ? null : idOf(n - 1, 16),
    }));
  }

  const text = JSON.stringify(treeOf(store, idOf(1, 32), false));

  assert.equal(text.match(/"children"/g)!.length, 1_000);
  const depth = deepest(text);
  assert.ok(depth < 1_000, `${depth} levels`);
});

function deepest(text: string): number {
  let depth = 0;
  let most = 0;
  for (const c of text) {
    if (c === "[" || c === "{") most = Math.max(most, ++depth);
    else if (c === "]" || c === "}") depth--;
  }
  return most;
}

Deno.test("groupSpans() groups by the value of an attribute, the latest group first", async () => {
  const query = v.parse(GroupRequest, {
    attribute: "engine.worker",
    label_attribute: "engine.function_id",
  });

  const { groups } = await groupSpans(setup().store, query, NOW);

  assert.deepEqual(groups, [
    {
      value: "stock",
      label: "f4",
      trace_ids: [idOf(9, 32)],
      span_count: 1,
      first_seen_ms: NOON + 4,
      last_seen_ms: NOON + 4,
      duration_ms: 1,
      error_count: 0,
    },
    {
      value: "orders",
      label: "f2",
      trace_ids: [idOf(1, 32)],
      span_count: 2,
      first_seen_ms: NOON + 1,
      last_seen_ms: NOON + 2,
      duration_ms: 100,
      error_count: 1,
    },
  ]);
});

Deno.test("groupSpans() skips spans without the attribute and respects its limit", async () => {
  const { store } = setup();
  const count = async (query: object) => {
    const { groups } = await groupSpans(store, v.parse(GroupRequest, query), NOW);
    return (groups as unknown[]).length;
  };

  assert.equal(await count({ attribute: "none" }), 0);
  assert.equal(await count({ attribute: "engine.function_id" }), 3);
  assert.equal(await count({ attribute: "engine.function_id", include_internal: true }), 4);
  assert.equal(await count({ attribute: "engine.function_id", limit: 2 }), 2);
  assert.equal(await count({ attribute: "engine.function_id", since_ms: NOON + 4 }), 1);
});

for (const attribute of ["engine.request", "engine.response"]) {
  Deno.test(`Spans cannot be filtered or grouped by ${attribute}`, () => {
    const pair = [[attribute, '{"pin":1234}']];

    for (const query of [{ attributes: pair }, { exclude_attributes: pair }]) {
      assert.equal(v.safeParse(ListRequest, query).success, false);
    }
    for (const query of [{ attribute }, { attribute: "a", label_attribute: attribute }]) {
      assert.equal(v.safeParse(GroupRequest, query).success, false);
    }
  });
}

function call(n: number, changes: object) {
  return callSpan({
    span_id: idOf(n, 16),
    start_ms: NOON + n,
    end_ms: NOON + n + n,
    ...changes,
  });
}

/** A request whose handler uses state, a command, and a missing function. */
function setupMap() {
  const it = recorded();
  it.ring.add(
    storedSpan({ span_id: idOf(50, 16), name: "GET /orders/:id", start_ms: NOON }, {
      "engine.kind": "http",
    }),
  );
  it.traces.add(
    call(1, {
      parent_span_id: idOf(50, 16),
      function_id: "orders::get",
      caller: { worker_id: "h", name: "engine-http" },
    }),
    call(2, {
      parent_span_id: idOf(1, 16),
      function_id: "state::get",
      caller: { worker_id: "w-2", name: "orders" },
      callee: { worker_id: "s", name: "engine-state" },
    }),
    call(10, {
      trace_id: idOf(9, 32),
      function_id: "orders::get",
      caller: { worker_id: "c", name: "engine-cli" },
      error_code: "oops",
    }),
    call(11, { trace_id: idOf(8, 32), function_id: "missing::has", callee: null }),
    call(12, { trace_id: idOf(7, 32), function_id: "engine::logs::list" }),
  );
  return it;
}

Deno.test("mapOf() has nodes for requests, commands, workers, functions and state", async () => {
  const map = await mapOf(setupMap().store, v.parse(MapRequest, {}), NOW, false);

  const nodes = (map.nodes as JsonObject[]).map(({ id, kind, worker }) => [id, kind, worker]);
  assert.deepEqual(nodes.sort(), [
    ["external:command line", "external", null],
    ["function:missing::has", "function", null],
    ["function:orders::get", "function", "orders"],
    ["http:GET /orders/:id", "http", "engine-http"],
    ["state", "state", "engine-state"],
    ["worker:orders", "worker", "orders"],
    ["worker:shop", "worker", "shop"],
  ]);
  const edges = (map.edges as JsonObject[])
    .map(({ from, to, calls, errors }) => `${from} > ${to} ${calls} ${errors}`);
  assert.deepEqual(edges.sort(), [
    "external:command line > function:orders::get 1 1",
    "function:orders::get > worker:orders 2 1",
    "http:GET /orders/:id > function:orders::get 1 0",
    "worker:orders > state 1 0",
    "worker:shop > function:missing::has 1 0",
  ]);
  assert.deepEqual([map.window_ms, map.sampled], [1_000, false]);
});

Deno.test("mapOf() computes quantiles by nearest rank", async () => {
  const { traces, store } = recorded();
  for (let n = 1; n <= 100; n++) traces.add(call(n, {}));

  const { edges } = await mapOf(store, v.parse(MapRequest, null), NOW, false);

  const [edge] = edges as JsonObject[];
  assert.deepEqual([edge!.calls, edge!.p50_ms, edge!.p99_ms], [100, 50, 99]);
});

Deno.test("mapOf() filters by trace or time, and reports sampling", async () => {
  const { store } = setupMap();
  const edges = async (query: object) => {
    const map = await mapOf(store, v.parse(MapRequest, query), NOW, true);
    return (map.edges as unknown[]).length;
  };

  assert.equal(await edges({ trace_id: idOf(9, 32).toUpperCase() }), 2);
  assert.equal(await edges({ trace_id: "none" }), 0);
  assert.equal(await edges({ since_ms: NOON + 11 }), 1);
  const map = await mapOf(
    store,
    v.parse(MapRequest, { since_ms: NOW - 60_000 }),
    NOW,
    true,
  );
  assert.deepEqual([map.sampled, map.window_ms], [true, 60_000]);
});

Deno.test("mapOf() bounds the number of nodes", async () => {
  const { traces, store } = recorded();
  traces.capacity = 30_000;
  for (let n = 0; n < 30_000; n++) traces.add(call(n, { function_id: `f${n}` }));

  const map = await mapOf(store, v.parse(MapRequest, {}), NOW, false);

  assert.equal((map.nodes as unknown[]).length, 5_000);
  assert.equal(map.sampled, true);
});
