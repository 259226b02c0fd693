import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDial } from "../../tests/fakes/fake_dial.ts";
import { type OtlpFrame, readOtlpFrame, valuesOf } from "../../tests/fakes/otlp.ts";
import type { LogEntry } from "./logger.ts";
import {
  sendsTelemetry,
  Telemetry,
  telemetryHeaders,
  TelemetryQueue,
  telemetryUrl,
  TokenBucket,
} from "./telemetry.ts";
import { CallScopes } from "./trace_context.ts";
import { errorBody } from "./wire/errors.ts";
import type { InvokeFunction } from "./wire/protocol.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";
const TRACEPARENT = `00-${TRACE}-${SPAN}-01`;

function setup() {
  const clock = new FakeClock();
  const fake = new FakeDial();
  const telemetry = new Telemetry({
    clock,
    dial: fake.dial,
    url: "ws://127.0.0.1:1/?token=x",
    headers: { Authorization: "Bearer t" },
    service: "shop",
    runtime: "deno",
    pid: 7,
  });
  const open = () => {
    telemetry.open();
    fake.transport.open();
  };
  const log = (message: string, more: Partial<LogEntry> = {}) =>
    telemetry.takeLog({
      level: "info",
      message,
      data: undefined,
      shown: undefined,
      service: undefined,
      ...more,
    });
  /** The frames that were sent since the last call, decoded. */
  const take = (transport = fake.transport) => transport.binaries.splice(0).map(readOtlpFrame);
  return { clock, fake, log, open, take, telemetry };
}

const texts = ({ records }: OtlpFrame) => records.map(({ body }) => body?.stringValue);
const signals = (frames: OtlpFrame[]) => frames.map(({ signal }) => signal);

function call(fields: Partial<InvokeFunction> = {}): InvokeFunction {
  const type = "invokefunction";
  return { type, invocation_id: "i-1", function_id: "a::b", traceparent: TRACEPARENT, ...fields };
}

Deno.test("Telemetry connects to /otel with the token when it is opened, once", async () => {
  const { fake, telemetry } = setup();
  assert.equal(fake.transports.length, 0);

  telemetry.open();
  telemetry.open();

  assert.equal(fake.transports.length, 1);
  assert.equal(fake.transport.url, "ws://127.0.0.1:1/otel?token=x");
  assert.deepEqual(fake.transport.options.headers, { Authorization: "Bearer t" });
  await telemetry.stop(undefined);
});

Deno.test("Telemetry sends log lines in batches, with their service", async () => {
  const { clock, log, open, take, telemetry } = setup();
  open();
  telemetry.workerId = "w-1";
  log("one", { data: { n: 1 }, shown: '{"n":1}' });
  log("two", { service: "billing" });
  assert.deepEqual(take(), []);

  clock.tick(100);

  const frames = take();
  assert.deepEqual(signals(frames), ["LOGS"]);
  assert.deepEqual(texts(frames[0]!), ["one", "two"]);
  const [own, other] = frames[0]!.resources;
  assert.deepEqual(own, {
    "service.name": "shop",
    "service.instance.id": "w-1",
    "telemetry.sdk.name": "engine-sdk",
    "telemetry.sdk.language": "nodejs",
    "telemetry.sdk.version": "0.1.0",
    "process.pid": "7",
    "process.runtime.name": "deno",
    "process.runtime.version": Deno.version.deno,
  });
  assert.equal(other!["service.name"], "billing");
  assert.deepEqual(frames[0]!.records[0]!.attributes, [{ key: "n", value: { intValue: "1" } }]);
  await telemetry.stop(undefined);
});

Deno.test("Telemetry adds the trace of the running handler to a log line", async () => {
  const { clock, log, open, take, telemetry } = setup();
  open();
  const scopes = new CallScopes();
  scopes.attach();
  const scope = { deadline: undefined, traceparent: TRACEPARENT, baggage: undefined };
  scopes.run(scope, () => log("inside"));
  log("outside");
  scopes.detach();
  scopes.run(scope, () => log("of a worker that has ended"));

  clock.tick(100);

  const ids = take()[0]!.records.map(({ traceId, spanId }) => [traceId, spanId]);
  assert.deepEqual(ids, [[TRACE, SPAN], [undefined, undefined], [undefined, undefined]]);
  await telemetry.stop(undefined);
});

Deno.test("Telemetry queues log lines until it is connected, also after a connection is lost", async () => {
  const { clock, fake, log, open, take, telemetry } = setup();
  log("before");
  open();
  assert.deepEqual(take().map(texts), [["before"]]);

  fake.transport.drop();
  log("while disconnected");
  clock.tick(60_000);
  fake.transport.open();

  assert.deepEqual(take().map(texts), [["while disconnected"]]);
  await telemetry.stop(undefined);
});

Deno.test("Telemetry reconnects without reporting errors", async () => {
  const { clock, fake, telemetry } = setup();
  telemetry.open();
  const delays = [1, 2, 3, 4, 5, 6, 7].map(() => {
    fake.transport.drop(1006, "HTTP 401");
    const [dials, failedAt] = [fake.transports.length, clock.now()];
    while (fake.transports.length === dials) clock.tick(100);
    return clock.now() - failedAt;
  });

  assert.ok(delays.at(-1)! > 15_000, `delays: ${delays}`);
  await telemetry.stop(undefined);
});

Deno.test("Telemetry limits its queue and logs how many lines were dropped", async () => {
  const { clock, log, open, take, telemetry } = setup();
  const message = "x".repeat(10_000);
  let taken = 0;
  while (log(message)) taken++;
  log(message);
  assert.ok(taken > 90 && taken * 10_000 < 1024 * 1024);

  open();
  clock.tick(1_000);

  const frames = take().filter(({ signal }) => signal === "LOGS");
  assert.ok(frames.length > 3);
  const warnings = frames.flatMap(({ records }) => records).filter(({ severityText }) =>
    severityText === "WARN"
  );
  assert.deepEqual(warnings.map(({ attributes }) => valuesOf(attributes)), [{ lines: "2" }]);
  assert.equal(frames.flatMap(texts).filter((text) => text === message).length, taken);
  await telemetry.stop(undefined);
});

Deno.test("Telemetry sends nothing while too many bytes have not left the process", async () => {
  const { clock, fake, log, open, take, telemetry } = setup();
  open();
  fake.transport.queuedBytes = 1024 * 1024;
  log("one");
  clock.tick(60_000);
  assert.deepEqual(take(), []);

  fake.transport.queuedBytes = 0;
  clock.tick(100);

  assert.deepEqual(take().map(texts), [["one"]]);
  await telemetry.stop(undefined);
});

Deno.test("Telemetry sends a span for a handler of a sampled call", async () => {
  const { clock, open, take, telemetry } = setup();
  open();
  const end = telemetry.startSpan(call());
  clock.tick(3);
  end!(undefined);
  telemetry.startSpan(call({ function_id: "c::d" }))!(errorBody("out", "none left"));

  clock.tick(100);

  const [frame] = take();
  assert.equal(frame!.signal, "OTLP");
  const [good, bad] = frame!.records;
  assert.deepEqual([good!.traceId, good!.parentSpanId, good!.name], [TRACE, SPAN, "execute a::b"]);
  assert.match(good!.spanId!, /^[0-9a-f]{16}$/);
  assert.notEqual(good!.spanId, bad!.spanId);
  assert.equal(BigInt(good!.endTimeUnixNano!) - BigInt(good!.startTimeUnixNano!), 3_000_000n);
  assert.deepEqual(valuesOf(good!.attributes), {
    "engine.function.id": "a::b",
    "engine.invocation.id": "i-1",
  });
  assert.deepEqual(good!.status, { code: 1 });
  assert.deepEqual(bad!.status, { code: 2, message: "none left" });
  assert.equal(valuesOf(bad!.attributes)["engine.error_code"], "out");
  await telemetry.stop(undefined);
});

for (
  const [name, traceparent] of Object.entries({
    "without a trace": undefined,
    "that is not sampled": `00-${TRACE}-${SPAN}-00`,
    "with an invalid trace": "nonsense",
  })
) {
  Deno.test(`Telemetry records no span for a call ${name}`, async () => {
    const { open, telemetry } = setup();
    open();

    const { traceparent: _, ...rest } = call();
    const ended = telemetry.startSpan(traceparent === undefined ? rest : { ...rest, traceparent });

    assert.equal(ended, undefined);
    await telemetry.stop(undefined);
  });
}

Deno.test("Telemetry limits the number of spans per second", async () => {
  const { clock, open, telemetry } = setup();
  open();
  const startSpans = () => Array.from({ length: 500 }, () => telemetry.startSpan(call()));

  assert.equal(startSpans().filter(Boolean).length, 100);
  clock.tick(1_000);
  assert.equal(startSpans().filter(Boolean).length, 100);
  await telemetry.stop(undefined);
});

Deno.test("Telemetry sends gauges after a second, then every five seconds", async () => {
  const { clock, open, take, telemetry } = setup();
  telemetry.load = () => [{ name: "engine.handlers.waiting", unit: "1", value: 0 }];
  open();
  clock.tick(1_000);
  const [first] = take();
  clock.tick(4_999);
  assert.deepEqual(take(), []);
  clock.tick(1);

  assert.equal(first!.signal, "MTRC");
  assert.deepEqual(first!.records.map(({ name, unit }) => [name, unit]), [
    ["process.memory.usage", "By"],
    ["process.cpu.utilization", "1"],
    ["engine.event_loop.lag.p99", "s"],
    ["engine.event_loop.lag.max", "s"],
    ["engine.handlers.waiting", "1"],
  ]);
  assert.deepEqual(signals(take()), ["MTRC"]);
  await telemetry.stop(undefined);
});

for (
  const [value, expected] of [["700", 700], ["1", 500], ["rubbish", 5_000]] as const
) {
  Deno.test(`OTEL_METRIC_EXPORT_INTERVAL=${value} sends gauges every ${expected} ms`, async () => {
    Deno.env.set("OTEL_METRIC_EXPORT_INTERVAL", value);
    const { clock, open, take, telemetry } = setup();
    open();
    clock.tick(1_000);
    take();

    clock.tick(expected - 1);
    assert.deepEqual(take(), []);
    clock.tick(1);
    assert.equal(take().length, 1);

    Deno.env.delete("OTEL_METRIC_EXPORT_INTERVAL");
    await telemetry.stop(undefined);
  });
}

Deno.test("Telemetry.stop() sends queued records, then closes and keeps no timer", async () => {
  const { clock, fake, log, open, take, telemetry } = setup();
  open();
  log("the last");
  telemetry.startSpan(call())!(undefined);
  const late = telemetry.startSpan(call());

  await telemetry.stop(undefined);

  assert.deepEqual(signals(take()), ["LOGS", "OTLP"]);
  assert.deepEqual([fake.transport.isClosed, clock.waiting], [true, 0]);
  late!(undefined);
  assert.deepEqual([log("too late"), telemetry.startSpan(call())], [false, undefined]);
  assert.equal(clock.waiting, 0);
});

Deno.test("Telemetry.stop() sends on the worker's main connection if there is no other", async () => {
  const { fake, log, take, telemetry } = setup();
  const main = fake.dial("ws://main", {} as never, {}) as unknown as typeof fake.transport;
  log("the last");

  await telemetry.stop({ isOpen: true, send: (message) => main.send(message) });
  await telemetry.stop({ isOpen: true, send: (message) => main.send(message) });

  assert.deepEqual(take(main).map(texts), [["the last"]]);
});

Deno.test("Telemetry.stop() resolves also if there never was a connection", async () => {
  const { log, telemetry } = setup();
  log("dropped");

  await telemetry.stop(undefined);
});

const ADDRESSES = {
  "ws://127.0.0.1:49134": "ws://127.0.0.1:49134/otel",
  "ws://127.0.0.1:49134/": "ws://127.0.0.1:49134/otel",
  "wss://host/base/?token=x": "wss://host/base/otel?token=x",
  "ws://host?token=a%20b": "ws://host/otel?token=a%20b",
  "no address": "no address",
};
for (const [url, expected] of Object.entries(ADDRESSES)) {
  Deno.test(`telemetryUrl() is ${expected} for ${url}`, () => {
    assert.equal(telemetryUrl(url), expected);
  });
}

Deno.test("telemetryHeaders() contain the authorization only", () => {
  const headers = { "x-a": "1", authorization: "Basic xyz" };

  assert.deepEqual(telemetryHeaders({ headers, token: "t" }), { Authorization: "Bearer t" });
  assert.deepEqual(telemetryHeaders({ headers }), { authorization: "Basic xyz" });
  assert.deepEqual(telemetryHeaders({}), {});
});

const dial = (() => {}) as never;
const CASES = [
  [undefined, {}, true],
  [undefined, { dial }, false],
  [undefined, { dial, telemetry: true }, true],
  [undefined, { telemetry: false }, false],
  ["true", {}, true],
  ["false", {}, false],
  ["False", { telemetry: true }, false],
  ["0", {}, false],
  ["", {}, true],
] as const;
for (const [variable, options, expected] of CASES) {
  const shown = JSON.stringify({ variable, ...options, ..."dial" in options && { dial: "own" } });
  Deno.test(`sendsTelemetry() is ${expected} for ${shown}`, () => {
    if (variable !== undefined) Deno.env.set("OTEL_ENABLED", variable);
    try {
      assert.equal(sendsTelemetry(options), expected);
    } finally {
      Deno.env.delete("OTEL_ENABLED");
    }
  });
}

Deno.test("TelemetryQueue.takeFrame() returns the oldest records first, by service", () => {
  const queue = new TelemetryQueue();
  queue.add("shop", "1");
  queue.add("mail", "2");
  queue.add("shop", "3");

  assert.deepEqual(queue.takeFrame(), [
    { service: "shop", records: ["1", "3"] },
    { service: "mail", records: ["2"] },
  ]);
  assert.ok(queue.isEmpty);
  assert.deepEqual(queue.takeFrame(), []);
});

Deno.test("TelemetryQueue counts dropped records, once", () => {
  const queue = new TelemetryQueue(10);

  assert.deepEqual(["12345", "67890", "x"].map((text) => queue.add("shop", text)), [
    true,
    true,
    false,
  ]);
  assert.deepEqual([queue.takeDropped(), queue.takeDropped()], [1, 0]);
  queue.takeFrame();
  assert.ok(queue.add("shop", "1234567890"));
});

Deno.test("TelemetryQueue limits the size of frames, unless it is a single record", () => {
  const queue = new TelemetryQueue(2_560 * 1024);
  const half = "x".repeat(128 * 1024);
  const large = "y".repeat(512 * 1024);
  for (const text of [half, half, half, large, "z"]) queue.add("shop", text);

  const frames = [];
  while (!queue.isEmpty) frames.push(queue.takeFrame()[0]!.records.map((text) => text[0]));

  assert.deepEqual(frames, [["x", "x"], ["x"], ["y"], ["z"]]);
});

function setupBucket(perSecond: number) {
  const clock = new FakeClock();
  const bucket = new TokenBucket(perSecond, () => clock.now());
  const takeAll = (): number => {
    let taken = 0;
    while (bucket.take()) taken++;
    return taken;
  };
  return { clock, takeAll };
}

Deno.test("TokenBucket provides the tokens of one second at once", () => {
  assert.equal(setupBucket(100).takeAll(), 100);
});

Deno.test("TokenBucket refills with time, up to the tokens of one second", () => {
  const { clock, takeAll } = setupBucket(100);
  takeAll();

  clock.tick(250);
  assert.equal(takeAll(), 25);
  clock.tick(60_000);
  assert.equal(takeAll(), 100);
});

Deno.test("TokenBucket does not refill when the clock goes back", () => {
  let now = 1_000;
  const bucket = new TokenBucket(1, () => now);
  assert.ok(bucket.take());

  now = 0;
  assert.equal(bucket.take(), false);
});
