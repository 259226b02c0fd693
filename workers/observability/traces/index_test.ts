/**
 * The index of traces is complete at each query and costs nothing in between.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  callSpan,
  ENDLESS,
  found,
  HASTY,
  idOf,
  NOON,
  recorded,
  storedSpan,
} from "../../../tests/fakes/spans.ts";
import * as v from "../../kit/schema.ts";
import {
  HISTOGRAM_RANGE_MS,
  histogramOf,
  HistogramRequest,
  SummariesRequest,
  summarize,
  type TraceEntry,
  TraceIndex,
} from "./index.ts";

function setup() {
  const it = recorded();
  return { ...it, index: new TraceIndex(it.store, it.clock) };
}

/** The call numbered `n` of a trace. */
function call(n: number, trace: number, changes = {}) {
  return callSpan({
    trace_id: idOf(trace, 32),
    span_id: idOf(n, 16),
    function_id: `f${n}`,
    start_ms: NOON + n,
    end_ms: NOON + n + 10,
    ...changes,
  });
}

Deno.test("TraceIndex summarizes a trace, also when the root ends last", async () => {
  const { traces, index } = setup();
  const inner = {
    parent_span_id: idOf(1, 16),
    error_code: "oops",
    callee: { worker_id: "w-3", name: "stock" },
  };
  traces.add(call(2, 1, inner), call(1, 1, { end_ms: NOON + 50 }));

  const [trace] = await index.list();

  assert.equal(trace!.name, "f1");
  assert.equal(trace!.worker, "orders");
  assert.deepEqual([trace!.start_ms, trace!.end_ms], [NOON + 1, NOON + 50]);
  assert.deepEqual([trace!.span_count, trace!.error_count, trace!.error_code], [2, 1, "oops"]);
  assert.deepEqual(trace!.services, ["stock", "orders"]);
  assert.deepEqual(trace!.function_ids, ["f2", "f1"]);
  assert.deepEqual([trace!.pending, trace!.internal], [false, false]);
});

Deno.test("TraceIndex lists the newest first and reads on incrementally", async () => {
  const { traces, index } = setup();
  traces.add(call(1, 1), call(2, 2));
  assert.deepEqual((await index.list()).map(({ name }) => name), ["f2", "f1"]);

  traces.add(call(3, 1, { parent_span_id: idOf(1, 16) }), call(4, 4));

  const names = (await index.list()).map(({ name, span_count }) => [name, span_count]);
  assert.deepEqual(names, [["f4", 1], ["f2", 1], ["f1", 2]]);
});

Deno.test("TraceIndex includes running calls and counts them once after they end", async () => {
  const { traces, index } = setup();
  traces.add(call(1, 1), call(2, 1, { end_ms: null }), call(3, 3, { end_ms: null }));

  const running = await index.list();
  traces.stopRunning();
  traces.add(call(2, 1), call(3, 3));
  const ended = await index.list();

  const seen = (list: typeof running) =>
    list.map(({ span_count, pending }) => [span_count, pending]);
  assert.deepEqual(seen(running), [[1, true], [2, true]]);
  assert.deepEqual(seen(ended), [[1, false], [2, false]]);
});

Deno.test("TraceIndex names a trace by its request, else its call, else a handler", async () => {
  const { traces, ring, index } = setup();
  ring.add(
    storedSpan({ span_id: idOf(7, 16), name: "execute f1", start_ms: NOON - 5_000 }, {
      "engine.kind": "handler",
    }),
  );
  assert.equal((await index.list())[0]!.name, "execute f1");

  traces.add(call(1, 1, { parent_span_id: idOf(6, 16) }));
  assert.equal((await index.list())[0]!.name, "f1");

  ring.add(
    storedSpan({ span_id: idOf(6, 16), name: "GET /", start_ms: NOON + 1 }, {
      "engine.kind": "http",
    }),
  );
  assert.equal((await index.list())[0]!.name, "GET /");
});

Deno.test("TraceIndex has the status of a request, its duration and the worker that ran it", async () => {
  const { traces, ring, index } = setup();
  const [request, auth, work] = [idOf(5, 16), idOf(6, 16), idOf(7, 16)];
  ring.add(
    storedSpan(
      { span_id: request, name: "GET /", service_name: "engine-http", end_ms: NOON + 30 },
      {
        "engine.kind": "http",
        "http.response.status_code": 404,
      },
    ),
  );
  const below = { parent_span_id: request };
  const at = (name: string) => ({ callee: { worker_id: name, name } });
  traces.add(
    call(1, 1, { ...below, ...at("engine-state"), span_id: auth }),
    call(2, 1, { ...below, ...at("shop"), span_id: work }),
    call(3, 1, { ...below, ...at("late"), end_ms: NOON + 5_000 }), // Its caller did not wait.
  );

  const [trace] = await index.list();

  assert.deepEqual([trace!.worker, trace!.ran_by, trace!.http_status], [
    "engine-http",
    "shop",
    404,
  ]);
  assert.deepEqual([trace!.root_ms, trace!.end_ms - trace!.start_ms], [30, 5_000]);
});

Deno.test("TraceIndex names a built-in worker as the one that ran it if there is no other", async () => {
  const { traces, index } = setup();
  traces.add(call(1, 1, { callee: { worker_id: "s", name: "engine-state" } }));
  traces.add(call(2, 2, { callee: null }));

  assert.deepEqual((await index.list()).map(({ ran_by }) => ran_by), [null, "engine-state"]);
});

Deno.test("TraceIndex takes the times of a handler only while nothing else is known", async () => {
  const { traces, ring, index } = setup();
  const handler = (n: number, ms: number) =>
    storedSpan({ span_id: idOf(n, 16), start_ms: NOON - ms, end_ms: NOON + 5_000 }, {
      "engine.kind": "handler",
    });
  const extent = async () => {
    const [{ start_ms, end_ms }] = await index.list() as [TraceEntry];
    return [start_ms - NOON, end_ms - NOON];
  };
  ring.add(handler(1, 5_000));
  assert.deepEqual(await extent(), [-5_000, 5_000]);

  traces.add(call(2, 1));
  ring.add(handler(3, 900));

  assert.deepEqual(await extent(), [2, 12]);
});

Deno.test("TraceIndex marks traces that have internal functions only", async () => {
  const { traces, index } = setup();
  traces.add(call(1, 1, { function_id: "engine::x" }), call(2, 2, { function_id: "engine::y" }));
  traces.add(call(3, 2));

  assert.deepEqual((await index.list()).map(({ internal }) => internal), [false, true]);
});

Deno.test("TraceIndex drops traces as the recorder overwrites calls", async () => {
  const { traces, index } = setup();
  traces.capacity = 100;
  for (let n = 0; n < 1_000; n++) {
    traces.add(call(n, n));
    if (n % 50 === 0) await index.list();
  }

  const list = await index.list();

  assert.equal(list.length, 100);
  assert.equal(list[0]!.name, "f999");
});

Deno.test("TraceIndex bounds the number of traces and names", async () => {
  const { traces, index } = setup();
  traces.capacity = 60_000;
  for (let n = 0; n < 60_000; n++) traces.add(call(n, n < 100 ? 0 : n));

  const list = await index.list();

  assert.equal(list.length, 25_000);
  index.clear();
  traces.add(...Array.from({ length: 100 }, (_, n) => call(70_000 + n, 1)));
  assert.equal((await index.list())[0]!.function_ids.length, 32);
});

Deno.test("TraceIndex yields while it reads a full recorder", async () => {
  const { clock, traces, index } = setup();
  traces.capacity = 5_000;
  for (let n = 0; n < 5_000; n++) traces.add(call(n, n));
  const ended = traces.ended.bind(traces);
  traces.ended = (after, limit) => {
    clock.tick(6);
    return ended(after, limit);
  };

  const list = index.list();
  let ticks = 0;
  for (; ticks < 100 && clock.waiting === 0; ticks++) await Promise.resolve();
  assert.equal(clock.waiting, 1);
  while (clock.waiting > 0) {
    clock.tick(1);
    for (let i = 0; i < 20; i++) await Promise.resolve();
  }

  assert.equal((await list).length, 5_000);
});

/** Three traces, the newest first. */
const entries: TraceEntry[] = [
  entry(3, { name: "GET /orders", function_ids: ["orders::list"], end_ms: NOON + 3 + 500 }),
  entry(2, { error_count: 1, error_code: "oops", services: ["shop", "stock"] }),
  entry(1, { internal: true }),
];

function entry(n: number, changes: Partial<TraceEntry>): TraceEntry {
  return {
    trace_id: idOf(n, 32),
    name: `f${n}`,
    worker: "shop",
    ran_by: "shop",
    http_status: null,
    start_ms: NOON + n,
    end_ms: NOON + n + 10,
    root_ms: 8,
    span_count: 1,
    error_count: 0,
    error_code: null,
    services: ["shop"],
    function_ids: [`f${n}`],
    pending: false,
    internal: false,
    ...changes,
  };
}

function names(query: unknown): unknown[] {
  const { traces } = found(summarize(entries, v.parse(SummariesRequest, query), ENDLESS));
  return (traces as { name: string }[]).map(({ name }) => name);
}

Deno.test("summarize() returns the summary of a trace", () => {
  const { traces, total } = found(summarize(entries, v.parse(SummariesRequest, null), HASTY));

  assert.equal(total, 2);
  assert.deepEqual((traces as unknown[])[1], {
    trace_id: idOf(2, 32),
    name: "f2",
    worker: "shop",
    ran_by: "shop",
    http_status: null,
    start_ms: NOON + 2,
    duration_ms: 10,
    root_ms: 8,
    span_count: 1,
    error_count: 1,
    error_code: "oops",
    services: ["shop", "stock"],
    pending: false,
  });
});

for (
  const [query, expected] of [
    [{}, ["GET /orders", "f2"]],
    [{ include_internal: true }, ["GET /orders", "f2", "f1"]],
    [{ limit: 1 }, ["GET /orders"]],
    [{ before_ms: NOON + 3 }, ["f2"]],
    [{ since_ms: NOON + 3 }, ["GET /orders"]],
    [{ status: "error" }, ["f2"]],
    [{ status: "ok" }, ["GET /orders"]],
    [{ min_duration_ms: 100 }, ["GET /orders"]],
    [{ function_id: "orders::list" }, ["GET /orders"]],
    [{ worker: "stock" }, ["f2"]],
    [{ text: "ORDERS::" }, ["GET /orders"]],
    [{ text: "OOPS" }, ["f2"]],
    [{ text: idOf(2, 32).slice(-5) }, ["f2"]],
    [{ text: "nothing" }, []],
    [{ worker: null, text: null }, ["GET /orders", "f2"]],
  ] as const
) {
  Deno.test(`summarize() with ${JSON.stringify(query)} returns ${expected.join(", ")}`, () => {
    assert.deepEqual(names(query), expected);
  });
}

function histogram(query: unknown, nowMs = NOON + 4): Record<string, unknown> {
  return found(histogramOf(entries, v.parse(HistogramRequest, query), nowMs, HASTY));
}

Deno.test("histogramOf() counts traces and failed ones by the part of the range they began in", () => {
  assert.deepEqual(histogram({ since_ms: NOON, before_ms: NOON + 4, buckets: 4 }), {
    since_ms: NOON,
    before_ms: NOON + 4,
    bucket_ms: 1,
    counts: [0, 0, 1, 1],
    errors: [0, 0, 1, 0],
    total: 2,
  });
});

Deno.test("histogramOf() has a range up to now, and the filter of the list", () => {
  const { since_ms, before_ms, total, counts, bucket_ms } = histogram({
    status: "error",
    include_internal: true,
  });

  assert.equal(before_ms, NOON + 15_000);
  assert.equal(since_ms, NOON + 15_000 - HISTOGRAM_RANGE_MS);
  assert.deepEqual([total, bucket_ms], [1, 15_000]);
  assert.equal((counts as number[]).at(-1), 1);
});

Deno.test("histogramOf() of an empty or inverted range is empty", () => {
  for (const before_ms of [NOON, NOON - 5]) {
    assert.equal(histogram({ since_ms: NOON, before_ms, buckets: 2 }).total, 0);
  }
});
