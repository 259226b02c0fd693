/**
 * What a call costs whose worker is at another engine, over NATS, beside one at the same engine.
 *
 * Expected: with one call in flight the wake-ups of five processes count and nothing else; with 64
 * a packet carries many frames, so the second engine and NATS add about once what all processes
 * took before.
 *
 * @module
 */
import { registerWorker } from "../../../mod.ts";
import { startNats, withoutNats } from "../../cluster/servers.ts";
import { until } from "../../fakes/until.ts";
import { type Bench, Missing, type Section } from "../bench.ts";
import { ratio } from "../figures.ts";
import { type Program, startProgram } from "../program.ts";
import { startEngine } from "../servers.ts";
import {
  makeTrio,
  measureTrios,
  nameOf,
  startSdkTrio,
  type Trio,
  trioRows,
  trioTable,
} from "./trios.ts";

/** The section. */
export const linked: Section = { name: "linked", measure };

const LOADS = [
  { bytes: 100, window: 1 },
  /** Least part of the rate, and most of the CPU of all processes, of an engine alone. */
  { bytes: 100, window: 64, rate: 0.45, cpu: 2.7 },
  { bytes: 100, window: 1_024 },
  { bytes: 10_240, window: 64 },
];

async function measure(bench: Bench): Promise<void> {
  if (withoutNats) throw new Missing("nats-server is not installed");
  const { tree } = bench.options;
  await using alone = await startSdkTrio({ tree, transport: "raw" });
  await using far = await startLinkedTrio(tree);
  const rows: string[][] = [];
  for (const { rate, cpu, ...load } of LOADS) {
    const found = await measureTrios(bench, load, { "one engine": alone, "linked": far });
    bench.find({
      name: `${nameOf(load)}: rate, linked over one engine`,
      value: ratio(found.linked, found["one engine"], "rate"),
      unit: "times",
      better: "more",
      ...rate === undefined ? {} : { target: rate },
    });
    bench.find({
      name: `${nameOf(load)}: CPU of all per call, linked over one engine`,
      value: ratio(found.linked, found["one engine"], "total_us"),
      unit: "times",
      better: "less",
      ...cpu === undefined ? {} : { target: cpu },
    });
    rows.push(...trioRows(load, found));
  }
  const note = "SDK at both ends; the broker of a linked call is two engines and one nats-server.";
  bench.show("Calls between two engines", trioTable("SDK, engines, SDK", rows), note);
}

/** A caller at one engine and a worker at another. */
async function startLinkedTrio(tree: string): Promise<Trio> {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startNats({ jetstream: false }));
  const setup = { tree, transport: "raw", nats: nats.urls } as const;
  const [near, far] = [stack.use(await startEngine(setup)), stack.use(await startEngine(setup))];
  const peer = new URL("../sdk_peer.ts", import.meta.url).pathname;
  const start = async (role: string, port: number): Promise<Program> => {
    const args = ["run", "-A", "--no-check", peer, role, `ws://127.0.0.1:${port}`, `${tree}mod.ts`];
    return stack.use(await startProgram(Deno.execPath(), args, [/^(ready)$/m]));
  };
  const responder = await start("worker", far.ports[0]!);
  const requester = await start("caller", near.ports[0]!);
  await untilLinked(near.ports[0]!);
  const broker = [near.pid, far.pid, nats.nodes[0]!.pid];
  return await makeTrio({ requester, responder, broker }, stack);
}

async function untilLinked(port: number): Promise<void> {
  await using worker = registerWorker(`ws://127.0.0.1:${port}`, { workerName: "bench-look" });
  await until(() => worker.trigger({ function_id: "bench::echo", payload: 1 }).then(() => true));
}
