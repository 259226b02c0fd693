/**
 * What workers log ends in the engine's log, with the name of who said it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { LOG_VALUE_CHARS_MAX } from "../../sdk/typescript/limits.ts";
import { Logger } from "../../sdk/typescript/logger.ts";
import type { Json } from "../../sdk/typescript/protocol.ts";
import { LocalEngine } from "../../tests/fakes/local_engine.ts";
import { observability } from "./mod.ts";

/** A worker that logs, over a real router. */
async function setup() {
  const local = new LocalEngine();
  await local.start(observability);
  const worker = await local.connect("math");
  const log = (level: string, payload: Json) =>
    worker.trigger<Json, Json | undefined>({ function_id: `engine::log::${level}`, payload });
  return { local, worker, log, [Symbol.asyncDispose]: () => local[Symbol.asyncDispose]() };
}

for (
  const [level, written] of [
    ["trace", "debug"],
    ["debug", "debug"],
    ["info", "info"],
    ["warn", "warn"],
    ["error", "error"],
  ] as const
) {
  Deno.test(`engine::log::${level} writes a line of level ${written} and answers nothing`, async () => {
    await using it = await setup();

    const answer = await it.log(level, { message: "added", data: { c: 5 }, service_name: "sums" });

    assert.equal(answer, undefined);
    assert.deepEqual(it.local.lines, [{
      level: written,
      text: "added",
      fields: {
        worker: "math",
        service: "sums",
        data: '{"c":5}',
        trace_id: undefined,
        span_id: undefined,
      },
    }]);
  });
}

Deno.test("engine::log::info leaves out what says nothing and keeps trace ids", async () => {
  await using it = await setup();

  const ids = { trace_id: "t", span_id: "s" };
  await it.log("info", { message: "", data: null, service_name: "math", ...ids });

  assert.deepEqual(it.local.lines[0]!.fields, {
    worker: "math",
    service: undefined,
    data: undefined,
    ...ids,
  });
});

Deno.test("engine::log::info takes a message alone", async () => {
  await using it = await setup();

  await it.log("info", { message: "started" });

  assert.equal(it.local.lines[0]!.text, "started");
  assert.equal(it.local.lines[0]!.fields.data, undefined);
});

Deno.test("engine::log::info cuts data that nobody would read", async () => {
  await using it = await setup();

  await it.log("info", { message: "big", data: "x".repeat(100_000) });

  assert.equal((it.local.lines[0]!.fields.data as string).length, LOG_VALUE_CHARS_MAX + 1);
});

for (const payload of [null, "text", {}, { message: 5 }, { message: null }, [{ message: "a" }]]) {
  Deno.test(`engine::log::info refuses ${JSON.stringify(payload)}`, async () => {
    await using it = await setup();

    await assert.rejects(it.log("info", payload), { code: "deserialization_error" });
    assert.deepEqual(it.local.lines, []);
  });
}

Deno.test("A worker's Logger reaches the engine's log", async () => {
  await using it = await setup();
  const { info } = console;
  console.info = () => {};

  new Logger(it.worker).info("order accepted", { order: 7 });
  console.info = info;
  await it.local.settle();

  assert.equal(it.local.lines[0]!.text, "order accepted");
  assert.equal(it.local.lines[0]!.fields.worker, "math");
});
