/**
 * `deno run -A tests/bench/tracing.ts`: what recording calls costs a relay, 100 B at 64 in flight.
 *
 * Three routers, each in a process of its own, are measured in turn, round by round: nobody
 * observes; calls are counted; every call is recorded as well. Expected: counting costs next to
 * nothing, recording at most 15 % of the rate. Needs Linux and gcc; takes about a minute.
 *
 * @module
 */
import { count, duration, medians, ratio, share, table } from "./figures.ts";
import { buildLoad, type Figures, runLoad } from "./load.ts";
import { startTraced } from "./servers.ts";

const ROUNDS = Number(Deno.args[0] ?? 9);
const SECONDS = 1.5;
const MODES = ["bare", "off", "on"] as const;
/** Least part of the rate that stays when every call is recorded. */
const TARGET = 0.85;

const directory = await Deno.makeTempDir();
try {
  const load = await buildLoad(directory);
  await using bare = await startTraced("bare");
  await using off = await startTraced("off");
  await using on = await startTraced("on");
  const servers = { bare, off, on };
  const found: Record<typeof MODES[number], Figures[]> = { bare: [], off: [], on: [] };
  for (let round = 0; round < ROUNDS; round++) {
    // Whoever comes first in a round has a colder machine: each does, in turn.
    for (let turn = 0; turn < MODES.length; turn++) {
      const mode = MODES[(round + turn) % MODES.length]!;
      const { pid, ports: [port] } = servers[mode];
      const run = { mode: "relay", port: port!, pid, window: 64, bytes: 100 } as const;
      found[mode].push(await runLoad(load, run, SECONDS));
    }
  }
  const rows = MODES.map((mode) => {
    const { rate, p50_us, p99_us, cpu_s, rss_mb } = medians(found[mode]);
    const part = share(ratio(found[mode], found.off), TARGET);
    const cpu = `${cpu_s.toFixed(3)} s`;
    return [mode, count(rate), duration(p50_us), duration(p99_us), cpu, `${rss_mb} MB`, part];
  });
  const head = ["calls are", "calls/s", "p50", "p99", "CPU per 100,000", "memory", "of `off`"];
  console.log(table(head, rows));
} finally {
  await Deno.remove(directory, { recursive: true });
}
