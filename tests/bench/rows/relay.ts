/**
 * What a call through the engine costs: both transports, as configured by default and without
 * traces, each beside what its transport can do at all.
 *
 * Expected: on `deno-serve` the carrier is most of the cost whatever the router does. The raw
 * transport puts the messages of a turn into one write, so its lead grows with the calls in
 * flight; alone, a call is two wake-ups of two processes on either. A call is two messages each
 * way, so at best half the rate of the echo.
 *
 * @module
 */
import type { Bench, Section } from "../bench.ts";
import { count, duration, medians, percent, ratio, size, table } from "../figures.ts";
import type { Figures, Run } from "../load.ts";
import { type Server, startEcho, startEngine } from "../servers.ts";

/** The section. */
export const relay: Section = { name: "relay", measure };

/** Of the raw transport over the other; absent: no requirement. */
interface Targets {
  readonly rate?: number;
  readonly cpu?: number;
  readonly p50?: number;
}

interface Situation {
  readonly bytes: number;
  readonly window: number;
  readonly targets: Targets;
}

/** `p50` "no worse" leaves 5 % for what differs from run to run. */
const SITUATIONS: readonly Situation[] = [
  { bytes: 100, window: 1, targets: { p50: 1.05 } },
  { bytes: 100, window: 64, targets: { rate: 3 } },
  { bytes: 100, window: 1_024, targets: { rate: 10, cpu: 1 / 8 } },
  { bytes: 10_240, window: 64, targets: { rate: 2 } },
  { bytes: 2 ** 20, window: 1, targets: {} },
];

/** Names of engines, each with the echo that is its ceiling. */
const CEILINGS = {
  "raw": "raw echo",
  "raw, no traces": "raw echo",
  "deno-serve": "deno-serve echo",
  "deno-serve, no traces": "deno-serve echo",
} as const;

type EngineName = keyof typeof CEILINGS;
type Found = Record<EngineName | typeof CEILINGS[EngineName], Figures[]>;

async function measure(bench: Bench): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const { tree } = bench.options;
  const engine = async (transport: "raw" | "deno-serve", traces: boolean): Promise<Server> =>
    stack.use(await startEngine({ tree, transport, traces }));
  const servers: Record<keyof Found, Server> = {
    "raw": await engine("raw", true),
    "raw, no traces": await engine("raw", false),
    "deno-serve": await engine("deno-serve", true),
    "deno-serve, no traces": await engine("deno-serve", false),
    "raw echo": stack.use(await startEcho("raw")),
    "deno-serve echo": stack.use(await startEcho("deno-serve")),
  };
  const rows: string[][] = [];
  for (const { bytes, window, targets } of SITUATIONS) {
    const situation = `${size(bytes)}, ${window.toLocaleString("en-US")} in flight`;
    const runs = Object.fromEntries(
      Object.entries(servers).map(([name, { pid, ports }]): [string, Run] => {
        const mode = name.endsWith("echo") ? "echo" : "relay";
        return [name, { mode, port: ports[0]!, pid, window, bytes }];
      }),
    ) as Record<keyof Found, Run>;
    const found = await bench.loadAlternately(situation, runs);
    tell(bench, situation, targets, found);
    rows.push(...rowsOf(situation, found));
  }
  const head = ["call of a worker", "calls/s", "p50", "p99", "engine CPU per 100,000", "memory"];
  bench.show(
    "Calls",
    table([...head, "of half the echo rate"], rows),
    "Generator, caller and worker are one C program on the same cores as the engine.",
  );
  await batched(bench, servers.raw);
}

function tell(bench: Bench, situation: string, targets: Targets, found: Found): void {
  const kinds = [["", "raw", "deno-serve"], [
    ", no traces",
    "raw, no traces",
    "deno-serve, no traces",
  ]] as const;
  for (const [suffix, raw, serve] of kinds) {
    const name = (what: string) => `${situation}${suffix}: ${what}, raw over deno-serve`;
    const of = (figure: keyof Figures) => ratio(found[raw], found[serve], figure);
    const asked = (target?: number) => target === undefined ? {} : { target };
    bench.find({
      name: name("rate"),
      value: of("rate"),
      unit: "times",
      better: "more",
      ...asked(targets.rate),
    });
    bench.find({
      name: name("engine CPU per call"),
      value: of("cpu_s"),
      unit: "times",
      better: "less",
      ...asked(targets.cpu),
    });
    if (targets.p50 === undefined) continue;
    bench.find({
      name: name("p50"),
      value: of("p50_us"),
      unit: "times",
      better: "less",
      ...asked(targets.p50),
    });
  }
  bench.find({
    name: `${situation}: rate with traces over without, raw`,
    value: ratio(found.raw, found["raw, no traces"], "rate"),
    unit: "share",
    better: "more",
  });
}

function rowsOf(situation: string, found: Found): string[][] {
  const engines = Object.entries(CEILINGS) as [EngineName, typeof CEILINGS[EngineName]][];
  return engines.map(([name, ceiling]) => {
    const { rate, p50_us, p99_us, cpu_s, rss_mb } = medians(found[name]);
    const half = 2 * ratio(found[name], found[ceiling], "rate");
    return [
      `${situation}, ${name}`,
      count(rate),
      duration(p50_us),
      duration(p99_us),
      `${cpu_s.toFixed(3)} s`,
      `${rss_mb} MB`,
      percent(half),
    ];
  });
}

/** What `engine.batch.v1` adds to the raw transport. */
async function batched(bench: Bench, { pid, ports }: Server): Promise<void> {
  const alone: Run = { mode: "relay", port: ports[0]!, pid, window: 1_024, bytes: 100 };
  const situation = "100 B, 1,024 in flight, one message a frame or many";
  try {
    const found = await bench.loadAlternately(situation, {
      alone,
      batched: { ...alone, batched: true },
    });
    bench.find({
      name: "100 B, 1,024 in flight: rate in batches over one message a frame, raw",
      value: ratio(found.batched, found.alone, "rate"),
      unit: "times",
      better: "more",
    });
    const rows = Object.entries(found).map(([name, rounds]) => {
      const { rate, p50_us, p99_us, cpu_s } = medians(rounds);
      return [name, count(rate), duration(p50_us), duration(p99_us), `${cpu_s.toFixed(3)} s`];
    });
    const head = ["100 B, 1,024 in flight, raw", "calls/s", "p50", "p99", "engine CPU per 100,000"];
    bench.show("Messages in batches", table(head, rows));
  } catch (error) {
    if (!(error instanceof Error && error.message.includes("does not select"))) throw error;
    bench.skip("this engine does not select engine.batch.v1");
  }
}
