/**
 * What state costs: sets one by one and many at once, durable ones and those that are acknowledged
 * before they are on disk, and gets beside functions that do nothing.
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
/** Per second, 64 in flight. */
const GET_RATE = 40_000;
const INTERVAL_RATE = 25_000;
/** Microseconds of a get, one by one. */
const GET_US = 60;

async function measure(bench: Bench): Promise<void> {
  await using engine = await startEngine({ tree: bench.options.tree, transport: "raw" });
  await using interval = await startEngine({
    tree: bench.options.tree,
    transport: "raw",
    durability: "interval",
  });
  await using traced = await startTraced("on");
  const of = { port: engine.ports[0]!, pid: engine.pid, bytes: 100 };
  const many = "1,024 sets in flight";
  const few = "64 sets in flight";
  const early = "64 sets in flight, `durability: interval`";
  const sets = await bench.loadAlternately("sets of 100 B", {
    "one set by one": { mode: "set", ...of },
    [many]: { mode: "set", ...of, window: 1_024 },
    [few]: { mode: "set", ...of, window: 64 },
    [early]: {
      mode: "set",
      ...of,
      port: interval.ports[0]!,
      pid: interval.pid,
      window: 64,
    },
  });
  const gets = await bench.loadAlternately("gets of 100 B, 64 in flight", {
    "one get by one": { mode: "get", ...of },
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
  bench.find({
    name: "p50 of a get, one by one",
    value: medians(gets["one get by one"]!).p50_us,
    unit: "µs",
    better: "less",
    target: GET_US,
  });
  bench.find({
    name: "gets per second, 64 in flight",
    value: medians(gets.get!).rate,
    unit: "a second",
    better: "more",
    target: GET_RATE,
  });
  bench.find({
    name: "sets per second with `durability: interval`, 64 in flight",
    value: medians(sets[early]!).rate,
    unit: "a second",
    better: "more",
    target: INTERVAL_RATE,
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
  const note = "A set is on the disk before it is answered, except with `durability: interval`, " +
    "where it is 100 ms later. Gets and empty functions: 64 in " +
    "flight; the worker is the C program, the built-in runs in the router's process.";
  bench.show("State", table(head, rows), note);
}
