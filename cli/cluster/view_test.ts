import assert from "node:assert/strict";
import type { ClusterView } from "../../engine/mod.ts";
import { type FarWorker, renderCluster, renderFarWorkers } from "./view.ts";

const LOG = {
  kind: "jetstream",
  copies: 3,
  require_sync: true,
  applied: 12,
  behind: 0,
  seen_ms_ago: 100,
  bytes: 2_048,
  problem: null,
} as const;

const LINK = {
  age_ms: 65_000,
  rtt_ms: null,
  calls_out: 10,
  calls_in: 3,
  bytes_out: 5 * 1024 * 1024,
  bytes_in: 2_048,
  queued_bytes: 0,
};

const VIEW: ClusterView = {
  cluster: "shop",
  connected: true,
  keeper: "22",
  takeovers: 0,
  log: LOG,
  link_ends: { gone: 2, lost: 0, away: 1 },
  engines: [
    { life: "11", name: "a", version: "1.0.0", state: "here", keeper: false, link: null, log: LOG },
    {
      ...{ life: "22", name: "b", version: "1.0.1", state: "draining", keeper: true, link: LINK },
      log: { ...LOG, applied: 9, behind: 3, seen_ms_ago: 7_000 },
    },
  ],
};

Deno.test("a cluster is shown with its engines, links, keeper, log and ends of links", () => {
  assert.deepEqual(renderCluster(VIEW), [
    "Cluster shop: 2 engines, connected to NATS",
    "",
    "ENGINE      STATE     AGE  RTT  CALLS OUT/IN  BYTES OUT/IN  QUEUED  VERSION",
    "a           here      -    -    -             -             -       1.0.0",
    "b (keeper)  draining  1m   -    10/3          5 MiB/2 KiB   -       1.0.1",
    "",
    "Keeper: b, life 22",
    "Log: JetStream, 3 copies, refused unless it is safe on disk, 2 KiB since its snapshot",
    "Applied: a message 12, all; b message 9, 3 behind, not seen for 7s",
    "Links that ended: gone 2, away 1",
  ]);
});

for (
  const [what, change, expected] of [
    ["no keeper", { keeper: null }, /^Keeper: none; state, queues and cron wait for one$/m],
    ["a keeper without a link", { keeper: "33" }, /^Keeper: an engine without a link/m],
    ["no log", { log: null }, /^State: each engine keeps its own/m],
    ["no NATS", { connected: false }, /NATS cannot be reached: this engine works alone/],
    ["Postgres", { log: { ...LOG, kind: "postgres", copies: null } }, /^Log: Postgres, refused/m],
    ["an unsafe log", { log: { ...LOG, require_sync: false } }, /not checked for sync/],
    [
      "NATS away",
      { connected: false, problem: "Authorization Violation" },
      /cannot be reached \(Auth.*\): this/,
    ],
    ["a log away", { log: { ...LOG, problem: "no answer" } }, /^Problem: no answer$/m],
  ] as const
) {
  Deno.test(`a cluster with ${what} says so`, () => {
    assert.match(renderCluster({ ...VIEW, ...change }).join("\n"), expected);
  });
}

Deno.test("an engine that is alone is one line", () => {
  const alone = { cluster: null, connected: false, engines: [] };
  assert.deepEqual(renderCluster(alone), ["This engine is alone; see docs/how-to/cluster.md"]);
});

Deno.test("workers of other engines are a table, by engine and name", () => {
  const one: FarWorker = {
    name: "shop",
    id: "i1",
    engine: "b",
    status: "connected",
    runtime: "deno",
    function_count: 3,
    active_invocations: 1,
    connected_at_ms: 1_000,
  };
  const other = { ...one, name: null, engine: "a", suspect: true, runtime: null };

  assert.deepEqual(renderFarWorkers([one, other], 6_000), [
    "",
    "AT OTHER ENGINES  ENGINE  STATE      SINCE  FUNCS  RUNNING  RUNTIME",
    "i1                a       suspect    5s     3      1        -",
    "shop              b       connected  5s     3      1        deno",
  ]);
  assert.deepEqual(renderFarWorkers([], 0), []);
});
