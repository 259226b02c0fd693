/**
 * Rows of workers from what the engine supervises and which lines there are.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { WorkerStatus } from "../../../../../engine/ports/supervision.ts";
import {
  builtinStatus,
  replicaStatus,
  workerStatus,
} from "../../../../../tests/fakes/worker_status.ts";
import {
  type ConnectedWorker,
  fitsSearch,
  gaugeIds,
  isolationWords,
  toneOf,
  workerRows,
} from "./worker_rows.ts";

function line(change: Partial<ConnectedWorker> = {}): ConnectedWorker {
  return {
    id: "line-1",
    name: "math",
    namespace: null,
    description: null,
    version: "0.1.0",
    runtime: "deno",
    os: "linux",
    status: "connected",
    function_count: 2,
    connected_at_ms: 100,
    active_invocations: 3,
    isolation: null,
    ip_address: "127.0.0.1",
    ...change,
  };
}

function managed(worker_ids: readonly string[], change: Partial<WorkerStatus> = {}): WorkerStatus {
  const replicas = worker_ids.map((id, at) => replicaStatus({ number: at + 1, worker_ids: [id] }));
  return workerStatus({ replicas, ...change });
}

Deno.test("a managed worker takes its lines by id", () => {
  const lines = [line({ id: "a" }), line({ id: "b", active_invocations: 4 })];

  const [row, ...others] = workerRows([managed(["a", "b"])], lines);

  assert.equal(others.length, 0);
  assert.deepEqual([row?.kind, row?.in_flight, row?.runtime, row?.replicas], [
    "managed",
    7,
    "deno",
    2,
  ]);
  assert.deepEqual(row?.ids, ["a", "b"]);
});

Deno.test("a worker of the same name that the engine does not run is a row of its own", () => {
  const rows = workerRows([managed(["a"])], [line({ id: "a" }), line({ id: "stranger" })]);

  assert.deepEqual(rows.map(({ key, kind }) => [key, kind]), [["math", "managed"], [
    "math~",
    "external",
  ]]);
});

Deno.test("a built-in worker takes the line of its name inside the engine, not one from outside", () => {
  const inside = line({ id: "in", name: "engine-state", ip_address: null });
  const outside = line({ id: "out", name: "engine-state" });

  const rows = workerRows([builtinStatus()], [inside, outside]);

  assert.deepEqual(rows.map(({ kind, ids }) => [kind, ids]), [["builtin", ["in"]], [
    "external",
    ["out"],
  ]]);
});

Deno.test("lines of one external worker are one row, up since the first of them", () => {
  const lines = [
    line({ id: "a", name: "shop", connected_at_ms: 50, status: "draining" }),
    line({ id: "b", name: "shop", connected_at_ms: 70 }),
  ];

  const [row] = workerRows([], lines);

  assert.deepEqual([row?.replicas, row?.started_at_ms, row?.state], [2, 50, "connected"]);
  assert.equal(workerRows([], lines.slice(0, 1))[0]?.state, "draining");
});

Deno.test("a line without a name is called by its id", () => {
  assert.equal(workerRows([], [line({ id: "x1", name: null })])[0]?.name, "x1");
});

Deno.test("rows are in the order of their names", () => {
  const names = ["zeta", "alpha", "Beta"];

  const rows = workerRows([], names.map((name) => line({ id: name, name })));

  assert.deepEqual(rows.map(({ name }) => name), ["Beta", "alpha", "zeta"]);
});

Deno.test("nobody at all gives no rows", () => assert.deepEqual(workerRows([], []), []));

Deno.test("a thousand workers with their lines are put together", () => {
  const ids = Array.from({ length: 1_000 }, (_, at) => `w${at}`);

  const rows = workerRows(
    ids.map((id) => managed([id], { name: id })),
    ids.map((id) => line({ id, name: id })),
  );

  assert.equal(rows.length, 1_000);
  assert.ok(rows.every(({ ids }) => ids.length === 1));
});

for (
  const [state, tone] of [
    ["ready", "ok"],
    ["connected", "ok"],
    ["failed", "bad"],
    ["waiting", "warn"],
    ["draining", "warn"],
    ["stopped", "neutral"],
    ["installing", "accent"],
  ] as const
) {
  Deno.test(`${state} looks ${tone}`, () => assert.equal(toneOf(state), tone));
}

Deno.test("how a worker is kept apart is said in words", () => {
  const [micro] = workerRows([managed([], { isolation: "microvm" })], []);
  const [builtin] = workerRows([builtinStatus()], []);
  const [external] = workerRows([], [line()]);

  assert.deepEqual([micro, builtin, external].map((row) => isolationWords(row!)), [
    "microVM",
    "built in",
    "external",
  ]);
});

Deno.test("a search needs every word", () => {
  const [row] = workerRows([managed([], { reason: "no module named requests" })], []);

  for (const found of ["", "MATH", "process ready", "requests math"]) {
    assert.ok(fitsSearch(row!, found), found);
  }
  assert.ok(!fitsSearch(row!, "math microvm"));
});

Deno.test("the engine's own row has the gauges of its process besides", () => {
  const [engine] = workerRows([builtinStatus({ name: "engine" })], []);
  const [state] = workerRows([builtinStatus()], []);

  assert.deepEqual(gaugeIds(engine!), ["(engine)"]);
  assert.deepEqual(gaugeIds(state!), []);
});
