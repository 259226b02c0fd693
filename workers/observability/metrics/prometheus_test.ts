import assert from "node:assert/strict";
import dashboard from "../../../docs/grafana/engine.json" with { type: "json" };
import {
  FakeMetrics,
  metricPoint,
  supervisedWorker,
  workerView,
} from "../../../tests/fakes/fake_metrics.ts";
import {
  CoarseBuckets,
  metricsPage,
  PROMETHEUS_FUNCTIONS_MAX,
  PrometheusText,
  shownMeters,
} from "./prometheus.ts";

Deno.test("A family has one header and a line per sample", () => {
  const text = new PrometheusText();
  text.add("a_total", "counter", "How many.", [[{ f: "x" }, 1], [{ f: "y" }, 2.5]]);

  assert.equal(
    text.text,
    '# HELP a_total How many.\n# TYPE a_total counter\na_total{f="x"} 1\na_total{f="y"} 2.5\n',
  );
});

Deno.test("A family without a known value is omitted", () => {
  const text = new PrometheusText();
  text.add("a", "gauge", "What.", [[{}, null]]);
  text.add("b", "gauge", "What.", []);
  text.addHistograms("c", "What.", []);

  assert.equal(text.text, "");
});

Deno.test("Label values are escaped", () => {
  const text = new PrometheusText();
  text.add("a", "gauge", "Two\nlines.", [[{ f: '"} 1\nb 2\\' }, 1], [{ f: "\ud800" }, 1]]);

  assert.deepEqual(text.text.split("\n"), [
    "# HELP a Two\\nlines.",
    "# TYPE a gauge",
    'a{f="\\"} 1\\nb 2\\\\"} 1',
    'a{f="\ufffd"} 1',
    "",
  ]);
});

Deno.test("Numbers follow the text format", () => {
  const text = new PrometheusText();
  const values = [NaN, Infinity, -Infinity, 1e21, 0.000001];
  text.add("a", "gauge", "x", values.map((value) => [{}, value] as const));

  const lines = text.text.trim().split("\n").slice(2);
  assert.deepEqual(lines, ["a NaN", "a +Inf", "a -Inf", "a 1e+21", "a 0.000001"]);
});

Deno.test("Histogram buckets are cumulative", () => {
  const text = new PrometheusText();
  const histogram = { labels: { f: "x" }, bounds: [0.1, 1], counts: [2, 3, 4], sum: 9.5 };
  text.addHistograms("t_seconds", "Time.", [histogram, { ...histogram, labels: {} }]);

  assert.deepEqual(text.text.trim().split("\n"), [
    "# HELP t_seconds Time.",
    "# TYPE t_seconds histogram",
    't_seconds_bucket{f="x",le="0.1"} 2',
    't_seconds_bucket{f="x",le="1"} 5',
    't_seconds_bucket{f="x",le="+Inf"} 9',
    't_seconds_sum{f="x"} 9.5',
    't_seconds_count{f="x"} 9',
    't_seconds_bucket{le="0.1"} 2',
    't_seconds_bucket{le="1"} 5',
    't_seconds_bucket{le="+Inf"} 9',
    "t_seconds_sum 9.5",
    "t_seconds_count 9",
  ]);
});

Deno.test("CoarseBuckets keeps the last bound and those at half of the one above", () => {
  const buckets = new CoarseBuckets([1, 1.2, 1.4, 1.7, 2, 2.4, 2.8, 3.4, 4]);

  assert.deepEqual(buckets.bounds, [0.001, 0.002, 0.004]);
});

Deno.test("CoarseBuckets preserves counts and moves none below its bound", () => {
  const buckets = new CoarseBuckets([1, 1.2, 1.4, 1.7, 2, 2.4, 2.8, 3.4, 4]);

  assert.deepEqual([...buckets.countsOf([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])], [1, 14, 30, 10]);
});

/** Value of a line; `undefined` when there is none. */
function valueOf(page: string, line: string): number | undefined {
  const found = page.split("\n").find((each) => each.startsWith(`${line} `));
  return found === undefined ? undefined : Number(found.slice(line.length + 1));
}

Deno.test("The page has the calls, errors by code and durations of a function", () => {
  using at = new FakeMetrics();
  at.meters.call("math::add", { ms: 3, times: 7 });
  at.meters.call("math::add", { ms: 500, code: "boom", times: 2 });
  at.meters.call("math::add");

  const page = metricsPage(at.page);

  const f = 'function="math::add",namespace="default"';
  assert.equal(valueOf(page, `engine_calls_total{${f}}`), 10);
  assert.equal(valueOf(page, `engine_call_errors_total{${f},code="boom"}`), 2);
  assert.equal(valueOf(page, `engine_calls_in_flight{${f}}`), 1);
  assert.equal(valueOf(page, `engine_call_duration_seconds_bucket{${f},le="0.002"}`), 0);
  assert.equal(valueOf(page, `engine_call_duration_seconds_bucket{${f},le="0.004"}`), 7);
  assert.equal(valueOf(page, `engine_call_duration_seconds_bucket{${f},le="1"}`), 9);
  assert.equal(valueOf(page, `engine_call_duration_seconds_count{${f}}`), 9);
  assert.equal(valueOf(page, `engine_call_duration_seconds_sum{${f}}`), 1.021);
});

Deno.test("The page has the metrics of engine, workers, store and process", async () => {
  using at = new FakeMetrics();
  at.meters.now = { running: 1, parked: 2, connections: 3, queued_bytes: 4 };
  Object.assign(at.stats, { commits: 5, changes: 6, failed: 7, bytes: 8, commit_ms: 20 });
  at.workers = [workerView("w1", { name: "math", active_invocations: 9, queued_bytes: 10 })];
  at.look.record([metricPoint("engine.event_loop.lag.max", 0.25)]);
  at.supervised = [
    supervisedWorker("math", { restarts: 11 }, { worker_ids: ["w1"], memory_bytes: 12 }),
  ];
  await at.look.refresh(0);

  const page = metricsPage(at.page);

  const w = 'worker="math",worker_id="w1"';
  const wanted: [string, number][] = [
    ["engine_in_flight_calls", 1],
    ["engine_held_calls", 2],
    ["engine_lines", 3],
    ["engine_queued_bytes", 4],
    ["engine_suspect_workers", 0],
    ['engine_memory_used_bytes{use="rings"}', 7],
    ["engine_memory_limit_bytes", 1_000],
    ["engine_channels_open", 2],
    ["engine_channels_created_total", 5],
    ["engine_channel_bytes_total", 400],
    ["process_open_fds", 12],
    ["process_max_fds", 1_024],
    ["engine_state_commits_total", 5],
    ["engine_state_changes_total", 6],
    ["engine_state_failed_commits_total", 7],
    ["engine_state_written_bytes_total", 8],
    ["engine_state_last_commit_seconds", 0.02],
    [`engine_worker_in_flight_calls{${w}}`, 9],
    [`engine_worker_queued_bytes{${w}}`, 10],
    ['engine_worker_restarts_total{worker="math"}', 11],
    [`engine_worker_memory_bytes{${w}}`, 12],
    [`engine_worker_event_loop_lag_seconds{${w}}`, 0.25],
    ['engine_event_loop_lag_seconds{quantile="1"}', 0],
    ["engine_trace_spans", 3],
    ["engine_trace_spans_recorded_total", 5],
    ["process_resident_memory_bytes", 100],
    ["engine_heap_bytes", 40],
    ["process_cpu_seconds_total", 1],
    ['engine_build_info{version="1.2.3"}', 1],
  ];
  assert.deepEqual(wanted.map(([line]) => [line, valueOf(page, line)]), wanted);
});

Deno.test("Every line of the page is a comment or a unique sample", () => {
  using at = new FakeMetrics();
  at.meters.call('we"ird\n::f', { ms: 1, code: "a b\\" });
  at.workers = [workerView("w1", { name: "x" }), workerView("w2", { name: "x" })];

  const lines = metricsPage(at.page).trimEnd().split("\n");

  const sample =
    /^[a-z_:][a-z0-9_:]*(\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*\})? \S+$/;
  for (const line of lines) {
    assert.match(line, line.startsWith("#") ? /^# (HELP|TYPE) \w+ / : sample);
  }
  const names = lines.filter((line) => !line.startsWith("#")).map((line) =>
    line.replace(/ \S+$/, "")
  );
  assert.equal(new Set(names).size, names.length);
});

Deno.test("Functions beyond the bound are summed as one", () => {
  using at = new FakeMetrics();
  for (let i = 0; i < PROMETHEUS_FUNCTIONS_MAX + 10; i++) {
    at.meters.call(`f::${i}`, { ms: 3, code: "boom", times: 2 });
  }

  const shown = shownMeters(at.meters);
  const other = shown.at(-1)!;

  assert.equal(shown.length, PROMETHEUS_FUNCTIONS_MAX + 1);
  assert.deepEqual([other.function_id, other.calls, other.errors.get("boom"), other.durations[2]], [
    "(other)",
    20,
    20,
    20,
  ]);
});

Deno.test("The Grafana dashboard uses families of the page, in panels that do not overlap", async () => {
  using at = new FakeMetrics();
  at.meters.call("a::b", { ms: 1, code: "boom" });
  Object.assign(at.stats, { commit_ms: 1 });
  at.workers = [workerView("w1")];
  at.look.record([
    metricPoint("process.memory.usage", 1),
    metricPoint("process.cpu.utilization", 1),
    metricPoint("engine.event_loop.lag.max", 1),
  ]);
  at.supervised = [supervisedWorker("math", { restarts: 1 })];
  await at.look.refresh(0);
  const page = metricsPage(at.page);
  const families = new Set([...page.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name!));

  const asked = dashboard.panels.flatMap(({ targets }) =>
    targets.flatMap(({ expr }) =>
      [...expr.matchAll(/\b(?:engine|process)_\w+/g)].map(([name]) => name)
    )
  );

  assert.ok(asked.length > 25);
  const unknown = asked.filter((name) => !families.has(name.replace(/_bucket$/, "")));
  assert.deepEqual(unknown, []);
  const places = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, i) => `${x + i % w} ${y + Math.floor(i / w)}`)
  );
  assert.equal(new Set(places).size, places.length);
  assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
});
