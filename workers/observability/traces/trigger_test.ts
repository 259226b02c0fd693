/**
 * Trace triggers fire for traces with ended spans, never for those of firings.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import { observe, type Observed, outcome } from "../../../tests/fakes/observed.ts";

type Item = Record<string, Json>;

async function setup(config: Json) {
  const it = await observe();
  const received: Item[] = [];
  const watcher = await it.local.connect("watcher");
  watcher.registerFunction("watch::traces", async (payload: Item) => {
    received.push(payload);
    await watcher.trigger({ function_id: "shop::buy", payload: {} });
  });
  watcher.registerTrigger({ type: "trace", function_id: "watch::traces", config });
  it.worker.registerFunction("shop::buy", ({ fail }: Item) => {
    if (fail) throw new Error("no");
  });
  await it.local.settle();
  const buy = async (payload: Item = {}) => {
    const bought = outcome(it.worker, { function_id: "shop::buy", payload });
    await it.local.settle();
    await bought;
  };
  return { it, received, watcher, buy, [Symbol.asyncDispose]: () => it[Symbol.asyncDispose]() };
}

async function traceIds(it: Observed): Promise<Json[]> {
  const { traces } = await it.ask("engine::traces::summaries", { text: "shop::buy" });
  return (traces as Item[]).map(({ trace_id }) => trace_id!);
}

Deno.test("A trace trigger receives trace ids once, and none of its own firings", async () => {
  await using on = await setup({});
  await on.buy();
  await on.buy();
  const ids = await traceIds(on.it);

  for (let i = 0; i < 10; i++) await on.it.pass(250);

  assert.equal(on.received.length, 1);
  assert.deepEqual(on.received.flatMap(({ trace_ids }) => trace_ids as Json[]).sort(), ids.sort());
});

Deno.test("A trace trigger ignores the engine's own functions", async () => {
  await using on = await setup({});

  await on.it.ask("engine::traces::summaries");
  await on.it.pass(1_000);

  assert.deepEqual(on.received, []);
});

Deno.test("A trace trigger filters by status and service", async () => {
  await using failed = await setup({ status: "error" });
  await failed.buy();
  await failed.buy({ fail: true });
  await failed.it.pass(500);
  assert.equal(failed.received.length, 1);

  await using other = await setup({ service_name: "other" });
  await other.buy();
  await other.it.pass(500);
  assert.deepEqual(other.received, []);
});

Deno.test("A trace trigger delivers batches with summaries on request", async () => {
  await using on = await setup({ batch_ms: 1_000, summaries: true });
  await on.buy();
  await on.buy({ fail: true });

  await on.it.pass(500);
  assert.equal(on.received.length, 0);
  await on.it.pass(1_000);

  const [batch] = on.received;
  assert.equal((batch!.trace_ids as Json[]).length, 2);
  assert.equal(batch!.dropped, 0);
  assert.deepEqual((batch!.traces as Item[]).map(({ name }) => name), ["shop::buy", "shop::buy"]);
  assert.deepEqual((batch!.traces as Item[]).map(({ error_count }) => error_count).sort(), [0, 1]);
});

Deno.test("An unregistered trace trigger no longer fires", async () => {
  await using on = await setup({ batch_ms: 1_000 });
  await on.buy();

  await on.watcher.shutdown();
  await on.it.pass(5_000);

  assert.deepEqual(on.received, []);
});

for (const config of [{ batch_ms: 1 }, { summaries: "yes" }, { status: 5 }, "all"] as Json[]) {
  Deno.test(`A trace trigger ${JSON.stringify(config)} is rejected with the reason`, async () => {
    await using on = await setup(config);

    const refusal = on.it.local.lines.find(({ level }) => level === "sdk");
    assert.match(refusal?.text ?? "", /The config of the trace trigger does not fit: /);
  });
}
