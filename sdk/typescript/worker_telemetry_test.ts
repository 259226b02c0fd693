import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDial, type FakeTransport } from "../../tests/fakes/fake_dial.ts";
import { readOtlpFrame, valuesOf } from "../../tests/fakes/otlp.ts";
import { serveSockets } from "../../tests/fakes/socket_server.ts";
import { runningTraceparent } from "./trace_context.ts";
import { TELEMETRY_BATCH_MS } from "./wire/limits.ts";
import { Logger } from "./logger.ts";
import type { WorkerOptions } from "./options.ts";
import { registerWorker } from "./worker.ts";

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
  /** The worker's own line and the one for telemetry, once both are open. */
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

/** Lets what is under way in promises run. */
async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
}

Deno.test("a worker opens its telemetry line when it has reached the engine", async () => {
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

Deno.test("a worker with a line of its own or without telemetry opens no second one", async () => {
  for (const telemetry of [undefined, false]) {
    const { fake, worker } = setup({ telemetry });
    fake.transport.open("w-1");

    assert.equal(fake.transports.length, 1);
    await worker.shutdown();
  }
});

Deno.test("a handler becomes a span with its id, its end and its failure", async () => {
  const { clock, open, worker } = setup();
  worker.registerFunction("a::good", () => 1);
  worker.registerFunction("a::bad", () => {
    throw new TypeError("broken");
  });
  const [own, telemetry] = open();
  for (const [invocation_id, function_id] of [["1", "a::good"], ["2", "a::bad"], ["3", "a::no"]]) {
    own.say({
      type: "invokefunction",
      invocation_id: invocation_id!,
      function_id: function_id!,
      traceparent: TRACEPARENT,
    });
  }
  await settle();

  clock.tick(TELEMETRY_BATCH_MS);

  const [frame] = telemetry.binaries.map(readOtlpFrame);
  assert.equal(frame!.resources[0]!["service.instance.id"], "w-1");
  const told = frame!.records.map(({ name, status, attributes }) => {
    const { "engine.invocation.id": id, "engine.error_code": code } = valuesOf(attributes);
    return [name, status!.code, id, code];
  });
  assert.deepEqual(told.sort(), [
    ["execute a::bad", 2, "2", "invocation_failed"],
    ["execute a::good", 1, "1", undefined],
    ["execute a::no", 2, "3", "function_not_found"],
  ]);
  await worker.shutdown();
});

Deno.test("a handler whose caller has left becomes a span that says so", async () => {
  const { clock, open, worker } = setup();
  const { promise, resolve } = Promise.withResolvers<void>();
  worker.registerFunction("a::slow", () => promise);
  const [own, telemetry] = open();
  const ids = { invocation_id: "1", function_id: "a::slow" };
  own.say({ type: "invokefunction", ...ids, traceparent: TRACEPARENT });
  own.say({ type: "cancelinvocation", invocation_id: "1" });
  resolve();
  await settle();

  clock.tick(TELEMETRY_BATCH_MS);

  const [{ records: [span] }] = telemetry.binaries.map(readOtlpFrame) as [
    ReturnType<typeof readOtlpFrame>,
  ];
  assert.equal(valuesOf(span!.attributes)["engine.error_code"], "cancelled");
  await worker.shutdown();
});

Deno.test("a call made in a handler keeps the trace that the engine gave", async () => {
  const { open, worker } = setup();
  worker.registerFunction("a::outer", async () => {
    await settle();
    worker.trigger({ function_id: "b::inner" }).catch(() => {});
  });
  const [own] = open();
  const ids = { invocation_id: "1", function_id: "a::outer" };
  own.say({ type: "invokefunction", ...ids, traceparent: TRACEPARENT });
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
  clock.tick(TELEMETRY_BATCH_MS);

  assert.deepEqual(own.texts, []);
  const [{ records: [record] }] = telemetry.binaries.map(readOtlpFrame) as [
    ReturnType<typeof readOtlpFrame>,
  ];
  assert.equal(record!.body!.stringValue, "hello");
  await worker.shutdown();
});

Deno.test("what a Logger says last leaves on the worker's own line if need be", async () => {
  const { fake, worker } = setup();
  const own = fake.transport.open("w-1");

  quietly(() => new Logger(worker).info("good bye"));
  await worker.shutdown();

  assert.deepEqual(own.binaries.map((bytes) => readOtlpFrame(bytes).signal), ["LOGS"]);
});

Deno.test("a worker that shuts down closes both lines and leaves no timer", async () => {
  const { clock, fake, open, worker } = setup();
  open();

  await worker.shutdown();

  assert.deepEqual(fake.transports.map(({ isOver }) => isOver), [true, true]);
  assert.equal(clock.waiting, 0);
});

Deno.test("a worker that gives up leaves no telemetry line and no timer", () => {
  const { clock, fake, worker } = setup({ reconnect: { maxAttempts: 1 } });
  const own = fake.transport.open("w-1");
  const telemetry = fake.transport.open();
  own.drop();
  while (worker.connectionState !== "failed") {
    clock.tick(clock.nextIn!);
    if (fake.transport !== telemetry && !fake.transport.isOver) fake.transport.drop();
  }

  assert.deepEqual([telemetry.isOver, clock.waiting], [true, 0]);
});

Deno.test("a worker shows which call runs to whatever prints, until it ends", async () => {
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
