/**
 * Firings: each with a trace that tells that a trigger began it, never too many, never lost quietly.
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
import { Firing, Heap, ownLog } from "./firing.ts";

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
  const firing = new Firing({
    worker,
    clock,
    directory,
    log: recordingLog(lines),
    spans: { open },
  });
  return { clock, lines, worker, directory, firing };
}

const settle = async () => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

for (const [flags, expected] of [["01", "01"], ["00", "00"], [null, "00"]] as const) {
  Deno.test(`Firing.fire() begins a trace of its own, sampled as ${flags}`, async () => {
    const { firing, worker } = setup(flags);

    await firing.fire(trigger, { n: 1 });
    await firing.fire(trigger, { n: 2 });

    const [first, second] = worker.made;
    const read = /^00-([0-9a-f]{32})-[0-9a-f]{16}-(\d\d)$/;
    const [, trace_id = "", flag] = read.exec(first!.traceparent!)!;
    assert.equal(flag, expected);
    assert.ok(firing.causedBy(trace_id));
    assert.notEqual(second!.traceparent, first!.traceparent);
    assert.deepEqual(first!.action, { type: "void" });
    assert.deepEqual(first!.metadata, { why: "demo" });
  });
}

Deno.test("Firing.causedBy() knows its own traces from all others", () => {
  const { firing } = setup();

  assert.equal(firing.causedBy(null), false);
  for (let i = 0; i < 1_000; i++) {
    const other = crypto.getRandomValues(new Uint8Array(16)).toHex();
    assert.equal(firing.causedBy(other), false, other);
  }
});

Deno.test("Firing.fire() says what could not be fired, and never rejects", async () => {
  const { firing, worker, lines } = setup();
  worker.answer = () => Promise.reject(new Error("no line"));

  await firing.fire(trigger, 1);
  await firing.fire(trigger, Promise.reject(new Error("no payload")));

  assert.deepEqual(lines.map(({ fields }) => fields.reason), ["no line", "no payload"]);
});

Deno.test("Firing.isNamedBy() knows lines about firings", () => {
  const { firing } = setup();
  const line = (attributes: Record<string, Json>, source: "engine" | "logger" = "engine") =>
    firing.isNamedBy({ ...newLog({ attributes, source }), seq: 1 });

  assert.equal(line({ by: "engine-observability" }), true);
  assert.equal(line({ by: "engine-observability" }, "logger"), false);
  assert.equal(line({ id: "w-1" }), false);
  assert.equal(line({}), false);
});

Deno.test("Heap fires at once without batch_ms, so many times in a second and no more", () => {
  const { firing, clock, worker, lines } = setup();
  const heap = new Heap<number>(firing, {
    trigger,
    batchMs: undefined,
    payload: ([n]) => n!,
  });

  for (let n = 0; n < 250; n++) heap.add(n);
  assert.equal(worker.made.length, 200);
  assert.equal(worker.made[0]!.payload, 0);
  clock.tick(1_000);
  heap.add(1_000);

  assert.equal(worker.made.length, 201);
  assert.equal(lines[0]!.fields.dropped, 50);
  heap.stop();
  assert.equal(clock.waiting, 0);
});

Deno.test("Heap collects for batch_ms, tells equal things once, and counts what is too much", async () => {
  const { firing, clock, worker } = setup();
  const heap = new Heap<number>(firing, {
    trigger,
    batchMs: 100,
    payload: (items, dropped) => ({ items, dropped }),
  });

  for (const n of [1, 2, 1]) heap.add(n);
  clock.tick(100);
  for (let n = 0; n < 510; n++) heap.add(n);
  heap.add(5);
  clock.tick(100);
  await settle();

  const [first, second] = worker.made.map(({ payload }) => payload as Record<string, Json>);
  assert.deepEqual(first, { items: [1, 2], dropped: 0 });
  assert.deepEqual([(second!.items as Json[]).length, second!.dropped], [500, 10]);
  clock.tick(1_000);
  assert.equal(worker.made.length, 2);
});

Deno.test("Heap tells nothing after it was stopped", () => {
  const { firing, clock, worker } = setup();
  const heap = new Heap<number>(firing, { trigger, batchMs: 100, payload: () => 1 });

  heap.add(1);
  heap.stop();
  clock.tick(1_000);

  assert.deepEqual(worker.made, []);
  assert.equal(clock.waiting, 0);
});

Deno.test("ownLog() tells while it writes that the line is one that is kept already", () => {
  const seen: boolean[] = [];
  const lines: LogLine[] = [];
  const inner = recordingLog(lines);
  const it = ownLog({
    ...inner,
    info: (text, fields) => {
      seen.push(it.isSpeaking());
      inner.info(text, fields);
    },
  });

  it.said.info("a", { x: 1 });
  it.own.info("b", { x: 2 });

  assert.deepEqual(seen, [true, false]);
  assert.deepEqual(lines.map(({ text, fields }) => [text, fields]), [
    ["a", { x: 1 }],
    ["b", { by: "engine-observability", x: 2 }],
  ]);
  assert.equal(it.isSpeaking(), false);
});

Deno.test("ownLog() is silent again after a log that failed", () => {
  const it = ownLog({
    warn: () => {
      throw new Error("full");
    },
  } as unknown as Log);

  assert.throws(() => it.said.warn("a"), /full/);
  assert.equal(it.isSpeaking(), false);
});
