import assert from "node:assert/strict";
import type { Store } from "../../engine/ports/store.ts";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { LocalEngine, outcome } from "../../tests/fakes/local_engine.ts";
import { queue } from "./mod.ts";

async function setup(store: Store = new MemoryStore(), config: Json = {}) {
  const clock = new FakeClock();
  const engine = new LocalEngine({ clock, store });
  await engine.start(queue, config);
  const caller = await engine.connect("caller");
  const seen: Json[] = [];
  const errors: string[] = [];
  return {
    engine,
    seen,
    errors,
    ask: async (function_id: string, payload: Json = {}): Promise<JsonObject> => {
      const answer = outcome(caller, { function_id, payload });
      await engine.settle();
      return await answer as JsonObject;
    },
    /** A worker whose function declares its queue. */
    declare: async (config: JsonObject, function_id = "mail::send"): Promise<Worker> => {
      const onError = ({ code, message }: { code: string; message: string }) =>
        void errors.push(`${code}: ${message}`);
      const worker = await engine.connect("mailer", { onError });
      worker.registerFunction(function_id, (payload: Json) => void seen.push(payload), {
        queue: config,
      });
      await engine.settle();
      return worker;
    },
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

Deno.test("a function declares its queue, whose jobs it gets", async () => {
  await using at = await setup();
  await at.declare({ max_retries: 7, concurrency: 2 });

  const receipt = await at.ask("engine::queue::enqueue", {
    queue: "mail::send",
    function_id: "mail::send",
    data: { to: "a" },
  });
  await at.engine.settle();

  assert.ok(receipt.messageReceiptId, JSON.stringify(receipt));
  assert.deepEqual(at.seen, [{ to: "a" }]);
  const { config } = await at.ask("engine::queue::stats", { queue: "mail::send" });
  const { max_retries, concurrency, backoff_ms } = config as JsonObject;
  assert.deepEqual([max_retries, concurrency, backoff_ms], [7, 2, 1_000]);
});

Deno.test("a job that is enqueued right behind the declaration of its queue waits for it", async () => {
  await using at = await setup();
  const worker = await at.engine.connect("mailer");

  worker.registerFunction("mail::send", (payload: Json) => void at.seen.push(payload), {
    queue: { max_retries: 7 },
  });
  const receipt = worker.enqueue({ function_id: "mail::send", payload: 1, queue: "mail::send" });
  const missing = worker.enqueue({ function_id: "mail::send", payload: 2, queue: "mail" });
  const refused = assert.rejects(missing, { code: "enqueue_error" });
  await at.engine.settle();

  assert.ok((await receipt).messageReceiptId);
  await refused;
  await at.engine.settle();
  assert.deepEqual(at.seen, [1]);
});

Deno.test("the queue outlives its worker and the engine, with the jobs that came meanwhile", async () => {
  const store = new MemoryStore();
  {
    await using at = await setup(store);
    const worker = await at.declare({ name: "mail" });
    await worker.shutdown();
    await at.engine.settle();
    await at.ask("engine::queue::enqueue", { queue: "mail", function_id: "mail::send", data: 1 });
    assert.deepEqual(at.seen, []);
  }
  await using at = await setup(store);
  await at.ask("engine::queue::enqueue", { queue: "mail", function_id: "mail::send", data: 2 });

  await at.declare({ name: "mail" });
  for (let i = 0; i < 5; i++) await at.engine.settle();

  assert.deepEqual(at.seen, [1, 2]);
});

Deno.test("a queue that is no longer declared is gone after a restart", async () => {
  const store = new MemoryStore();
  {
    await using at = await setup(store);
    const worker = await at.engine.connect("mailer");
    worker.registerFunction("mail::send", () => null);
    const trigger = worker.registerTrigger({
      type: "queue",
      function_id: "mail::send",
      config: { name: "mail" },
    });
    await at.engine.settle();
    trigger.unregister();
    await at.engine.settle();
  }
  await using at = await setup(store);

  const { code } = await at.ask("engine::queue::stats", { queue: "mail" });
  assert.equal(code, "enqueue_error");
});

Deno.test("the configuration of the engine wins, and of two workers the later one", async () => {
  await using at = await setup(undefined, { queues: { mail: { max_retries: 5 } } });
  await at.declare({ name: "mail", max_retries: 9 });
  await at.declare({ name: "other", max_retries: 2 });
  await at.declare({ name: "other", max_retries: 4 });

  const retries = async (queue: string) =>
    ((await at.ask("engine::queue::stats", { queue })).config as JsonObject).max_retries;
  assert.deepEqual([await retries("mail"), await retries("other")], [5, 4]);
});

for (
  const [config, pattern] of [
    [{ concurrency: 0 }, /concurrency/],
    [{ type: "fifo" }, /message_group_field/],
    [{ name: "a b" }, /name: expected 1 to 128 letters/],
    [{ retries: 3 }, /retries/],
  ] as [JsonObject, RegExp][]
) {
  Deno.test(`a queue of ${JSON.stringify(config)} is refused with what is wrong`, async () => {
    await using at = await setup();

    await at.declare(config);

    assert.equal(at.errors.length, 1);
    assert.match(at.errors[0]!, /^trigger_registration_failed: .*queue trigger does not fit/);
    assert.match(at.errors[0]!, pattern);
  });
}
