import assert from "node:assert/strict";
import { systemClock } from "../../../engine/platform/system_clock.ts";
import { type LogLine, recordingLog } from "../../../tests/fakes/fake_http.ts";
import { FakeMetrics } from "../../../tests/fakes/fake_metrics.ts";
import { OtlpReceiver } from "../../../tests/fakes/otlp.ts";
import type { LogRecord } from "../logs/record.ts";
import type { StoredSpan } from "../traces/span.ts";
import { startExport } from "./mod.ts";

const SPAN: StoredSpan = {
  trace_id: "0af7651916cd43dd8448eb211c80319c",
  span_id: "b7ad6b7169203331",
  parent_span_id: null,
  name: "math::add",
  service_name: "math",
  start_ms: 1_764_158_400_000,
  end_ms: 1_764_158_400_001,
  status: "ok",
  status_description: null,
  attributes: [["engine.kind", "call"]],
  events: [],
  links: [],
  scope_name: null,
  scope_version: null,
};

const RECORD = {
  seq: 1,
  at_ms: 1,
  observed_ms: 1,
  severity: "info",
  body: "added up",
  attributes: {},
  trace_id: null,
  span_id: null,
  service_name: "math",
  worker: "math",
  replica: null,
  source: "logger",
  function_id: null,
  scope_name: null,
} as unknown as LogRecord;

/** Exports with the given variables and feeds filled by the test. */
function setup(env: Record<string, string>) {
  const at = new FakeMetrics();
  const lines: LogLine[] = [];
  const spans = new Set<(spans: readonly StoredSpan[]) => void>();
  const logs = new Set<(record: LogRecord) => void>();
  const join = <T>(all: Set<T>) => (one: T) => {
    all.add(one);
    return () => void all.delete(one);
  };
  const exporting = startExport({ clock: systemClock, log: recordingLog(lines) }, {
    spans: { listen: join(spans) },
    logs: { listen: join(logs) },
    page: at.page,
    sdkPoints: () => [],
    env,
  });
  return {
    at,
    lines,
    exporting,
    listeners: () => spans.size + logs.size,
    span: (span: StoredSpan) => spans.forEach((listener) => listener([span])),
    log: (record: LogRecord) => logs.forEach((listener) => listener(record)),
    async [Symbol.asyncDispose]() {
      await exporting[Symbol.asyncDispose]();
      at[Symbol.dispose]();
    },
  };
}

const FAST = {
  OTEL_BSP_SCHEDULE_DELAY: "10",
  OTEL_BLRP_SCHEDULE_DELAY: "10",
  OTEL_METRIC_EXPORT_INTERVAL: "10",
  OTEL_EXPORTER_OTLP_HEADERS: "x-team=a%20b",
  OTEL_SERVICE_NAME: "shop-engine",
};

Deno.test("Without variables nothing is collected", async () => {
  await using it = setup({});

  assert.equal(it.listeners(), 0);
  assert.equal(it.exporting.component().status, "disabled");
  assert.deepEqual(it.lines, []);
});

Deno.test("Traces, metrics and logs reach a receiver as JSON", async () => {
  await using receiver = new OtlpReceiver();
  await using it = setup({
    ...FAST,
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
  });
  it.at.meters.call("math::add", { ms: 3 });
  it.span(SPAN);
  it.log(RECORD);

  const [traces, logs, metrics] = await Promise.all([
    receiver.next("/v1/traces"),
    receiver.next("/v1/logs"),
    receiver.next("/v1/metrics"),
  ]);

  const read = ({ body }: { body: Uint8Array }) => JSON.parse(new TextDecoder().decode(body));
  assert.equal(traces.headers.get("x-team"), "a b");
  assert.equal(traces.headers.get("content-type"), "application/json");
  const [group] = read(traces).resourceSpans;
  assert.equal(group.resource.attributes[0].value.stringValue, "shop-engine");
  assert.equal(group.scopeSpans[0].spans[0].name, "math::add");
  const [record] = read(logs).resourceLogs[0].scopeLogs[0].logRecords;
  assert.deepEqual(record.body, { stringValue: "added up" });
  const [calls] = read(metrics).resourceMetrics[0].scopeMetrics[0].metrics;
  assert.deepEqual([calls.name, calls.sum.dataPoints[0].asInt], ["engine.calls", "1"]);
  assert.equal(it.exporting.component().status, "healthy");
});

Deno.test("Protobuf is the default protocol", async () => {
  await using receiver = new OtlpReceiver();
  await using it = setup({ ...FAST, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/mine` });
  it.span(SPAN);

  const { headers, body } = await receiver.next("/mine", (text) => text.includes("math::add"));

  assert.equal(headers.get("content-type"), "application/x-protobuf");
  assert.equal(body[0], 0x0a); // Field 1, a message.
  assert.equal(it.listeners(), 1);
});

Deno.test("A request that the receiver rejects as busy arrives later, once", async () => {
  await using receiver = new OtlpReceiver();
  receiver.statuses.push(503);
  await using it = setup({ ...FAST, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/t` });
  it.span(SPAN);

  await receiver.next("/t");

  assert.equal(receiver.received.length, 1);
  assert.equal(it.lines.some(({ text }) => text === "export fails"), true);
});

Deno.test("Pending items are sent when the engine stops", async () => {
  await using receiver = new OtlpReceiver();
  const it = setup({
    OTEL_BSP_SCHEDULE_DELAY: "600000",
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/t`,
  });
  it.span(SPAN);

  await it[Symbol.asyncDispose]();

  assert.equal(receiver.received.length, 1);
  assert.equal(it.listeners(), 0);
});

Deno.test("An unreachable receiver does not keep the engine from stopping", async () => {
  const it = setup({ ...FAST, OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" });
  it.span(SPAN);
  const began = performance.now();

  await it[Symbol.asyncDispose]();

  assert.ok(performance.now() - began < 10_000);
  assert.ok(it.lines.some(({ text }) => text === "export fails"));
});

Deno.test("Unsupported settings are logged", async () => {
  await using it = setup({
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4317",
    OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
  });

  assert.equal(it.lines.filter(({ level }) => level === "warn").length, 3);
  assert.match(String(it.lines[0]!.fields.problem), /grpc is not supported/);
  assert.equal(it.exporting.component().details.problems, 3);
});
