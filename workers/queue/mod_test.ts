/**
 * `engine-queue` on a real router: the enqueue action and `engine::queue::*`.
 *
 * `queues_test.ts` has how jobs are given out.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Store } from "../../engine/ports/store.ts";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import { TriggerAction } from "../../sdk/typescript/options.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { LocalEngine } from "../../tests/fakes/local_engine.ts";
import { queue } from "./mod.ts";

/** An engine with `engine-queue`, and a worker that enqueues. */
async function setup(config: Json = {}, store: Store = new MemoryStore()) {
  const clock = new FakeClock();
  const engine = new LocalEngine({ clock, store });
  await engine.start(queue, config);
  const caller = await engine.connect("caller");
  const ask = async (name: string, payload: Json = {}): Promise<JsonObject> => {
    const answer = caller.trigger<Json, JsonObject>({
      function_id: name.includes("::") ? name : `engine::queue::${name}`,
      payload,
    });
    answer.catch(() => {}); // The test awaits it below.
    await engine.settle();
    return await answer;
  };
  return {
    engine,
    clock,
    caller,
    ask,
    /** The enqueue action. */
    enqueue: async (queue: string, payload: Json, function_id = "mail::send") => {
      const action = TriggerAction.Enqueue({ queue });
      const answer = caller.trigger<Json, JsonObject>({ function_id, payload, action });
      answer.catch(() => {});
      await engine.settle();
      return await answer;
    },
    pass: async (ms: number) => {
      clock.tick(ms);
      await engine.settle();
    },
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

Deno.test("an enqueued call is answered with a receipt and made later", async () => {
  await using at = await setup();
  const seen: Json[] = [];
  const { messageReceiptId } = await at.enqueue("default", { to: "a" });
  assert.match(messageReceiptId as string, /^[0-9a-f-]{36}$/);
  assert.equal((await at.ask("stats", { queue: "default" })).waiting, 1);

  const mailer = await at.engine.connect("mailer");
  mailer.registerFunction("mail::send", (payload: Json) => void seen.push(payload));
  await at.engine.settle();

  assert.deepEqual(seen, [{ to: "a" }]);
  const { waiting, running, done_total, failed_total } = await at.ask("stats", {
    queue: "default",
  });
  assert.deepEqual({ waiting, running, done_total, failed_total }, {
    waiting: 0,
    running: 0,
    done_total: 1,
    failed_total: 0,
  });
});

Deno.test("an unknown queue is an error that names the nearest one", async () => {
  await using at = await setup({ queues: { mail: {} } });

  await assert.rejects(at.enqueue("mial", 1), {
    code: "enqueue_error",
    message: "enqueue_error: Queue 'mial' not found",
    details: { similar: ["mail"] },
  });
  const long = { queue: "x".repeat(1_000_000), function_id: "a::b" };
  await assert.rejects(at.ask("enqueue", long), {
    code: "enqueue_error",
    message: `enqueue_error: Queue '${"x".repeat(128)}…' not found`,
  });
});

Deno.test("a failed job is tried again and then dead, with the error of each attempt", async () => {
  await using at = await setup({ queues: { mails: { jitter: 0 } } });
  let calls = 0;
  const mailer = await at.engine.connect("mailer");
  mailer.registerFunction("mail::send", () => {
    throw new EngineError("no_route", `no route ${++calls}`);
  });
  const { messageReceiptId } = await at.enqueue("mails", { to: "a" });
  assert.equal(calls, 1);

  await at.pass(999);
  assert.equal(calls, 1);
  await at.pass(1);
  assert.equal(calls, 2);
  await at.pass(1_999);
  assert.equal(calls, 2);
  await at.pass(1);
  assert.equal(calls, 3);
  await at.pass(3_600_000);
  assert.equal(calls, 3);

  const [dead] = await at.ask("dlq_messages", { topic: "mails" }) as unknown as JsonObject[];
  assert.equal(dead!.id, messageReceiptId);
  assert.deepEqual(dead!.payload, { to: "a" });
  assert.equal(dead!.error, "no_route: no route 3");
  assert.equal(dead!.retries, 3);
  const failures = dead!.failures as JsonObject[];
  assert.deepEqual(failures.map(({ message }) => message), [1, 2, 3].map((n) => `no route ${n}`));
  assert.ok(failures.every(({ stacktrace }) => typeof stacktrace === "string"));
  const topics = await at.ask("dlq_topics") as unknown as JsonObject[];
  assert.deepEqual(topics, [
    { topic: "default", broker_type: "function_queue", message_count: 0 },
    { topic: "mails", broker_type: "function_queue", message_count: 1 },
  ]);
});

Deno.test("a dead job is redriven with another payload, and another one is discarded", async () => {
  await using at = await setup({ queues: { mail: { max_retries: 1 } } });
  const seen: Json[] = [];
  const mailer = await at.engine.connect("mailer");
  mailer.registerFunction("mail::send", (payload: Json) => {
    if ((payload as JsonObject).to === "nowhere") throw new Error("no such address");
    seen.push(payload);
  });
  const one = await at.enqueue("mail", { to: "nowhere" });
  const other = await at.enqueue("mail", { to: "nowhere" });

  const message_id = one.messageReceiptId!;
  assert.deepEqual(
    await at.ask("redrive_message", { queue: "mail", message_id, data: { to: "a" } }),
    { queue: "mail", message_id, redriven: 1 },
  );
  await at.engine.settle();
  assert.deepEqual(seen, [{ to: "a" }]);
  const again = { queue: "mail", message_id };
  assert.deepEqual(await at.ask("redrive_message", again), { ...again, redriven: 0 });

  const gone = { queue: "mail", message_id: other.messageReceiptId! };
  assert.deepEqual(await at.ask("discard_message", gone), { ...gone, redriven: 1 });
  assert.deepEqual(await at.ask("dlq_messages", { topic: "mail" }), []);
  assert.equal((await at.ask("stats", { queue: "mail" })).dead, 0);
});

Deno.test("redrive gives all dead jobs out again", async () => {
  await using at = await setup({ queues: { mail: { max_retries: 1 } } });
  let isDown = true;
  let done = 0;
  const mailer = await at.engine.connect("mailer");
  mailer.registerFunction("mail::send", () => {
    if (isDown) throw new Error("down");
    done++;
  });
  for (let i = 0; i < 250; i++) await at.enqueue("mail", i);
  assert.equal((await at.ask("stats", { queue: "mail" })).dead, 250);

  isDown = false;
  const { redriven } = await at.ask("redrive", { queue: "mail" });
  for (let i = 0; i < 10; i++) await at.engine.settle();

  assert.equal(redriven, 250);
  assert.equal(done, 250);
  const { dead, waiting } = await at.ask("stats", { queue: "mail" });
  assert.deepEqual({ dead, waiting }, { dead: 0, waiting: 0 });
});

Deno.test("a fifo queue refuses a payload without its field, and says what it found", async () => {
  const fifo = { type: "fifo", message_group_field: "customer" };
  await using at = await setup({ queues: { orders: fifo } });

  for (
    const [data, found] of [
      [{}, "which the payload does not have"],
      [null, "which the payload does not have"],
      [[1], "which the payload does not have"],
      [{ customer: null }, "which is null"],
      [{ customer: {} }, "which is an object"],
      [{ customer: [] }, "which is a list"],
    ] as const
  ) {
    await assert.rejects(at.enqueue("orders", data as Json), {
      code: "enqueue_error",
      message: `enqueue_error: Queue 'orders' groups its jobs by the field 'customer', ${found}; ` +
        "expected a string, a number or a boolean",
    });
  }
  await assert.rejects(at.enqueue("orders", { customer: "x".repeat(1_000_000) }), {
    code: "enqueue_error",
    message: /The group of a job for queue 'orders' is too long: 1000000 characters; .*599 bytes/,
  });
  await at.enqueue("orders", { customer: "" });
  await at.enqueue("orders", { customer: "\0~/ü" });
  assert.equal((await at.ask("stats", { queue: "orders" })).waiting, 2);
});

Deno.test("a job that is too large or cannot be kept is refused in the protocol's codes", async () => {
  const store = new MemoryStore();
  await using at = await setup({}, store);
  const write = store.write.bind(store);
  for (
    const [thrown, code, message] of [
      ["VALUE_TOO_LARGE", "enqueue_error", /The job for queue 'default' is too large: why$/],
      ["SET_ERROR", "enqueue_error", /The job for queue 'default' could not be kept: why$/],
      ["overloaded", "overloaded", /why$/],
    ] as const
  ) {
    store.write = () => Promise.reject(new EngineError(thrown, "why", { details: { bytes: 1 } }));
    await assert.rejects(at.enqueue("default", 1), { code, message, details: { bytes: 1 } });
    store.write = write;
  }
  assert.equal((await at.ask("stats", { queue: "default" })).waiting, 0);
});

Deno.test("a call about dead jobs names one queue that there is", async () => {
  await using at = await setup({ queues: { mail: {} } });
  for (const name of ["redrive", "discard", "dlq_messages"]) {
    const both = at.ask(name, { queue: "mail", topic: "mail" });
    await assert.rejects(both, { code: "INVALID_ARGUMENTS", message: /a queue or a topic/ });
    const missing = { code: "INVALID_ARGUMENTS", message: /queue and topic are missing/ };
    await assert.rejects(at.ask(name), missing);
    const similar = { code: "enqueue_error", details: { similar: ["mail"] } };
    await assert.rejects(at.ask(name, { queue: "mial" }), similar);
    await assert.rejects(at.ask(name, { topic: "mial" }), similar);
  }
});

Deno.test("a bad option refuses the job", async () => {
  await using at = await setup();
  const job = { queue: "default", function_id: "a::b", delay_ms: -1 };

  await assert.rejects(at.ask("enqueue", job), { code: "deserialization_error" });
  assert.equal((await at.ask("stats", { queue: "default" })).waiting, 0);
});

Deno.test("a misspelled option is refused with the one that was meant", async () => {
  await using at = await setup();
  const job = { queue: "default", function_id: "a::b" };
  for (
    const [key, meant] of [
      ["delay", "delay_ms"],
      ["delayMs", "delay_ms"],
      ["priorty", "priority"],
      ["runAtMs", "run_at_ms"],
      ["timeout", "timeout_ms"],
    ] as const
  ) {
    await assert.rejects(at.ask("enqueue", { ...job, [key]: 5 }), {
      code: "deserialization_error",
      message: new RegExp(`"${key}" is not an option of a job; did you mean ${meant}\\?$`),
    });
  }

  await at.ask("enqueue", { ...job, something_else: 5 });
  assert.equal((await at.ask("stats", { queue: "default" })).waiting, 1);
});

Deno.test("an id is the same job for a day", async () => {
  await using at = await setup();
  const job = { queue: "default", function_id: "a::b", id: "order-1" };

  assert.deepEqual(await at.ask("enqueue", job), { messageReceiptId: "order-1" });
  assert.deepEqual(await at.ask("enqueue", job), {
    messageReceiptId: "order-1",
    duplicate: true,
  });
  assert.equal((await at.ask("stats", { queue: "default" })).waiting, 1);
  await at.pass(86_400_001);
  assert.deepEqual(await at.ask("enqueue", job), { messageReceiptId: "order-1" });
});

Deno.test("options of the action reach the job, and bad ones are refused", async () => {
  await using at = await setup();
  const send = async (options: JsonObject): Promise<JsonObject> => {
    const action = TriggerAction.Enqueue({ queue: "default", ...options });
    const answer = at.caller.trigger<Json, JsonObject>({ function_id: "a::b", payload: 1, action });
    answer.catch(() => {});
    await at.engine.settle();
    return await answer;
  };

  assert.deepEqual(await send({ id: "x", delay_ms: 5_000 }), { messageReceiptId: "x" });
  assert.equal((await at.ask("stats", { queue: "default" })).delayed, 1);
  await assert.rejects(send({ delay_ms: -1 }), {
    code: "deserialization_error",
    message: /delay_ms: Too small/,
  });
  const enqueued = at.caller.enqueue({ function_id: "a::b", id: "x" });
  await at.engine.settle();
  assert.deepEqual(await enqueued, { messageReceiptId: "x", duplicate: true });
});

Deno.test("a result is kept for as long as was asked", async () => {
  await using at = await setup();
  const worker = await at.engine.connect("adder");
  worker.registerFunction("math::add", ({ a, b }: { a: number; b: number }) => ({ c: a + b }));
  const job = { queue: "default", function_id: "math::add", id: "sum", data: { a: 2, b: 3 } };
  await at.ask("enqueue", { ...job, keep_result_ms: 1_000 });

  const { id, result } = await at.ask("result", { id: "sum" });
  assert.deepEqual({ id, result }, { id: "sum", result: { c: 5 } });
  await at.pass(1_000);
  await assert.rejects(at.ask("result", { id: "sum" }), { code: "NOT_FOUND" });
});

Deno.test("a job joins the trace that enqueued it, and has no deadline of the call", async () => {
  await using at = await setup();
  const seen: (string | undefined)[] = [];
  const worker = await at.engine.connect("w");
  worker.registerFunction("a::b", (_payload, _metadata, { traceparent, timeout_ms }) => {
    seen.push(traceparent, String(timeout_ms));
  });
  const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const action = TriggerAction.Enqueue({ queue: "default" });
  const receipt = at.caller.trigger({ function_id: "a::b", action, traceparent, timeout_ms: 50 });
  await at.engine.settle();
  await receipt;

  assert.match(seen[0]!, /^00-4bf92f3577b34da6a3ce929d0e0e4736-/);
  assert.equal(seen[1], "600000");
});

Deno.test("a worker's death gives its job to another one at once", async () => {
  await using at = await setup();
  const seen: string[] = [];
  const never = new Promise<void>(() => {});
  const first = await at.engine.connect("first");
  first.registerFunction("a::b", () => {
    seen.push("first");
    return never;
  });
  await at.ask("enqueue", { queue: "default", function_id: "a::b" });
  const second = await at.engine.connect("second");
  second.registerFunction("a::b", () => void seen.push("second"));
  await at.engine.settle();
  assert.deepEqual(seen, ["first"]);

  void first.shutdown();
  await at.engine.settle();

  assert.deepEqual(seen, ["first", "second"]);
});

Deno.test("a paused queue gives nothing out, also after a restart", async () => {
  const store = new MemoryStore();
  let calls = 0;
  {
    await using at = await setup({}, store);
    assert.deepEqual(await at.ask("pause", { queue: "default" }), {
      queue: "default",
      paused: true,
    });
    await at.ask("enqueue", { queue: "default", function_id: "a::b" });
  }
  await using at = await setup({}, store);
  const worker = await at.engine.connect("w");
  worker.registerFunction("a::b", () => void calls++);
  await at.engine.settle();
  assert.equal(calls, 0);

  await at.ask("resume", { queue: "default" });
  await at.engine.settle();

  assert.equal(calls, 1);
});

Deno.test("concurrency_per_worker grows with the workers", async () => {
  await using at = await setup({ queues: { mail: { concurrency_per_worker: 2 } } });
  let running = 0;
  const never = new Promise<void>(() => {});
  const handler = () => {
    running++;
    return never;
  };
  for (let i = 0; i < 8; i++) await at.enqueue("mail", i);
  (await at.engine.connect("one")).registerFunction("mail::send", handler);
  await at.engine.settle();
  assert.equal(running, 2);

  (await at.engine.connect("two")).registerFunction("mail::send", handler);
  await at.engine.settle();
  assert.equal(running, 4);
});

Deno.test("what waits is shown with its payload", async () => {
  await using at = await setup();
  const job = { queue: "default", function_id: "a::b", data: { n: 1 } };
  await at.ask("enqueue", { ...job, id: "x" });
  await at.ask("enqueue", { ...job, id: "y", delay_ms: 5_000, priority: 3 });

  const { jobs } = await at.ask("peek", { queue: "default" });
  const seen = (jobs as JsonObject[]).map(({ id, state, payload }) => ({ id, state, payload }));
  assert.deepEqual(seen, [
    { id: "x", state: "waiting", payload: { n: 1 } },
    { id: "y", state: "delayed", payload: { n: 1 } },
  ]);
});
