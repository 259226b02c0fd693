/**
 * @module
 */
import assert from "node:assert/strict";
import type { WorkerStatus } from "../../../../../engine/ports/supervision.ts";
import { builtinStatus, replicaStatus, workerStatus } from "../../../../../tests/fakes/samples.ts";
import {
  type ConnectedWorker,
  gaugeIds,
  isolationText,
  matchesSearch,
  stateTone,
  upCount,
  workerRows,
} from "./worker_rows.ts";

function connection(change: Partial<ConnectedWorker> = {}): ConnectedWorker {
  return {
    id: "connection-1",
    name: "math",
    namespace: null,
    description: null,
    version: "0.1.0",
    runtime: "deno",
    os: "linux",
    status: "connected",
    suspect: false,
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

Deno.test("workers of other engines have rows of their own, without those of the engine", () => {
  const one = connection({ id: "c1", name: "shop" });
  const far = connection({ id: "c2", name: "shop", engine: "b" });
  const builtin = connection({ id: "c3", name: "engine-state", engine: "b", internal: true });

  const rows = workerRows([], [one, far, builtin]);

  assert.deepEqual(rows.map(({ name, engine, ids }) => [name, engine, ids]), [
    ["shop", null, ["c1"]],
    ["shop", "b", ["c2"]],
  ]);
  assert.notEqual(rows[0]!.key, rows[1]!.key);
});

Deno.test("workerRows() assigns connections to a managed worker by id", () => {
  const connections = [connection({ id: "a" }), connection({ id: "b", active_invocations: 4 })];

  const [row, ...others] = workerRows([managed(["a", "b"])], connections);

  assert.equal(others.length, 0);
  assert.deepEqual([row?.kind, row?.in_flight, row?.runtime, row?.replicas], [
    "managed",
    7,
    "deno",
    2,
  ]);
  assert.deepEqual(row?.ids, ["a", "b"]);
});

Deno.test("workerRows() separates an external worker of the same name", () => {
  const rows = workerRows([managed(["a"])], [
    connection({ id: "a" }),
    connection({ id: "stranger" }),
  ]);

  assert.deepEqual(rows.map(({ key, kind }) => [key, kind]), [["math", "managed"], [
    "math~",
    "external",
  ]]);
});

Deno.test("workerRows() assigns local connections to a built-in worker by name", () => {
  const inside = connection({ id: "in", name: "engine-state", ip_address: null });
  const outside = connection({ id: "out", name: "engine-state" });

  const rows = workerRows([builtinStatus()], [inside, outside]);

  assert.deepEqual(rows.map(({ kind, ids }) => [kind, ids]), [["builtin", ["in"]], [
    "external",
    ["out"],
  ]]);
});

Deno.test("workerRows() groups external connections by name, since the first one", () => {
  const connections = [
    connection({ id: "a", name: "shop", connected_at_ms: 50, status: "draining" }),
    connection({ id: "b", name: "shop", connected_at_ms: 70 }),
  ];

  const [row] = workerRows([], connections);

  assert.deepEqual([row?.replicas, row?.started_at_ms, row?.state], [2, 50, "connected"]);
  assert.equal(workerRows([], connections.slice(0, 1))[0]?.state, "draining");
});

Deno.test("workerRows() names a connection without a name by its id", () => {
  assert.equal(workerRows([], [connection({ id: "x1", name: null })])[0]?.name, "x1");
});

Deno.test("workerRows() are sorted by name", () => {
  const names = ["zeta", "alpha", "Beta"];

  const rows = workerRows([], names.map((name) => connection({ id: name, name })));

  assert.deepEqual(rows.map(({ name }) => name), ["Beta", "alpha", "zeta"]);
});

Deno.test("workerRows() of no workers are empty", () => assert.deepEqual(workerRows([], []), []));

Deno.test("workerRows() joins a thousand workers with their connections", () => {
  const ids = Array.from({ length: 1_000 }, (_, at) => `w${at}`);

  const rows = workerRows(
    ids.map((id) => managed([id], { name: id })),
    ids.map((id) => connection({ id, name: id })),
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
  Deno.test(`stateTone() of ${state} is ${tone}`, () => assert.equal(stateTone(state), tone));
}

Deno.test("isolationText() names the isolation", () => {
  const [micro] = workerRows([managed([], { isolation: "microvm" })], []);
  const [builtin] = workerRows([builtinStatus()], []);
  const [external] = workerRows([], [connection()]);

  assert.deepEqual([micro, builtin, external].map((row) => isolationText(row!)), [
    "microVM",
    "built in",
    "external",
  ]);
});

Deno.test("matchesSearch() needs every word", () => {
  const [row] = workerRows([managed([], { reason: "no module named requests" })], []);

  for (const found of ["", "MATH", "process ready", "requests math"]) {
    assert.ok(matchesSearch(row!, found), found);
  }
  assert.ok(!matchesSearch(row!, "math microvm"));
});

Deno.test("gaugeIds() of the engine include its process", () => {
  const [engine] = workerRows([builtinStatus({ name: "engine" })], []);
  const [state] = workerRows([builtinStatus()], []);

  assert.deepEqual(gaugeIds(engine!), ["(engine)"]);
  assert.deepEqual(gaugeIds(state!), []);
});

Deno.test("workerRows() shows who does not answer, supervised or not", () => {
  const [one, two] = workerRows(
    [managed(["a"], { name: "one", suspect: true })],
    [
      connection({ id: "a", suspect: true }),
      connection({ id: "b", name: "two", suspect: true }),
    ],
  );

  assert.deepEqual([one?.state, two?.state], ["suspect", "suspect"]);
  assert.equal(
    two?.reason,
    "It does not answer; calls go to other workers that offer its functions",
  );
  assert.equal(stateTone("suspect"), "warn");
});

Deno.test("workerRows() shows a worker of which one connection answers as connected", () => {
  const [row] = workerRows([], [connection({ id: "a", suspect: true }), connection({ id: "b" })]);

  assert.equal(row?.state, "connected");
  assert.match(row!.reason!, /^1 of 2 do not answer/);
});

Deno.test("upCount() leaves out built-in workers that the keeper of the state runs", () => {
  const rows = workerRows([
    builtinStatus({ name: "engine-http" }),
    builtinStatus({ name: "engine-queue", state: "queued", reason: "runs at the keeper" }),
    builtinStatus({ name: "engine-cron", state: "queued", reason: null }),
    workerStatus({ name: "math", state: "failed" }),
    workerStatus({ name: "shop", state: "queued" }),
  ], []);

  assert.deepEqual(upCount(rows), { up: 1, all: 4, elsewhere: 1 });
});
