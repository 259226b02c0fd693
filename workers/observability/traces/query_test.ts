/**
 * Spans by filter, as trees, in groups and as a map of calls.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { CallSpan } from "../../../engine/ports/telemetry.ts";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import {
  callSpan,
  ENDLESS,
  found,
  HASTY,
  idOf,
  NOON,
  recorded,
  storedSpan,
} from "../../../tests/fakes/spans.ts";
import { Random } from "../../../tests/fakes/random.ts";
import * as v from "../../kit/schema.ts";
import { spanOfCall, type StoredSpan } from "./span.ts";
import {
  GroupRequest,
  groupSpans,
  ListRequest,
  listSpans,
  mapOf,
  MapRequest,
  TRACE_SCAN_MAX,
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

function names(query: unknown): string[] {
  const { spans } = found(
    listSpans(setup().store, v.parse(ListRequest, query), false, NOW, ENDLESS),
  );
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
  Deno.test(`listSpans() with ${JSON.stringify(query).slice(0, 80)} returns ${expected}`, () => {
    assert.deepEqual(names(query), expected);
  });
}

Deno.test("listSpans() counts all matches and shows payloads of given traces to operators", () => {
  const { store } = setup();

  const all = found(listSpans(store, v.parse(ListRequest, { limit: 1 }), true, NOW, ENDLESS));
  const one = found(
    listSpans(store, v.parse(ListRequest, { trace_id: idOf(1, 32) }), true, NOW, ENDLESS),
  );

  assert.deepEqual([all.total, all.offset, all.limit, all.storage], [3, 0, 1, "memory"]);
  assert.match(JSON.stringify(one), /engine\.request/);
  assert.doesNotMatch(
    JSON.stringify(
      found(listSpans(store, v.parse(ListRequest, { trace_id: idOf(1, 32) }), false, NOW, ENDLESS)),
    ),
    /engine\.request"/,
  );
});

type Node = JsonObject & { children: Node[] };
const shape = (nodes: Node[]): unknown[] => nodes.map((n) => [n.name, shape(n.children)]);
const tree = (store: Parameters<typeof treeOf>[0], id: string) =>
  shape((found(treeOf(store, id, false, HASTY))).roots as Node[]);

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

  const text = JSON.stringify(found(treeOf(store, idOf(1, 32), false, ENDLESS)));

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

Deno.test("groupSpans() groups by the value of an attribute, the latest group first", () => {
  const query = v.parse(GroupRequest, {
    attribute: "engine.worker",
    label_attribute: "engine.function_id",
  });

  const { groups } = found(groupSpans(setup().store, query, NOW, ENDLESS));

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

Deno.test("groupSpans() skips spans without the attribute and respects its limit", () => {
  const { store } = setup();
  const count = (query: object) => {
    const { groups } = found(groupSpans(store, v.parse(GroupRequest, query), NOW, ENDLESS));
    return (groups as unknown[]).length;
  };

  assert.equal(count({ attribute: "none" }), 0);
  assert.equal(count({ attribute: "engine.function_id" }), 3);
  assert.equal(count({ attribute: "engine.function_id", include_internal: true }), 4);
  assert.equal(count({ attribute: "engine.function_id", limit: 2 }), 2);
  assert.equal(count({ attribute: "engine.function_id", since_ms: NOON + 4 }), 1);
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

Deno.test("mapOf() has nodes for requests, commands, workers, functions and state", () => {
  const map = found(mapOf(setupMap().store, v.parse(MapRequest, {}), NOW, false, ENDLESS));

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

Deno.test("mapOf() computes quantiles by nearest rank", () => {
  const { traces, store } = recorded();
  for (let n = 1; n <= 100; n++) traces.add(call(n, {}));

  const { edges } = found(mapOf(store, v.parse(MapRequest, null), NOW, false, ENDLESS));

  const [edge] = edges as JsonObject[];
  assert.deepEqual([edge!.calls, edge!.p50_ms, edge!.p99_ms], [100, 50, 99]);
});

Deno.test("mapOf() filters by trace or time, and reports sampling", () => {
  const { store } = setupMap();
  const edges = (query: object) => {
    const map = found(mapOf(store, v.parse(MapRequest, query), NOW, true, ENDLESS));
    return (map.edges as unknown[]).length;
  };

  assert.equal(edges({ trace_id: idOf(9, 32).toUpperCase() }), 2);
  assert.equal(edges({ trace_id: "none" }), 0);
  assert.equal(edges({ since_ms: NOON + 11 }), 1);
  const map = found(mapOf(
    store,
    v.parse(MapRequest, { since_ms: NOW - 60_000 }),
    NOW,
    true,
    ENDLESS,
  ));
  assert.deepEqual([map.sampled, map.window_ms], [true, 60_000]);
});

Deno.test("mapOf() bounds the number of nodes", () => {
  const { traces, store } = recorded();
  traces.capacity = 30_000;
  for (let n = 0; n < 30_000; n++) traces.add(call(n, { function_id: `f${n}` }));

  const map = found(mapOf(store, v.parse(MapRequest, {}), NOW, false, ENDLESS));

  assert.equal((map.nodes as unknown[]).length, 5_000);
  assert.equal(map.sampled, true);
});

/** What `engine::traces::list` has to return: all spans as objects, filtered and sorted as such. */
function plainList(spans: readonly StoredSpan[], query: JsonObject): string[] {
  const { sort_by = "start_time", sort_order = "asc", offset = 0, limit = 100, name = "" } = query;
  const sign = sort_order === "asc" ? 1 : -1;
  const keys: Record<string, (span: StoredSpan) => number | string> = {
    start_time: ({ start_ms }) => start_ms,
    duration: ({ start_ms, end_ms }) => Math.max(0, (end_ms ?? NOW) - start_ms),
    name: (span) => span.name,
    service_name: (span) => span.service_name,
  };
  const key = keys[sort_by as string]!;
  return spans.toSorted((a, b) => b.start_ms - a.start_ms).slice(0, TRACE_SCAN_MAX)
    .filter((span) => span.name.includes(name as string))
    .toSorted((a, b) => {
      const [left, right] = [key(a), key(b)];
      const isText = typeof left === "string";
      return sign * (isText ? left.localeCompare(right as string) : left - (right as number));
    })
    .slice(offset as number, (offset as number) + (limit as number))
    .map(({ span_id }) => span_id);
}

Deno.test("listSpans() returns what sorting all spans would, with many equal ones", () => {
  const random = new Random(7);
  const { traces, ring, store } = recorded();
  ring.resize(1e9);
  traces.capacity = TRACE_SCAN_MAX;
  const calls: CallSpan[] = [];
  const others: StoredSpan[] = [];
  for (let n = 0; n < TRACE_SCAN_MAX; n++) {
    const start_ms = NOON + n / 10 + random.below(30);
    calls.push(callSpan({
      span_id: idOf(n, 16),
      function_id: `f${random.below(9)}`,
      start_ms,
      end_ms: start_ms + random.below(20),
    }));
    if (n % 4 > 0) continue;
    others.push(storedSpan({ span_id: idOf(n + 50_000, 16), name: `f${n % 5}`, start_ms }));
  }
  traces.add(...calls);
  for (const span of others) ring.add(span);
  const all = [...calls.map((call) => spanOfCall(call, null)), ...others.toReversed()];

  for (const sort_by of [undefined, "start_time", "duration", "name", "service_name"]) {
    for (const sort_order of ["asc", "desc"]) {
      for (const page of [{}, { offset: 19_000, limit: 900 }, { offset: 50, name: "f3" }]) {
        const query = { ...page, ...sort_by !== undefined && { sort_by }, sort_order };
        const parsed = v.parse(ListRequest, query);
        const { spans } = found(listSpans(store, parsed, false, NOW, ENDLESS));
        const ids = (spans as JsonObject[]).map(({ span_id }) => span_id);
        assert.deepEqual(ids, plainList(all, query), JSON.stringify(query));
      }
    }
  }
});

Deno.test("listSpans(), treeOf() and groupSpans() end a page before it has too many bytes", () => {
  const { ring, store } = recorded();
  ring.resize(1e9);
  const big = "x".repeat(1_000_000);
  for (let n = 0; n < 20; n++) {
    ring.add(storedSpan({ span_id: idOf(n, 16), start_ms: NOON + n }, { big: `${n}${big}` }));
  }
  ring.add(storedSpan({ trace_id: idOf(2, 32), start_ms: NOON + 50 }, { big: big.repeat(9) }));

  const list = found(listSpans(store, v.parse(ListRequest, {}), false, NOW, HASTY));
  const last = { sort_order: "desc" };
  const huge = found(listSpans(store, v.parse(ListRequest, last), false, NOW, HASTY));
  const whole = found(treeOf(store, idOf(1, 32), false, HASTY));
  const groups = found(groupSpans(store, v.parse(GroupRequest, { attribute: "big" }), NOW, HASTY));

  const count = (list.spans as unknown[]).length;
  assert.ok(count > 1 && count < 6, `${count} spans`);
  assert.deepEqual([list.total, list.is_cut], [21, true]);
  assert.deepEqual([(huge.spans as unknown[]).length, huge.is_cut], [1, true]);
  assert.deepEqual([(whole.roots as unknown[]).length, whole.is_cut], [count, true]);
  assert.deepEqual([(groups.groups as unknown[]).length, groups.is_cut], [1, true]);
  const rest = found(listSpans(store, v.parse(ListRequest, { offset: 20 }), false, NOW, HASTY));
  assert.equal("is_cut" in rest, false);
});
