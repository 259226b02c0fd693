/**
 * Records of all sources are stored once, with the function that was running.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { ENDLESS, found, idOf, newLog, NOON } from "../../../tests/fakes/spans.ts";
import { Redactor } from "../redact.ts";
import type { LogRecord } from "./record.ts";
import {
  LOG_PAGE_BYTES_MAX,
  type LogFilter,
  LogRing,
  LogStore,
  type LogStoreSetup,
} from "./store.ts";

function setup(changes: Partial<LogStoreSetup> = {}) {
  const clock = new FakeClock();
  const asked: string[] = [];
  const store = new LogStore({
    clock,
    ring: new LogRing(1_000_000),
    redactor: new Redactor(),
    least: "debug",
    functionOf: (_trace_id, span_id) => {
      asked.push(span_id);
      return span_id === idOf(1, 16) ? "orders::create" : undefined;
    },
    ...changes,
  });
  const received: LogRecord[] = [];
  store.listen((record) => received.push(record));
  return { clock, store, asked, received };
}

Deno.test("LogStore looks up the function of a record by its span, once per span", () => {
  const { store, asked, received } = setup();

  for (let i = 0; i < 3; i++) store.add(newLog({ span_id: idOf(1, 16) }));
  for (let i = 0; i < 3; i++) store.add(newLog({ span_id: idOf(2, 16) }));
  store.add(newLog());
  store.add(newLog({ span_id: idOf(3, 16), function_id: "known" }));

  assert.deepEqual(received.map(({ function_id }) => function_id), [
    ...Array(3).fill("orders::create"),
    ...Array(4).fill(null),
    "known",
  ]);
  assert.deepEqual(asked, [idOf(1, 16), idOf(2, 16)]);
});

Deno.test("LogStore bounds the failed lookups per second", () => {
  const { store, asked, clock } = setup();

  for (let n = 0; n < 500; n++) store.add(newLog({ span_id: idOf(n + 10, 16) }));
  assert.equal(asked.length, 20);
  clock.tick(1_000);
  store.add(newLog({ span_id: idOf(1, 16) }));

  assert.equal(asked.length, 21);
});

Deno.test("LogStore looks up the functions of hundreds of calls per second", () => {
  const { store, received } = setup({ functionOf: () => "orders::create" });

  for (let n = 0; n < 2_000; n++) store.add(newLog({ span_id: idOf(n, 16) }));

  const found = received.filter(({ function_id }) => function_id === "orders::create").length;
  assert.ok(found >= 900 && found <= 1_100, `${found}`);
});

Deno.test("LogStore neither stores nor delivers records below its level", () => {
  const { store, received } = setup({ least: "warn" });

  assert.equal(store.add(newLog({ severity: "info" })), undefined);
  store.add(newLog({ severity: "error" }));

  assert.equal(received.length, 1);
  assert.equal(store.ring.size, 1);
});

Deno.test("LogStore stores the engine's log, redacted, under the worker it names", () => {
  const { store } = setup();
  const fields = {
    worker: "shop",
    trace_id: idOf(1, 32),
    token: "x",
    port: 3111,
    nothing: undefined,
  };

  store.addEngineLine({ level: "warn", text: "line cut", fields, at_ms: NOON });

  const [record] = store.ring.find({}, { offset: 0, limit: 9, order: "asc" }).records;
  assert.equal(record!.body, "line cut");
  assert.deepEqual(record!.attributes, { token: "[redacted]", port: 3_111 });
  assert.deepEqual([record!.service_name, record!.worker, record!.source], [
    "engine",
    "shop",
    "engine",
  ]);
  assert.equal(record!.trace_id, idOf(1, 32));
});

Deno.test("LogStore skips printed lines that the logger sends as well", () => {
  const { store, received } = setup();
  const line = {
    worker: "shop",
    replica: 1,
    stream: "stdout",
    text: "a",
    at_ms: NOON,
    trace: null,
  } as const;

  store.addPrint({ ...line, isLogger: true });
  store.addPrint({ ...line, isLogger: false });

  assert.deepEqual(received.map(({ source }) => source), ["output"]);
});

Deno.test("LogStore.take() returns how many records it stored and dropped", () => {
  const { store } = setup();
  const frame = { resourceLogs: [{ scopeLogs: [{ logRecords: [{}, {}, 5] }] }] };

  assert.deepEqual(store.take(frame), { taken: 2, dropped: 1 });
  assert.throws(() => store.take(5));
});

Deno.test("LogStore.clear() notifies its listeners until they stop", () => {
  const { store } = setup();
  let notified = 0;
  let received = 0;
  const stopClear = store.onClear(() => notified++);
  const stopListening = store.listen(() => received++);
  store.add(newLog());

  store.clear();
  stopClear();
  stopListening();
  store.clear();
  store.add(newLog());

  assert.deepEqual([notified, received, store.ring.size], [1, 1, 1]);
});

const ALL = { offset: 0, limit: 1_000, order: "asc" } as const;
const bodies = (ring: LogRing, filter: LogFilter = {}, how: typeof ALL = ALL) =>
  ring.find(filter, how).records.map(({ body }) => body);

Deno.test("LogRing drops the oldest records beyond its bound, and keeps counting", () => {
  const ring = new LogRing(4_000);
  for (let n = 0; n < 1_000; n++) ring.add(newLog({ body: `${n}`, at_ms: NOON + n }));

  assert.ok(ring.bytes <= 4_000 && ring.size > 5);
  const { records, total } = ring.find({}, ALL);
  assert.deepEqual([records.at(-1)!.body, records.at(-1)!.seq], ["999", 1_000]);
  assert.equal(total, ring.size);
  assert.equal(ring.oldestMs, NOON + 1_000 - ring.size);
});

Deno.test("LogRing drops a record larger than its bound", () => {
  const ring = new LogRing(4_000);

  ring.add(newLog({ body: "x".repeat(10_000) }));
  assert.deepEqual([ring.size, ring.bytes], [0, 0]);
  ring.add(newLog({ attributes: { deep: { list: Array(5_000).fill("y") } } }));
  assert.equal(ring.size, 0);
  ring.add(newLog());

  assert.deepEqual(bodies(ring), ["hello"]);
});

Deno.test("LogRing counts the memory of attributes", () => {
  const plain = new LogRing(1e6);
  const rich = new LogRing(1e6);
  plain.add(newLog());
  rich.add(newLog({ attributes: { a: "x".repeat(1_000), b: { c: [1, 2] }, d: null } }));

  assert.ok(rich.bytes > plain.bytes + 2_000);
});

Deno.test("LogRing.resize() drops records at once", () => {
  const ring = new LogRing(100_000);
  for (let n = 0; n < 100; n++) ring.add(newLog({ body: `${n}` }));

  ring.resize(1_000);
  assert.deepEqual(bodies(ring), ["98", "99"]);
  ring.clear();
  assert.deepEqual([ring.size, ring.bytes, ring.oldestMs], [0, 0, null]);
  assert.equal(ring.add(newLog()).seq, 101);
});

/** Four records that differ in every filterable member. */
function filled(): LogRing {
  const ring = new LogRing(100_000);
  ring.add(newLog({ body: "a", severity: "debug", worker: "shop", at_ms: NOON }));
  ring.add(newLog({ body: "b", trace_id: "t", span_id: "s", function_id: "f", at_ms: NOON + 1 }));
  ring.add(
    newLog({
      body: "c",
      severity: "error",
      worker: null,
      service_name: "engine",
      source: "engine",
    }),
  );
  ring.add(newLog({ body: "d", attributes: { order: { id: "Ann" } }, worker: "other" }));
  return ring;
}

for (
  const [filter, expected] of [
    [{}, "abcd"],
    [{ since_ms: NOON + 1 }, "b"],
    [{ until_ms: NOON }, "acd"],
    [{ trace_id: "t" }, "b"],
    [{ span_id: "s" }, "b"],
    [{ least: "info" }, "bcd"],
    [{ least: "error" }, "c"],
    [{ severity: "debug" }, "a"],
    [{ worker: "shop" }, "abd"],
    [{ worker: "engine" }, "c"],
    [{ function_id: "f" }, "b"],
    [{ source: "engine" }, "c"],
    [{ text: "ANN" }, "d"],
    [{ text: "B" }, "b"],
    [{ after_seq: 2 }, "cd"],
    [{ before_seq: 2 }, "a"],
    [{ after_seq: 1, before_seq: 4 }, "bc"],
    [{ trace_id: "none" }, ""],
  ] as const
) {
  Deno.test(`LogRing.find() with ${JSON.stringify(filter)} finds "${expected}"`, () => {
    assert.equal(bodies(filled(), filter).join(""), expected);
  });
}

Deno.test("LogRing.find() pages in both directions and returns the total", () => {
  const ring = filled();

  const newest = ring.find({}, { offset: 1, limit: 2, order: "desc" });
  const oldest = ring.find({}, { offset: 1, limit: 2, order: "asc" });

  assert.deepEqual([newest.records.map(({ body }) => body), newest.total], [["c", "b"], 4]);
  assert.deepEqual(oldest.records.map(({ body }) => body), ["b", "c"]);
});

Deno.test("LogRing.search() and page() end before a page has too many bytes, and count all", () => {
  const ring = new LogRing(100 * LOG_PAGE_BYTES_MAX);
  for (let i = 0; i < 20; i++) ring.add({ ...newLog(), body: "x".repeat(1_000_000) });
  ring.add({ ...newLog(), body: "y".repeat(LOG_PAGE_BYTES_MAX) });

  for (const order of ["asc", "desc"] as const) {
    for (const offset of [0, 1, 19, 20, 21, 30]) {
      const range = { offset, limit: 1_000, order };
      assert.deepEqual(ring.page(range), found(ring.search({}, range, ENDLESS)));
      assert.deepEqual(
        ring.page({ ...range, limit: 2 }).records,
        ring.page(range).records.slice(0, 2),
      );
    }
  }
  const page = ring.page({ offset: 1, limit: 1_000, order: "desc" });
  const huge = ring.page({ offset: 0, limit: 1_000, order: "desc" });
  assert.ok(page.records.length > 1 && page.records.length < 6, `${page.records.length} records`);
  assert.deepEqual([page.total, page.isCut], [21, true]);
  assert.deepEqual([huge.records.length, huge.total], [1, 21]);
});

for (const order of ["asc", "desc"] as const) {
  Deno.test(`LogRing.search() ${order} yields, and endures records that come and go`, () => {
    const ring = new LogRing(2_000_000);
    const log = { ...newLog(), body: "x".repeat(1_000) };
    let steps = 0;
    let slices = 0;
    const turn = { ...ENDLESS, isOver: () => ++steps % 100 === 0 };
    const paused = (): void => {
      slices++;
      for (let i = 0; i < 20; i++) ring.add(log);
    };
    for (let i = 0; i < 1_000; i++) ring.add(log);
    const size = ring.size;
    const newest = ring.add(log).seq;

    const page = { offset: 0, limit: size, order };
    const result = found(ring.search({ text: "X" }, page, turn), paused);

    assert.ok(slices > 1, `${slices} slices`);
    assert.ok(result.total > size / 2 && result.total <= size + 1, `${result.total} of ${size}`);
    const seqs = result.records.map(({ seq }) => seq);
    assert.deepEqual(seqs, seqs.toSorted((a, b) => order === "asc" ? a - b : b - a));
    assert.equal(new Set(seqs).size, seqs.length);
    assert.ok(Math.max(...seqs) <= newest);
  });
}
