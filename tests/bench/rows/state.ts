/**
 * What state costs: durable sets one by one and many at once, and gets beside functions that do
 * nothing.
 *
 * Expected: sets that are in flight together share an fsync, so many are far cheaper. A get is
 * answered from memory by a built-in, whose payload is parsed and whose result is written out,
 * where a call of a worker passes through as it is.
 *
 * @module
 */
import type { Bench, Section } from "../bench.ts";
import { count, duration, medians, ratio, table } from "../figures.ts";
import { startEngine, startTraced } from "../servers.ts";

/** The section. */
export const state: Section = { name: "state", measure };

/** Least gain of 1,024 sets in flight over one. */
const SETS = 10;
/** Least part of the rate of an empty function. */
const GETS = 0.6;

async function measure(bench: Bench): Promise<void> {
  await using engine = await startEngine({ tree: bench.options.tree, transport: "raw" });
  await using traced = await startTraced("on");
  const of = { port: engine.ports[0]!, pid: engine.pid, bytes: 100 };
  const many = "1,024 sets in flight";
  const sets = await bench.loadAlternately("sets of 100 B", {
    "one set by one": { mode: "set", ...of },
    [many]: { mode: "set", ...of, window: 1_024 },
  });
  const gets = await bench.loadAlternately("gets of 100 B, 64 in flight", {
    "get": { mode: "get", ...of, window: 64 },
    "empty function of a worker": { mode: "relay", ...of, window: 64 },
    "empty function of a built-in": {
      mode: "call",
      port: traced.ports[0]!,
      pid: traced.pid,
      bytes: 100,
      window: 64,
      functionId: "bench::empty",
    },
  });
  bench.find({
    name: "rate of sets, 1,024 in flight over one by one",
    value: ratio(sets[many]!, sets["one set by one"]!, "rate"),
    unit: "times",
    better: "more",
    target: SETS,
  });
  for (const whose of ["a built-in", "a worker"] as const) {
    bench.find({
      name: `rate of gets over an empty function of ${whose}, 64 in flight`,
      value: ratio(gets.get, gets[`empty function of ${whose}`], "rate"),
      unit: "share",
      better: "more",
      target: GETS,
    });
  }
  bench.find({
    name: "engine CPU of a get over an empty function of a built-in",
    value: ratio(gets.get, gets["empty function of a built-in"], "cpu_s"),
    unit: "times",
    better: "less",
  });
  const rows = Object.entries({ ...sets, ...gets }).map(([name, rounds]) => {
    const { rate, p50_us, p99_us, cpu_s } = medians(rounds);
    return [name, count(rate), duration(p50_us), duration(p99_us), `${cpu_s.toFixed(2)} s`];
  });
  const head = ["state, 100 B", "per second", "p50", "p99", "engine CPU per 100,000"];
  const note = "Every set is on the disk before it is answered. Gets and empty functions: 64 in " +
    "flight; the worker is the C program, the built-in runs in the router's process.";
  bench.show("State", table(head, rows), note);
}
