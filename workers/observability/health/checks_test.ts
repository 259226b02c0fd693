import assert from "node:assert/strict";
import type { FunctionView, TriggerView } from "../../../engine/ports/directory.ts";
import type { Store } from "../../../engine/ports/store.ts";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { MemoryStore } from "../../../engine/store/memory_store.ts";
import {
  FakeMetrics,
  metricPoint,
  supervisedWorker,
  workerView,
} from "../../../tests/fakes/fake_metrics.ts";
import type { Alert } from "../metrics/alerts.ts";
import { RecentDeltas } from "../metrics/meters.ts";
import { FUNCTIONS_CHECKED_MAX, type HealthCheck, measureHealth } from "./checks.ts";
import type { DiskState } from "./data_disk.ts";

function setup() {
  const at = new FakeMetrics();
  const recent = new RecentDeltas();
  at.sampler.listen((second) => recent.add(second));
  let lags: (number | null)[] = [0, 3, 1];
  const memory = new MemoryStore();
  let alerts: Alert[] = [];
  let disk: DiskState = { free_bytes: 1e9, problem: null };
  const measure = async (store: Store = memory): Promise<Map<string, HealthCheck>> => {
    const checks = await measureHealth({
      clock: at.clock,
      directory: at.directory,
      store,
      disk: { read: () => Promise.resolve(disk) },
      workers: at.look,
      bounds_ms: at.meters.bounds_ms,
      engine: () => ({ event_loop_lag_ms: lags }) as never,
      recent: () => recent.read(),
      alerts: () => alerts,
    });
    return new Map(checks.map((check) => [check.name, check]));
  };
  return {
    at,
    measure,
    memory,
    withDisk: (state: DiskState) => disk = state,
    withAlerts: (list: Alert[]) => alerts = list,
    late: (values: number[]) => lags = values,
    [Symbol.dispose]: () => at[Symbol.dispose](),
  };
}

const view = (function_id: string, more: Partial<FunctionView> = {}): FunctionView => ({
  function_id,
  namespace: "default",
  worker_id: "w1",
  worker_name: "math",
  internal: false,
  builtin: false,
  worker_ids: ["w1"],
  ...more,
});

Deno.test("All checks of an idle engine are ok, without a remedy", async () => {
  using it = setup();

  const checks = await it.measure();

  assert.deepEqual([...checks.keys()], [
    "event loop",
    "event loops of workers",
    "deadlines",
    "threads",
    "writes",
    "slow functions",
    "schemas",
    "function names",
    "triggers",
    "routes",
    "clocks",
    "disk",
    "disk space",
    "store",
    "records",
    "suspect workers",
    "workers",
    "restarts",
    "alerts",
  ]);
  for (const check of checks.values()) {
    assert.deepEqual([check.status, check.remedy], ["ok", null], check.name);
    assert.match(check.message, /^[A-Z\d].*[^.]$/);
  }
});

for (const [lag, status] of [[99, "ok"], [100, "warn"], [999, "warn"], [1_000, "fail"]] as const) {
  Deno.test(`An event loop that was ${lag} ms late is ${status}`, async () => {
    using it = setup();
    it.late([1, lag, 2, lag]);

    const check = (await it.measure()).get("event loop")!;
    assert.deepEqual([check.status, check.measured], [status, lag]);
    assert.equal(check.remedy === null, status === "ok");
  });
}

for (const [lag, status] of [[900, "ok"], [1_000, "warn"]] as const) {
  Deno.test(`A single second in which the event loop was ${lag} ms late is ${status}`, async () => {
    using it = setup();
    it.late([1, lag, 2]);

    const check = (await it.measure()).get("event loop")!;
    assert.deepEqual([check.status, check.measured], [status, lag]);
  });
}

Deno.test("The worker with the largest event-loop lag is named", async () => {
  using it = setup();
  it.at.workers = [workerView("w1", { name: "fast" }), workerView("w2", { name: "slow" })];
  it.at.look.record([metricPoint("engine.event_loop.lag.max", 0.01)]);
  it.at.look.record([metricPoint("engine.event_loop.lag.max", 0.4, { worker_id: "w2" })]);

  const check = (await it.measure()).get("event loops of workers")!;
  assert.deepEqual([check.status, check.measured], ["warn", 400]);
  assert.match(check.message, /^The event loop of slow was 400 ms late, the most of 2 workers$/);
  assert.match(check.remedy!, /slow/);
});

Deno.test("The connection with the largest backlog is named", async () => {
  using it = setup();
  it.at.workers = [workerView("w1"), workerView("w2", { name: "stuck", queued_bytes: 80_000_000 })];

  const check = (await it.measure()).get("writes")!;
  assert.deepEqual([check.status, check.measured], ["fail", 80_000_000]);
  assert.match(check.message, /^76 MiB are queued to stuck/);
});

Deno.test("A function is rated by its p99 of the last minutes, if called often enough", async () => {
  using it = setup();
  it.at.meters.call("rare::f", { ms: 5_000, times: 3 });
  it.at.meters.call("slow::f", { ms: 5_000, times: 30 });
  it.at.meters.call("engine::f", { ms: 5_000, times: 99 });
  it.at.clock.tick(1_000);

  const check = (await it.measure()).get("slow functions")!;
  assert.deepEqual([check.status, check.measured], ["warn", 1_000]);
  assert.match(check.message, /slow::f/);

  it.at.clock.tick(400_000);
  assert.equal((await it.measure()).get("slow functions")!.status, "ok");
});

Deno.test("Functions without a schema are counted and the first are named", async () => {
  using it = setup();
  it.at.functionViews = [
    view("a::with", { request_schema: {} }),
    view("state::get", { builtin: true }),
    view("x::hidden", { internal: true }),
    ..."dcbe".split("").map((letter) => view(`f::${letter}`)),
  ];

  const check = (await it.measure()).get("schemas")!;
  assert.deepEqual([check.status, check.measured], ["warn", 4]);
  assert.equal(
    check.message,
    "4 of 5 functions have no payload schema: f::b, f::c, f::d and 1 more",
  );
});

Deno.test("A check reads a bounded number of functions, however many there are", async () => {
  using it = setup();
  it.at.functionViews = Array.from(
    { length: FUNCTIONS_CHECKED_MAX + 500 },
    (_, i) => view(`f::${i}`),
  );

  const checks = await it.measure();

  assert.equal(checks.get("schemas")!.measured, FUNCTIONS_CHECKED_MAX);
  assert.match(checks.get("function names")!.message, /^None of 2000 functions/);
});

Deno.test("Handlers past their deadline are named, and workers whose threads are all busy", async () => {
  using it = setup();
  it.at.workers = [workerView("w1", { name: "py" })];
  const point = (name: string, value: number, function_id?: string) =>
    metricPoint(`engine.handlers.${name}`, value, {
      attributes: function_id === undefined ? {} : { "engine.function.id": function_id },
    });
  it.at.look.record([
    point("waiting", 12),
    point("threads.busy", 40),
    point("threads.max", 40),
    point("overdue", 35, "py::slow"),
  ]);

  const checks = await it.measure();
  const late = checks.get("deadlines")!;
  assert.deepEqual([late.status, late.measured], ["warn", 35]);
  assert.match(late.message, /py::slow of py for 35 s, the longest$/);
  const full = checks.get("threads")!;
  assert.deepEqual([full.status, full.measured], ["warn", 12]);
  assert.match(full.message, /^All threads of py are busy and 12 calls wait/);
});

Deno.test("Functions of workers of different names are counted and named", async () => {
  using it = setup();
  it.at.functionViews = [view("a::f"), view("a::g", { contenders: ["shop", "till"] })];

  const { status, measured, message, remedy } = (await it.measure()).get("function names")!;
  assert.deepEqual([status, measured], ["warn", 1]);
  assert.match(message, /^1 of 2 functions are offered .*: a::g \(shop, till\)$/);
  assert.match(remedy!, /engine\.shared_functions/);
});

Deno.test("Triggers that do not fire are counted and named, with each reason", async () => {
  using it = setup();
  const trigger = (function_id: string, reason: string | null): TriggerView => ({
    id: function_id,
    trigger_type: "htp",
    trigger_namespace: "default",
    function_id,
    namespace: "default",
    config: {},
    state: reason === null ? "offered" : "parked",
    reason,
    worker_id: "w1",
    worker_name: "py",
  });
  it.at.triggerViews = [trigger("a", null), trigger("b", "did you mean http?"), trigger("c", "no")];
  it.at.triggerViews.push(trigger("d", "no"));

  const { status, measured, message, remedy } = (await it.measure()).get("triggers")!;
  assert.deepEqual([status, measured], ["warn", 3]);
  assert.equal(message, "3 of 4 triggers do not fire: htp of b (py), htp of c (py), htp of d (py)");
  assert.equal(remedy, "htp of b: did you mean http?; htp of d: no");
});

Deno.test("A route that was taken from a worker of another name is named with both", async () => {
  using it = setup();
  const route = (function_id: string, worker_name: string, config: JsonObject): TriggerView => ({
    id: function_id,
    trigger_type: "http",
    trigger_namespace: "default",
    function_id,
    namespace: "default",
    config,
    state: "offered",
    reason: null,
    worker_id: worker_name,
    worker_name,
  });
  it.at.triggerViews = [
    route("a::f", "shop", { api_path: "/a" }),
    route("a::again", "shop", { api_path: "a", http_method: "get" }),
    route("a::post", "till", { api_path: "/a", http_method: "POST" }),
  ];
  assert.equal((await it.measure()).get("routes")!.status, "ok");
  it.at.triggerViews.push(route("b::f", "till", { api_path: "/a", http_method: "GET" }));

  const { status, measured, message, remedy } = (await it.measure()).get("routes")!;

  assert.deepEqual([status, measured], ["warn", 1]);
  assert.match(message, /^1 of 2 HTTP routes .*: GET \/a, of shop, by b::f \(till\)$/);
  assert.match(remedy!, /api_path/);
  it.at.triggerViews = [
    route("a::f", "shop", { api_path: "/a/:x/b" }),
    route("b::f", "till", { api_path: "a/:y/b" }),
  ];
  it.at.clock.tick(10_000);
  const named = (await it.measure()).get("routes")!.message;
  assert.match(named, /^1 of 1 HTTP routes .*: GET \/a\/:y\/b, of shop, by b::f \(till\)$/);
});

for (const [skew, status] of [[-500, "ok"], [-5_000, "warn"], [90_000, "fail"]] as const) {
  Deno.test(`A clock that differs by ${skew} ms is ${status}`, async () => {
    using it = setup();
    it.at.workers = [workerView("w1", { name: "math" })];
    const time_ms = it.at.clock.wall() + skew;
    it.at.look.record([metricPoint("process.memory.usage", 1, { time_ms })]);

    const check = (await it.measure()).get("clocks")!;
    assert.deepEqual([check.status, check.measured], [status, Math.abs(skew)]);
  });
}

Deno.test("The disk check measures a write", async () => {
  using it = setup();
  const slow: Store = {
    stats: it.memory.stats,
    status: it.memory.status,
    get: (key) => it.memory.get(key),
    list: (...query) => it.memory.list(...query),
    write: (changes) => {
      it.at.clock.tick(300);
      return it.memory.write(changes);
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };

  const check = (await it.measure(slow)).get("disk")!;
  assert.deepEqual([check.status, check.measured], ["warn", 300]);
  assert.equal(it.memory.stats.commits, 3);
  assert.equal((await it.memory.list([], 10)).length, 1);
});

Deno.test("A failed write is a failed check, not an exception", async () => {
  using it = setup();
  await it.memory[Symbol.asyncDispose]();

  const check = (await it.measure()).get("disk")!;
  assert.deepEqual([check.status, check.measured], ["fail", null]);
  assert.match(check.message, /The store is closed/);
});

Deno.test("Failed commits of the past are a warning", async () => {
  using it = setup();
  Object.assign(it.memory.stats, { failed: 2 });

  assert.equal((await it.measure()).get("store")!.status, "warn");
});

Deno.test("Failed workers and unexpected exits are named", async () => {
  using it = setup();
  it.at.supervised = [
    supervisedWorker("fine"),
    supervisedWorker("broken", { state: "failed" }),
    supervisedWorker("flaky", { restarts: 4 }),
  ];

  const checks = await it.measure();
  assert.equal(checks.get("workers")!.message, "1 of 3 workers have failed: broken");
  assert.equal(checks.get("workers")!.remedy, "Check the reason: engine worker status broken");
  assert.deepEqual([checks.get("restarts")!.status, checks.get("restarts")!.measured], ["warn", 4]);
  assert.match(checks.get("restarts")!.remedy!, /engine worker logs flaky$/);
});

for (
  const [free_bytes, problem, status, message] of [
    [300 * 1024 * 1024, null, "ok", "The data directory has 300 MiB of free space"],
    [200 * 1024 * 1024, null, "warn", "The data directory has 200 MiB of free space"],
    [null, null, "ok", "The free space of the data directory is unknown"],
    [0, "the disk is full", "fail", "The disk is full"],
  ] as const
) {
  Deno.test(`A data directory with ${free_bytes} free bytes, problem ${problem}: ${status}`, async () => {
    using it = setup();
    it.withDisk({ free_bytes, problem });

    const check = (await it.measure()).get("disk space")!;

    assert.deepEqual([check.status, check.message], [status, message]);
    assert.equal(check.remedy === null, status === "ok");
  });
}

Deno.test("Workers that do not answer are named", async () => {
  using it = setup();
  it.at.workers = [
    workerView("w1", { name: "math" }),
    workerView("w2", { name: "shop", suspect: true }),
  ];

  const check = (await it.measure()).get("suspect workers")!;

  assert.equal(check.status, "warn");
  assert.equal(check.message, "1 of 2 workers do not answer: shop");
});

Deno.test("Damaged records are named", async () => {
  using it = setup();
  Object.defineProperty(it.memory, "status", {
    value: { ...it.memory.status, damaged: [{ key: ["state", "orders", "42"], reason: "crc" }] },
  });

  const check = (await it.measure()).get("records")!;

  assert.deepEqual([check.status, check.measured], ["fail", 1]);
  assert.match(check.message, /1 records .* damaged: state\/orders\/42/);
});

Deno.test("Alerts that fire are named with their values", async () => {
  using it = setup();
  const slow: Alert = {
    name: "slow",
    metric: "p99_ms",
    operator: ">",
    threshold: 500,
    value: 812,
    state: "firing",
    since_ms: 0,
  };
  const log = { text: "refused", within_s: 60 };
  const refused = { ...slow, name: "refusals", metric: null, log, threshold: 5, value: 9 };
  it.withAlerts([slow, { ...slow, name: "quiet", state: "pending" }, refused]);

  const { status, measured, message } = (await it.measure()).get("alerts")!;

  assert.deepEqual([status, measured], ["warn", 2]);
  assert.equal(
    message,
    "2 of 3 alert rules fire: slow: p99_ms is 812 (> 500), " +
      "refusals: 9 log records in 60 s (> 5)",
  );
});
