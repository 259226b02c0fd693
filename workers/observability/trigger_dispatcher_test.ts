/**
 * Each firing starts a recognizable trace, the rate is bounded, and drops are logged.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Log } from "../../engine/ports/log.ts";
import type { TriggerInstance } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeDirectory } from "../../tests/fakes/fake_directory.ts";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import { FakeOffers } from "../../tests/fakes/offers.ts";
import { newLog } from "../../tests/fakes/spans.ts";
import { TriggerBatcher, TriggerDispatcher, workerLog } from "./trigger_dispatcher.ts";

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
  const worker = new FakeOffers();
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
