import assert from "node:assert/strict";
import { EngineError, InvocationError } from "../typescript/wire/errors.ts";
import { registerWorker } from "../typescript/register_worker.ts";
import type { Json } from "../typescript/wire/protocol.ts";
import { startTestEngine, type TestEngineOptions } from "./engine.ts";

/** An engine with a worker. */
function setup(options: TestEngineOptions = {}) {
  const engine = startTestEngine(options);
  const errors: EngineError[] = [];
  const worker = registerWorker("ws://127.0.0.1:1", {
    workerName: "orders",
    onError: (error) => void errors.push(error),
  });
  const stack = new AsyncDisposableStack();
  stack.use(engine);
  stack.use(worker);
  return { engine, worker, errors, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

Deno.test("a test calls functions of a worker, and sees what they call", async () => {
  await using made = setup();
  const { engine, worker } = made;
  worker.registerFunction("orders::create", async ({ to }: { to: string }, metadata) => {
    const sent = await worker.trigger({ function_id: "mail::send", payload: { to, text: "hi" } });
    return { sent, metadata: metadata! };
  });
  const mail = engine.fake("mail::send", (payload) => ({ to: (payload as { to: string }).to }));

  const result = await engine.call("orders::create", { to: "a@b.c" }, { metadata: { dry: true } });

  assert.deepEqual(result, { sent: { to: "a@b.c" }, metadata: { dry: true } });
  engine.assertCalled("mail::send", { to: "a@b.c" });
  engine.assertNotCalled("mail::delete");
  assert.deepEqual(mail.calls, [{
    function_id: "mail::send",
    payload: { to: "a@b.c", text: "hi" },
    metadata: undefined,
    caller: "orders",
    result: { to: "a@b.c" },
    error: undefined,
  }]);
  assert.equal(engine.calls("orders::create")[0]!.caller, "test");
  assert.throws(() => engine.assertCalled("mail::send", { to: "x" }), {
    code: "assertion_failed",
    message: 'mail::send was not called with {"to":"x"}; its calls: {"to":"a@b.c","text":"hi"}',
  });
  assert.throws(() => engine.assertCalled("mail::delete"), { code: "assertion_failed" });
  assert.throws(() => engine.assertNotCalled("mail::send"), { code: "assertion_failed" });
});

Deno.test("errors of handlers and fakes arrive with code and details", async () => {
  await using made = setup();
  const { engine, worker } = made;
  worker.registerFunction("stock::take", async () => {
    try {
      await worker.trigger({ function_id: "stock::check" });
    } catch (error) {
      assert.ok(error instanceof InvocationError);
      throw new EngineError("sold_out", "None left", { details: { cause: error.code } });
    }
  });
  const fake = engine.fake("stock::check", () => {
    throw new EngineError("busy", "Later");
  });

  await assert.rejects(engine.call("stock::take"), {
    code: "sold_out",
    details: { cause: "busy" },
  });
  fake.remove();
  await assert.rejects(engine.call("stock::takes"), {
    code: "function_not_found",
    message: "Function stock::takes not found",
    details: { similar: "stock::take", hint: 'to fake it: engine.fake("stock::takes", …)' },
  });
  assert.equal(engine.calls("stock::takes")[0]!.error!.code, "function_not_found");
});

Deno.test("a deadline passes with the time of the test, and the handler is aborted", async () => {
  await using made = setup();
  const { engine, worker } = made;
  let reason: unknown;
  worker.registerFunction("slow::wait", async (_payload, _metadata, { signal }) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    reason = signal.reason.code;
  });
  const call = worker.trigger({ function_id: "slow::wait", timeout_ms: 5_000 });
  const rejected = assert.rejects(call, { code: "timeout" });

  await engine.advance(4_999);
  assert.equal(reason, undefined);
  await engine.advance(1);
  await rejected;

  assert.equal(reason, "cancelled");
});

Deno.test("a caller may cancel, and gets progress", async () => {
  await using made = setup();
  const { engine, worker } = made;
  const progress: Json[] = [];
  worker.registerFunction("slow::steps", async (_payload, _metadata, context) => {
    context.progress({ done: 0.5 });
    await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
  });
  const abort = new AbortController();
  const onProgress = (data: Json) => {
    progress.push(data);
    abort.abort();
  };

  const call = worker.trigger({ function_id: "slow::steps", signal: abort.signal, onProgress });

  await assert.rejects(call, { code: "cancelled" });
  await engine.settle();
  assert.deepEqual(progress, [{ done: 0.5 }]);
});

Deno.test("jobs run, again after a delay, and are dead in the end", async () => {
  await using made = setup({ queues: ["mail"] });
  const { engine, worker } = made;
  let attempts = 0;
  worker.registerFunction("mail::send", () => {
    attempts++;
    throw new EngineError("busy", "Later");
  });

  const receipt = await worker.enqueue({ function_id: "mail::send", queue: "mail", id: "m1" });
  assert.deepEqual(receipt, { messageReceiptId: "m1" });
  await engine.settle();
  assert.deepEqual([attempts, engine.jobs("mail")[0]!.state], [1, "delayed"]);
  await engine.advance(1_000);
  assert.equal(attempts, 2);
  await engine.advance(1_999); // The delay doubles.
  assert.equal(attempts, 2);
  await engine.advance(1);

  const [job] = engine.jobs("mail");
  assert.deepEqual([job!.state, job!.attempts, job!.error!.code], ["dead", 3, "busy"]);
  const again = await worker.enqueue({ function_id: "mail::send", queue: "mail", id: "m1" });
  assert.equal(again.duplicate, true);
  await assert.rejects(worker.enqueue({ function_id: "mail::send", queue: "none" }), {
    code: "enqueue_error",
  });
});

Deno.test("a job waits for its time and its function; a queue of a function has its settings", async () => {
  await using made = setup();
  const { engine, worker } = made;
  const job = await engine.enqueue("late::run", { n: 1 }, { delay_ms: 60_000 });
  assert.equal(job.state, "delayed");
  await engine.advance(60_000);
  assert.equal(job.state, "waiting");

  worker.registerFunction("late::run", () => 1, { queue: { max_retries: 1 } });
  await engine.settle();

  assert.equal(job.state, "done");
  const failing = engine.fake("late::run", () => Promise.reject(new Error("no")));
  assert.equal((await engine.enqueue("late::run", 2, { queue: "late::run" })).state, "dead");
  assert.deepEqual(failing.calls.map(({ payload }) => payload), [2]);
});

Deno.test("jobs of a group in a fifo queue run one at a time", async () => {
  await using made = setup();
  const { engine, worker } = made;
  const order: string[] = [];
  worker.registerFunction("bank::book", async ({ account, n }: { account: string; n: number }) => {
    order.push(`${account}${n} begins`);
    await new Promise((resolve) => setTimeout(resolve, 1));
    order.push(`${account}${n} ends`);
  }, { queue: { name: "bank", type: "fifo", message_group_field: "account" } });
  await engine.settle();

  for (const n of [1, 2]) {
    void worker.enqueue({ function_id: "bank::book", queue: "bank", payload: { account: "a", n } });
  }
  await engine.settle();
  await engine.settle();

  assert.deepEqual(order, ["a1 begins", "a1 ends", "a2 begins", "a2 ends"]);
});

Deno.test("schedules fire as time passes", async () => {
  await using made = setup({ now: new Date("2026-03-01T11:59:30Z") });
  const { engine, worker } = made;
  const times: string[] = [];
  worker.registerFunction("report::write", ({ scheduled_time }: { scheduled_time: string }) => {
    times.push(scheduled_time);
  });
  const config = { expression: "0 0 12 * * *" };
  const trigger = worker.registerTrigger({ type: "cron", function_id: "report::write", config });

  await engine.advance(30_000);
  await engine.advance(86_400_000);
  trigger.unregister();
  await engine.advance(86_400_000);

  assert.deepEqual(times, ["2026-03-01T12:00:00+00:00", "2026-03-02T12:00:00+00:00"]);
});

Deno.test("a trigger that its type does not accept is reported to its worker", async () => {
  await using made = setup();
  const { engine, worker, errors } = made;
  const config = { expression: "every day" };

  worker.registerTrigger({ type: "cron", function_id: "a::b", config });
  await engine.settle();

  assert.equal(errors[0]!.code, "trigger_registration_failed");
});

Deno.test("messages reach the subscribers of their topic", async () => {
  await using made = setup();
  const { engine, worker } = made;
  const heard: Json[] = [];
  worker.subscribe("orders.*", (data) => void heard.push(data));

  await engine.publish("orders.created", { id: 7 });
  await worker.publish("orders.paid.late", 8);
  await worker.publish("orders.paid", 9);
  await engine.settle();

  assert.deepEqual(heard, [{ id: 7 }, 9]);
});

Deno.test("triggers of a type that the test or a worker provides are fired by the test", async () => {
  await using made = setup();
  const { engine, worker } = made;
  const seen: Json[] = [];
  worker.registerTriggerType({ id: "file-watch", description: "" }, {
    registerTrigger: ({ config }) => void seen.push(config),
    unregisterTrigger: () => void seen.push("stopped"),
  });
  const config = { dir: "inbox" };
  const trigger = { type: "file-watch", function_id: "docs::index", config, metadata: { a: 1 } };
  const registered = worker.registerTrigger(trigger);
  const index = engine.fake("docs::index", null);

  await engine.fire("file-watch", { path: "a.txt" }, { config: { dir: "inbox" } });

  assert.deepEqual(index.calls[0], {
    ...{ function_id: "docs::index", payload: { path: "a.txt" }, metadata: { a: 1 } },
    ...{ caller: "test", result: undefined, error: undefined },
  });
  await assert.rejects(engine.fire("file-watch", {}, { function_id: "x::y" }), {
    code: "trigger_not_found",
  });
  registered.unregister();
  await engine.settle();
  assert.deepEqual(seen, [config, "stopped"]);
});

Deno.test("a call ends when its worker leaves", async () => {
  await using made = setup();
  const { engine, worker } = made;
  worker.registerFunction("never::ends", () => new Promise(() => {}));
  const call = engine.call("never::ends");
  const rejected = assert.rejects(call, { code: "invocation_stopped" });

  await engine.advance(0); // Does not wait for it.
  await worker.shutdown();

  await rejected;
});

Deno.test("reset() forgets what a test did, and keeps the workers", async () => {
  await using made = setup();
  const { engine, worker } = made;
  worker.registerFunction("a::b", () => "real");
  engine.fake("a::b", "fake");
  await engine.call("state::set", { scope: "s", key: "k", value: 1 });
  await engine.enqueue("a::b", 1, { delay_ms: 1_000 });
  assert.equal(await engine.call("a::b"), "fake");

  engine.reset();

  assert.deepEqual([engine.calls().length, engine.jobs().length], [0, 0]);
  assert.equal(await engine.call("a::b"), "real");
  assert.equal(await engine.call("state::get", { scope: "s", key: "k" }), undefined);
  await engine.advance(1_000);
  assert.equal(engine.calls("a::b").length, 1);
});

Deno.test("two engines have their own workers", async () => {
  await using first = startTestEngine();
  await using second = startTestEngine();
  const options = { dial: first.dial, clock: first.clock };
  await using worker = registerWorker("ws://127.0.0.1:1", options);
  worker.registerFunction("a::b", () => "first");

  assert.equal(await first.call("a::b"), "first");
  await assert.rejects(second.call("a::b"), { code: "function_not_found" });
});
