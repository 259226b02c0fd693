/**
 * Lines of all origins are kept once, with the function that was running.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { idOf, newLog, NOON } from "../../../tests/fakes/spans.ts";
import type { LogRecord } from "./record.ts";
import { LogRing } from "./ring.ts";
import { LogStore, type LogStoreSetup } from "./store.ts";
import { Redactor } from "../redact.ts";

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
  const heard: LogRecord[] = [];
  store.listen((record) => heard.push(record));
  return { clock, store, asked, heard };
}

Deno.test("LogStore finds the function of a line by its span, once per span", () => {
  const { store, asked, heard } = setup();

  for (let i = 0; i < 3; i++) store.add(newLog({ span_id: idOf(1, 16) }));
  for (let i = 0; i < 3; i++) store.add(newLog({ span_id: idOf(2, 16) }));
  store.add(newLog());
  store.add(newLog({ span_id: idOf(3, 16), function_id: "known" }));

  assert.deepEqual(heard.map(({ function_id }) => function_id), [
    ...Array(3).fill("orders::create"),
    ...Array(4).fill(null),
    "known",
  ]);
  assert.deepEqual(asked, [idOf(1, 16), idOf(2, 16)]);
});

Deno.test("LogStore looks for so many spans in a second and no more", () => {
  const { store, asked, clock } = setup();

  for (let n = 0; n < 500; n++) store.add(newLog({ span_id: idOf(n + 10, 16) }));
  assert.equal(asked.length, 20);
  clock.tick(1_000);
  store.add(newLog({ span_id: idOf(1, 16) }));

  assert.equal(asked.length, 21);
});

Deno.test("LogStore finds the functions of hundreds of calls in a second", () => {
  const { store, heard } = setup({ functionOf: () => "orders::create" });

  for (let n = 0; n < 2_000; n++) store.add(newLog({ span_id: idOf(n, 16) }));

  const found = heard.filter(({ function_id }) => function_id === "orders::create").length;
  assert.ok(found >= 900 && found <= 1_100, `${found}`);
});

Deno.test("LogStore keeps nothing below its level, and tells nobody of it", () => {
  const { store, heard } = setup({ least: "warn" });

  assert.equal(store.add(newLog({ severity: "info" })), undefined);
  store.add(newLog({ severity: "error" }));

  assert.equal(heard.length, 1);
  assert.equal(store.ring.size, 1);
});

Deno.test("LogStore keeps what the engine says, without secrets, under the worker it names", () => {
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

Deno.test("LogStore leaves out printed lines that a logger sends as well", () => {
  const { store, heard } = setup();
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

  assert.deepEqual(heard.map(({ source }) => source), ["output"]);
});

Deno.test("LogStore.take() says how many lines came and how many were broken", () => {
  const { store } = setup();
  const frame = { resourceLogs: [{ scopeLogs: [{ logRecords: [{}, {}, 5] }] }] };

  assert.deepEqual(store.take(frame), { taken: 2, dropped: 1 });
  assert.throws(() => store.take(5));
});

Deno.test("LogStore.clear() forgets and says so; nobody hears after they stopped", () => {
  const { store } = setup();
  let told = 0;
  let heard = 0;
  const stopTold = store.onClear(() => told++);
  const stopHeard = store.listen(() => heard++);
  store.add(newLog());

  store.clear();
  stopTold();
  stopHeard();
  store.clear();
  store.add(newLog());

  assert.deepEqual([told, heard, store.ring.size], [1, 1, 1]);
});
