/**
 * The router's promises, in thousands of random runs.
 *
 * A failing run names its seed: `SEED=7 deno test -A tests/simulation/simulation_test.ts` repeats it,
 * `SEEDS=100000` runs more. What must hold is in the other files of this folder.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Random } from "../fakes/random.ts";
import { call } from "./calls.ts";
import { endHandover } from "./handovers.ts";
import { leave, STEPS } from "./steps.ts";
import { SIM_TIMEOUT_MS, SimWorld } from "./world.ts";

const STEPS_PER_LIFE = 120;

function live(seed: number): void {
  const world = new SimWorld(new Random(seed), seed % 2 === 0);
  let isNested = false;
  world.onEvent = () => {
    if (isNested || !world.random.once(8)) return;
    isNested = true;
    call(world);
    isNested = false;
  };
  for (let step = 0; step < STEPS_PER_LIFE; step++) {
    world.random.pick(STEPS)(world);
    world.check();
  }

  world.clock.tick(10 * SIM_TIMEOUT_MS);
  world.calls.passed();
  assert.deepEqual(world.calls.open(), [], "a call has no end");
  for (const peer of [...world.peers]) leave(world, peer);
  world.check();
  for (const handover of [...world.handovers.open]) endHandover(world, handover);
  world.check();
  assert.equal(world.router.runningCalls, 0);
  world.traces.over(world.calls.all.values());
  world.router.close();
  assert.equal(world.clock.waiting, 0, "something is left on the clock");
}

const chosen = Deno.env.get("SEED");
const seeds = chosen === undefined ? Number(Deno.env.get("SEEDS") ?? 2_000) : 1;

Deno.test(`the router keeps its promises in ${seeds} random runs`, () => {
  for (let i = 0; i < seeds; i++) {
    const seed = Number(chosen ?? 0) + i;
    try {
      live(seed);
    } catch (cause) {
      const again = `SEED=${seed} deno test -A tests/simulation/simulation_test.ts`;
      throw new Error(`seed ${seed}: ${(cause as Error).message} (again: ${again})`, { cause });
    }
  }
});
