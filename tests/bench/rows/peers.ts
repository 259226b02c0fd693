/**
 * The engine beside others of its kind: the same object to a function in another process and back,
 * with the same number in flight, on the same machine, in turn.
 *
 * Expected: no guess. What they do differs: NATS and the `ws` router keep no deadline in the
 * middle and record nothing, Moleculer has nothing in the middle, and only the engine routes to
 * any of several workers, bounds what is in flight and keeps a trace of each call.
 *
 * @module
 */
import { type Bench, Missing, type Section } from "../bench.ts";
import { ratio } from "../figures.ts";
import { installPeers, startBrokered, startMoleculer, startNats } from "../peers/start.ts";
import {
  type Load,
  measureTrios,
  nameOf,
  startSdkTrio,
  type Trio,
  trioRows,
  trioTable,
} from "./trios.ts";

/** The section. */
export const peers: Section = { name: "peers", measure };

const LOADS: readonly Load[] = [
  { bytes: 100, window: 1 },
  { bytes: 100, window: 64 },
  { bytes: 100, window: 1_024 },
  { bytes: 10_240, window: 64 },
];
const ENGINE = "engine";

/** How each of the others is started. */
const OTHERS: Readonly<Record<string, (directory: string) => Promise<Trio>>> = {
  "NATS": startNats,
  "Moleculer, TCP": startMoleculer,
  "Socket.IO": (directory) => startBrokered(directory, "socket_io.mjs"),
  "ws router": (directory) => startBrokered(directory, "ws_router.mjs"),
};

const NOTE =
  "Requester, broker and responder are a process each. The engine and its SDK run on Deno with " +
  "the default configuration, traces on; the others on Node, NATS' server being its own program. " +
  "Moleculer has no broker: its two nodes talk directly.";

async function measure(bench: Bench): Promise<void> {
  const directory = await installPeers();
  await using stack = new AsyncDisposableStack();
  const setup = { tree: bench.options.tree, transport: "raw" } as const;
  const trios: Record<string, Trio> = { [ENGINE]: stack.use(await startSdkTrio(setup)) };
  for (const [name, start] of Object.entries(OTHERS)) {
    try {
      trios[name] = stack.use(await start(directory));
    } catch (error) {
      if (!(error instanceof Missing)) throw error;
      bench.skip(`${name}: ${error.message}`);
    }
  }
  const rows: string[][] = [];
  for (const load of LOADS) {
    const found = await measureTrios(bench, load, trios);
    for (const [name, rounds] of Object.entries(found)) {
      if (name === ENGINE) continue;
      bench.find({
        name: `${nameOf(load)}: rate, engine over ${name}`,
        value: ratio(found[ENGINE]!, rounds, "rate"),
        unit: "times",
        better: "more",
      });
      bench.find({
        name: `${nameOf(load)}: CPU of all processes per call, engine over ${name}`,
        value: ratio(found[ENGINE]!, rounds, "total_us"),
        unit: "times",
        better: "less",
      });
    }
    rows.push(...trioRows(load, found));
  }
  bench.show("Similar systems", trioTable("request and response", rows), NOTE);
}
