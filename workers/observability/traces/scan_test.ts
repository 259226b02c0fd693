/**
 * Spans are found and sorted as if at once, however often a search pauses.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Random } from "../../../tests/fakes/random.ts";
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
import { rowsOfTraces, RowSpan, scanSpans, sortInTurn } from "./scan.ts";
import { spanOfCall, type SpanSummary, type StoredSpan, summaryOfCall } from "./span.ts";

interface Item {
  readonly key: number;
  readonly n: number;
}

function items(count: number, keyOf: (n: number) => number): Item[] {
  return Array.from({ length: count }, (_, n) => ({ key: keyOf(n), n }));
}

Deno.test("sortInTurn() returns the start of a stable sort", () => {
  const random = new Random(3);
  const lists = [
    items(0, () => 0),
    items(1, () => 0),
    items(3_000, (n) => n),
    items(3_000, (n) => -n),
    items(3_000, () => 7),
    items(3_000, () => random.below(40)),
    items(3_000, (n) => n + random.below(100)),
  ];
  const byKey = (a: Item, b: Item): number => a.key - b.key;

  for (const [which, list] of lists.entries()) {
    for (const limit of [0, 1, 100, 1_000, 3_000, 9_999]) {
      for (const turn of [ENDLESS, HASTY]) {
        const sorted = found(sortInTurn(list, byKey, limit, turn));
        assert.deepEqual(sorted, list.toSorted(byKey).slice(0, limit), `list ${which}, ${limit}`);
      }
    }
  }
});

Deno.test("sortInTurn() compares little when few of many are wanted", () => {
  for (const sign of [1, -1]) {
    let compared = 0;
    const list = items(20_000, (n) => n + n % 7);
    const byKey = (a: Item, b: Item): number => {
      compared++;
      return sign * (a.key - b.key);
    };
    found(sortInTurn(list, byKey, 100, ENDLESS));
    assert.ok(compared < 30_000, `${compared} comparisons`);
  }
});

function scan(filter: Parameters<typeof scanSpans>[2], limit: number): number[] {
  const { traces, ring } = recorded();
  for (let n = 0; n < 10; n++) {
    const internal = n % 2 > 0 ? { function_id: "engine::x" } : {};
    traces.add(callSpan({ span_id: idOf(n, 16), start_ms: NOON + n, ...internal }));
    ring.add(storedSpan({ span_id: idOf(n + 50, 16), start_ms: NOON + 100 + n }));
  }
  const isInternal = (_: string, id: string): boolean => id.startsWith("engine::");
  const sources = { traces, ring, isInternal };
  const spans = found(scanSpans(sources, traces.rows(limit), filter, limit, HASTY));
  return spans.map(({ start_ms }) => start_ms - NOON);
}

Deno.test("scanSpans() finds calls, the oldest first, then other spans, the newest first", () => {
  const others = [109, 108, 107, 106, 105, 104, 103, 102, 101, 100];

  assert.deepEqual(scan({}, 100), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...others]);
  assert.deepEqual(scan({ excludesInternal: true }, 100), [0, 2, 4, 6, 8, ...others]);
  assert.deepEqual(scan({ since_ms: NOON + 8, until_ms: NOON + 101 }, 100), [8, 9, 101, 100]);
  assert.deepEqual(scan({ trace_id: idOf(1, 32), since_ms: NOON + 109 }, 100), [109]);
  assert.deepEqual(scan({}, 12), [8, 9, ...others].slice(0, 12));
  assert.deepEqual(scan({}, 3), [109, 108, 107]);
});

Deno.test("scanSpans() keeps those that started last, of equal ones the first", () => {
  const random = new Random(5);
  for (const kinds of [1, 2, 40, 100_000]) {
    const { traces, ring } = recorded();
    const starts = Array.from({ length: 900 }, () => NOON + random.below(kinds));
    starts.forEach((start_ms, n) => traces.add(callSpan({ start_ms, span_id: idOf(n, 16) })));
    const newestFirst = (a: [number, number], b: [number, number]): number => b[0] - a[0];
    const all = starts.map((start, n): [number, number] => [start, n]);
    for (const limit of [1, 2, 450, 899]) {
      const sources = { traces, ring, isInternal: () => false };
      using rows = traces.rows(Infinity);
      const spans = found(scanSpans(sources, rows, {}, limit, HASTY));
      const kept = all.toSorted(newestFirst).slice(0, limit).sort((a, b) => a[1] - b[1]);
      const ids = kept.map(([, n]) => idOf(n, 16));
      assert.deepEqual(spans.map(({ span_id }) => span_id), ids, `${kinds} starts, ${limit}`);
    }
  }
});

Deno.test("RowSpan reads a call as the span that is made of it", () => {
  const { traces } = recorded();
  const calls = [
    callSpan({ end_ms: null, callee: null }),
    callSpan({ error_code: "oops", error_message: "no", parent_span_id: idOf(4, 16) }),
    callSpan(),
  ];
  traces.add(...calls);
  using rows = traces.rows(9);

  for (let row = 0; row < rows.size; row++) {
    const span = new RowSpan(rows, row);
    const plain = spanOfCall(calls[row]!, null);
    for (const name of Object.keys(plain) as (keyof StoredSpan)[]) {
      assert.deepEqual(span[name], plain[name], name);
    }
    assert.deepEqual(span.whole(null), plain);
    assert.deepEqual<SpanSummary>(span.summary(), summaryOfCall(calls[row]!));
  }
});

Deno.test("rowsOfTraces() has the newest rows of each trace", () => {
  const { traces } = recorded();
  for (let n = 0; n < 9; n++) {
    traces.add(callSpan({ trace_id: idOf(n % 3, 32), start_ms: NOON + n }));
  }
  using rows = traces.rows(Infinity);
  const wanted = new Set([idOf(0, 32), idOf(2, 32), idOf(7, 32), "none"]);

  const places = found(rowsOfTraces(rows, wanted, 2, HASTY));

  assert.deepEqual([...places], [[idOf(0, 32), [6, 3]], [idOf(2, 32), [8, 5]]]);
});
