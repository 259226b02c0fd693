/**
 * Rates and fairness of one run: how long one more worker's calls wait while others take all they
 * can get.
 *
 * The canary of `deno task torture` calls a function of its own 200 times a second. Expected: its
 * calls wait for the messages of one tick, and for collections of garbage, whatever the load is.
 *
 * @module
 */
import type { CanaryReport } from "../../torture/report.ts";
import type { Bench, Section } from "../bench.ts";
import { count, duration, median, medians, table } from "../figures.ts";
import type { Figures, Run } from "../load.ts";
import { startProgram } from "../program.ts";
import { startEngine } from "../servers.ts";

/** The section. */
export const fairness: Section = { name: "fairness", measure };

const CANARY = new URL("../../torture/canary_program.ts", import.meta.url).pathname;
/** What docs/explanation/reliability.md promises, in microseconds. */
const P99_US = 50_000;
const MAX_US = 250_000;
const US_PER_MS = 1_000;

/** One round: the load, and the waits of the canary without the time that other programs had. */
interface Round extends Figures {
  readonly canary_p50_us: number;
  readonly canary_p99_us: number;
  readonly canary_max_us: number;
}

async function measure(bench: Bench): Promise<void> {
  const { tree } = bench.options;
  await using engine = await startEngine({ tree, transport: "raw", workers: ["engine-queue"] });
  const [port, httpPort] = engine.ports as [number, number];
  const args = ["run", "-A", "--no-check", CANARY, `${port}`, `${engine.pid}`];
  await using canary = await startProgram(Deno.execPath(), args, [/(ready)/]);
  const under = (run: Pick<Run, "mode" | "window"> & Partial<Run>) => async (): Promise<Round> => {
    await canary.ask("reset\nreport");
    const figures = await bench.load({ port, pid: engine.pid, bytes: 100, ...run });
    const report: CanaryReport = JSON.parse(await canary.ask("report"));
    return {
      ...figures,
      canary_p50_us: report.p50_ms * US_PER_MS,
      canary_p99_us: report.net_p99_ms * US_PER_MS,
      canary_max_us: report.net_max_ms * US_PER_MS,
    };
  };
  const functionId = "bench::absent";
  const http = { port: httpPort, enginePort: port, connections: 64 };
  const found = await bench.alternately("100 B, and a canary", {
    "calls, 1 in flight": under({ mode: "relay", window: 1 }),
    "calls, 64 in flight": under({ mode: "relay", window: 64 }),
    "calls, 1,024 in flight": under({ mode: "relay", window: 1_024 }),
    "durable sets, 64 in flight": under({ mode: "set", window: 64 }),
    "durable sets, 1,024 in flight": under({ mode: "set", window: 1_024 }),
    "gets, 64 in flight": under({ mode: "get", window: 64 }),
    "enqueues, 64 in flight": under({ mode: "enqueue", window: 64, functionId }),
    "enqueues, 1,024 in flight": under({ mode: "enqueue", window: 1_024, functionId }),
    "HTTP requests, 64 connections": under({ mode: "http", ...http }),
  });
  const rows = Object.entries(found).map(([name, rounds]) => {
    const { rate, p50_us } = medians(rounds);
    const p50 = median(rounds.map(({ canary_p50_us }) => canary_p50_us));
    const p99 = median(rounds.map(({ canary_p99_us }) => canary_p99_us));
    const longest = Math.max(...rounds.map(({ canary_max_us }) => canary_max_us));
    tell(bench, name, p99, longest);
    return [name, count(rate), ...[p50_us, p50, p99, longest].map(duration)];
  });
  const head = ["load", "per second", "p50", "canary: p50", "p99", "longest of all rounds"];
  const note = "The canary's p99 and longest wait are without the time that its program or the " +
    "engine waited for a processor.";
  bench.show("Rates and fairness", table(head, rows), note);
}

function tell(bench: Bench, name: string, p99: number, longest: number): void {
  const found = { unit: "µs", better: "less" } as const;
  bench.find({ name: `${name}: p99 of the canary`, value: p99, target: P99_US, ...found });
  bench.find({ name: `${name}: longest wait`, value: longest, target: MAX_US, ...found });
}
