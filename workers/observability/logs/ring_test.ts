/**
 * The newest records stay, within their bytes, and those that are asked for are found.
 *
 * @module
 */
import assert from "node:assert/strict";
import { newLog, NOON } from "../../../tests/fakes/spans.ts";
import { type LogFilter, LogRing } from "./ring.ts";

const ALL = { offset: 0, limit: 1_000, order: "asc" } as const;
const bodies = (ring: LogRing, filter: LogFilter = {}, how: typeof ALL = ALL) =>
  ring.find(filter, how).records.map(({ body }) => body);

Deno.test("LogRing forgets the oldest when its bytes are used up, and counts on", () => {
  const ring = new LogRing(4_000);
  for (let n = 0; n < 1_000; n++) ring.add(newLog({ body: `${n}`, at_ms: NOON + n }));

  assert.ok(ring.bytes <= 4_000 && ring.size > 5);
  const { records, total } = ring.find({}, ALL);
  assert.deepEqual([records.at(-1)!.body, records.at(-1)!.seq], ["999", 1_000]);
  assert.equal(total, ring.size);
  assert.equal(ring.oldestMs, NOON + 1_000 - ring.size);
});

Deno.test("LogRing keeps nothing that is larger than all its memory, and goes on", () => {
  const ring = new LogRing(4_000);

  ring.add(newLog({ body: "x".repeat(10_000) }));
  assert.deepEqual([ring.size, ring.bytes], [0, 0]);
  ring.add(newLog({ attributes: { deep: { list: Array(5_000).fill("y") } } }));
  assert.equal(ring.size, 0);
  ring.add(newLog());

  assert.deepEqual(bodies(ring), ["hello"]);
});

Deno.test("LogRing counts what attributes cost", () => {
  const plain = new LogRing(1e6);
  const rich = new LogRing(1e6);
  plain.add(newLog());
  rich.add(newLog({ attributes: { a: "x".repeat(1_000), b: { c: [1, 2] }, d: null } }));

  assert.ok(rich.bytes > plain.bytes + 2_000);
});

Deno.test("LogRing gives up at once what a smaller size has no room for", () => {
  const ring = new LogRing(100_000);
  for (let n = 0; n < 100; n++) ring.add(newLog({ body: `${n}` }));

  ring.resize(1_000);
  assert.deepEqual(bodies(ring), ["98", "99"]);
  ring.clear();
  assert.deepEqual([ring.size, ring.bytes, ring.oldestMs], [0, 0, null]);
  assert.equal(ring.add(newLog()).seq, 101);
});

/** Four lines that differ in everything one can ask for. */
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

Deno.test("LogRing.find() pages in both directions and says how many there are", () => {
  const ring = filled();

  const newest = ring.find({}, { offset: 1, limit: 2, order: "desc" });
  const oldest = ring.find({}, { offset: 1, limit: 2, order: "asc" });

  assert.deepEqual([newest.records.map(({ body }) => body), newest.total], [["c", "b"], 4]);
  assert.deepEqual(oldest.records.map(({ body }) => body), ["b", "c"]);
});
