import assert from "node:assert/strict";
import { MemoryStore } from "../../../engine/store/memory_store.ts";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { FakeDial } from "../../../tests/fakes/fake_dial.ts";
import { LocalEngine } from "../../../tests/fakes/local_engine.ts";
import { configuration } from "../../../workers/configuration/mod.ts";
import type { LiveConfiguration } from "./live_configuration.ts";
import { registerWorker } from "../register_worker.ts";
import type { EngineError } from "../wire/errors.ts";
import type { ErrorBody, Json, JsonObject } from "../wire/protocol.ts";

interface Mail {
  port: number;
}

/** A worker, and an engine whose part the test takes. */
function setup() {
  const clock = new FakeClock();
  const fake = new FakeDial();
  const errors: EngineError[] = [];
  const worker = registerWorker("ws://local", {
    clock,
    dial: fake.dial,
    onError: (error) => errors.push(error),
  });
  let connections = 0;
  const connect = (): void => void fake.transport.open(`w-${++connections}`);
  connect();
  /** Calls of a function that were not answered. */
  const calls = (function_id: string) =>
    fake.transport.messages.filter((each) =>
      each.function_id === function_id && !answered.has(each.invocation_id as string)
    );
  const answered = new Set<string>();
  /** Answers the oldest read, with a value or an error. */
  const answer = async (
    outcome: { value?: Json; version?: number; error?: ErrorBody },
    function_id = "configuration::get",
  ): Promise<JsonObject> => {
    await settle();
    const [call] = calls(function_id);
    const { value, version, error } = outcome;
    const invocation_id = call!.invocation_id as string;
    answered.add(invocation_id);
    const ended = error ? { error } : { result: { id: "mail", value: value!, version: version! } };
    fake.transport.deliver({ type: "invocationresult", invocation_id, function_id, ...ended });
    await settle();
    return call!.data as JsonObject;
  };
  /** Fires the trigger for a change. */
  const change = async (): Promise<void> => {
    const { function_id } = fake.transport.messages.find(({ type }) => type === "registertrigger")!;
    fake.transport.deliver({
      type: "invokefunction",
      function_id: function_id as string,
      data: {},
    });
    await settle();
  };
  const open = async (value: Json = { port: 1 }): Promise<LiveConfiguration<Mail>> => {
    const opening = worker.configuration<Mail>("mail");
    await answer({ value, version: 1 });
    return await opening;
  };
  const reads = (): number => calls("configuration::get").length;
  const reconnect = (): void => {
    fake.transport.drop();
    clock.tick(2_000);
    connect();
  };
  return { clock, fake, errors, worker, answer, change, open, reads, reconnect };
}

async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

/** The values of an iterator, as they come. */
function collect<Value>(values: AsyncIterable<Value>): { all: Value[]; done: Promise<void> } {
  const all: Value[] = [];
  const run = async (): Promise<void> => {
    for await (const value of values) all.push(value);
  };
  return { all, done: run() };
}

const UNAVAILABLE = { code: "EXPAND_FAILED", message: "no variable SMTP_KEY" };

Deno.test("a value follows its changes, and listeners and iterators hear of each", async () => {
  const clock = new FakeClock();
  await using engine = new LocalEngine({ clock, store: new MemoryStore() });
  await engine.start(configuration, {});
  const worker = await engine.connect("shop");
  const set = async (value: Json): Promise<void> => {
    const payload = { id: "mail", value };
    void worker.trigger({ function_id: "configuration::set", payload });
    for (let i = 0; i < 4; i++) await engine.settle();
  };
  const opening = worker.configuration<Mail>("mail", {
    schema: { type: "object", required: ["port"], properties: { port: { type: "integer" } } },
    initial_value: { port: 25 },
  });
  for (let i = 0; i < 4; i++) await engine.settle();
  const mail = await opening;
  assert.deepEqual([mail.id, mail.value, mail.version], ["mail", { port: 25 }, 1]);
  const heard: number[] = [];
  const stop = mail.onChange(({ port }) => heard.push(port));
  const { all, done } = collect(mail.changes());

  await set({ port: 26 });
  assert.deepEqual([mail.value, mail.version], [{ port: 26 }, 2]);
  stop();
  await set({ port: 27 });
  mail.close();
  await done;
  await set({ port: 28 });

  assert.deepEqual([heard, all, mail.value], [[26], [{ port: 26 }, { port: 27 }], { port: 27 }]);
  assert.equal(mail.error, undefined);
});

Deno.test("the trigger is registered before the first read, so no change is missed", async () => {
  const { fake, worker, open } = setup();
  await open();

  const types = fake.transport.messages.map(({ type, function_id }) => [type, function_id]);
  const trigger = types.findIndex(([type]) => type === "registertrigger");
  const read = types.findIndex(([, id]) => id === "configuration::get");
  assert.ok(trigger >= 0 && trigger < read);
  await worker.shutdown();
});

Deno.test("changes while a value is read cause one more read, and the last one counts", async () => {
  const { worker, open, change, answer, reads } = setup();
  const mail = await open();

  await change();
  await change();
  await change();
  assert.equal(reads(), 1);
  await answer({ value: { port: 2 }, version: 2 });
  assert.deepEqual([mail.value, reads()], [{ port: 2 }, 1]);
  await answer({ value: { port: 4 }, version: 4 });

  assert.deepEqual([mail.value, mail.version, reads()], [{ port: 4 }, 4, 0]);
  await worker.shutdown();
});

Deno.test("an equal value is no change, and stays the same object", async () => {
  const { worker, open, change, answer } = setup();
  const mail = await open();
  const before = mail.value;
  let heard = 0;
  mail.onChange(() => heard++);

  await change();
  await answer({ value: { port: 1 }, version: 2 });

  assert.deepEqual([mail.value === before, mail.version, heard], [true, 2, 0]);
  await worker.shutdown();
});

Deno.test("after a reconnect the value is read again", async () => {
  const { worker, open, reconnect, answer, reads } = setup();
  const mail = await open();

  reconnect();
  await settle();
  assert.equal(reads(), 1);
  await answer({ value: { port: 9 }, version: 7 });

  assert.deepEqual([mail.value, mail.version], [{ port: 9 }, 7]);
  await worker.shutdown();
});

Deno.test("a read that fails keeps the value, is reported once, and is repeated later and later", async () => {
  const { clock, errors, worker, open, change, answer, reads } = setup();
  const mail = await open();

  await change();
  await answer({ error: UNAVAILABLE });
  assert.deepEqual([mail.value, mail.error?.code], [{ port: 1 }, "EXPAND_FAILED"]);
  const waits: number[] = [];
  for (let i = 0; i < 9; i++) {
    const begun = clock.now();
    while (reads() === 0) {
      clock.tick(100);
      await settle();
    }
    waits.push(Math.round((clock.now() - begun) / 100) / 10);
    await answer({ error: UNAVAILABLE });
  }

  waits.forEach((wait, i) => {
    const [least, most] = [0.7, 1.4].map((part) => part * Math.min(2 ** i, 60));
    assert.ok(wait >= least! - 0.1 && wait <= most! + 0.1, `${i}: ${wait}`);
  });
  assert.deepEqual(errors.map(({ message }) => message), [
    "Configuration mail keeps its value: EXPAND_FAILED: no variable SMTP_KEY",
  ]);
  await change();
  await answer({ value: { port: 3 }, version: 3 });
  assert.deepEqual([mail.value, mail.error], [{ port: 3 }, undefined]);
  await worker.shutdown();
  assert.equal(clock.waiting, 0);
});

Deno.test("a first read that fails is thrown, and nothing is followed", async () => {
  const { clock, errors, fake, worker, answer } = setup();
  const opening = worker.configuration("mail");
  const failed = assert.rejects(opening, { code: "NOT_REGISTERED" });

  await answer({ error: { code: "NOT_REGISTERED", message: "There is no configuration mail" } });
  await failed;

  const types = fake.transport.messages.map(({ type }) => type);
  assert.ok(types.includes("unregistertrigger") && types.includes("unregisterfunction"));
  assert.deepEqual(errors, []);
  await worker.shutdown();
  assert.equal(clock.waiting, 0);
});

Deno.test("a configuration that is gone is registered again by whom described it", async () => {
  const { worker, answer, change } = setup();
  const opening = worker.configuration<Mail>("mail", { initial_value: { port: 1 } });
  const described = { id: "mail", initial_value: { port: 1 } };
  assert.deepEqual(await answer({ value: null }, "configuration::register"), described);
  await answer({ value: { port: 1 }, version: 1 });
  const mail = await opening;

  await change();
  await answer({ error: { code: "NOT_REGISTERED", message: "There is no configuration mail" } });
  assert.deepEqual(await answer({ value: null }, "configuration::register"), described);
  await answer({ value: { port: 5 }, version: 1 });

  assert.deepEqual([mail.value, mail.error], [{ port: 5 }, undefined]);
  await worker.shutdown();
});

Deno.test("an iterator that is slower than the changes gets the latest value", async () => {
  const { worker, open, change, answer } = setup();
  const mail = await open();
  const changes = mail.changes();
  for (const port of [2, 3, 4]) {
    await change();
    await answer({ value: { port }, version: port });
  }

  assert.deepEqual(await changes.next(), { done: false, value: { port: 4 } });
  const late = changes.next();
  await changes.return!();
  assert.equal((await late).done, true);
  const stop = new AbortController();
  const { all, done } = collect(mail.changes({ signal: stop.signal }));
  stop.abort();
  await done;
  assert.deepEqual(all, []);
  await worker.shutdown();
  assert.equal((await mail.changes().next()).done, true);
});

Deno.test("a worker that ends closes its configurations; a read then counts no more", async () => {
  const { clock, errors, fake, worker, open, change } = setup();
  const mail = await open();
  const { done } = collect(mail.changes());
  await change();

  await worker.shutdown();
  await done;

  assert.deepEqual([mail.value, errors, clock.waiting], [{ port: 1 }, [], 0]);
  assert.equal(fake.transports.length, 1);
});

Deno.test("a reader's own mistake is reported and stops nothing", async () => {
  const { errors, worker, change, answer } = setup();
  const own: EngineError[] = [];
  const opening = worker.configuration<Mail>("mail", { onError: (error) => own.push(error) });
  await answer({ value: { port: 1 }, version: 1 });
  const mail = await opening;
  const heard: number[] = [];
  mail.onChange(() => {
    throw new Error("no such port");
  });
  mail.onChange(({ port }) => heard.push(port));

  await change();
  await answer({ value: { port: 2 }, version: 2 });

  assert.deepEqual(heard, [2]);
  assert.match(own[0]!.message, /A listener for changes of mail failed: no such port/);
  assert.deepEqual(errors, []);
  await assert.rejects(worker.configuration(""), { code: "INVALID_ARGUMENTS" });
  await assert.rejects(worker.configuration("mail", { onError: 7 as never }), {
    code: "INVALID_ARGUMENTS",
  });
  assert.throws(() => mail.onChange("f" as never), { code: "INVALID_ARGUMENTS" });
  await worker.shutdown();
});

Deno.test("reads do not share the deadline of the handler that opened the configuration", async () => {
  const { clock, fake, worker, answer, change } = setup();
  const opened = Promise.withResolvers<LiveConfiguration<Mail>>();
  worker.registerFunction("shop::open", async () => {
    opened.resolve(await worker.configuration<Mail>("mail"));
  });
  const call = { invocation_id: "1", function_id: "shop::open", timeout_ms: 1_000 };
  fake.transport.deliver({ type: "invokefunction", ...call });
  await settle();

  await change();
  clock.tick(2_000);
  await answer({ value: { port: 1 }, version: 1 });
  await answer({ value: { port: 2 }, version: 2 });

  assert.deepEqual((await opened.promise).value, { port: 2 });
  await worker.shutdown();
});
