/**
 * Log triggers fire for matching records, never for those that a firing caused.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { PrintedLine } from "../../../engine/ports/telemetry.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import { observe, type Observed } from "../../../tests/fakes/observed.ts";

type Item = Record<string, Json>;

/** A worker `watcher` with a function that is notified of logs. */
async function watch(it: Observed, config: Json, handler: (received: Item) => unknown = () => {}) {
  const received: Item[] = [];
  const watcher = await it.local.connect("watcher");
  watcher.registerFunction("watch::logs", (payload: Item) => {
    received.push(payload);
    return handler(payload);
  });
  watcher.registerTrigger({ type: "log", function_id: "watch::logs", config });
  await it.local.settle();
  return { watcher, received };
}

const say = (it: Observed, level: string, message: string) =>
  it.ask(`engine::log::${level}`, { message }).catch(() => {});

const print = (it: Observed, changes: Partial<PrintedLine>) =>
  it.local.print({
    worker: "shop",
    replica: 1,
    stream: "stdout",
    text: "printed",
    at_ms: it.clock.wall(),
    trace: null,
    isLogger: false,
    ...changes,
  });

const bodies = (received: Item[]) => received.map(({ body }) => body);

for (
  const [config, expected] of [
    [{}, ["a", "b", "c"]],
    [null, ["a", "b", "c"]],
    [{ level: "all" }, ["a", "b", "c"]],
    [{ level: "warn" }, ["b"]],
    [{ min_level: "warn" }, ["b", "c"]],
    [{ worker: "shop" }, ["a", "b", "c"]],
    [{ worker: "other" }, []],
    [{ text: "B" }, ["b"]],
    [{ function_id: "x::y" }, []],
  ] as const
) {
  Deno.test(`A log trigger ${JSON.stringify(config)} fires for ${expected.join(", ")}`, async () => {
    await using it = await observe();
    const { received } = await watch(it, config as Json);

    await say(it, "info", "a");
    await say(it, "warn", "b");
    await say(it, "error", "c");

    assert.deepEqual(bodies(received), expected);
  });
}

Deno.test("A log trigger receives the stored record, or batches with batch_ms", async () => {
  await using it = await observe();
  const { received } = await watch(it, { batch_ms: 100 });

  await say(it, "info", "a");
  await say(it, "info", "b");
  assert.equal(received.length, 0);
  await it.pass(100);

  const [batch, ...more] = received;
  assert.deepEqual([bodies(batch!.logs as Item[]), batch!.dropped], [["a", "b"], 0]);
  assert.equal((batch!.logs as Item[])[0]!.severity_number, 9);
  assert.deepEqual(more, []);
});

Deno.test("Records caused by a firing fire nothing, at any depth", async () => {
  await using it = await observe();
  it.worker.registerFunction("deep::log", async () => {
    await it.worker.trigger({ function_id: "engine::log::error", payload: { message: "deep" } });
  });
  const on = await watch(it, {}, async () => {
    await on.watcher.trigger({ function_id: "deep::log" });
  });
  const { received } = on;

  await say(it, "info", "a");
  await it.pass(1_000);

  assert.deepEqual(bodies(received), ["a"]);
  assert.equal((await it.ask("engine::logs::list", { text: "deep" })).total, 1);
});

Deno.test("The log of a failing handler fires nothing", async () => {
  await using it = await observe();
  const { received, watcher } = await watch(it, {});
  await watcher.shutdown();
  await it.local.settle();

  const other = await it.local.connect("other");
  other.registerTrigger({ type: "log", function_id: "missing::there", config: {} });
  await it.local.settle();
  await say(it, "info", "a");
  await it.pass(1_000);

  assert.deepEqual(received, []);
  assert.ok(it.local.lines.length < 10, JSON.stringify(it.local.lines));
});

Deno.test("A worker that does not propagate the trace is not called for its own records", async () => {
  await using it = await observe();
  const on = await watch(it, {}, () => {
    const payload = { message: "echo" };
    // As a client without scopes: out of the handler's asynchronous flow.
    later.push(() => void on.watcher.trigger({ function_id: "engine::log::info", payload }));
  });
  const later: (() => void)[] = [];

  await say(it, "info", "first");
  for (const run of later) run();
  await it.pass(10);

  assert.deepEqual(bodies(on.received), ["first"]);
  assert.equal((await it.ask("engine::logs::list", { text: "echo" })).total, 1);
});

Deno.test("Output of the trigger's own worker outside of calls does not fire it", async () => {
  await using it = await observe();
  const { received } = await watch(it, {}, () => print(it, { worker: "watcher", text: "echo" }));

  print(it, { text: "first" });
  await it.pass(10);

  assert.deepEqual(bodies(received), ["first"]);
  assert.equal((await it.ask("engine::logs::list", { text: "echo" })).total, 1);
});

Deno.test("Output inside a firing does not fire again", async () => {
  await using it = await observe();
  const received: Item[] = [];
  const watcher = await it.local.connect("watcher");
  watcher.registerFunction("watch::logs", (payload: Item, _metadata, { traceparent }) => {
    received.push(payload);
    const [, trace_id = "", span_id = ""] = traceparent!.split("-");
    print(it, { worker: "other", text: "echo", trace: { trace_id, span_id } });
  });
  watcher.registerTrigger({ type: "log", function_id: "watch::logs", config: {} });
  await it.local.settle();

  print(it, { text: "first" });
  await it.pass(10);

  assert.deepEqual(bodies(received), ["first"]);
});

Deno.test("An unregistered trigger no longer fires", async () => {
  await using it = await observe();
  const { received, watcher } = await watch(it, { batch_ms: 100 });
  await say(it, "info", "a");

  await watcher.shutdown();
  await it.pass(1_000);

  assert.deepEqual(received, []);
});

for (
  const config of [
    { level: "loud" },
    { min_level: "all" },
    { batch_ms: 5 },
    { batch_ms: 60_000 },
    { batch_ms: "100" },
    { text: 5 },
    [],
    "all",
  ] as Json[]
) {
  Deno.test(`A log trigger ${JSON.stringify(config)} is rejected with the reason`, async () => {
    await using it = await observe();

    await watch(it, config);

    const refusal = it.local.lines.find(({ level }) => level === "sdk");
    assert.match(refusal?.text ?? "", /The config of the log trigger does not fit: /);
  });
}
