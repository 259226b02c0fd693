import assert from "node:assert/strict";
import { readExportSettings } from "./settings.ts";

const BASE = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };

Deno.test("Without variables nothing is exported, and there are no problems", () => {
  assert.deepEqual(readExportSettings({ PATH: "/bin" }), {
    service_name: "engine",
    attributes: {},
    problems: [],
    signals: {},
  });
});

Deno.test("An endpoint exports all signals below it, with the standard's defaults", () => {
  const { signals, problems } = readExportSettings(BASE);

  assert.deepEqual(problems, []);
  assert.deepEqual(signals.traces, {
    url: "http://collector:4318/v1/traces",
    headers: {},
    protocol: "http/protobuf",
    gzip: false,
    timeout_ms: 10_000,
    delay_ms: 5_000,
    queue_max: 2_048,
    batch_max: 512,
  });
  assert.deepEqual([signals.logs!.url, signals.logs!.delay_ms], [
    "http://collector:4318/v1/logs",
    1_000,
  ]);
  assert.deepEqual([signals.metrics!.url, signals.metrics!.delay_ms], [
    "http://collector:4318/v1/metrics",
    60_000,
  ]);
});

Deno.test("A signal's own endpoint is used unchanged, and exports only that signal", () => {
  const url = "https://logs.example/ingest?team=a";
  const { signals } = readExportSettings({ OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: url });

  assert.deepEqual(Object.keys(signals), ["logs"]);
  assert.equal(signals.logs!.url, url);
});

Deno.test("A configured exporter needs no endpoint", () => {
  const { signals } = readExportSettings({ OTEL_TRACES_EXPORTER: "otlp" });

  assert.equal(signals.traces!.url, "http://localhost:4318/v1/traces");
  assert.equal(signals.logs, undefined);
});

for (
  const more of [{ OTEL_TRACES_EXPORTER: "none" }, { OTEL_TRACES_EXPORTER: " none " }] as const
) {
  Deno.test(`${JSON.stringify(more)} exports the others`, () => {
    const { signals } = readExportSettings({ ...BASE, ...more });

    assert.deepEqual(Object.keys(signals), ["metrics", "logs"]);
  });
}

Deno.test("OTEL_SDK_DISABLED exports nothing", () => {
  assert.deepEqual(readExportSettings({ ...BASE, OTEL_SDK_DISABLED: "TRUE" }).signals, {});
});

Deno.test("A signal's own variables override the common ones", () => {
  const { signals } = readExportSettings({
    ...BASE,
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20a, x-team = b",
    OTEL_EXPORTER_OTLP_LOGS_HEADERS: "x-only=logs",
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/protobuf",
    OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
    OTEL_EXPORTER_OTLP_METRICS_COMPRESSION: "none",
    OTEL_EXPORTER_OTLP_TIMEOUT: "3000",
    OTEL_EXPORTER_OTLP_METRICS_TIMEOUT: "7000",
    OTEL_BSP_SCHEDULE_DELAY: "100",
    OTEL_BSP_MAX_QUEUE_SIZE: "50",
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "80",
    OTEL_BLRP_SCHEDULE_DELAY: "200",
    OTEL_METRIC_EXPORT_INTERVAL: "5000",
  });

  const { traces, metrics, logs } = signals;
  assert.deepEqual(traces!.headers, { authorization: "Bearer a", "x-team": "b" });
  assert.deepEqual(logs!.headers, { "x-only": "logs" });
  assert.deepEqual([traces!.protocol, logs!.protocol], ["http/protobuf", "http/json"]);
  assert.deepEqual([traces!.gzip, metrics!.gzip], [true, false]);
  assert.deepEqual([traces!.timeout_ms, metrics!.timeout_ms], [3_000, 7_000]);
  assert.deepEqual([traces!.delay_ms, logs!.delay_ms, metrics!.delay_ms], [100, 200, 5_000]);
  assert.deepEqual([traces!.queue_max, traces!.batch_max], [50, 50]);
});

Deno.test("OTEL_SERVICE_NAME overrides the resource attribute", () => {
  const attributes = { OTEL_RESOURCE_ATTRIBUTES: "service.name=a,deployment.environment=prod%201" };

  assert.equal(readExportSettings(attributes).service_name, "a");
  const both = readExportSettings({ ...attributes, OTEL_SERVICE_NAME: "b" });
  assert.equal(both.service_name, "b");
  assert.deepEqual(both.attributes, { "deployment.environment": "prod 1" });
});

Deno.test("An empty variable counts as unset", () => {
  const { signals, problems } = readExportSettings({
    OTEL_EXPORTER_OTLP_ENDPOINT: " ",
    OTEL_TRACES_EXPORTER: "",
    OTEL_EXPORTER_OTLP_HEADERS: "",
  });

  assert.deepEqual([signals, problems], [{}, []]);
});

for (
  const [name, value, problem] of [
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", /OTLP_PROTOCOL: grpc is not supported; use http/],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", /expected an address such as http/],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "nonsense", /expected an address such as http/],
  ] as const
) {
  Deno.test(`${name}=${value} is a problem, and nothing is exported`, () => {
    const { signals, problems } = readExportSettings({ ...BASE, [name]: value });

    assert.deepEqual(signals, {});
    assert.match(problems[0]!, problem);
  });
}

for (
  const [name, value] of [
    ["OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"],
    ["OTEL_EXPORTER_OTLP_TIMEOUT", "soon"],
    ["OTEL_EXPORTER_OTLP_TIMEOUT", "0"],
    ["OTEL_EXPORTER_OTLP_TIMEOUT", "-5"],
    ["OTEL_BSP_SCHEDULE_DELAY", "1e9"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "nothing"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "a=%zz"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "=secret"],
    ["OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"],
    ["OTEL_TRACES_EXPORTER", "otlp,console"],
  ] as const
) {
  Deno.test(`${name}=${value} is a problem, and traces are exported nevertheless`, () => {
    const { signals, problems } = readExportSettings({ ...BASE, [name]: value });

    assert.equal(signals.traces!.timeout_ms, 10_000);
    assert.ok(problems.length > 0 && problems.every((problem) => problem.includes(name)));
    assert.ok(!problems.join().includes("secret"));
  });
}
