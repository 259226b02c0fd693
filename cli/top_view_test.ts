import assert from "node:assert/strict";
import { topLines, type TopSample } from "./top_view.ts";

type Function_ = TopSample["functions"][number];
type Worker_ = TopSample["workers"][number];

const ENGINE: TopSample["engine"] = {
  calls_per_s: 123.4,
  errors_per_s: 0,
  p50_ms: 1.25,
  p99_ms: 1_500,
  in_flight: 3,
  held: 0,
  lines: 1,
  queued_bytes: 0,
  event_loop_lag_ms: 2,
  memory_bytes: 50 * 1024 * 1024,
  cpu_percent: 12.4,
};

const fn = (function_id: string, more: Partial<Function_> = {}): Function_ => ({
  function_id,
  namespace: "default",
  calls_per_s: 1,
  errors_per_s: 0,
  p50_ms: 1,
  p99_ms: 2,
  in_flight: 0,
  ...more,
});

const worker = (name: string, more: Partial<Worker_> = {}): Worker_ => ({
  worker_id: `id of ${name}`,
  name,
  in_flight: 0,
  queued_bytes: 0,
  memory_bytes: null,
  cpu_percent: null,
  event_loop_lag_ms: null,
  ...more,
});

const sample = (functions: Function_[], workers: Worker_[] = [], engine = ENGINE): TopSample => ({
  engine,
  functions,
  workers,
});

Deno.test("The picture has the engine, its workers and its functions", () => {
  const math = { in_flight: 2, memory_bytes: 2_000_000_000, cpu_percent: 99.6 };
  const lines = topLines(
    sample(
      [fn("math::add", { calls_per_s: 0.5, p50_ms: null, in_flight: 2 }), fn("a::b")],
      [worker("shop"), worker("math", { ...math, queued_bytes: 2_048, event_loop_lag_ms: 12 })],
    ),
    { sort: "calls" },
  );

  assert.deepEqual(lines, [
    "123 calls/s  0 errors/s  p50 1.3 ms  p99 1.5 s  3 running  1 line  lag 2.0 ms  50 MiB  cpu 12%",
    "",
    "WORKER  RUNNING  QUEUED  MEMORY   CPU   LAG",
    "math    2        2 KiB   1.9 GiB  100%  12.0 ms",
    "shop    0        -       -        -     -",
    "",
    "FUNCTION   CALLS/S  ERRORS/S  P50     P99     RUNNING",
    "a::b       1.0      0         1.0 ms  2.0 ms  0",
    "math::add  0.5      0         -       2.0 ms  2",
  ]);
});

Deno.test("Calls that are held and bytes that are queued are said when there are any", () => {
  const [line] = topLines(sample([], [], { ...ENGINE, held: 4, queued_bytes: 10_240 }), {
    sort: "calls",
  });

  assert.match(line!, /3 running {2}4 held {2}1 line {2}10 KiB queued/);
});

const FUNCTIONS = [
  fn("b", { calls_per_s: 1, errors_per_s: 3, p99_ms: 2, in_flight: 1 }),
  fn("a", { calls_per_s: 2, errors_per_s: 1, p99_ms: null, in_flight: 3 }),
  fn("c", { calls_per_s: 3, errors_per_s: 2, p99_ms: 9, in_flight: 2 }),
];

for (
  const [sort, order] of [
    ["calls", "cab"],
    ["errors", "bca"],
    ["p99", "cba"],
    ["running", "acb"],
    ["name", "abc"],
  ] as const
) {
  Deno.test(`Functions by ${sort} are ${order}`, () => {
    const lines = topLines(sample(FUNCTIONS), { sort });

    assert.equal(lines.slice(-3).map((line) => line[0]).join(""), order);
  });
}

Deno.test("Workers by memory have those last that nobody knows of", () => {
  const workers = [worker("a"), worker("b", { memory_bytes: 1 }), worker("c", { memory_bytes: 2 })];
  const lines = topLines(sample([], workers), { sort: "memory" });

  assert.equal(lines.slice(3, 6).map((line) => line[0]).join(""), "cba");
});

for (const rows of [8, 12, 24, 50]) {
  Deno.test(`The picture fits on ${rows} lines and says what it leaves out`, () => {
    const many = (count: number) => Array.from({ length: count }, (_, i) => `x${i}`);
    const lines = topLines(
      sample(many(200).map((id) => fn(id)), many(100).map((name) => worker(name))),
      { sort: "calls", rows },
    );

    assert.ok(lines.length <= rows);
    assert.equal(lines.filter((line) => line.startsWith("… and ")).length, 2);
  });
}

Deno.test("Workers get the room that functions do not need", () => {
  const workers = Array.from({ length: 15 }, (_, i) => worker(`w${i}`));
  const lines = topLines(sample([fn("a")], workers), { sort: "calls", rows: 24 });

  assert.ok(!lines.some((line) => line.startsWith("…")));
});

Deno.test("Functions of another namespace say so", () => {
  const lines = topLines(sample([fn("a::b", { namespace: "eu" })]), { sort: "calls" });

  assert.match(lines.at(-1)!, /^a::b \(eu\)/);
});
