import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDial } from "../../tests/fakes/fake_dial.ts";
import { type OtlpFrame, readOtlpFrame, valuesOf } from "../../tests/fakes/otlp.ts";
import type { LogLine } from "./logger.ts";
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
import {
  TELEMETRY_AHEAD_BYTES,
  TELEMETRY_BATCH_MS,
  TELEMETRY_FRAME_CHARS_MAX,
  TELEMETRY_QUEUE_CHARS_MAX,
  WORKER_GAUGES_MS,
  WORKER_SPANS_PER_SECOND,
} from "./wire/limits.ts";
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
  const log = (message: string, more: Partial<LogLine> = {}) =>
    telemetry.takeLog({
      level: "info",
      message,
      data: undefined,
      shown: undefined,
      service: undefined,
      ...more,
    });
  /** What was sent since the last time: frames taken apart. */
  const take = (line = fake.transport) => line.binaries.splice(0).map(readOtlpFrame);
  return { clock, fake, log, open, take, telemetry };
}

const texts = ({ records }: OtlpFrame) => records.map(({ body }) => body?.stringValue);
const signals = (frames: OtlpFrame[]) => frames.map(({ signal }) => signal);

function call(fields: Partial<InvokeFunction> = {}): InvokeFunction {
  const type = "invokefunction";
  return { type, invocation_id: "i-1", function_id: "a::b", traceparent: TRACEPARENT, ...fields };
}

Deno.test("Telemetry dials /otel with the token when it is opened, once", async () => {
  const { fake, telemetry } = setup();
  assert.equal(fake.transports.length, 0);

  telemetry.open();
  telemetry.open();

  assert.equal(fake.transports.length, 1);
  assert.equal(fake.transport.url, "ws://127.0.0.1:1/otel?token=x");
  assert.deepEqual(fake.transport.options.headers, { Authorization: "Bearer t" });
  await telemetry.stop(undefined);
});

Deno.test("Telemetry sends log lines together, and says who speaks", async () => {
  const { clock, log, open, take, telemetry } = setup();
  open();
  telemetry.workerId = "w-1";
  log("one", { data: { n: 1 }, shown: '{"n":1}' });
  log("two", { service: "billing" });
  assert.deepEqual(take(), []);

  clock.tick(TELEMETRY_BATCH_MS);

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

Deno.test("Telemetry ties a line to the call in whose handler it is said", async () => {
  const { clock, log, open, take, telemetry } = setup();
  open();
  const scopes = new CallScopes();
  scopes.show();
  const scope = { deadline: undefined, traceparent: TRACEPARENT, baggage: undefined };
  scopes.run(scope, () => log("inside"));
  log("outside");
  scopes.hide();
  scopes.run(scope, () => log("of a worker that has ended"));

  clock.tick(TELEMETRY_BATCH_MS);

  const ids = take()[0]!.records.map(({ traceId, spanId }) => [traceId, spanId]);
  assert.deepEqual(ids, [[TRACE, SPAN], [undefined, undefined], [undefined, undefined]]);
  await telemetry.stop(undefined);
});

Deno.test("Telemetry keeps lines until its line is there, also after a loss", async () => {
  const { clock, fake, log, open, take, telemetry } = setup();
  log("before");
  open();
  assert.deepEqual(take().map(texts), [["before"]]);

  fake.transport.drop();
  log("while there is none");
  clock.tick(60_000);
  fake.transport.open();

  assert.deepEqual(take().map(texts), [["while there is none"]]);
  await telemetry.stop(undefined);
});

Deno.test("Telemetry dials again and again without a word when it is refused", async () => {
  const { clock, fake, telemetry } = setup();
  telemetry.open();
  for (let i = 0; i < 5; i++) {
    fake.transport.drop(1006, "HTTP 401");
    clock.tick(60_000);
  }

  assert.equal(fake.transports.length, 6);
  await telemetry.stop(undefined);
});

Deno.test("Telemetry is bounded, and says how many lines it left out", async () => {
  const { clock, log, open, take, telemetry } = setup();
  const message = "x".repeat(10_000);
  let taken = 0;
  while (log(message)) taken++;
  log(message);
  assert.ok(taken > 90 && taken * 10_000 < TELEMETRY_QUEUE_CHARS_MAX);

  open();
  clock.tick(1_000);

  const frames = take().filter(({ signal }) => signal === "LOGS");
  assert.ok(frames.length > 3);
  const said = frames.flatMap(({ records }) => records).filter(({ severityText }) =>
    severityText === "WARN"
  );
  assert.deepEqual(said.map(({ attributes }) => valuesOf(attributes)), [{ lines: "2" }]);
  assert.equal(frames.flatMap(texts).filter((text) => text === message).length, taken);
  await telemetry.stop(undefined);
});

Deno.test("Telemetry waits while what it sent has not left", async () => {
  const { clock, fake, log, open, take, telemetry } = setup();
  open();
  fake.transport.queuedBytes = TELEMETRY_AHEAD_BYTES;
  log("one");
  clock.tick(60_000);
  assert.deepEqual(take(), []);

  fake.transport.queuedBytes = 0;
  clock.tick(TELEMETRY_BATCH_MS);

  assert.deepEqual(take().map(texts), [["one"]]);
  await telemetry.stop(undefined);
});

Deno.test("Telemetry sends a span for a handler of a sampled call", async () => {
  const { clock, open, take, telemetry } = setup();
  open();
  const end = telemetry.begin(call());
  clock.tick(3);
  end!(undefined);
  telemetry.begin(call({ function_id: "c::d" }))!(errorBody("out", "none left"));

  clock.tick(TELEMETRY_BATCH_MS);

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
    "with nonsense for a trace": "nonsense",
  })
) {
  Deno.test(`Telemetry makes no span for a call ${name}`, async () => {
    const { open, telemetry } = setup();
    open();

    const { traceparent: _, ...rest } = call();
    const ended = telemetry.begin(traceparent === undefined ? rest : { ...rest, traceparent });

    assert.equal(ended, undefined);
    await telemetry.stop(undefined);
  });
}

Deno.test("Telemetry makes a bounded number of spans in a second", async () => {
  const { clock, open, telemetry } = setup();
  open();
  const begin = () => Array.from({ length: 500 }, () => telemetry.begin(call()));

  assert.equal(begin().filter(Boolean).length, WORKER_SPANS_PER_SECOND);
  clock.tick(1_000);
  assert.equal(begin().filter(Boolean).length, WORKER_SPANS_PER_SECOND);
  await telemetry.stop(undefined);
});

Deno.test("Telemetry tells what the process uses, soon and then every five seconds", async () => {
  const { clock, open, take, telemetry } = setup();
  open();
  clock.tick(1_000);
  const [first] = take();
  clock.tick(WORKER_GAUGES_MS - 1);
  assert.deepEqual(take(), []);
  clock.tick(1);

  assert.equal(first!.signal, "MTRC");
  assert.deepEqual(first!.records.map(({ name, unit }) => [name, unit]), [
    ["process.memory.usage", "By"],
    ["process.cpu.utilization", "1"],
    ["engine.event_loop.lag.p99", "s"],
    ["engine.event_loop.lag.max", "s"],
  ]);
  assert.deepEqual(signals(take()), ["MTRC"]);
  await telemetry.stop(undefined);
});

for (
  const [value, expected] of [["700", 700], ["1", 500], ["rubbish", WORKER_GAUGES_MS]] as const
) {
  Deno.test(`OTEL_METRIC_EXPORT_INTERVAL=${value} asks every ${expected} ms`, async () => {
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

Deno.test("Telemetry.stop() sends what waits, then closes and keeps no timer", async () => {
  const { clock, fake, log, open, take, telemetry } = setup();
  open();
  log("the last");
  telemetry.begin(call())!(undefined);
  const late = telemetry.begin(call());

  await telemetry.stop(undefined);

  assert.deepEqual(signals(take()), ["LOGS", "OTLP"]);
  assert.deepEqual([fake.transport.isOver, clock.waiting], [true, 0]);
  late!(undefined);
  assert.deepEqual([log("too late"), telemetry.begin(call())], [false, undefined]);
  assert.equal(clock.waiting, 0);
});

Deno.test("Telemetry.stop() takes the worker's own line when there is no other", async () => {
  const { fake, log, take, telemetry } = setup();
  const own = fake.dial("ws://own", {} as never, {}) as unknown as typeof fake.transport;
  log("the last");

  await telemetry.stop({ isOpen: true, send: (message) => own.send(message) });
  await telemetry.stop({ isOpen: true, send: (message) => own.send(message) });

  assert.deepEqual(take(own).map(texts), [["the last"]]);
});

Deno.test("Telemetry.stop() ends also when there never was a line", async () => {
  const { log, telemetry } = setup();
  log("unheard");

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
  Deno.test(`telemetryUrl() makes ${expected} of ${url}`, () => {
    assert.equal(telemetryUrl(url), expected);
  });
}

Deno.test("telemetryHeaders() has the token and nothing else", () => {
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

Deno.test("TelemetryQueue gives records oldest first, by service", () => {
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

Deno.test("TelemetryQueue counts what finds no room, once", () => {
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

Deno.test("TelemetryQueue cuts frames by size, but never keeps a record for its own", () => {
  const queue = new TelemetryQueue(10 * TELEMETRY_FRAME_CHARS_MAX);
  const half = "x".repeat(TELEMETRY_FRAME_CHARS_MAX / 2);
  const large = "y".repeat(2 * TELEMETRY_FRAME_CHARS_MAX);
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

Deno.test("TokenBucket gives a second's worth at once and no more", () => {
  assert.equal(setupBucket(100).takeAll(), 100);
});

Deno.test("TokenBucket fills with time, never above a second's worth", () => {
  const { clock, takeAll } = setupBucket(100);
  takeAll();

  clock.tick(250);
  assert.equal(takeAll(), 25);
  clock.tick(60_000);
  assert.equal(takeAll(), 100);
});

Deno.test("TokenBucket gives nothing for a clock that goes back", () => {
  let now = 1_000;
  const bucket = new TokenBucket(1, () => now);
  assert.ok(bucket.take());

  now = 0;
  assert.equal(bucket.take(), false);
});
