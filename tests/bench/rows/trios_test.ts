import assert from "node:assert/strict";
import { nameOf, type TrioFigures, trioRows } from "./trios.ts";

const LOAD = { bytes: 10_240, window: 1_024 };

Deno.test("trioRows() names the process that used most of a core", () => {
  const [row] = trioRows(LOAD, { ours: [figures(10, 20, 40)] });

  assert.deepEqual(row, [
    "10 KiB, 1,024 in flight, ours",
    "10,000",
    "50 µs",
    "1.0 ms",
    "10.0 / 20.0 / 40.0",
    "70",
    "responder 40 %",
  ]);
});

Deno.test("trioRows() shows that there is no broker", () => {
  const [row] = trioRows(LOAD, { direct: [figures(30, 0, 10)] });

  assert.deepEqual(row!.slice(4), ["30.0 / – / 10.0", "40", "requester 30 %"]);
});

Deno.test("nameOf() is the same in each run", () => {
  assert.equal(nameOf({ bytes: 100, window: 1 }), "100 B, 1 in flight");
});

function figures(requester_us: number, broker_us: number, responder_us: number): TrioFigures {
  const total_us = requester_us + broker_us + responder_us;
  const speed = { rate: 10_000, p50_us: 50, p99_us: 1_000 };
  return { ...speed, requester_us, broker_us, responder_us, total_us };
}
