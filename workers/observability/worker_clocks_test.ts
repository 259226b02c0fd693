/**
 * The clocks of workers are measured from their calls, and their times moved onto the engine's.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { CallSpan } from "../../engine/ports/telemetry.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { callSpan, idOf, NOON, storedSpan } from "../../tests/fakes/spans.ts";
import { readLogs } from "./logs/record.ts";
import { Redactor } from "./redact.ts";
import type { StoredSpan } from "./traces/span.ts";
import {
  CLOCK_LOOKUPS_PER_SECOND,
  CLOCK_MEASURE_MS,
  CLOCKS_MAX,
  WorkerClocks,
} from "./worker_clocks.ts";

function setup(calls: readonly CallSpan[]) {
  const clock = new FakeClock(NOON);
  const asked: string[] = [];
  const clocks = new WorkerClocks(clock, ({ span_id }) => {
    asked.push(span_id!);
    return calls.find((call) => call.span_id === span_id);
  });
  return { clock, clocks, asked };
}

/** A call that worker `w-2` got after 2 ms, and whose result arrived 20 ms after its start. */
function call(n: number, changes: Partial<CallSpan> = {}): CallSpan {
  return callSpan({
    span_id: idOf(n, 16),
    start_ms: NOON,
    sent_ms: NOON + 2,
    end_ms: NOON + 20,
    ...changes,
  });
}

/** The handler of a call, by the clock of its worker. */
function handler(n: number, startMs: number, endMs: number, worker_id = "w-2"): StoredSpan {
  return storedSpan({
    span_id: idOf(100 + n, 16),
    parent_span_id: idOf(n, 16),
    start_ms: NOON + startMs,
    end_ms: NOON + endMs,
  }, { "engine.kind": "handler", "engine.worker_id": worker_id });
}

const times = (spans: readonly StoredSpan[]) =>
  spans.map(({ start_ms, end_ms }) => [start_ms - NOON, end_ms! - NOON]);

Deno.test("WorkerClocks leaves the times of a clock that agrees with the engine's", () => {
  const { clocks } = setup([call(1)]);
  const spans = [handler(1, 3, 19)];

  assert.equal(clocks.corrected(spans), spans);
  assert.equal(clocks.ahead("w-2"), 0);
});

Deno.test("WorkerClocks moves all times of a clock that is ahead, or behind", () => {
  for (const ahead of [5_000, -5_000]) {
    const { clocks } = setup([call(1)]);
    const work = storedSpan({ start_ms: NOON + ahead + 6, end_ms: NOON + ahead + 8 }, {
      "engine.worker_id": "w-2",
    });

    const corrected = clocks.corrected([handler(1, ahead + 3, ahead + 19), work]);

    // The call took 18 ms after it was sent, the handler 16: so 1 ms there and 1 ms back.
    assert.equal(clocks.ahead("w-2"), ahead);
    assert.deepEqual(times(corrected), [[3, 19], [6, 8]]);
    assert.deepEqual(corrected[1]!.attributes.at(-1), ["engine.clock_ahead_ms", ahead]);
  }
});

Deno.test("WorkerClocks moves the events of a span too", () => {
  const { clocks } = setup([call(1)]);
  const event = { name: "x", time_unix_nano: (NOON + 5_004) * 1e6 };

  const [span] = clocks.corrected([{
    ...handler(1, 5_003, 5_019),
    events: [event, { name: "y" }],
  }]);

  assert.deepEqual(span!.events, [{ name: "x", time_unix_nano: (NOON + 4) * 1e6 }, { name: "y" }]);
});

Deno.test("WorkerClocks narrows what it knows by later calls", () => {
  const { clocks, clock } = setup([call(1), call(2)]);
  clocks.corrected([handler(1, 1_012, 1_013)]); // In [993, 1010].
  clock.tick(CLOCK_MEASURE_MS);

  clocks.corrected([handler(2, 1_003, 1_019)]); // In [999, 1001].

  assert.equal(clocks.ahead("w-2"), 1_000);
});

Deno.test("WorkerClocks begins anew when a clock was set", () => {
  const { clocks, clock } = setup([call(1), call(2)]);
  clocks.corrected([handler(1, 5_003, 5_019)]);
  clock.tick(CLOCK_MEASURE_MS);

  clocks.corrected([handler(2, 3, 19)]);

  assert.equal(clocks.ahead("w-2"), 0);
});

Deno.test("WorkerClocks keeps what it knows for spans without a known call", () => {
  const { clocks, clock } = setup([call(1)]);
  clocks.corrected([handler(1, 5_003, 5_019)]);
  clock.tick(CLOCK_MEASURE_MS);

  assert.deepEqual(times(clocks.corrected([handler(9, 5_500, 5_510)])), [[500, 510]]);
});

Deno.test("WorkerClocks knows nothing of a worker that was not called, or is not named", () => {
  const { clocks } = setup([call(1)]);

  clocks.corrected([handler(1, 5_003, 5_019, "w-3")]);
  const nameless = [storedSpan({ parent_span_id: idOf(1, 16) }, { "engine.kind": "handler" })];

  assert.equal(clocks.ahead("w-3"), 0);
  assert.equal(clocks.corrected(nameless), nameless);
});

Deno.test("WorkerClocks takes a running call and one that was ended early as still open", () => {
  for (const changes of [{ end_ms: null }, { end_ms: NOON + 5, ended_by: "its timeout passed" }]) {
    const { clocks, clock } = setup([call(1, changes)]);
    clock.tick(30);

    clocks.corrected([handler(1, 3, 29)]);

    assert.equal(clocks.ahead("w-2"), 0, JSON.stringify(changes));
  }
});

Deno.test("WorkerClocks looks up a bounded number of calls, and one worker once a second", () => {
  const { clocks, clock, asked } = setup([call(1)]);
  for (let n = 0; n < 5; n++) clocks.corrected([handler(1, 5_003, 5_019)]);
  assert.equal(asked.length, 1);

  for (let n = 0; n < 100; n++) clocks.corrected([handler(50, 0, 1, `other-${n}`)]);
  assert.equal(asked.length, CLOCK_LOOKUPS_PER_SECOND);
  clock.tick(1_000);
  clocks.corrected([handler(1, 5_003, 5_019)]);

  assert.equal(asked.length, CLOCK_LOOKUPS_PER_SECOND + 1);
});

Deno.test("WorkerClocks forgets the clock that was measured longest ago", () => {
  const calls = Array.from({ length: CLOCKS_MAX + 1 }, (_, n) => {
    return call(n, { callee: { worker_id: `w-${n}`, name: "w" } });
  });
  const { clocks, clock } = setup(calls);

  for (const n of calls.keys()) {
    clocks.corrected([handler(n, 5_003, 5_019, `w-${n}`)]);
    clock.tick(1_000);
  }

  assert.deepEqual([clocks.ahead("w-0"), clocks.ahead("w-1")], [0, 5_000]);
});

Deno.test("readLogs() moves the times of records, but not that of their arrival", () => {
  const record = (time?: string) => ({ timeUnixNano: time, body: { stringValue: "x" } });
  const resource = {
    attributes: [{ key: "service.instance.id", value: { stringValue: "w-2" } }],
  };
  const logRecords = [record(`${NOON + 5_000}000000`), record()];
  const frame = { resourceLogs: [{ resource, scopeLogs: [{ logRecords }] }] };

  const { items } = readLogs(frame, new Redactor(), NOON + 7, (id) => id === "w-2" ? 5_000 : 0);

  assert.deepEqual(items.map(({ at_ms }) => at_ms - NOON), [0, 7]);
});
