import assert from "node:assert/strict";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { FakeMetrics, metricPoint, workerView } from "../../../tests/fakes/fake_metrics.ts";
import type { LogRecord } from "../logs/record.ts";
import type { StoredSpan } from "../traces/span.ts";
import { encodeRequest } from "./protobuf.ts";
import {
  allMetrics,
  attributesOf,
  logsRequest,
  metricsRequest,
  nanoText,
  spansRequest,
} from "./requests.ts";

const EXPORTER = { service_name: "engine", attributes: { "env": "prod" }, version: "1.2.3" };
const TRACE = "0af7651916cd43dd8448eb211c80319c";

function span(more: Partial<StoredSpan> = {}): StoredSpan {
  return {
    trace_id: TRACE,
    span_id: "b7ad6b7169203331",
    parent_span_id: null,
    name: "math::add",
    service_name: "math",
    start_ms: 1_764_158_400_000.25,
    end_ms: 1_764_158_400_001,
    status: "ok",
    status_description: null,
    attributes: [["engine.kind", "call"]],
    events: [],
    links: [],
    scope_name: null,
    scope_version: null,
    ...more,
  };
}

function record(more: Partial<LogRecord> = {}): LogRecord {
  return {
    seq: 1,
    at_ms: 1,
    observed_ms: 2,
    severity: "warn",
    body: "low",
    attributes: { left: 2 },
    trace_id: TRACE,
    span_id: "b7ad6b7169203331",
    service_name: "math",
    worker: "math",
    replica: 1,
    source: "logger",
    function_id: "math::add",
    scope_name: null,
    ...more,
  } as LogRecord;
}

// deno-lint-ignore no-explicit-any -- Deep looks into a JSON text.
type Loose = Record<string, any>;
const servicesOf = (groups: Loose[]): string[] =>
  groups.map(({ resource }) => resource.attributes[0].value.stringValue);

Deno.test("A call is a span of the engine", () => {
  const request = spansRequest([span()], EXPORTER) as Loose;

  const [group] = request.resourceSpans;
  assert.deepEqual(group.resource.attributes.map(({ key }: Loose) => key), [
    "service.name",
    "service.version",
    "env",
  ]);
  assert.deepEqual(group.scopeSpans[0].scope, { name: "engine", version: "1.2.3" });
  assert.deepEqual(group.scopeSpans[0].spans[0], {
    traceId: TRACE,
    spanId: "b7ad6b7169203331",
    name: "math::add",
    kind: 3,
    startTimeUnixNano: "1764158400000250000",
    endTimeUnixNano: "1764158400001000000",
    attributes: [{ key: "engine.kind", value: { stringValue: "call" } }],
    events: [],
    links: [],
    status: { code: 1 },
    flags: 1,
  });
});

Deno.test("Payloads are not exported", () => {
  const attributes = [["engine.request", "{}"], ["engine.response", "5"], ["a", 1]] as const;

  const text = JSON.stringify(spansRequest([span({ attributes })], EXPORTER));

  assert.ok(!text.includes("engine.request") && !text.includes("engine.response"));
  assert.ok(text.includes('"key":"a"'));
});

Deno.test("Spans of handlers belong to their service", () => {
  const handler = span({
    name: "execute math::add",
    scope_name: "engine-sdk",
    attributes: [["engine.kind", "handler"]],
    status: "error",
    status_description: "boom",
    parent_span_id: "00f067aa0ba902b7",
  });

  const { resourceSpans } = spansRequest([span(), handler, handler], EXPORTER) as Loose;

  assert.deepEqual(servicesOf(resourceSpans), ["engine", "math"]);
  const spans = resourceSpans[1].scopeSpans[0].spans;
  assert.equal(spans.length, 2);
  assert.deepEqual([spans[0].kind, spans[0].status, spans[0].parentSpanId], [
    2,
    { code: 2, message: "boom" },
    "00f067aa0ba902b7",
  ]);
});

Deno.test("Log records have their trace and their origin", () => {
  const { resourceLogs } = logsRequest(
    [record(), record({ source: "engine", service_name: "engine", worker: null, trace_id: null })],
    EXPORTER,
  ) as Loose;

  assert.deepEqual(servicesOf(resourceLogs), ["math", "engine"]);
  const [first] = resourceLogs[0].scopeLogs[0].logRecords;
  assert.deepEqual([first.severityNumber, first.severityText, first.body, first.traceId], [
    13,
    "WARN",
    { stringValue: "low" },
    TRACE,
  ]);
  assert.deepEqual(first.attributes.map(({ key }: Loose) => key), [
    "left",
    "engine.source",
    "engine.worker",
    "engine.replica",
    "engine.function_id",
  ]);
  assert.equal("traceId" in resourceLogs[1].scopeLogs[0].logRecords[0], false);
});

Deno.test("Metrics have the engine's resource", () => {
  const { resourceMetrics } = metricsRequest([{ name: "a" }], EXPORTER) as Loose;

  assert.deepEqual(servicesOf(resourceMetrics), ["engine"]);
  assert.deepEqual(resourceMetrics[0].scopeMetrics[0].metrics, [{ name: "a" }]);
});

Deno.test("Every JSON value converts to an OTLP value", () => {
  const values: JsonObject = {
    text: "a\ud800",
    yes: true,
    whole: 5,
    half: 0.5,
    nothing: null,
    list: [1],
    object: { k: "v" },
  };

  assert.deepEqual(attributesOf(Object.entries(values) as never), [
    { key: "text", value: { stringValue: "a\ufffd" } },
    { key: "yes", value: { boolValue: true } },
    { key: "whole", value: { intValue: "5" } },
    { key: "half", value: { doubleValue: 0.5 } },
    { key: "nothing", value: {} },
    { key: "list", value: { arrayValue: { values: [{ intValue: "1" }] } } },
    {
      key: "object",
      value: { kvlistValue: { values: [{ key: "k", value: { stringValue: "v" } }] } },
    },
  ]);
});

Deno.test("A deeply nested value is cut off as text", () => {
  let deep: unknown = "end";
  for (let i = 0; i < 100; i++) deep = [deep];

  assert.ok(JSON.stringify(attributesOf([["deep", deep as never]])).includes("[[[["));
  assert.equal(nanoText(0.5), "500000");
});

const METRICS_EXPORTER = { service_name: "engine", attributes: {}, version: "1.2.3" };

// deno-lint-ignore no-explicit-any -- Deep looks into a JSON text.
type LooseOfMetrics = Record<string, any>;

function setup() {
  const at = new FakeMetrics();
  at.meters.call("math::add", { ms: 3, times: 7 });
  at.meters.call("math::add", { ms: 500, code: "boom", times: 2 });
  at.workers = [workerView("w1", { name: "math", active_invocations: 2 })];
  const points = [metricPoint("process.memory.usage", 5_000, { unit: "By", time_ms: 7 })];
  const request = allMetrics(at.page, points, METRICS_EXPORTER, at.clock.wall()) as LooseOfMetrics;
  const metrics: LooseOfMetrics[] = request.resourceMetrics[0].scopeMetrics[0].metrics;
  const of = (name: string): LooseOfMetrics => metrics.find((metric) => metric.name === name)!;
  return { at, request, metrics, of, [Symbol.dispose]: () => at[Symbol.dispose]() };
}

Deno.test("Calls and errors are monotonic sums", () => {
  using it = setup();
  const { sum, unit } = it.of("engine.calls");

  assert.equal(unit, "{call}");
  assert.deepEqual([sum.aggregationTemporality, sum.isMonotonic], [2, true]);
  const [{ asInt, startTimeUnixNano, timeUnixNano, attributes }] = sum.dataPoints;
  assert.equal(asInt, "9");
  assert.ok(BigInt(startTimeUnixNano) <= BigInt(timeUnixNano));
  assert.deepEqual(attributes, [
    { key: "engine.function_id", value: { stringValue: "math::add" } },
    { key: "engine.namespace", value: { stringValue: "default" } },
  ]);
  const [error] = it.of("engine.call.errors").sum.dataPoints;
  assert.equal(error.asInt, "2");
  assert.deepEqual(error.attributes[2], { key: "error.type", value: { stringValue: "boom" } });
});

Deno.test("Durations are a histogram in seconds with one count more than bounds", () => {
  using it = setup();
  const [point] = it.of("engine.call.duration").histogram.dataPoints;

  assert.equal(point.count, "9");
  assert.equal(point.sum, 1.021);
  assert.equal(point.bucketCounts.length, point.explicitBounds.length + 1);
  assert.equal(point.bucketCounts.map(Number).reduce((a: number, b: number) => a + b), 9);
});

Deno.test("Unknown values are omitted", () => {
  using it = setup();

  assert.equal(it.of("engine.worker.memory"), undefined);
  assert.equal(it.of("engine.worker.in_flight").gauge.dataPoints[0].asDouble, 2);
});

Deno.test("Metrics of SDKs are exported under their process", () => {
  using it = setup();
  const [, worker] = it.request.resourceMetrics;

  assert.deepEqual(worker.resource.attributes, [
    { key: "service.name", value: { stringValue: "math" } },
    { key: "service.instance.id", value: { stringValue: "w1" } },
  ]);
  const [metric] = worker.scopeMetrics[0].metrics;
  assert.deepEqual(metric, {
    name: "process.memory.usage",
    unit: "By",
    gauge: { dataPoints: [{ timeUnixNano: "7000000", asDouble: 5_000 }] },
  });
});

Deno.test("All metrics encode as protobuf", () => {
  using it = setup();

  assert.ok(encodeRequest(it.request as JsonObject).length > 500);
});
