import assert from "node:assert/strict";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { FakeMetrics, metricPoint, workerView } from "../../../tests/fakes/fake_metrics.ts";
import { allMetrics } from "./metrics.ts";
import { encodeRequest } from "./protobuf.ts";

const EXPORTER = { service_name: "engine", attributes: {}, version: "1.2.3" };

// deno-lint-ignore no-explicit-any -- Deep looks into a JSON text.
type Loose = Record<string, any>;

function setup() {
  const at = new FakeMetrics();
  at.meters.call("math::add", { ms: 3, times: 7 });
  at.meters.call("math::add", { ms: 500, code: "boom", times: 2 });
  at.workers = [workerView("w1", { name: "math", active_invocations: 2 })];
  const points = [metricPoint("process.memory.usage", 5_000, { unit: "By", time_ms: 7 })];
  const request = allMetrics(at.page, points, EXPORTER, at.clock.wall()) as Loose;
  const metrics: Loose[] = request.resourceMetrics[0].scopeMetrics[0].metrics;
  const of = (name: string): Loose => metrics.find((metric) => metric.name === name)!;
  return { at, request, metrics, of, [Symbol.dispose]: () => at[Symbol.dispose]() };
}

Deno.test("Calls and errors are sums that only grow", () => {
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

Deno.test("Durations are a histogram in seconds with a count for each bound and beyond", () => {
  using it = setup();
  const [point] = it.of("engine.call.duration").histogram.dataPoints;

  assert.equal(point.count, "9");
  assert.equal(point.sum, 1.021);
  assert.equal(point.bucketCounts.length, point.explicitBounds.length + 1);
  assert.equal(point.bucketCounts.map(Number).reduce((a: number, b: number) => a + b), 9);
});

Deno.test("What is unknown is left out", () => {
  using it = setup();

  assert.equal(it.of("engine.worker.memory"), undefined);
  assert.equal(it.of("engine.worker.in_flight").gauge.dataPoints[0].asDouble, 2);
});

Deno.test("What SDKs measured goes on in the name of their process", () => {
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

Deno.test("All of it can be written as protobuf", () => {
  using it = setup();

  assert.ok(encodeRequest(it.request as JsonObject).length > 500);
});
