import assert from "node:assert/strict";
import type { TelemetryFrame } from "../../../engine/ports/telemetry.ts";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import {
  METRICS_FRAME_BYTES_MAX,
  METRICS_FRAME_POINTS_MAX,
  readMetrics,
  SDK_METRICS_MAX,
  SDK_METRICS_STALE_MS,
  SdkMetrics,
} from "./otlp.ts";

function frame(root: unknown, more: Partial<TelemetryFrame> = {}): TelemetryFrame {
  const text = typeof root === "string" ? root : JSON.stringify(root);
  const bytes = new TextEncoder().encode(text);
  return { kind: "MTRC", bytes, worker_id: null, address: null, ...more };
}

function metrics(list: unknown[], attributes: Record<string, string> = {}): unknown {
  const pairs = Object.entries(attributes).map(([key, stringValue]) => {
    return { key, value: { stringValue } };
  });
  const scopeMetrics = [{ scope: { name: "sdk" }, metrics: list }];
  return { resourceMetrics: [{ resource: { attributes: pairs }, scopeMetrics }] };
}

const gauge = (name: string, asDouble: unknown, more = {}) => {
  return {
    name,
    unit: "By",
    gauge: { dataPoints: [{ timeUnixNano: "2000000", asDouble, ...more }] },
  };
};

Deno.test("readMetrics() reads gauges, sums and histograms with their origin", () => {
  const attributes = [{ key: "cpu", value: { intValue: "3" } }];
  const points = readMetrics(frame(metrics([
    gauge("process.memory.usage", 5),
    { name: "calls", sum: { dataPoints: [{ timeUnixNano: "1000000", asInt: "7", attributes }] } },
    { name: "time", histogram: { dataPoints: [{ timeUnixNano: 1e6, count: "4", sum: 2.5 }] } },
  ], { "service.name": "math", "service.instance.id": "w1" })))!;

  const origin = { worker_id: "w1", service_name: "math" };
  assert.deepEqual(points, [
    {
      name: "process.memory.usage",
      unit: "By",
      kind: "gauge",
      value: 5,
      count: null,
      attributes: {},
      time_ms: 2,
      ...origin,
    },
    {
      name: "calls",
      unit: "",
      kind: "sum",
      value: 7,
      count: null,
      attributes: { cpu: "3" },
      time_ms: 1,
      ...origin,
    },
    {
      name: "time",
      unit: "",
      kind: "histogram",
      value: 2.5,
      count: 4,
      attributes: {},
      time_ms: 1,
      ...origin,
    },
  ]);
});

Deno.test("readMetrics() falls back to the connection's worker id", () => {
  const [point] = readMetrics(frame(metrics([gauge("a", 1)]), { worker_id: "w9" }))!;

  assert.deepEqual([point!.worker_id, point!.service_name], ["w9", ""]);
});

for (const root of ["", "{", "[]", "null", "5", "{}", '{"resourceMetrics":{}}']) {
  Deno.test(`readMetrics() rejects ${JSON.stringify(root)}`, () => {
    assert.equal(readMetrics(frame(root)), undefined);
  });
}

Deno.test("readMetrics() rejects a deeply nested frame without parsing it", () => {
  assert.equal(readMetrics(frame(`{"resourceMetrics":${"[".repeat(900_000)}`)), undefined);
});

Deno.test("readMetrics() rejects bytes that are not UTF-8", () => {
  assert.equal(readMetrics({ bytes: Uint8Array.of(0x22, 0xff, 0x22), worker_id: null }), undefined);
});

for (
  const odd of [
    null,
    5,
    {},
    { name: 5, gauge: { dataPoints: [{}] } },
    { name: "a", gauge: null },
    { name: "a", gauge: { dataPoints: "x" } },
    gauge("a", "NaN"),
    gauge("a", null),
    gauge("a", 1, { timeUnixNano: "soon" }),
  ]
) {
  Deno.test(`readMetrics() skips ${JSON.stringify(odd)} and reads the rest`, () => {
    const points = readMetrics(frame(metrics([odd, gauge("b", 2)])))!;

    assert.deepEqual(points.map(({ name }) => name), ["b"]);
  });
}

Deno.test("readMetrics() survives random frames", () => {
  for (let seed = 0; seed < 200; seed++) {
    const text = JSON.stringify(metrics([gauge("a", seed)]));
    const at = seed * 7 % text.length;
    readMetrics(frame(text.slice(0, at) + String.fromCharCode(33 + seed % 90) + text.slice(at)));
  }
});

Deno.test("readMetrics() bounds the points of a frame", () => {
  const dataPoints = Array.from({ length: METRICS_FRAME_POINTS_MAX + 10 }, (_, i) => {
    return { timeUnixNano: "1", asDouble: i };
  });

  const points = readMetrics(frame(metrics([{ name: "a", gauge: { dataPoints } }])))!;

  assert.equal(points.length, METRICS_FRAME_POINTS_MAX);
});

Deno.test("SdkMetrics stores the last value of each metric of each process", () => {
  const sdk = new SdkMetrics(new FakeClock());
  const from = (id: string) => ({ "service.instance.id": id });
  sdk.receive(frame(metrics([gauge("a", 1)], from("w1"))));
  sdk.receive(frame(metrics([gauge("a", 2)], from("w1"))));
  sdk.receive(frame(metrics([gauge("a", 3)], from("w2"))));

  assert.deepEqual(sdk.points().map(({ worker_id, value }) => [worker_id, value]), [
    ["w1", 2],
    ["w2", 3],
  ]);
});

Deno.test("SdkMetrics removes metrics that are no longer reported", () => {
  const clock = new FakeClock();
  const sdk = new SdkMetrics(clock);
  sdk.receive(frame(metrics([gauge("a", 1)])));
  clock.tick(SDK_METRICS_STALE_MS);
  sdk.receive(frame(metrics([gauge("b", 1)])));
  clock.tick(1);

  assert.deepEqual(sdk.points().map(({ name }) => name), ["b"]);
});

Deno.test("SdkMetrics bounds the number of metrics", () => {
  const sdk = new SdkMetrics(new FakeClock());
  for (let i = 0; i <= SDK_METRICS_MAX; i++) sdk.receive(frame(metrics([gauge(`m${i}`, 1)])));

  const points = sdk.points();
  assert.equal(points.length, SDK_METRICS_MAX);
  assert.equal(points[0]!.name, "m1");
});

Deno.test("SdkMetrics counts malformed frames and ignores other signals", () => {
  const sdk = new SdkMetrics(new FakeClock());
  sdk.receive(frame("{"));
  sdk.receive(frame("{", { kind: "LOGS" }));
  sdk.receive(frame("", { bytes: new Uint8Array(METRICS_FRAME_BYTES_MAX + 1) }));

  assert.equal(sdk.dropped, 2);
  assert.deepEqual(sdk.points(), []);
});
