/**
 * What recording calls costs a router.
 *
 * Three routers, each alone behind a raw port: without an observer; calls are counted; every call is
 * recorded as well. Expected: counting costs next to nothing, recording at most 15 % of the rate
 * at 64 in flight. With 1,024 in flight everything else is cheaper, so it weighs more.
 *
 * @module
 */
import type { Bench, Section } from "../bench.ts";
import { count, duration, medians, percent, ratio, table } from "../figures.ts";
import { type Server, startTraced } from "../servers.ts";

/** The section. */
export const tracing: Section = { name: "tracing", measure };

/** Least part of the rate that stays when every call is recorded. */
const TARGET = 0.85;

async function measure(bench: Bench): Promise<void> {
  await using bare = await startTraced("bare");
  await using off = await startTraced("off");
  await using on = await startTraced("on");
  const rows: string[][] = [];
  for (const window of [64, 1_024]) {
    const run = ({ pid, ports }: Server) =>
      ({ mode: "relay", port: ports[0]!, pid, window, bytes: 100 }) as const;
    const situation = `100 B, ${window.toLocaleString("en-US")} in flight`;
    const found = await bench.loadAlternately(situation, {
      "no observer": run(bare),
      "counted": run(off),
      "recorded": run(on),
    });
    bench.find({
      name: `${situation}: rate of recorded over counted calls`,
      value: ratio(found.recorded, found.counted, "rate"),
      unit: "share",
      better: "more",
      ...window === 64 && { target: TARGET },
    });
    bench.find({
      name: `${situation}: CPU of recorded over counted calls`,
      value: ratio(found.recorded, found.counted, "cpu_s"),
      unit: "times",
      better: "less",
    });
    for (const [name, rounds] of Object.entries(found)) {
      const { rate, p50_us, p99_us, cpu_s, rss_mb } = medians(rounds);
      const part = percent(ratio(rounds, found.counted, "rate"));
      const cpu = `${cpu_s.toFixed(3)} s`;
      const speed = [count(rate), duration(p50_us), duration(p99_us), cpu, `${rss_mb} MB`];
      rows.push([`${situation}, ${name}`, ...speed, part]);
    }
  }
  const head = ["calls are", "calls/s", "p50", "p99", "CPU per 100,000", "memory", "of `counted`"];
  bench.show("The cost of recording", table(head, rows));
}
