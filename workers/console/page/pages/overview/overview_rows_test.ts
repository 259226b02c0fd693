/**
 * @module
 */
import assert from "node:assert/strict";
import { workerStatus } from "../../../../../tests/fakes/samples.ts";
import type { ClusterLogView, ClusterView } from "../../../../../engine/ports/directory.ts";
import type { ConfigurationRow } from "../configuration/configuration_rows.ts";
import type { Alert } from "../metrics/alerts.tsx";
import type { QueueRow } from "../queues/queue_rows.ts";
import type { TriggerItem } from "../triggers/trigger_rows.ts";
import { workerRows } from "../workers/worker_rows.ts";
import {
  changesOf,
  failedPercent,
  findingsOf,
  type FunctionLoad,
  type OverviewInput,
  queuesInOrder,
  slowestOf,
  wellText,
} from "./overview_rows.ts";

const QUIET: OverviewInput = {
  workers: [],
  alerts: [],
  queues: [],
  triggers: [],
  configurations: [],
  functions: [],
  cluster: null,
};

type Status = Parameters<typeof workerStatus>[0];
const workers = (...fields: Status[]) => workerRows(fields.map((each) => workerStatus(each)), []);

const load = (fields: Partial<FunctionLoad> = {}): FunctionLoad => ({
  function_id: "shop::buy",
  namespace: "default",
  calls_per_s: 10,
  errors_per_s: 0,
  p50_ms: 1,
  p99_ms: 5,
  ...fields,
});

const queue = (fields: Partial<QueueRow> = {}): QueueRow => ({
  name: "mails",
  waiting: 0,
  running: 0,
  delayed: 0,
  dead: 0,
  is_counting: false,
  enqueued_total: 0,
  done_total: 0,
  failed_total: 0,
  oldest_age_ms: null,
  paused: false,
  config: {},
  ...fields,
});

const trigger = (fields: Partial<TriggerItem> = {}): TriggerItem => ({
  id: "t",
  trigger_type: "webhook",
  function_id: "shop::buy",
  worker_name: "shop",
  config: {},
  config_summary: "",
  ...fields,
});

const configuration = (fields: Partial<ConfigurationRow> = {}): ConfigurationRow => ({
  id: "orders",
  name: "Orders",
  description: null,
  schema: true,
  value: {},
  has_value: true,
  has_secrets: false,
  metadata: null,
  version: 1,
  updated_at_ms: 5,
  problem: null,
  ...fields,
});

const texts = (input: Partial<OverviewInput>) =>
  findingsOf({ ...QUIET, ...input }).map(({ tone, text, to }) => `${tone} ${text} ${to}`);

Deno.test("findingsOf() a system that is well is empty", () => {
  const input = {
    workers: workers({ name: "shop" }, { name: "off", state: "stopped" }),
    queues: [queue({ waiting: 9 })],
    triggers: [trigger({ status: "active" }), trigger()],
    configurations: [configuration()],
    functions: [load()],
  };

  assert.deepEqual(texts(input), []);
});

Deno.test("findingsOf() has a cluster without NATS, without its log or without a keeper", () => {
  const log = { kind: "postgres", problem: null } as ClusterLogView;
  const view = { cluster: "shop", connected: true, keeper: "1", log, engines: [] } as ClusterView;
  const found = (change: Partial<ClusterView>) => texts({ cluster: { ...view, ...change } });

  assert.deepEqual(found({}), []);
  assert.deepEqual(found({ cluster: null, connected: false, keeper: null }), []);
  assert.deepEqual(found({ keeper: null }), ["bad No engine keeps the state /cluster"]);
  assert.deepEqual(found({ keeper: null, log: null }), []);
  assert.deepEqual(found({ log: { ...log, problem: "disk full" } }), [
    "bad The log of the state cannot be used /cluster",
  ]);
  assert.deepEqual(found({ connected: false, keeper: null }), [
    "bad NATS cannot be reached /cluster",
  ]);
});

Deno.test("findingsOf() has workers that failed, wait or do not answer", () => {
  const found = texts({
    workers: workers(
      { name: "a", state: "waiting" },
      { name: "b", state: "failed", reason: "exit code 1" },
      { name: "c", suspect: true },
    ),
  });

  assert.deepEqual(found, [
    "bad b has failed /workers/b",
    "warn a waits before its next start /workers/a",
    "warn c does not answer /workers/c",
  ]);
});

Deno.test("findingsOf() has a worker whose new version did not start", () => {
  const reason = "Reload failed: It ended with exit code 1; the version before keeps running";

  const found = texts({
    workers: workers({ name: "a", reason }, { name: "b", reason: "A new version starts" }),
  });

  assert.deepEqual(found, ["warn a serves the version before its last edit /workers/a"]);
});

Deno.test("findingsOf() has alerts that fire, and configurations that are not valid", () => {
  const alert = { name: "slow", state: "firing" } as Alert;

  const found = texts({
    alerts: [alert, { ...alert, name: "calm", state: "ok" }],
    configurations: [configuration({ problem: "port: expected a number" })],
  });

  assert.deepEqual(found, [
    "bad The alert slow fires /metrics?tab=alerts",
    "bad The configuration orders is not valid /configuration/orders",
  ]);
});

Deno.test("findingsOf() has functions of which a tenth of enough calls fails", () => {
  const found = texts({
    functions: [
      load({ function_id: "a", errors_per_s: 1 }),
      load({ function_id: "b", errors_per_s: 0.9 }),
      load({ function_id: "rare", calls_per_s: 0.05, errors_per_s: 0.05 }),
    ],
  });

  assert.deepEqual(found, ["warn a fails in 10 % of its calls /functions/a?tab=metrics"]);
});

Deno.test("findingsOf() has dead letters and paused queues", () => {
  const found = texts({ queues: [queue({ dead: 1 }), queue({ name: "jobs", paused: true })] });

  assert.deepEqual(found, [
    "warn mails has 1 dead letter /queues/mails?tab=dead",
    "warn jobs is paused /queues/jobs",
  ]);
});

Deno.test("findingsOf() has triggers that do not fire, once per type", () => {
  const parked = { status: "parked", reason: "No worker provides webhook" } as const;

  const [found, ...more] = findingsOf({
    ...QUIET,
    triggers: [trigger(parked), trigger({ ...parked, id: "u" }), trigger({ id: "v" })],
  });

  assert.deepEqual([found!.text, found!.detail, found!.to, more], [
    "2 webhook triggers do not fire",
    "No worker provides webhook",
    "/triggers?type=webhook",
    [],
  ]);
  assert.deepEqual(texts({ triggers: [trigger(parked)] }), [
    "warn A webhook trigger of shop::buy does not fire /triggers?type=webhook",
  ]);
});

Deno.test("wellText() says what was looked at", () => {
  const all = { ...QUIET, workers: workers({}, {}), queues: [queue()], triggers: [trigger()] };

  assert.equal(
    wellText(all),
    "All 2 workers are up, no alert fires, no job is dead and every trigger is active.",
  );
  assert.equal(
    wellText({ ...QUIET, workers: workers({}) }),
    "Its worker is up and no alert fires.",
  );
  assert.equal(
    wellText({ ...QUIET, workers: workers({}, { state: "stopped" }, { state: "starting" }) }),
    "1 of 3 workers are up and no alert fires.",
  );
  const waits = { kind: "builtin", path: null, state: "queued", reason: "elsewhere" } as const;
  assert.equal(
    wellText({ ...QUIET, workers: workers({}, {}, { name: "engine-queue", ...waits }) }),
    "All 2 workers are up, 1 more runs at the engine that keeps the state and no alert fires.",
  );
});

Deno.test("slowestOf() has the functions that were called, by their p99", () => {
  const ids = slowestOf([
    load({ function_id: "quick", p99_ms: 1 }),
    load({ function_id: "slow", p99_ms: 90 }),
    load({ function_id: "idle", calls_per_s: 0, p99_ms: 900 }),
    load({ function_id: "unknown", p99_ms: null }),
  ]).map(({ function_id }) => function_id);

  assert.deepEqual(ids, ["slow", "quick"]);
  assert.equal(slowestOf(Array.from({ length: 20 }, () => load())).length, 6);
});

Deno.test("failedPercent() is between 0 and 100", () => {
  const percents = [[10, 1], [0, 0], [1, 2]].map(([calls_per_s, errors_per_s]) => {
    return failedPercent(load({ calls_per_s: calls_per_s!, errors_per_s: errors_per_s! }));
  });

  assert.deepEqual(percents, [10, 0, 100]);
});

Deno.test("queuesInOrder() begins with dead letters, then the longest", () => {
  const names = queuesInOrder([
    queue({ name: "a" }),
    queue({ name: "b", waiting: 9 }),
    queue({ name: "c", dead: 1 }),
  ]).map(({ name }) => name);

  assert.deepEqual(names, ["c", "b", "a"]);
});

Deno.test("changesOf() has starts, failures and edits, the newest first", () => {
  const builtin = { kind: "builtin", path: null } as const;
  const changes = changesOf(
    workers(
      { name: "engine", started_at_ms: 1, ...builtin },
      { name: "engine-state", started_at_ms: 2, ...builtin },
      { name: "a", started_at_ms: 30, launch: 1 },
      { name: "b", started_at_ms: 40, launch: 3 },
      { name: "c", state: "failed", since_ms: 50, started_at_ms: null },
    ),
    [configuration({ version: 4, updated_at_ms: 45 }), configuration({ id: "new" })],
  );

  assert.deepEqual(changes.map(({ name, what }) => `${name} ${what}`), [
    "c failed",
    "orders was set to version 4",
    "b was deployed or restarted",
    "a started",
    "new was registered",
    "engine started",
  ]);
});
