import assert from "node:assert/strict";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import type { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { LocalEngine, outcome } from "../../tests/fakes/local_engine.ts";
import { cron } from "./mod.ts";

const NOON = Date.UTC(2026, 10, 23, 12);

async function setup(config: Json = {}) {
  const clock = new FakeClock(NOON);
  const engine = new LocalEngine({ clock, store: new MemoryStore() });
  const stop = await engine.start(cron, config);
  const worker = await engine.connect("shop");
  const heard: JsonObject[] = [];
  worker.registerFunction("f::a", (payload: JsonObject) => void heard.push(payload));
  const settle = () => engine.settle();
  const add = async (config: Json) => {
    const registered = worker.registerTrigger({ type: "cron", function_id: "f::a", config });
    await settle();
    return registered;
  };
  const ask = async (function_id: string, payload: Json = {}) => {
    const answer = outcome(worker, { function_id, payload });
    await settle();
    return await answer as JsonObject;
  };
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= 500) {
      clock.tick(Math.min(500, left));
      await engine.settle();
    }
  };
  return {
    engine,
    clock,
    stop,
    worker,
    heard,
    add,
    ask,
    pass,
    settle,
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

Deno.test("a function is called at its times, until its trigger is gone", async () => {
  await using at = await setup();
  const trigger = await at.add({ expression: "*/10 * * * * *" });

  await at.pass(20_000);
  trigger.unregister();
  await at.settle();
  await at.pass(20_000);

  assert.deepEqual(at.heard.map(({ scheduled_time }) => scheduled_time), [
    "2026-11-23T12:00:10+00:00",
    "2026-11-23T12:00:20+00:00",
  ]);
  assert.equal(at.heard[0]!.trigger, "cron");
});

Deno.test("engine::cron::list shows the next times and the last runs", async () => {
  await using at = await setup({ timezone: "Europe/Berlin" });
  await at.add({ expression: "0 0 9 * * *", catch_up: "last" });
  await at.add({ expression: "*/30 * * * * *", timezone: "UTC", jitter_ms: 0 });
  await at.pass(30_000);

  const { jobs, count } = await at.ask("engine::cron::list") as {
    jobs: JsonObject[];
    count: number;
  };

  assert.equal(count, 2);
  const [first, second] = jobs;
  assert.deepEqual((first!.next as Json[]).slice(0, 2), [
    "2026-11-23T12:01:00+00:00",
    "2026-11-23T12:01:30+00:00",
  ]);
  const [run] = first!.last as JsonObject[];
  assert.deepEqual([run!.outcome, run!.scheduled_time], ["ok", "2026-11-23T12:00:30+00:00"]);
  assert.deepEqual([second!.timezone, second!.catch_up, second!.overlap], [
    "Europe/Berlin",
    "last",
    "skip",
  ]);
  assert.equal((second!.next as Json[])[0], "2026-11-24T08:00:00+00:00");
  assert.equal((await at.ask("engine::cron::list", { function_id: "x", limit: 1 })).count, 0);
});

Deno.test("engine::cron::next calculates, and says what is wrong", async () => {
  await using at = await setup();

  const found = await at.ask("engine::cron::next", { expression: "0 0 0 29 2 *", count: 2 });
  assert.deepEqual(found.next, ["2028-02-29T00:00:00+00:00", "2032-02-29T00:00:00+00:00"]);
  for (
    const [payload, code, text] of [
      [{ expression: "0 0 0 30 2 *" }, "INVALID_ARGUMENTS", /never fires/],
      [{ expression: "* * *" }, "INVALID_ARGUMENTS", /3 fields/],
      [{ expression: "* * * * * *", timezone: "x/y" }, "INVALID_ARGUMENTS", /"x\/y" is unknown/],
      [{ expression: "* * * * * *", count: 101 }, "deserialization_error", /count.*<=100/],
      [{}, "deserialization_error", /expression/],
    ] as const
  ) {
    const failure = await at.ask("engine::cron::next", payload as Json) as unknown as EngineError;
    assert.equal(failure.code, code);
    assert.match(failure.message, text);
  }
});

Deno.test("engine::cron::run runs a job now and answers with the run", async () => {
  await using at = await setup();
  await at.add({ expression: "0 0 0 1 1 *" });

  const run = await at.ask("engine::cron::run", { job_id: "f::a" });

  assert.deepEqual([run.outcome, run.function_id, run.manual], ["ok", "f::a", true]);
  assert.equal(at.heard.length, 1);
  const failure = await at.ask("engine::cron::run", { job_id: "g" }) as unknown as EngineError;
  assert.equal(failure.code, "NOT_FOUND");
});

Deno.test("a wrong trigger is reported to its worker, and an engine that stops fires nothing", async () => {
  await using at = await setup();
  await at.add({ expression: "0 61 * * * *" });
  const refused = at.engine.lines.find(({ fields }) =>
    fields?.code === "trigger_registration_failed"
  );
  assert.match(refused!.text, /field 2 \(minute, 0 to 59\) at character 3/);

  await at.add({ expression: "* * * * * *" });
  at.engine.draining.abort();
  await at.pass(5_000);

  assert.deepEqual(at.heard, []);
  await at.stop();
  assert.equal(at.clock.waiting, 0);
});

Deno.test("the configuration has a zone that exists", () => {
  assert.deepEqual(cron.parse(undefined), { timezone: "UTC" });
  assert.throws(() => cron.parse({ timezone: "Mars", other: 1 }), {
    issues: [
      { path: ["timezone"], expected: "a zone such as Europe/Berlin" },
      { path: ["other"], expected: "a known key", received: "an unknown key" },
    ],
  });
});
