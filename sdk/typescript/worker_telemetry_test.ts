import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDial, type FakeTransport } from "../../tests/fakes/fake_dial.ts";
import { readOtlpFrame, valuesOf } from "../../tests/fakes/otlp.ts";
import { serveSockets } from "../../tests/fakes/socket_server.ts";
import { Logger } from "./logger.ts";
import type { WorkerOptions } from "./options.ts";
import { runningTraceparent } from "./trace_context.ts";
import { registerWorker } from "./register_worker.ts";

const TRACEPARENT = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;

function setup(options: WorkerOptions = {}) {
  const clock = new FakeClock();
  const fake = new FakeDial();
  const worker = registerWorker("ws://127.0.0.1:1", {
    workerName: "shop",
    clock,
    dial: fake.dial,
    telemetry: true,
    onError() {},
    ...options,
  });
  /** Opens the main connection and the one for telemetry. */
  const open = (): [FakeTransport, FakeTransport] => {
    const own = fake.transport.open("w-1");
    const telemetry = fake.transport.open();
    own.take();
    return [own, telemetry];
  };
  return { clock, fake, open, worker };
}

function quietly(task: () => void): void {
  const { info } = console;
  console.info = () => {};
  task();
  console.info = info;
}

/** Runs pending microtasks. */
async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
}

Deno.test("a worker opens its telemetry connection when its main connection is open", async () => {
  const { fake, open, worker } = setup({ token: "t" });
  assert.deepEqual(fake.transports.map(({ url }) => url), ["ws://127.0.0.1:1/"]);

  open();
  fake.transports[0]!.drop();

  assert.deepEqual(fake.transports.map(({ url }) => url), [
    "ws://127.0.0.1:1/",
    "ws://127.0.0.1:1/otel",
  ]);
  assert.deepEqual(fake.transport.options.headers, { Authorization: "Bearer t" });
  await worker.shutdown();
});

Deno.test("a worker with its own dial or without telemetry opens one connection", async () => {
  for (const telemetry of [undefined, false]) {
    const { fake, worker } = setup({ telemetry });
    fake.transport.open("w-1");

    assert.equal(fake.transports.length, 1);
    await worker.shutdown();
  }
});

Deno.test("a handler is recorded as a span with its id, status and error code", async () => {
  const { clock, open, worker } = setup();
  worker.registerFunction("a::good", () => 1);
  worker.registerFunction("a::bad", () => {
    throw new TypeError("broken");
  });
  const [own, telemetry] = open();
  for (const [invocation_id, function_id] of [["1", "a::good"], ["2", "a::bad"], ["3", "a::no"]]) {
    own.deliver({
      type: "invokefunction",
      invocation_id: invocation_id!,
      function_id: function_id!,
      traceparent: TRACEPARENT,
    });
  }
  await settle();

  clock.tick(100);

  const [frame] = telemetry.binaries.map(readOtlpFrame);
  assert.equal(frame!.resources[0]!["service.instance.id"], "w-1");
  const spans = frame!.records.map(({ name, status, attributes }) => {
    const { "engine.invocation.id": id, "engine.error_code": code } = valuesOf(attributes);
    return [name, status!.code, id, code];
  });
  assert.deepEqual(spans.sort(), [
    ["execute a::bad", 2, "2", "invocation_failed"],
    ["execute a::good", 1, "1", undefined],
    ["execute a::no", 2, "3", "function_not_found"],
  ]);
  await worker.shutdown();
});

Deno.test("the span of a handler whose call was cancelled has the code cancelled", async () => {
  const { clock, open, worker } = setup();
  const { promise, resolve } = Promise.withResolvers<void>();
  worker.registerFunction("a::slow", () => promise);
  const [own, telemetry] = open();
  const ids = { invocation_id: "1", function_id: "a::slow" };
  own.deliver({ type: "invokefunction", ...ids, traceparent: TRACEPARENT });
  own.deliver({ type: "cancelinvocation", invocation_id: "1" });
  resolve();
  await settle();

  clock.tick(100);

  const [{ records: [span] }] = telemetry.binaries.map(readOtlpFrame) as [
    ReturnType<typeof readOtlpFrame>,
  ];
  assert.equal(valuesOf(span!.attributes)["engine.error_code"], "cancelled");
  await worker.shutdown();
});

Deno.test("a call inside a handler inherits its traceparent", async () => {
  const { open, worker } = setup();
  worker.registerFunction("a::outer", async () => {
    await settle();
    worker.trigger({ function_id: "b::inner" }).catch(() => {});
  });
  const [own] = open();
  const ids = { invocation_id: "1", function_id: "a::outer" };
  own.deliver({ type: "invokefunction", ...ids, traceparent: TRACEPARENT });
  await settle();
  await settle();

  const inner = own.messages.find(({ function_id }) => function_id === "b::inner");
  assert.equal(inner!.traceparent, TRACEPARENT);
  await worker.shutdown();
});

Deno.test("a Logger of a worker with telemetry makes no calls", async () => {
  const { clock, open, worker } = setup();
  const [own, telemetry] = open();

  quietly(() => new Logger(worker).info("hello", { n: 1 }));
  clock.tick(100);

  assert.deepEqual(own.texts, []);
  const [{ records: [record] }] = telemetry.binaries.map(readOtlpFrame) as [
    ReturnType<typeof readOtlpFrame>,
  ];
  assert.equal(record!.body!.stringValue, "hello");
  await worker.shutdown();
});

Deno.test("the last lines of a Logger are sent on the worker's main connection", async () => {
  const { fake, worker } = setup();
  const own = fake.transport.open("w-1");

  quietly(() => new Logger(worker).info("good bye"));
  await worker.shutdown();

  assert.deepEqual(own.binaries.map((bytes) => readOtlpFrame(bytes).signal), ["LOGS"]);
});

Deno.test("shutdown() closes both connections and leaves no timer", async () => {
  const { clock, fake, open, worker } = setup();
  open();

  await worker.shutdown();

  assert.deepEqual(fake.transports.map(({ isClosed }) => isClosed), [true, true]);
  assert.equal(clock.waiting, 0);
});

Deno.test("a worker that fails leaves no telemetry connection and no timer", () => {
  const { clock, fake, worker } = setup({ reconnect: { maxAttempts: 1 } });
  const own = fake.transport.open("w-1");
  const telemetry = fake.transport.open();
  own.drop();
  while (worker.connectionState !== "failed") {
    clock.tick(clock.nextIn!);
    if (fake.transport !== telemetry && !fake.transport.isClosed) fake.transport.drop();
  }

  assert.deepEqual([telemetry.isClosed, clock.waiting], [true, 0]);
});

Deno.test("runningTraceparent() is that of the running handler until its worker ends", async () => {
  const invocation = { type: "invokefunction", function_id: "a::b", traceparent: TRACEPARENT };
  await using server = serveSockets({
    message(socket, data) {
      if (String(data).includes('"registerfunction"')) socket.send(JSON.stringify(invocation));
    },
  });
  const seen: (string | undefined)[] = [];
  const worker = registerWorker(server.url, { telemetry: false });

  await new Promise<void>((resolve) =>
    worker.registerFunction("a::b", async () => {
      seen.push(runningTraceparent());
      await worker.shutdown();
      seen.push(runningTraceparent());
      resolve();
    })
  );

  assert.deepEqual(seen, [TRACEPARENT, undefined]);
});
