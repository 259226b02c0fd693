/**
 * The map of calls: who called what, and who ran it.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { recorded } from "../../../tests/fakes/recorded.ts";
import { callSpan, idOf, NOON, storedSpan } from "../../../tests/fakes/spans.ts";
import * as v from "../../kit/schema.ts";
import { mapOf, MapRequest } from "./map.ts";

const NOW = NOON + 1_000;

function call(n: number, changes: object) {
  return callSpan({
    span_id: idOf(n, 16),
    start_ms: NOON + n,
    end_ms: NOON + n + n,
    ...changes,
  });
}

/** A request whose handler uses state, a command, and a missing function. */
function setup() {
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
  const map = await mapOf(setup().store, v.parse(MapRequest, {}), NOW, false);

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
  const { store } = setup();
  const edges = async (query: object) => {
    const map = await mapOf(store, v.parse(MapRequest, query), NOW, true);
    return (map.edges as unknown[]).length;
  };

  assert.equal(await edges({ trace_id: idOf(9, 32).toUpperCase() }), 2);
  assert.equal(await edges({ trace_id: "none" }), 0);
  assert.equal(await edges({ since_ms: NOON + 11 }), 1);
  const map = await mapOf(store, v.parse(MapRequest, { since_ms: NOW - 60_000 }), NOW, true);
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
