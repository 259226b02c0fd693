import { Command } from "@commander-js/extra-typings";
import assert from "node:assert/strict";
import { InvocationError } from "../../mod.ts";
import { FakeScreen, FakeTerminal } from "../../tests/fakes/fake_terminal.ts";
import type { Screen } from "../screen.ts";
import { addTop, topLines, type TopSample } from "./top.ts";

const SAMPLE = {
  engine: {
    calls_per_s: 5,
    errors_per_s: 0,
    p50_ms: 1,
    p99_ms: 2,
    in_flight: 0,
    held: 0,
    lines: 2,
    queued_bytes: 0,
    event_loop_lag_ms: 1,
    memory_bytes: 1_000_000,
    cpu_percent: 1,
  },
  functions: ["b::slow", "a::fast"].map((function_id, i) => ({
    function_id,
    namespace: "default",
    calls_per_s: 5 - i,
    errors_per_s: 0,
    p50_ms: 1,
    p99_ms: 2,
    in_flight: 0,
  })),
  workers: [],
};

/** A screen with an alternate screen and a cursor. */
class OtherScreen extends FakeScreen {
  switches: string[] = [];

  override write(text: string): void {
    // deno-lint-ignore no-control-regex
    if (/^(\x1b\[\?(1049|25)[hl])+$/.test(text)) this.switches.push(text);
    else super.write(text);
  }
}

interface Given {
  screen?: Screen & FakeScreen;
  onWait?: (press: (key: string) => void, terminal: FakeTerminal) => void;
  answer?: () => never;
}

function setup({ screen, onWait, answer }: Given = {}) {
  let press: (key: string) => void = () => {};
  let stopped = 0;
  const terminal: FakeTerminal = new FakeTerminal({
    functions: {
      "engine::metrics::sample": answer ?? (() => SAMPLE as never),
      "engine::workers::list": () => ({ workers: [] }),
    },
    ...screen && { screen },
    onWait: () => onWait?.(press, terminal),
  });
  const keyboard = {
    listen: (listener: (key: string) => void) => {
      press = listener;
      return () => void stopped++;
    },
  };
  const run = (...args: string[]): Promise<number> => {
    const program = new Command("engine").exitOverride();
    addTop(program as Command, terminal, keyboard);
    return terminal.runWith(program as Command, "top", ...args);
  };
  return { terminal, run, stopped: () => stopped };
}

Deno.test("top prints one table where there is no terminal", async () => {
  const { terminal, run } = setup();

  assert.equal(await run(), 0);
  assert.match(terminal.outLines[0]!, /^5\.0 calls\/s/);
  assert.deepEqual(terminal.outLines.slice(-2).map((line) => line.split(" ")[0]), [
    "b::slow",
    "a::fast",
  ]);
  assert.equal(terminal.calls.length, 3);
  assert.equal(terminal.openConnections, 0);
});

Deno.test("top --json prints the sample as it came", async () => {
  const { terminal, run } = setup({ screen: new OtherScreen() });

  assert.equal(await run("--json"), 0);
  assert.deepEqual(JSON.parse(terminal.outText), SAMPLE);
});

Deno.test("top asks for ten seconds and shows functions of workers, or all", async () => {
  const own = { ...SAMPLE.functions[0]!, function_id: "engine::metrics::sample" };
  const answer = () => ({ ...SAMPLE, functions: [own, ...SAMPLE.functions] }) as never;
  const { terminal, run } = setup({ answer });

  await run();
  assert.deepEqual(terminal.calls[0]!.payload, { window_s: 10 });
  assert.doesNotMatch(terminal.outText, /engine::metrics/);

  await run("--all");
  assert.match(terminal.outText, /engine::metrics::sample/);
});

Deno.test("top --once prints to standard output on a terminal too", async () => {
  const screen = new OtherScreen();
  const { terminal, run } = setup({ screen });

  await run("--once", "--sort", "name");
  assert.deepEqual(terminal.outLines.slice(-2).map((line) => line.split(" ")[0]), [
    "a::fast",
    "b::slow",
  ]);
  assert.deepEqual(screen.switches, []);
});

Deno.test("top uses the alternate screen, polls, and restores the screen on q", async () => {
  const screen = new OtherScreen();
  let waits = 0;
  const { terminal, run, stopped } = setup({
    screen,
    onWait: (press) => ++waits === 3 && press("q"),
  });

  assert.equal(await run("--interval", "500"), 0);

  assert.equal(terminal.calls.length, 9);
  assert.equal(terminal.now() - 1_000, 1_500);
  assert.deepEqual(screen.switches, ["\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"]);
  assert.equal(stopped(), 1);
  assert.match(screen.text, /b::slow[\s\S]*a::fast[\s\S]*q quit/);
});

Deno.test("A key sorts at once", async () => {
  const screen = new OtherScreen();
  let waits = 0;
  const { run } = setup({ screen, onWait: (press) => press(++waits === 1 ? "n" : "q") });

  await run();
  assert.match(screen.frames.at(-1)!, /a::fast[\s\S]*b::slow[\s\S]*by name/);
});

Deno.test("Ctrl-C restores the screen", async () => {
  const screen = new OtherScreen();
  const { terminal, run, stopped } = setup({
    screen,
    onWait: (_, terminal) => terminal.interrupt(),
  });

  assert.equal(await run(), 0);
  assert.equal(screen.switches.length, 2);
  assert.deepEqual([stopped(), terminal.interruptListeners], [1, 0]);
});

Deno.test("A lost connection ends top with a message on the restored screen", async () => {
  const screen = new OtherScreen();
  let asked = 0;
  const { terminal, run } = setup({
    screen,
    answer: () => {
      if (++asked === 1) return SAMPLE as never;
      throw new InvocationError({ code: "engine_unreachable", message: "gone" }, "x");
    },
  });

  assert.equal(await run(), 1);
  assert.equal(screen.switches.length, 2);
  assert.match(terminal.errText, /engine_unreachable: gone/);
});

Deno.test("An engine without metrics is an error", async () => {
  const { terminal, run } = setup({ answer: () => null as never });

  assert.equal(await run(), 1);
  assert.match(terminal.errText, /reports no metrics/);
});

for (const args of [["--sort", "colour"], ["--interval", "1"], ["--interval", "soon"]]) {
  Deno.test(`top ${args.join(" ")} is not understood`, async () => {
    assert.equal(await setup().run(...args), 2);
  });
}

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

Deno.test("The lines show the engine, its workers and its functions", () => {
  const math = { in_flight: 2, memory_bytes: 2_000_000_000, cpu_percent: 99.6 };
  const lines = topLines(
    sample(
      [fn("math::add", { calls_per_s: 0.5, p50_ms: null, in_flight: 2 }), fn("a::b")],
      [worker("shop"), worker("math", { ...math, queued_bytes: 2_048, event_loop_lag_ms: 12 })],
    ),
    { sort: "calls" },
  );

  assert.deepEqual(lines, [
    "123 calls/s  0 errors/s  p50 1.3 ms  p99 1.5 s  3 running  1 connection  lag 2.0 ms  50 MiB  cpu 12%",
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

Deno.test("Parked calls and queued bytes are shown when there are any", () => {
  const [line] = topLines(sample([], [], { ...ENGINE, held: 4, queued_bytes: 10_240 }), {
    sort: "calls",
  });

  assert.match(line!, /3 running {2}4 parked {2}1 connection {2}10 KiB queued/);
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

Deno.test("Workers by memory have those with unknown memory last", () => {
  const workers = [worker("a"), worker("b", { memory_bytes: 1 }), worker("c", { memory_bytes: 2 })];
  const lines = topLines(sample([], workers), { sort: "memory" });

  assert.equal(lines.slice(3, 6).map((line) => line[0]).join(""), "cba");
});

for (const rows of [8, 12, 24, 50]) {
  Deno.test(`The output fits on ${rows} lines and counts what it leaves out`, () => {
    const many = (count: number) => Array.from({ length: count }, (_, i) => `x${i}`);
    const lines = topLines(
      sample(many(200).map((id) => fn(id)), many(100).map((name) => worker(name))),
      { sort: "calls", rows },
    );

    assert.ok(lines.length <= rows);
    assert.equal(lines.filter((line) => line.startsWith("… and ")).length, 2);
  });
}

Deno.test("Workers use the room that functions leave free", () => {
  const workers = Array.from({ length: 15 }, (_, i) => worker(`w${i}`));
  const lines = topLines(sample([fn("a")], workers), { sort: "calls", rows: 24 });

  assert.ok(!lines.some((line) => line.startsWith("…")));
});

Deno.test("Functions of another namespace are shown with it", () => {
  const lines = topLines(sample([fn("a::b", { namespace: "eu" })]), { sort: "calls" });

  assert.match(lines.at(-1)!, /^a::b \(eu\)/);
});

Deno.test("In a cluster, top shows the engines, and the engine of each function", async () => {
  const link = {
    age_ms: 5_000,
    rtt_ms: 1.25,
    calls_out: 7,
    calls_in: 2,
    bytes_out: 4_096,
    bytes_in: 0,
    queued_bytes: 0,
  };
  const row = { version: "1", keeper: false };
  const engines = [
    { ...row, life: "1", name: "a", state: "here", link: null },
    { ...row, life: "2", name: "b", state: "linked", link },
  ];
  const workers = [worker("shop"), { ...worker("b"), engine: "b" }];
  const terminal: FakeTerminal = new FakeTerminal({
    functions: {
      "engine::metrics::sample": () => ({ ...SAMPLE, workers }) as never,
      "engine::workers::list": () => ({ workers: [] }),
      "engine::cluster::engines": () => ({ cluster: "x", connected: true, engines }),
      "engine::functions::info": () => ({
        functions: [{ function_id: "b::slow", engine: "b" }, { function_id: "a::fast" }],
      }),
    },
  });

  assert.equal(await terminal.run("top"), 0);

  assert.deepEqual(terminal.outLines.slice(2, 5), [
    "ENGINE  STATE   AGE  RTT     CALLS OUT/IN  BYTES OUT/IN  QUEUED  VERSION",
    "a       here    -    -       -             -             -       1",
    "b       linked  5s   1.3 ms  7/2           4 KiB/0 KiB   -       1",
  ]);
  assert.match(terminal.outText, /^b::slow +b +5\.0/m);
  assert.match(terminal.outText, /^a::fast +here +4\.0/m);
  // Another engine is not a worker.
  assert.equal(terminal.outLines.filter((line) => /^b +0/.test(line)).length, 0);
});

Deno.test("top marks workers that do not answer", () => {
  const worker = {
    worker_id: "w1",
    name: "shop",
    in_flight: 0,
    queued_bytes: 0,
    memory_bytes: null,
    cpu_percent: null,
    event_loop_lag_ms: null,
  };
  const sample: TopSample = { ...SAMPLE, workers: [{ ...worker, suspect: true }] };

  assert.ok(topLines(sample, { sort: "name" }).some((line) => line.startsWith("shop (suspect)")));
});
