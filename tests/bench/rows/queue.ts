/**
 * What jobs cost: putting them into a queue, and the time until the handler of an empty queue runs.
 *
 * Expected: jobs that are enqueued together share an fsync, as sets of the state do, and cost more
 * than those by what their call takes to be read and written as a job. The handler runs one call
 * after the write of its job.
 *
 * @module
 */
import type { Bench, Section } from "../bench.ts";
import { count, duration, median, medians, ratio, table } from "../figures.ts";
import type { JobAnswer, JobOrder } from "../job_peer.ts";
import { startProgram } from "../program.ts";
import { startEngine } from "../servers.ts";

/** The section. */
export const queue: Section = { name: "queue", measure };

const JOB_PEER = new URL("../job_peer.ts", import.meta.url).pathname;
/** Jobs per second with 64 and 1,024 in flight. */
const FEW_RATE = 8_000;
const MANY_RATE = 25_000;
/** From `enqueue` to the handler, at most. */
const HANDLER_US = 5_000;

async function measure(bench: Bench): Promise<void> {
  const { tree, seconds } = bench.options;
  const workers = ["engine-queue"];
  await using engine = await startEngine({ tree, transport: "raw", workers });
  await using empty = await startEngine({ tree, transport: "raw", workers });
  const of = { port: engine.ports[0]!, pid: engine.pid, bytes: 100, functionId: "bench::absent" };
  const few = "64 enqueues in flight";
  const many = "1,024 enqueues in flight";
  const sets = "1,024 sets in flight";
  const jobs = await bench.loadAlternately("jobs of 100 B", {
    [few]: { mode: "enqueue", ...of, window: 64 },
    [many]: { mode: "enqueue", ...of, window: 1_024 },
    [sets]: { mode: "set", ...of, window: 1_024 },
  });
  const url = `ws://127.0.0.1:${empty.ports[0]}`;
  const args = ["run", "-A", "--no-check", JOB_PEER, url, `${tree}mod.ts`];
  await using peer = await startProgram(Deno.execPath(), args, [/(ready)/]);
  const ask = async (order: JobOrder): Promise<JobAnswer> =>
    JSON.parse(await peer.ask(JSON.stringify(order)));
  const ends = await bench.alternately("jobs of 100 B with a worker", {
    "one job by one": () => ask({ window: 1, bytes: 100, seconds }),
    "64 jobs at once": () => ask({ window: 64, bytes: 100, seconds }),
  });
  const one = ends["one job by one"];
  bench.find({
    name: "enqueues per second, 64 in flight",
    value: medians(jobs[few]!).rate,
    unit: "a second",
    better: "more",
    target: FEW_RATE,
  });
  bench.find({
    name: "enqueues per second, 1,024 in flight",
    value: medians(jobs[many]!).rate,
    unit: "a second",
    better: "more",
    target: MANY_RATE,
  });
  bench.find({
    name: "rate of enqueues over sets, 1,024 in flight",
    value: ratio(jobs[many]!, jobs[sets]!, "rate"),
    unit: "share",
    better: "more",
  });
  bench.find({
    name: "from enqueue to the handler, empty queue: p50",
    value: median(one.map(({ p50_us }) => p50_us)),
    unit: "µs",
    better: "less",
    target: HANDLER_US,
  });
  const rows = Object.entries(jobs).map(([name, rounds]) => {
    const { rate, p50_us, p99_us, cpu_s } = medians(rounds);
    return [name, count(rate), duration(p50_us), duration(p99_us), `${cpu_s.toFixed(2)} s`];
  });
  const done = Object.entries(ends).map(([name, rounds]) => {
    const of = (figure: keyof JobAnswer) => median(rounds.map((round) => round[figure]));
    return [
      `${name}, to the handler`,
      count(of("rate")),
      duration(of("p50_us")),
      duration(of("p99_us")),
      "–",
    ];
  });
  const head = ["jobs, 100 B", "per second", "p50", "p99", "engine CPU per 100,000"];
  const note = "An enqueue is on the disk before it is answered; no worker offers the function " +
    "of the first two rows, so their jobs wait. The last rows: SDK, from `enqueue` to the handler.";
  bench.show("Queues", table(head, [...rows, ...done]), note);
}
