/**
 * What a call costs with the real SDK at both ends: caller, engine and worker in three processes.
 *
 * Expected: three processes share two cores and the SDK costs more than the engine, so much less
 * of the raw transport's lead is left than with the generator.
 *
 * @module
 */
import type { Bench, Section } from "../bench.ts";
import { ratio } from "../figures.ts";
import { measureTrios, nameOf, startSdkTrio, trioRows, trioTable } from "./trios.ts";

/** The section. */
export const sdk: Section = { name: "sdk", measure };

const LOADS = [{ bytes: 100, window: 1 }, { bytes: 100, window: 64 }, {
  bytes: 100,
  window: 1_024,
  /** Least gain of the raw transport. */
  target: 1.8,
}];

async function measure(bench: Bench): Promise<void> {
  const { tree } = bench.options;
  await using raw = await startSdkTrio({ tree, transport: "raw" });
  await using untraced = await startSdkTrio({ tree, transport: "raw", traces: false });
  await using serve = await startSdkTrio({ tree, transport: "deno-serve" });
  const rows: string[][] = [];
  for (const load of LOADS) {
    const found = await measureTrios(bench, load, {
      "raw": raw,
      "raw, no traces": untraced,
      "deno-serve": serve,
    });
    bench.find({
      name: `SDK at both ends, ${nameOf(load)}: rate, raw over deno-serve`,
      value: ratio(found.raw, found["deno-serve"], "rate"),
      unit: "times",
      better: "more",
      ...load.target === undefined ? {} : { target: load.target },
    });
    bench.find({
      name: `SDK at both ends, ${nameOf(load)}: CPU of all three per call, raw over deno-serve`,
      value: ratio(found.raw, found["deno-serve"], "total_us"),
      unit: "times",
      better: "less",
    });
    rows.push(...trioRows(load, found));
  }
  bench.show("Calls with the SDK at both ends", trioTable("SDK, engine, SDK", rows));
}
