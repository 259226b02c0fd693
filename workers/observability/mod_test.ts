/**
 * The functions of engine-observability on a real router: traces, logs and how they relate.
 *
 * @module
 */
import assert from "node:assert/strict";
import { createMemoryBudget } from "../../engine/platform/memory_budget.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { observe, type Observed, outcome } from "../../tests/fakes/local_engine.ts";
import { observability } from "./mod.ts";

type Item = Record<string, Json>;

/** A function that calls another. */
function offerOrders({ worker }: Observed): void {
  worker.registerFunction("orders::check", ({ sku }: Item) => {
    if (sku === "none") throw Object.assign(new Error("no such thing"), { code: "unknown_sku" });
    return { stock: 3 };
  });
  worker.registerFunction("orders::create", async (payload: Item) => {
    await worker.trigger({ function_id: "orders::check", payload });
    return { id: 7, token: "t0p" };
  });
}

async function order(it: Observed, sku = "tea"): Promise<unknown> {
  const payload = { sku, password: "hunter2" };
  const answer = outcome(it.worker, { function_id: "orders::create", payload });
  await it.local.settle();
  return await answer;
}

const attributesOf = (span: Json) =>
  Object.fromEntries((span as Item).attributes as [string, Json][]);

Deno.test("A call and what it calls are one trace", async () => {
  await using it = await observe();
  offerOrders(it);
  await order(it);

  const { traces, total } = await it.ask("engine::traces::summaries");
  const [trace] = traces as Item[];
  const { roots } = await it.ask("engine::traces::tree", { trace_id: trace!.trace_id! });
  const [root] = roots as Item[];
  const [child] = root!.children as Item[];

  assert.equal(total, 1);
  assert.deepEqual([trace!.name, trace!.span_count, trace!.error_count], ["orders::create", 2, 0]);
  assert.deepEqual([root!.name, child!.name], ["orders::create", "orders::check"]);
  assert.equal(child!.parent_span_id, root!.span_id);
  assert.equal(attributesOf(root!)["engine.caller"], "shop");
});

Deno.test("A trace is named and counted by what failed in it", async () => {
  await using it = await observe();
  offerOrders(it);
  await order(it, "none");

  const { traces } = await it.ask("engine::traces::summaries", { status: "error" });
  const [trace] = traces as Item[];

  assert.deepEqual([trace!.error_count, trace!.error_code], [2, "unknown_sku"]);
});

Deno.test("Only operators see payloads, and those are redacted", async () => {
  await using it = await observe({ redact: ["/stock"] });
  offerOrders(it);
  await order(it);
  const { traces } = await it.ask("engine::traces::summaries");
  const trace_id = (traces as Item[])[0]!.trace_id!;

  const seen = await it.askAsOperator("engine::traces::list", { trace_id });
  const others = await it.ask("engine::traces::list", { trace_id });
  const tree = await it.ask("engine::traces::tree", { trace_id });

  const [create, check] = (seen.spans as Item[]).map(attributesOf);
  assert.equal(create!["engine.request"], '{"sku":"tea","password":"[redacted]"}');
  assert.equal(create!["engine.response"], '{"id":7,"token":"[redacted]"}');
  assert.equal(check!["engine.response"], '{"stock":"[redacted]"}');
  assert.doesNotMatch(JSON.stringify([others, tree]), /engine\.re(quest|sponse)"/);
  assert.doesNotMatch(JSON.stringify(seen), /hunter2|t0p/);
});

Deno.test("Core functions are hidden by default", async () => {
  await using it = await observe();
  await it.ask("engine::logs::list");

  const hidden = await it.ask("engine::traces::summaries");
  const shown = await it.ask("engine::traces::summaries", { include_internal: true });

  assert.deepEqual(hidden.traces, []);
  assert.ok((shown.traces as Item[]).some(({ name }) => name === "engine::logs::list"));
});

Deno.test("A record that a handler logs has its function and trace", async () => {
  await using it = await observe();
  it.worker.registerFunction("orders::ship", async () => {
    const payload = { message: "shipped", data: { to: "Ann", secret: 1 } };
    await it.worker.trigger({ function_id: "engine::log::info", payload });
  });
  await it.ask("orders::ship").catch(() => {});

  const { logs } = await it.ask("engine::logs::list", { source: "function" });
  const { traces } = await it.ask("engine::traces::summaries");

  const [line] = logs as Item[];
  const about = line!.attributes as Item;
  assert.equal(line!.body, "shipped");
  assert.equal(line!.severity_number, 9);
  assert.equal(about["engine.function_id"], "orders::ship");
  assert.equal(about["engine.worker"], "shop");
  assert.deepEqual(about.data, { to: "Ann", secret: "[redacted]" });
  assert.equal(line!.trace_id, (traces as Item[])[0]!.trace_id);
  assert.equal(it.local.lines.filter(({ text }) => text === "shipped").length, 1);
});

Deno.test("Records of the engine, of output and of functions appear once each", async () => {
  await using it = await observe();
  const print = {
    worker: "shop",
    replica: 2,
    stream: "stderr" as const,
    at_ms: it.clock.wall(),
    trace: null,
  };
  it.local.print({ ...print, text: "\u001b[31mboom\u001b[0m", isLogger: false });
  it.local.print({ ...print, text: "said by a logger", isLogger: true });
  it.local.log({ level: "warn", text: "line cut", fields: { id: "w1" }, at_ms: it.clock.wall() });
  await it.ask("engine::log::error", { message: "bad" });

  const { logs } = await it.ask("engine::logs::list", { sort_order: "asc" });

  assert.deepEqual(
    (logs as Item[]).map(({ body, severity_text, attributes }) => {
      const about = attributes as Item;
      return [body, severity_text, about["engine.source"], about["engine.replica"]];
    }),
    [
      ["boom", "WARN", "output", 2],
      ["line cut", "WARN", "engine", undefined],
      ["bad", "ERROR", "function", undefined],
    ],
  );
});

Deno.test("Recorded telemetry survives a change of the configuration", async () => {
  await using it = await observe();
  offerOrders(it);
  await order(it);
  await it.ask("engine::log::info", { message: "before" });

  await it.stop();
  await it.local.start(observability, { redact: ["sku"], logs: { level: "info" } });

  const { logs } = await it.ask("engine::logs::list", { text: "before" });
  const { traces } = await it.ask("engine::traces::summaries");
  assert.equal((logs as Item[]).length, 1);
  assert.equal((traces as Item[]).length, 1);
});

Deno.test("The rings take their memory from the budget, and return it", async () => {
  const memory = createMemoryBudget(64 * 1024 * 1024);
  const config = { traces: { memory_mb: 10 }, logs: { memory_mb: 5 } };
  await using it = await observe(config, "/nowhere", memory);
  assert.equal(memory.used("rings"), 15 * 1024 * 1024);
  await it.stop();
  assert.equal(memory.used("rings"), 0);
});

Deno.test("Rings that do not fit the budget are reported, and nothing is taken for them", async () => {
  const memory = createMemoryBudget(64 * 1024 * 1024);
  await using it = await observe({ traces: { memory_mb: 60 } }, "/nowhere", memory);
  assert.equal(memory.used("rings"), 0);
  assert.ok(it.local.lines.some(({ text }) => text.includes("exceed the memory budget")));
});

Deno.test("With tracing off spans are not recorded, logs are", async () => {
  await using it = await observe({ traces: { enabled: false } });
  offerOrders(it);
  await order(it);
  await it.ask("engine::log::info", { message: "still" });

  const { total } = await it.ask("engine::traces::summaries", { include_internal: true });
  const rules = await it.ask("engine::sampling::rules");

  assert.equal(total, 0);
  assert.equal((rules.traces as Item).default_ratio, 0);
  assert.equal((await it.ask("engine::logs::list", { text: "still" })).total, 1);
});

Deno.test("engine::traces::clear and engine::logs::clear remove everything, for operators only", async () => {
  await using it = await observe();
  offerOrders(it);
  await order(it);
  await it.ask("engine::log::info", { message: "before" });

  for (const function_id of ["engine::traces::clear", "engine::logs::clear"]) {
    await assert.rejects(it.ask(function_id), { code: "FORBIDDEN" });
  }
  assert.equal((await it.ask("engine::traces::summaries")).total, 1);
  assert.equal((await it.askAsOperator("engine::traces::clear")).success, true);
  assert.equal((await it.askAsOperator("engine::logs::clear")).success, true);

  assert.equal((await it.ask("engine::traces::summaries")).total, 0);
  assert.equal((await it.ask("engine::logs::list")).total, 0);
});

Deno.test("engine::log::info cuts long data in the engine's log", async () => {
  await using it = await observe();

  await it.ask("engine::log::info", { message: "big", data: "x".repeat(100_000) });

  const [line] = it.local.lines.filter(({ text }) => text === "big");
  assert.equal((line!.fields.data as string).length, 4_001);
});

for (const payload of [null, "text", {}, { message: 5 }, { message: null }, [{ message: "a" }]]) {
  Deno.test(`engine::log::info refuses ${JSON.stringify(payload)}`, async () => {
    await using it = await observe();

    await assert.rejects(it.ask("engine::log::info", payload), { code: "deserialization_error" });
    assert.equal((await it.ask("engine::logs::list", { source: "function" })).total, 0);
  });
}

for (
  const [name, payload] of [
    ["traces::tree", {}],
    ["traces::list", { limit: 0 }],
    ["traces::list", { sort_by: "colour" }],
    ["traces::group_by", {}],
    ["traces::summaries", { limit: 5_000 }],
    ["traces::summaries", { status: "bad" }],
    ["traces::map", { since_ms: "yesterday" }],
    ["traces::explain", {}],
    ["logs::list", { limit: -1 }],
    ["logs::list", { source: "dream" }],
  ] as const
) {
  Deno.test(`engine::${name} refuses ${JSON.stringify(payload)}`, async () => {
    await using it = await observe();

    await assert.rejects(it.ask(`engine::${name}`, payload as Json), {
      code: "deserialization_error",
    });
  });
}
