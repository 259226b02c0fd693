/**
 * The trigger types `log` and `trace`: what fires them, and that firings fire nothing themselves.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Log } from "../../engine/ports/log.ts";
import type { PrintedLine } from "../../engine/ports/telemetry.ts";
import type { TriggerInstance } from "../../sdk/typescript/options.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDirectory } from "../../tests/fakes/fake_supervision.ts";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import { observe, type Observed, outcome } from "../../tests/fakes/local_engine.ts";
import { RecordingWorker } from "../../tests/fakes/recording_worker.ts";
import { newLog } from "../../tests/fakes/spans.ts";
import { LogTriggers, TriggerBatcher, TriggerDispatcher, workerLog } from "./triggers.ts";
import { TELEMETRY_TRIGGERS_MAX } from "./trigger_quota.ts";

const trigger: TriggerInstance = {
  id: "t",
  trigger_type: "log",
  function_id: "a::b",
  config: {},
  metadata: { why: "demo" },
  namespace: undefined,
};

function setup(flags: string | null = "01") {
  const clock = new FakeClock();
  const lines: LogLine[] = [];
  const worker = new RecordingWorker();
  const directory = new FakeDirectory();
  const open = () => flags === null ? null : `00-${"a".repeat(32)}-${"b".repeat(16)}-${flags}`;
  const dispatcher = new TriggerDispatcher({
    worker,
    clock,
    directory,
    log: recordingLog(lines),
    spans: { open },
  });
  return { clock, lines, worker, directory, dispatcher };
}

const settle = async () => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

for (const [flags, expected] of [["01", "01"], ["00", "00"], [null, "00"]] as const) {
  Deno.test(`TriggerDispatcher.fire() starts a new trace, sampled as ${flags}`, async () => {
    const { dispatcher, worker } = setup(flags);

    await dispatcher.fire(trigger, { n: 1 });
    await dispatcher.fire(trigger, { n: 2 });

    const [first, second] = worker.made;
    const read = /^00-([0-9a-f]{32})-[0-9a-f]{16}-(\d\d)$/;
    const [, trace_id = "", flag] = read.exec(first!.traceparent!)!;
    assert.equal(flag, expected);
    assert.ok(dispatcher.causedBy(trace_id));
    assert.notEqual(second!.traceparent, first!.traceparent);
    assert.deepEqual(first!.action, { type: "void" });
    assert.deepEqual(first!.metadata, { why: "demo" });
  });
}

Deno.test("TriggerDispatcher.causedBy() recognizes the traces of its firings", () => {
  const { dispatcher } = setup();

  assert.equal(dispatcher.causedBy(null), false);
  for (let i = 0; i < 1_000; i++) {
    const other = crypto.getRandomValues(new Uint8Array(16)).toHex();
    assert.equal(dispatcher.causedBy(other), false, other);
  }
});

Deno.test("TriggerDispatcher.fire() logs a failed call and never rejects", async () => {
  const { dispatcher, worker, lines } = setup();
  worker.answer = () => Promise.reject(new Error("no line"));

  await dispatcher.fire(trigger, 1);
  await dispatcher.fire(trigger, Promise.reject(new Error("no payload")));

  assert.deepEqual(lines.map(({ fields }) => fields.reason), ["no line", "no payload"]);
});

Deno.test("TriggerDispatcher.mentionsFiring() recognizes records about firings", () => {
  const { dispatcher } = setup();
  const line = (attributes: Record<string, Json>, source: "engine" | "logger" = "engine") =>
    dispatcher.mentionsFiring({ ...newLog({ attributes, source }), seq: 1 });

  assert.equal(line({ by: "engine-observability" }), true);
  assert.equal(line({ by: "engine-observability" }, "logger"), false);
  assert.equal(line({ id: "w-1" }), false);
  assert.equal(line({}), false);
});

Deno.test("TriggerBatcher without batch_ms fires at once, at a bounded rate", () => {
  const { dispatcher, clock, worker, lines } = setup();
  const batch = new TriggerBatcher<number>(dispatcher, {
    trigger,
    batchMs: undefined,
    payload: ([n]) => n!,
  });

  for (let n = 0; n < 250; n++) batch.add(n);
  assert.equal(worker.made.length, 200);
  assert.equal(worker.made[0]!.payload, 0);
  clock.tick(1_000);
  batch.add(1_000);

  assert.equal(worker.made.length, 201);
  assert.equal(lines[0]!.fields.dropped, 50);
  batch.stop();
  assert.equal(clock.waiting, 0);
});

Deno.test("TriggerBatcher collects for batch_ms without duplicates, and counts surplus items", async () => {
  const { dispatcher, clock, worker } = setup();
  const batch = new TriggerBatcher<number>(dispatcher, {
    trigger,
    batchMs: 100,
    payload: (items, dropped) => ({ items, dropped }),
  });

  for (const n of [1, 2, 1]) batch.add(n);
  clock.tick(100);
  for (let n = 0; n < 510; n++) batch.add(n);
  batch.add(5);
  clock.tick(100);
  await settle();

  const [first, second] = worker.made.map(({ payload }) => payload as Record<string, Json>);
  assert.deepEqual(first, { items: [1, 2], dropped: 0 });
  assert.deepEqual([(second!.items as Json[]).length, second!.dropped], [500, 10]);
  clock.tick(1_000);
  assert.equal(worker.made.length, 2);
});

Deno.test("TriggerBatcher.stop() discards the pending batch", () => {
  const { dispatcher, clock, worker } = setup();
  const batch = new TriggerBatcher<number>(dispatcher, { trigger, batchMs: 100, payload: () => 1 });

  batch.add(1);
  batch.stop();
  clock.tick(1_000);

  assert.deepEqual(worker.made, []);
  assert.equal(clock.waiting, 0);
});

Deno.test("workerLog() reports while it writes that the line is unrecorded", () => {
  const seen: boolean[] = [];
  const lines: LogLine[] = [];
  const inner = recordingLog(lines);
  const it = workerLog({
    ...inner,
    info: (text, fields) => {
      seen.push(it.isUnrecorded());
      inner.info(text, fields);
    },
  });

  it.unrecorded.info("a", { x: 1 });
  it.tagged.info("b", { x: 2 });

  assert.deepEqual(seen, [true, false]);
  assert.deepEqual(lines.map(({ text, fields }) => [text, fields]), [
    ["a", { x: 1 }],
    ["b", { by: "engine-observability", x: 2 }],
  ]);
  assert.equal(it.isUnrecorded(), false);
});

Deno.test("workerLog() resets after a log that throws", () => {
  const it = workerLog({
    warn: () => {
      throw new Error("full");
    },
  } as unknown as Log);

  assert.throws(() => it.unrecorded.warn("a"), /full/);
  assert.equal(it.isUnrecorded(), false);
});

type Item = Record<string, Json>;

/** A worker `watcher` whose function receives log records. */
async function logTrigger(
  it: Observed,
  config: Json,
  handler: (received: Item) => unknown = () => {},
) {
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
    const { received } = await logTrigger(it, config as Json);

    await say(it, "info", "a");
    await say(it, "warn", "b");
    await say(it, "error", "c");

    assert.deepEqual(bodies(received), expected);
  });
}

Deno.test("A log trigger receives the stored record, or batches with batch_ms", async () => {
  await using it = await observe();
  const { received } = await logTrigger(it, { batch_ms: 100 });

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
  const on = await logTrigger(it, {}, async () => {
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
  const { received, watcher } = await logTrigger(it, {});
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
  const on = await logTrigger(it, {}, () => {
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
  const { received } = await logTrigger(
    it,
    {},
    () => print(it, { worker: "watcher", text: "echo" }),
  );

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
  const { received, watcher } = await logTrigger(it, { batch_ms: 100 });
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

    await logTrigger(it, config);

    const refusal = it.local.lines.find(({ level }) => level === "sdk");
    assert.match(refusal?.text ?? "", /The config of the log trigger does not fit: /);
  });
}

async function traceTrigger(config: Json) {
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
  await using on = await traceTrigger({});
  await on.buy();
  await on.buy();
  const ids = await traceIds(on.it);

  for (let i = 0; i < 10; i++) await on.it.pass(250);

  assert.equal(on.received.length, 1);
  assert.deepEqual(on.received.flatMap(({ trace_ids }) => trace_ids as Json[]).sort(), ids.sort());
});

Deno.test("A trace trigger ignores core functions", async () => {
  await using on = await traceTrigger({});

  await on.it.ask("engine::traces::summaries");
  await on.it.pass(1_000);

  assert.deepEqual(on.received, []);
});

Deno.test("A trace trigger filters by status and service", async () => {
  await using failed = await traceTrigger({ status: "error" });
  await failed.buy();
  await failed.buy({ fail: true });
  await failed.it.pass(500);
  assert.equal(failed.received.length, 1);

  await using other = await traceTrigger({ service_name: "other" });
  await other.buy();
  await other.it.pass(500);
  assert.deepEqual(other.received, []);
});

Deno.test("A trace trigger delivers batches with summaries on request", async () => {
  await using on = await traceTrigger({ batch_ms: 1_000, summaries: true });
  await on.buy();
  await on.buy({ fail: true });

  await on.it.pass(500);
  assert.equal(on.received.length, 0);
  await on.it.pass(1_000);

  const [batch] = on.received;
  assert.equal((batch!.trace_ids as Json[]).length, 2);
  assert.equal(batch!.dropped, 0);
  assert.deepEqual((batch!.traces as Item[]).map(({ name }) => name), [
    "shop::buy",
    "shop::buy",
  ]);
  assert.deepEqual(
    (batch!.traces as Item[]).map(({ error_count }) => error_count).sort(),
    [0, 1],
  );
});

Deno.test("An unregistered trace trigger no longer fires", async () => {
  await using on = await traceTrigger({ batch_ms: 1_000 });
  await on.buy();

  await on.watcher.shutdown();
  await on.it.pass(5_000);

  assert.deepEqual(on.received, []);
});

for (const config of [{ batch_ms: 1 }, { summaries: "yes" }, { status: 5 }, "all"] as Json[]) {
  Deno.test(`A trace trigger ${JSON.stringify(config)} is rejected with the reason`, async () => {
    await using on = await traceTrigger(config);

    const refusal = on.it.local.lines.find(({ level }) => level === "sdk");
    assert.match(refusal?.text ?? "", /The config of the trace trigger does not fit: /);
  });
}

Deno.test("Log triggers are bounded in number, and a full type says so", () => {
  const { dispatcher } = setup();
  const triggers = new LogTriggers(dispatcher);
  for (let i = 0; i < TELEMETRY_TRIGGERS_MAX; i++) triggers.add({ ...trigger, id: `t${i}` });

  assert.throws(() => triggers.add({ ...trigger, id: "surplus" }), {
    code: "trigger_registration_failed",
    message: /There are 1000 triggers of type log/,
  });
  triggers.add({ ...trigger, id: "t5" });
  triggers.remove("t7");
  triggers.add({ ...trigger, id: "surplus" });
});

Deno.test("1,000 log triggers share the thread: a burst of records is matched in slices", () => {
  let now = 0;
  const timers: (() => void)[] = [];
  const worker = new RecordingWorker();
  const clock = {
    now: () => now += 0.05, // Each task takes some time.
    wall: () => now,
    after: (ms: number, task: () => void) => {
      if (ms <= 1) timers.push(task);
      return () => {};
    },
  };
  const open = () => null;
  const setup = { worker, clock, directory: new FakeDirectory(), log: recordingLog([]) };
  const triggers = new LogTriggers(new TriggerDispatcher({ ...setup, spans: { open } }));
  for (let i = 0; i < TELEMETRY_TRIGGERS_MAX; i++) triggers.add({ ...trigger, id: `t${i}` });

  for (let seq = 1; seq <= 10; seq++) triggers.onRecord({ ...newLog(), seq });
  const atOnce = worker.made.length;
  let slices = 0;
  for (; timers.length > 0; slices++) {
    const before = worker.made.length;
    for (const timer of timers.splice(0)) timer();
    assert.ok(worker.made.length - before < 1_000, "one slice did too much");
  }

  assert.ok(atOnce < 1_500, `${atOnce} firings at once`);
  assert.ok(slices > 5, `${slices} slices`);
  assert.equal(worker.made.length, 10 * TELEMETRY_TRIGGERS_MAX);
});

Deno.test("records for a page of another engine have the name and life of theirs", async () => {
  const { clock, dispatcher, worker } = setup();
  const engines = { life: "here", list: () => [{ name: "b", life: "here" }] } as never;
  const triggers = new LogTriggers(dispatcher, engines);
  const of = (life: string) => ({ ...trigger, id: life, namespace: `engine@${life}` });
  triggers.add({ ...of("here"), config: { batch_ms: 100 } });
  triggers.add({ ...of("elsewhere"), config: { batch_ms: 100 } });
  triggers.add({ ...of("single"), config: {} });

  triggers.onRecord({ ...newLog(), seq: 1 });
  clock.tick(100);
  await settle();

  const engineIn = ({ payload }: (typeof worker.made)[number]) => {
    const [{ engine, engine_life }] = (payload as { logs?: [JsonObject] }).logs ??
      [payload as JsonObject];
    return [engine, engine_life];
  };
  assert.deepEqual(worker.made.map(engineIn), [["b", "here"], [undefined, undefined], [
    "b",
    "here",
  ]]);
});

Deno.test("A batch of large records is bounded in bytes, and counts the rest", async () => {
  const { clock, dispatcher, worker } = setup();
  const triggers = new LogTriggers(dispatcher);
  triggers.add({ ...trigger, config: { batch_ms: 100 } });

  for (let seq = 1; seq <= 100; seq++) {
    triggers.onRecord({ ...newLog(), body: "x".repeat(30_000), seq });
  }
  clock.tick(100);
  await settle();

  const { logs, dropped } = worker.made[0]!.payload as { logs: Json[]; dropped: number };
  assert.ok(logs.length > 1 && logs.length < 40, `${logs.length} records`);
  assert.equal(logs.length + dropped, 100);
});
