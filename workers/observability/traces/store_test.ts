/**
 * One view of all spans, delivered to listeners in batches.
 *
 * @module
 */
import assert from "node:assert/strict";
import { LocalEngine } from "../../../tests/fakes/local_engine.ts";
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
import { type StoredSpan, summaryOfCall } from "./span.ts";
import { InternalFunctions } from "./store.ts";

const TRACE = idOf(1, 32);
const names = (spans: readonly StoredSpan[]) => spans.map(({ name }) => name);

function call(n: number, changes = {}) {
  return callSpan({
    span_id: idOf(n, 16),
    function_id: `f${n}`,
    start_ms: NOON + n,
    end_ms: NOON + n + 1,
    invocation_id: `i-${n}`,
    ...changes,
  });
}

Deno.test("SpanStore.trace() returns calls and other spans by start", () => {
  const { traces, ring, store } = recorded();
  traces.add(call(3), call(1), call(5, { end_ms: null }), call(2, { trace_id: idOf(9, 32) }));
  ring.add(storedSpan({ span_id: idOf(50, 16), name: "work", start_ms: NOON + 2 }));
  ring.add(storedSpan({ span_id: idOf(51, 16), trace_id: idOf(9, 32) }));

  assert.deepEqual(names(store.trace(TRACE, false)), ["f1", "work", "f3", "f5"]);
});

Deno.test("SpanStore.trace() puts the caller before a callee with the same start", () => {
  const { traces, ring, store } = recorded();
  ring.add(storedSpan({ span_id: idOf(50, 16), name: "in", parent_span_id: idOf(1, 16) }));
  traces.add(call(1, { start_ms: NOON }));

  assert.deepEqual(names(store.trace(TRACE, false)), ["f1", "in"]);
});

Deno.test("SpanStore.find() returns the newest first and can exclude internal spans", () => {
  const { traces, ring, store } = recorded();
  traces.add(call(1), call(4, { function_id: "engine::logs::list" }));
  ring.add(storedSpan({ span_id: idOf(50, 16), name: "work", start_ms: NOON + 2 }));
  ring.add(
    storedSpan({ span_id: idOf(51, 16), name: "execute engine::x", start_ms: NOON + 3 }, {
      "engine.function_id": "engine::x",
    }),
  );

  assert.equal(store.find({}, 10).length, 4);
  assert.deepEqual(names(store.find({ excludesInternal: true }, 10)), ["work", "f1"]);
  assert.deepEqual(names(store.find({ excludesInternal: true }, 1)), ["work"]);
  assert.deepEqual(names(store.find({ function_id: "engine::x" }, 9)), ["execute engine::x"]);
  assert.deepEqual(names(store.find({ invocation_id: "i-1" }, 9)), ["f1"]);
  assert.deepEqual(names(store.find({ since_ms: NOON + 2, until_ms: NOON + 2 }, 9)), ["work"]);
});

Deno.test("SpanStore stores what built-in workers record, until disposed", () => {
  const { traces, store } = recorded();
  const ended = {
    traceparent: `00-${TRACE}-${idOf(1, 16)}-01`,
    parent: null,
    name: "GET /",
    service: "engine-http",
    start_ms: NOON,
    end_ms: NOON,
    error: null,
    attributes: {},
  };

  traces.spans.record(ended);
  traces.spans.record({ ...ended, traceparent: "nonsense" });
  store[Symbol.dispose]();
  traces.spans.record({ ...ended, traceparent: `00-${TRACE}-${idOf(2, 16)}-01` });

  assert.deepEqual(names(store.trace(TRACE, false)), ["GET /"]);
});

Deno.test("SpanStore.listen() delivers ended spans in batches, with payloads on request", () => {
  const { clock, traces, ring, store } = recorded();
  traces.add(call(1));
  const batches: (readonly StoredSpan[])[] = [];
  const rich: (readonly StoredSpan[])[] = [];
  const stop = store.listen((spans) => batches.push(spans));
  const stopRich = store.listen((spans) => rich.push(spans), true);

  traces.add(call(2), call(3, { end_ms: null }));
  ring.add(storedSpan({ span_id: idOf(50, 16) }));
  clock.tick(250);
  clock.tick(250);

  assert.deepEqual(batches.map(names), [["f2", "work"]]);
  const has = (spans: readonly StoredSpan[], name: string) =>
    spans[0]!.attributes.some(([own]) => own === name);
  assert.equal(has(batches[0]!, "engine.request"), false);
  assert.equal(has(rich[0]!, "engine.request"), true);

  stop();
  stopRich();
  clock.tick(250);
  assert.equal(clock.waiting, 0);
});

Deno.test("SpanStore.lost counts calls that were overwritten before delivery", () => {
  const { clock, traces, store } = recorded();
  traces.capacity = 3;
  let received = 0;
  store.listen((spans) => void (received += spans.length));

  for (let n = 0; n < 10; n++) traces.add(call(n));
  clock.tick(250);

  assert.deepEqual([received, store.lost], [3, 7]);
  store[Symbol.dispose]();
  assert.equal(clock.waiting, 0);
});

Deno.test("SpanStore.flush() and dispose deliver pending spans", () => {
  const { traces, store } = recorded();
  const batches: (readonly StoredSpan[])[] = [];
  store.listen((spans) => batches.push(spans));

  traces.add(call(1));
  store.flush();
  traces.add(call(2));
  store[Symbol.dispose]();

  assert.deepEqual(batches.map(names), [["f1"], ["f2"]]);
});

Deno.test("SpanStore.take() counts stored, duplicate and malformed spans", () => {
  const { store } = recorded();
  const span = {
    traceId: TRACE,
    spanId: idOf(1, 16),
    name: "a",
    startTimeUnixNano: `${NOON}000000`,
    endTimeUnixNano: `${NOON}000000`,
  };
  const frame = { resourceSpans: [{ scopeSpans: [{ spans: [span, span, {}] }] }] };

  assert.deepEqual(store.take(frame), { taken: 1, dropped: 2 });
  assert.equal(store.oldestMs, NOON);
  assert.equal(store.ofTrace(TRACE, idOf(1, 16))!.service_name, "unknown");
});

Deno.test("SpanStore.clear() removes everything and notifies listeners", () => {
  const { traces, ring, store } = recorded();
  let notified = 0;
  const stop = store.onClear(() => notified++);
  traces.add(call(1));
  ring.add(storedSpan());

  store.clear();
  stop();
  store.clear();

  assert.deepEqual([store.find({}, 10), store.oldestMs, notified], [[], null, 1]);
});

Deno.test("SpanStore.scan() keeps those that started last, whether it pauses or not", () => {
  for (const turn of [ENDLESS, HASTY]) {
    const { traces, ring, store } = recorded();
    traces.capacity = 5_000;
    for (let n = 0; n < 5_000; n++) traces.add(call(n));
    traces.add(call(5_000, { end_ms: null }), call(5_001, { function_id: "engine::x" }));
    ring.add(storedSpan({ span_id: idOf(9_000, 16), start_ms: NOON + 4_998.5 }));

    using scan = found(store.scan({ excludesInternal: true }, 2_000, turn));

    assert.equal(scan.spans.length, 2_000);
    const starts = scan.spans.map(({ start_ms }) => start_ms - NOON).sort((a, b) => b - a);
    assert.deepEqual(starts.slice(0, 4), [5_000, 4_999, 4_998.5, 4_998]);
    assert.equal(starts.at(-1), 3_002);
  }
});

Deno.test("SpanStore.scan() endures that everything is removed meanwhile", () => {
  const { traces, ring, store } = recorded();
  traces.add(call(1));
  ring.add(storedSpan({ span_id: idOf(50, 16) }));

  using scan = found(store.scan({}, 10, HASTY), () => store.clear());

  assert.deepEqual(names(scan.spans.map((span) => scan.whole(span, false))), ["f1"]);
});

Deno.test("SpanStore.scan() filters by time and by trace", () => {
  const { traces, store } = recorded();
  for (let n = 0; n < 10; n++) traces.add(call(n));
  traces.add(call(20, { trace_id: idOf(9, 32), end_ms: null }));
  const starts = (filter: Parameters<typeof store.scan>[0]) => {
    using scan = found(store.scan(filter, 100, HASTY));
    return scan.spans.map(({ start_ms }) => start_ms - NOON);
  };

  assert.deepEqual(starts({ since_ms: NOON + 8 }), [20, 8, 9]);
  assert.deepEqual(starts({ until_ms: NOON + 1 }), [0, 1]);
  assert.deepEqual(starts({ trace_id: idOf(9, 32) }), [20]);
  assert.deepEqual(starts({ trace_id: "none" }), []);
});

Deno.test("SpanStore.scanTraces() returns what trace() returns, also with equal starts", () => {
  const { traces, ring, store } = recorded();
  for (let n = 0; n < 600; n++) {
    const at = NOON + (n * 7) % 601;
    const changes = { trace_id: idOf(n % 3, 32), start_ms: at, end_ms: n % 11 ? at + 1 : null };
    traces.add(call(n, changes));
    ring.add(storedSpan({ ...changes, span_id: idOf(1_000 + n, 16), name: `w${n}` }));
  }
  ring.add(storedSpan({ trace_id: idOf(1, 32), span_id: idOf(5, 16), start_ms: NOON }));

  using scan = found(store.scanTraces(new Set([idOf(1, 32), "no id", idOf(0, 32)]), HASTY));

  const spans = scan.spans.map((span) => scan.whole(span, true));
  assert.deepEqual(spans, [...store.trace(idOf(1, 32), true), ...store.trace(idOf(0, 32), true)]);
});

Deno.test("SpanStore.running() has the summaries of running calls", () => {
  const { traces, store } = recorded();
  const running = call(2, { end_ms: null, error_code: "oops", callee: null });
  traces.add(call(1), call(3, { end_ms: null }), running);

  assert.deepEqual(store.running(9), [call(3, { end_ms: null }), running].map(summaryOfCall));
  assert.equal(store.running(1).length, 1);
});

Deno.test("InternalFunctions are the engine's own and those registered as internal", async () => {
  await using local = new LocalEngine();
  const listeners = new Set<(event: { type: "functions_changed" }) => void>();
  using it = new InternalFunctions({
    directory: local.router.directory,
    onEvent: (listener) => {
      listeners.add(listener as never);
      return () => void listeners.delete(listener as never);
    },
  });
  const worker = await local.connect("w");
  const registration = worker.registerFunction("a::b", () => 1, { metadata: { internal: true } });
  worker.registerFunction("a::c", () => 1);
  await local.settle();

  assert.equal(it.has("default", "engine::anything"), true);
  assert.equal(it.has("default", "a::b"), true);
  assert.equal(it.has("default", "a::c"), false);
  assert.equal(it.has("default", "a::missing"), false);

  registration.unregister();
  worker.registerFunction("a::b", () => 1);
  await local.settle();
  for (const listener of listeners) listener({ type: "functions_changed" });

  assert.equal(it.has("default", "a::b"), false);
  it[Symbol.dispose]();
  assert.equal(listeners.size, 0);
});
