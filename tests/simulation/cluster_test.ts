/**
 * The promises of the router between engines, in thousands of random runs, and mistakes that such
 * runs have to find.
 *
 * A failing run names its seed: `SEED=7 deno test -A tests/simulation/cluster_test.ts` repeats it,
 * `SEEDS=100000` runs more.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Incoming } from "../../engine/cluster/incoming.ts";
import { Link } from "../../engine/cluster/link.ts";
import { ExportPace } from "../../engine/cluster/export_pace.ts";
import { FarPicks } from "../../engine/core/far_load.ts";
import { Random } from "../fakes/random.ts";
import { checkEnd, checkSettled, CLUSTER_STEPS } from "./cluster_steps.ts";
import { ClusterWorld } from "./cluster_world.ts";

const STEPS_PER_LIFE = 150;
const PLANTED_SEEDS_MAX = 300;

function live(seed: number): ClusterWorld {
  const world = new ClusterWorld(new Random(seed));
  for (let step = 0; step < STEPS_PER_LIFE; step++) {
    world.random.pick(CLUSTER_STEPS)(world);
  }
  checkSettled(world);
  checkEnd(world);
  return world;
}

const chosen = Deno.env.get("SEED");
const seeds = chosen === undefined ? Number(Deno.env.get("SEEDS") ?? 500) : 1;

Deno.test(`engines keep the promises of the router in ${seeds} random runs`, () => {
  let [succeeded, far] = [0, 0];
  for (let i = 0; i < seeds; i++) {
    const seed = Number(chosen ?? 0) + i;
    try {
      const world = live(seed);
      succeeded += world.succeeded;
      far += world.far;
    } catch (cause) {
      const again = `SEED=${seed} deno test -A tests/simulation/cluster_test.ts`;
      throw new Error(`${(cause as Error).message}\nrepeat: ${again}`, { cause });
    }
  }
  if (seeds >= 100) assert.ok(far > seeds && succeeded > 2 * far, `${far} of ${succeeded} far`);
});

/** Any method. */
type Method = (this: unknown, ...all: unknown[]) => unknown;

/** Replaces a method of a class; what it returns puts it back. */
function replace(of: { readonly prototype: object }, name: string, by: (old: Method) => Method) {
  return (): () => void => {
    const target = of.prototype as Record<string, Method>;
    const old = target[name]!;
    target[name] = by(old);
    return () => void (target[name] = old);
  };
}

/** Sends no frames with a text in them. */
const withoutFrames = (part: string): () => () => void =>
  replace(Link, "send", (old) =>
    function (text) {
      return String(text).includes(part) ? undefined : old.call(this, text);
    });

/** Mistakes; each is found by the runs above. */
const PLANTED: Readonly<Record<string, () => () => void>> = {
  "a gap in the numbers is not noticed": replace(Incoming, "checkNumber", () => () => true),
  "the loss of a last packet is not noticed": replace(Link, "pinged", () => () => true),
  "the router does not learn of the end of a link": replace(Link, "end", () => () => {}),
  "functions that are gone stay at other engines": withoutFrames('"type":"unregisterfunction"'),
  "triggers that are gone stay at other engines": withoutFrames('"type":"unregistertrigger"'),
  "ids of triggers of two engines meet": replace(Link, "send", () =>
    function (text) {
      if (!String(text).includes('"workerregistered"')) (this as Link).sendFrame(String(text));
    }),
  "a call of another engine is sent on": replace(
    FarPicks,
    "pick",
    (old) =>
      function (entry, choice) {
        return old.call(this, entry, { ...choice as object, isFromEngine: false });
      },
  ),
  "only the first export is sent": replace(ExportPace, "changed", () => () => {}),
};

for (const [mistake, plant] of Object.entries(PLANTED)) {
  Deno.test(`the runs find that ${mistake}`, () => {
    const undo = plant();
    try {
      let found = 0;
      for (let seed = 0; seed < PLANTED_SEEDS_MAX && found === 0; seed++) {
        try {
          live(seed);
        } catch {
          found++;
        }
      }
      assert.equal(found, 1);
    } finally {
      undo();
    }
  });
}
