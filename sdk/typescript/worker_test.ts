import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDial } from "../../tests/fakes/fake_dial.ts";
import { readVectors } from "../../tests/fakes/source_tree.ts";
import { Logger } from "./logger.ts";
import type { WorkerOptions } from "./options.ts";
import { registerWorker } from "./register_worker.ts";
import type { Worker } from "./worker.ts";
import type { EngineError } from "./wire/errors.ts";
import type { EngineMessage, InvocationResult, Json } from "./wire/protocol.ts";

function setup(options: WorkerOptions = {}) {
  const clock = new FakeClock();
  const fake = new FakeDial();
  const errors: EngineError[] = [];
  const worker = registerWorker("ws://127.0.0.1:1/?token=secret", {
    workerName: "shop",
    clock,
    dial: fake.dial,
    onError: (error) => errors.push(error),
    ...options,
  });
  /** Loses the connection and opens the next one. */
  const reconnect = (workerId: string): void => {
    fake.transport.drop();
    clock.tick(30_000);
    fake.transport.open(workerId);
  };
  return { clock, reconnect, errors, fake, worker };
}

/** Runs pending microtasks. */
async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
}

const types = (messages: Record<string, Json>[]): Json[] => messages.map(({ type }) => type!);
const PROVIDER = { registerTrigger(): void {}, unregisterTrigger(): void {} };

Deno.test("a worker sends its announcement, its registrations, then its queued calls", async () => {
  const { fake, worker } = setup({ description: "sells", token: "t", headers: { "x-a": "1" } });
  worker.registerTrigger({ type: "http", function_id: "a::b", config: { api_path: "/a" } });
  worker.registerFunction("a::b", () => 1, { description: "one", metadata: { team: "shop" } });
  worker.registerTriggerType({ id: "watch", description: "watches" }, PROVIDER);
  worker.trigger({ function_id: "math::add" }).catch(() => {});

  fake.transport.open("w-1");

  const [announcement, ...rest] = fake.transport.take();
  assert.equal(announcement!.function_id, "engine::workers::register");
  assert.deepEqual(announcement!.action, { type: "void" });
  const { name, description, runtime } = announcement!.data as Record<string, Json>;
  assert.deepEqual([name, description, runtime], ["shop", "sells", "deno"]);
  assert.deepEqual(types(rest), [
    "registertriggertype",
    "registerfunction",
    "registertrigger",
    "invokefunction",
  ]);
  assert.deepEqual(fake.transport.options.headers, { "x-a": "1", Authorization: "Bearer t" });
  await worker.shutdown();
});

Deno.test("a worker that reconnects sends reattach first, then all registrations", async () => {
  const { reconnect, fake, worker } = setup();
  fake.transport.open("w-1");
  worker.registerFunction("a::b", () => 1);
  worker.registerFunction("a::gone", () => 1).unregister();
  const trigger = worker.registerTrigger({ type: "http", function_id: "a::b" });

  reconnect("w-2");
  const second = fake.transport.take();
  trigger.unregister();
  reconnect("w-3");

  assert.deepEqual(second[0], {
    type: "reattach",
    previous_worker_id: "w-1",
    reattach_token: "token of w-1",
  });
  assert.deepEqual(types(second), [
    "reattach",
    "invokefunction",
    "registerfunction",
    "registertrigger",
  ]);
  const third = fake.transport.take();
  assert.equal(third[0]!.previous_worker_id, "w-2");
  assert.deepEqual(types(third), ["reattach", "invokefunction", "registerfunction"]);
  await worker.shutdown();
});

Deno.test("a registration without a connection is sent once, when there is one", async () => {
  const { clock, fake, worker } = setup();
  fake.transport.open("w-1");
  fake.transport.drop();
  worker.registerFunction("a::b", () => 1);

  clock.tick(30_000);
  fake.transport.open("w-2");

  assert.deepEqual(types(fake.transport.messages), [
    "reattach",
    "invokefunction",
    "registerfunction",
  ]);
  await worker.shutdown();
});

Deno.test("calls that were sent fail when the connection is lost; queued ones are sent on the next", async () => {
  const { clock, fake, worker } = setup();
  fake.transport.open("w-1");
  const sent = worker.trigger({ function_id: "a::sent" });
  fake.transport.drop();
  await assert.rejects(sent, { code: "invocation_stopped" });
  const queued = worker.trigger({ function_id: "a::queued" });
  const late = worker.trigger({ function_id: "a::late", timeout_ms: 10 });

  clock.tick(1_500);
  await assert.rejects(late, { code: "TIMEOUT" });
  fake.transport.open("w-2");

  const call = fake.transport.messages.at(-1)!;
  assert.equal(call.function_id, "a::queued");
  assert.equal(call.timeout_ms, 28_500);
  const invocation_id = call.invocation_id as string;
  fake.transport.deliver({ type: "invocationresult", invocation_id, function_id: "", result: 7 });
  assert.equal(await queued, 7);
  await worker.shutdown();
});

Deno.test("a worker with whenDisconnected fail waits for its first attempt to connect only", async () => {
  const unreachable = { code: "engine_unreachable", retryable: true };
  const { clock, fake, worker } = setup({ whenDisconnected: "fail" });
  const first = worker.trigger({ function_id: "a::first" });
  fake.transport.drop();
  await assert.rejects(first, unreachable);
  await assert.rejects(worker.trigger({ function_id: "a::second" }), unreachable);

  clock.tick(1_500);
  fake.transport.open("w-1");
  const sent = worker.trigger({ function_id: "a::sent" });
  fake.transport.drop(1001, "the engine is stopping");
  await assert.rejects(sent, {
    code: "invocation_stopped",
    details: { reason: "the engine is stopping" },
  });
  await assert.rejects(worker.trigger({ function_id: "a::late" }), unreachable);
  await worker.shutdown();
});

Deno.test("a worker with whenDisconnected fail sends the calls of its first attempt", async () => {
  const { fake, worker } = setup({ whenDisconnected: "fail" });
  const call = worker.trigger({ function_id: "a::b" });

  fake.transport.open("w-1");

  const { invocation_id } = fake.transport.messages.at(-1)!;
  const ids = { invocation_id: invocation_id as string, function_id: "a::b" };
  fake.transport.deliver({ type: "invocationresult", ...ids, result: 7 });
  assert.equal(await call, 7);
  await worker.shutdown();
});

Deno.test("a worker rejects another whenDisconnected, and a registration over 256 KiB", async () => {
  const other = { whenDisconnected: "queue" as never };
  assert.throws(() => setup(other), { code: "INVALID_ARGUMENTS", message: /"wait" or "fail"/ });
  const { worker } = setup();
  const metadata = { text: "x".repeat(256 * 1024) };

  assert.throws(() => worker.registerFunction("a::b", () => 1, { metadata }), {
    code: "serialization_error",
    message: /The registration of a::b takes \d+ bytes; at most 262144 are allowed/,
  });
  await worker.shutdown();
});

Deno.test("a result is never sent on another connection than that of its call", async () => {
  const { reconnect, fake, worker } = setup();
  const gate = Promise.withResolvers<void>();
  let reason: unknown;
  worker.registerFunction("a::slow", async (_payload, _metadata, { signal }) => {
    await gate.promise;
    reason = signal.reason;
  });
  fake.transport.open("w-1");
  fake.transport.deliver({ type: "invokefunction", invocation_id: "1", function_id: "a::slow" });

  reconnect("w-2");
  fake.transport.take();
  gate.resolve();
  await settle();

  assert.deepEqual(fake.transport.messages, []);
  assert.equal((reason as EngineError).code, "invocation_stopped");
  await worker.shutdown();
});

Deno.test("a call inside a handler inherits its remaining timeout", async () => {
  const { clock, fake, worker } = setup();
  worker.registerFunction("a::b", async () => {
    await Promise.resolve();
    return worker.trigger({ function_id: "c::d", timeout_ms: 20_000 });
  });
  fake.transport.open("w-1").take();

  const call = { type: "invokefunction", invocation_id: "1", function_id: "a::b" } as const;
  fake.transport.deliver({ ...call, timeout_ms: 5_000 });
  await settle();

  const nested = fake.transport.messages[0]!;
  assert.deepEqual([nested.function_id, nested.timeout_ms], ["c::d", 5_000]);
  clock.tick(6_000);
  await settle();
  const response = fake.transport.messages.at(-1)!;
  assert.equal((response.error as Record<string, Json>).code, "TIMEOUT");
  await worker.shutdown();
});

Deno.test("a worker uses only the capabilities of the engine on this connection", async () => {
  const { reconnect, fake, worker } = setup();
  worker.registerFunction("a::b", (_payload, _metadata, context) => context.progress(1));
  const call = { type: "invokefunction", invocation_id: "1", function_id: "a::b" } as const;

  fake.transport.open("w-1").take();
  fake.transport.deliver(call);
  await settle();
  assert.deepEqual(types(fake.transport.messages), ["invocationprogress", "invocationresult"]);

  reconnect("w-2");
  const identity = { worker_id: "w-2", reattach_token: "t", capabilities: [] };
  fake.transport.deliver({ type: "workerregistered", ...identity });
  fake.transport.take();
  fake.transport.deliver(call);
  await settle();
  assert.deepEqual(types(fake.transport.messages), ["invocationresult"]);
  await worker.shutdown();
});

Deno.test("a provider unregisters triggers when the connection is lost, and registers live ones again", async () => {
  const { reconnect, fake, worker } = setup();
  const log: string[] = [];
  const registration = worker.registerTriggerType({ id: "watch", description: "" }, {
    registerTrigger: ({ id }) => void log.push(`+${id}`),
    unregisterTrigger: ({ id }) => void log.push(`-${id}`),
  });
  const register = (id: string): void =>
    fake.transport.deliver({
      type: "registertrigger",
      id,
      trigger_type: "watch",
      function_id: "a::b",
    });
  fake.transport.open("w-1");
  register("t1");
  await settle();
  assert.deepEqual(fake.transport.messages.at(-1), {
    type: "triggerregistrationresult",
    id: "t1",
    trigger_type: "watch",
    function_id: "a::b",
  });

  reconnect("w-2");
  register("t1");
  register("t2");
  await settle();
  fake.transport.deliver({ type: "unregistertrigger", id: "t2", trigger_type: "watch" });
  registration.unregister();

  assert.deepEqual(log, ["+t1", "-t1", "+t1", "+t2", "-t2", "-t1"]);
  await worker.shutdown();
});

Deno.test("shutdown() fails calls, sends nothing, and leaves no timer", async () => {
  const { clock, fake, worker } = setup();
  const states: string[] = [];
  worker.onConnectionState((state) => states.push(state));
  fake.transport.open("w-1");
  worker.registerFunction("a::b", () => 1);
  const call = worker.trigger({ function_id: "c::d" });
  fake.transport.take();

  await Promise.all([worker.shutdown(), worker.shutdown()]);

  const down = { code: "SHUTDOWN", message: "SHUTDOWN: engine client is shutting down" };
  await assert.rejects(call, down);
  await assert.rejects(worker.trigger({ function_id: "c::d" }), down);
  assert.deepEqual(fake.transport.messages, []);
  assert.deepEqual(states, ["connected", "disconnected"]);
  assert.equal(clock.waiting, 0);
  assert.equal(worker.registerFunction("late::one", () => 1).id, "late::one");
});

Deno.test("`await using` shuts a worker down", async () => {
  const { fake, worker } = setup();
  {
    await using _worker = worker;
    fake.transport.open("w-1");
  }

  assert.equal(worker.connectionState, "disconnected");
  assert.ok(fake.transport.isClosed);
});

Deno.test("a worker without further attempts fails queued calls with engine_unreachable", async () => {
  const { clock, errors, fake, worker } = setup({ reconnect: { maxAttempts: 1 } });
  const call = worker.trigger({ function_id: "a::b" });

  fake.transport.drop(1006, "connect ECONNREFUSED 127.0.0.1:1");

  const message = "Cannot reach the engine at ws://127.0.0.1:1/: connect ECONNREFUSED 127.0.0.1:1";
  assert.equal(worker.connectionState, "failed");
  assert.deepEqual(errors.map((error) => error.message), [message]);
  const unreachable = { code: "engine_unreachable", retryable: true };
  await assert.rejects(call, { ...unreachable, message: `engine_unreachable: ${message}` });
  await assert.rejects(worker.trigger({ function_id: "a::b" }), unreachable);
  assert.equal(clock.waiting, 0);
  await worker.shutdown();
  assert.equal(worker.connectionState, "failed");
});

Deno.test("a worker that was given no address says what to do when nothing listens there", async () => {
  const fake = new FakeDial();
  const messages: string[] = [];
  const worker = registerWorker("ws://127.0.0.1:49134", {
    clock: new FakeClock(),
    dial: fake.dial,
    onError: ({ message }) => messages.push(message),
  });

  fake.transport.drop(1006, "connect ECONNREFUSED 127.0.0.1:49134");

  assert.match(messages[0]!, /; retrying in the background; start the engine, or set ENGINE_URL/);
  await worker.shutdown();
});

Deno.test("a worker reports each reason why it cannot connect once, without the token", async () => {
  const { clock, errors, fake, worker } = setup();

  for (const reason of ["HTTP 401", "HTTP 401", "ECONNREFUSED"]) {
    fake.transport.drop(1006, reason);
    clock.tick(40_000);
  }

  assert.deepEqual(errors.map(({ message }) => message), [
    "Cannot reach the engine at ws://127.0.0.1:1/: HTTP 401; retrying in the background",
    "Cannot reach the engine at ws://127.0.0.1:1/: ECONNREFUSED; retrying in the background",
  ]);
  await worker.shutdown();
});

Deno.test("onConnectionState() reports each state until the listener is removed", async () => {
  const { reconnect, errors, fake, worker } = setup();
  const states: string[] = [];
  worker.onConnectionState(() => {
    throw new Error("listener broke");
  });
  const stop = worker.onConnectionState((state) => states.push(state));
  assert.equal(worker.connectionState, "connecting");

  fake.transport.open("w-1");
  reconnect("w-2");
  stop();
  await worker.shutdown();

  assert.deepEqual(states, ["connected", "reconnecting", "connected"]);
  assert.match(errors[0]!.message, /listener broke/);
});

Deno.test("a fatal registrationrejected stops the worker, others are reported", async () => {
  const { clock, errors, fake, worker } = setup();
  fake.transport.open("w-1");
  const rejected = { type: "registrationrejected", namespace: "default" } as const;

  fake.transport.deliver({
    ...rejected,
    code: "FUNCTION_NAMESPACE_CONFLICT",
    function_id: "engine::x",
    message: "reserved",
  });
  assert.equal(worker.connectionState, "connected");
  fake.transport.deliver({ ...rejected, code: "WORKER_NAMESPACE_CONFLICT", worker_name: "shop" });

  assert.equal(worker.connectionState, "failed");
  assert.ok(fake.transport.isClosed);
  assert.equal(clock.waiting, 0);
  assert.deepEqual(errors.map(({ message }) => message), [
    "The engine refused engine::x in namespace default (FUNCTION_NAMESPACE_CONFLICT): reserved",
    "The engine refused shop in namespace default (WORKER_NAMESPACE_CONFLICT)",
  ]);
  await worker.shutdown();
});

Deno.test("a worker that access rules refuse waits longer each time, until it is let in", async () => {
  const { clock, errors, fake, worker } = setup();
  const refuse = (): number => {
    fake.transport.open();
    const error = { code: "AUTH_ERROR", message: "The connection is not authorised: no key" };
    fake.transport.deliver({ type: "error", error });
    fake.transport.drop(1008, "not authorised");
    const wait = clock.nextIn ?? 0;
    clock.tick(wait);
    return wait;
  };

  assert.ok(refuse() < 1_301);
  assert.ok(refuse() > 1_399);
  assert.match(errors[0]!.message, /no key/);
  fake.transport.open("w-1");
  fake.transport.drop(1001, "engine is stopping");
  assert.ok((clock.nextIn ?? 0) < 1_301);
  await worker.shutdown();
});

Deno.test("a rejected trigger is printed with its id and type, and nothing is thrown", async () => {
  const { error } = console;
  const lines: string[] = [];
  console.error = (line: string) => lines.push(line);
  const { fake, worker } = setup({ onError: undefined });
  try {
    fake.transport.open("w-1");
    const { id } = worker.registerTrigger({ type: "cron", function_id: "a::b" });
    fake.transport.deliver({
      type: "triggerregistrationresult",
      id,
      trigger_type: "cron",
      function_id: "a::b",
      error: { code: "trigger_registration_failed", message: "Cron expression is required" },
    });

    const text = `[engine] Trigger registration failed for "${id}" (cron): ` +
      "Cron expression is required";
    assert.deepEqual(lines, [text]);
  } finally {
    console.error = error;
    await worker.shutdown();
  }
});

Deno.test("an onError that throws does not end the worker", async () => {
  const { error } = console;
  console.error = () => {};
  const { fake, worker } = setup({
    onError: () => {
      throw new Error("no");
    },
  });
  try {
    fake.transport.open("w-1");
    fake.transport.deliverText("not JSON");

    assert.equal(worker.connectionState, "connected");
  } finally {
    console.error = error;
    await worker.shutdown();
  }
});

Deno.test("a worker keeps its connection after every vector of the engine, and truncated ones", async () => {
  const { fake, worker } = setup();
  worker.registerFunction("a::b", () => "alive");
  fake.transport.open("w-1");
  const frames = (await readVectors()).filter(({ message, direction }) =>
    direction === "engine" && message?.code !== "WORKER_NAMESPACE_CONFLICT"
  );
  for (const { frame } of frames) fake.transport.deliverText(frame);
  for (let seed = 1; seed < 300; seed++) {
    const { frame } = frames[seed % frames.length]!;
    fake.transport.deliverText(frame.slice(0, seed * 7919 % (frame.length + 1)));
  }
  await settle();
  fake.transport.take();

  fake.transport.deliver({ type: "invokefunction", invocation_id: "z", function_id: "a::b" });
  await settle();

  assert.ok(frames.length > 10);
  assert.equal(worker.connectionState, "connected");
  assert.equal(fake.transport.messages.at(-1)!.result, "alive");
  await worker.shutdown();
});

Deno.test("a Logger of a worker sends its lines as calls", async () => {
  const { info } = console;
  console.info = () => {};
  const { fake, worker } = setup();
  fake.transport.open("w-1").take();
  try {
    new Logger(worker).info("accepted", { order: 7 });
  } finally {
    console.info = info;
  }

  const payload = { message: "accepted", data: { order: 7 }, service_name: "shop" };
  assert.deepEqual(fake.transport.messages, [{
    type: "invokefunction",
    function_id: "engine::log::info",
    action: { type: "void" },
    data: payload,
  }]);
  await worker.shutdown();
});

const handler = () => 1;
const invalid: Record<string, (worker: Worker) => void> = {
  "a function without an id": (worker) => worker.registerFunction("", handler),
  "a function without a handler": (worker) =>
    worker.registerFunction("a::b", undefined as unknown as typeof handler),
  "a function in an empty namespace": (worker) =>
    worker.registerFunction("a::b", handler, { namespace: "" }),
  "a trigger without a type": (worker) => worker.registerTrigger({ type: "", function_id: "a" }),
  "a trigger without a function": (worker) =>
    worker.registerTrigger({ type: "x", function_id: "" }),
  "a trigger in an empty namespace": (worker) =>
    worker.registerTrigger({ type: "x", function_id: "a", trigger_namespace: "" }),
  "a trigger type without an id": (worker) =>
    worker.registerTriggerType({ id: "", description: "" }, PROVIDER),
  "a trigger type without handlers": (worker) =>
    worker.registerTriggerType({ id: "x", description: "" }, {} as typeof PROVIDER),
  "a listener that is not a function": (worker) =>
    worker.onConnectionState("x" as unknown as () => void),
};
for (const [name, register] of Object.entries(invalid)) {
  Deno.test(`a worker rejects ${name} and sends nothing`, async () => {
    const { fake, worker } = setup();
    fake.transport.open("w-1").take();

    assert.throws(() => register(worker), { name: "EngineError", code: "INVALID_ARGUMENTS" });

    assert.deepEqual(fake.transport.messages, []);
    await worker.shutdown();
  });
}

const badOptions: Record<string, WorkerOptions> = {
  "a timeout of 0": { timeoutMs: 0 },
  "no attempts": { reconnect: { maxAttempts: 0 } },
  "an onError that is not a function": { onError: "x" as unknown as () => void },
};
for (const [name, options] of Object.entries(badOptions)) {
  Deno.test(`registerWorker() rejects ${name} and does not connect`, () => {
    const { dial, transports } = new FakeDial();

    assert.throws(() => registerWorker("ws://127.0.0.1:1", { dial, ...options }), {
      code: "INVALID_ARGUMENTS",
    });

    assert.deepEqual(transports, []);
  });
}

Deno.test("registerWorker() uses its argument, else ENGINE_URL, else the default", async () => {
  const { dial, transports } = new FakeDial();
  const before = Deno.env.get("ENGINE_URL");
  Deno.env.set("ENGINE_URL", "http://127.0.0.1:2");
  const workers = [
    registerWorker("wss://engine.example", { dial }),
    registerWorker(undefined, { dial }),
  ];
  Deno.env.delete("ENGINE_URL");
  workers.push(registerWorker(undefined, { dial }));
  if (before !== undefined) Deno.env.set("ENGINE_URL", before);

  assert.deepEqual(transports.map(({ url }) => url), [
    "wss://engine.example/",
    "ws://127.0.0.1:2/",
    "ws://127.0.0.1:49134/",
  ]);
  await Promise.all(workers.map((worker) => worker.shutdown()));
});

Deno.test("publish calls the function of that name, and a subscription is a function and a trigger", async () => {
  const { errors, fake, worker } = setup();
  fake.transport.open("w-1").take();

  const published = worker.publish("orders.new", { id: 7 });
  const heard: Json[] = [];
  const subscription = worker.subscribe("orders.*", (data) => void heard.push(data));

  const [call, offered, asked] = fake.transport.take() as Record<string, Json>[];
  assert.deepEqual([call!.function_id, call!.data], ["publish", {
    topic: "orders.new",
    data: { id: 7 },
  }]);
  assert.deepEqual(offered!.metadata, { internal: true });
  assert.deepEqual([asked!.trigger_type, asked!.function_id, asked!.config, asked!.id], [
    "subscribe",
    offered!.id,
    { topic: "orders.*" },
    subscription.id,
  ]);
  const { invocation_id, function_id } = call as unknown as InvocationResult;
  fake.transport.deliver({ type: "invocationresult", invocation_id, function_id });
  assert.equal(await published, undefined);
  fake.transport.deliver({
    type: "invokefunction",
    invocation_id: "e-1",
    function_id: offered!.id as string,
    data: { id: 7 },
  });
  await settle();
  assert.deepEqual(heard, [{ id: 7 }]);

  fake.transport.take();
  subscription.unregister();
  subscription.unregister();
  assert.deepEqual(types(fake.transport.take() as Record<string, Json>[]), [
    "unregistertrigger",
    "unregisterfunction",
  ]);
  assert.throws(() => worker.subscribe("", () => {}), { code: "INVALID_ARGUMENTS" });
  assert.throws(() => worker.subscribe("t", 5 as never), { code: "INVALID_ARGUMENTS" });
  assert.deepEqual(errors, []);
  await worker.shutdown();
});

Deno.test("a ping gets a pong, an error is reported, and other messages are ignored", async () => {
  const { errors, fake, worker } = setup();
  fake.transport.open("w-1").take();
  const messages: EngineMessage[] = [
    { type: "ping" },
    { type: "pong" },
    { type: "invocationresult", invocation_id: "unknown", function_id: "x" },
    { type: "error", error: { code: "overloaded", message: "Too much" } },
  ];
  for (const message of messages) fake.transport.deliver(message);

  assert.deepEqual(fake.transport.messages, [{ type: "pong" }]);
  assert.deepEqual(errors.map(({ code, message }) => [code, message]), [[
    "overloaded",
    "Too much",
  ]]);
  await worker.shutdown();
});

Deno.test("a function with a URL is sent as such, and has no handler here", async () => {
  const { fake, worker } = setup();
  const url = "https://api.example.com/quote";
  worker.registerFunction("web::quote", { url, timeout_ms: 800 }, { description: "A quote" });
  fake.transport.open("w-1");

  const [, registered] = fake.transport.take();
  assert.deepEqual(registered, {
    type: "registerfunction",
    id: "web::quote",
    description: "A quote",
    invocation: { url, timeout_ms: 800 },
  });
  fake.transport.deliver({
    type: "invokefunction",
    invocation_id: "i",
    function_id: "web::quote",
  });
  await settle();
  const [answer] = fake.transport.take();
  assert.equal((answer!.error as Record<string, Json>).code, "function_not_invokable");
  await worker.shutdown();
});

Deno.test("what is neither a handler nor a URL is no function", async () => {
  const { worker } = setup();
  for (const wrong of [undefined, null, {}, "https://api.example.com", { address: "a" }]) {
    assert.throws(() => worker.registerFunction("a::b", wrong as never), {
      code: "INVALID_ARGUMENTS",
    });
  }
  await worker.shutdown();
});
