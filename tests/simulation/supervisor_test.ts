/**
 * Random commands and failures: in the end exactly the desired programs run, and the status is true
 * at any moment.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Random } from "../fakes/random.ts";
import { SimSupervision, STOP_FIRST } from "./supervision.ts";

const SEEDS = 150;
const STEPS = 80;
const NAMES = ["a", "b", "c", "d", "e", "f"];
const MANIFEST = "runtime: { kind: javascript, package_manager: npm }\nscripts: { start: run }\n";

async function withRoot(run: (root: string) => Promise<void>): Promise<void> {
  const root = await Deno.makeTempDir();
  try {
    for (const name of NAMES) {
      await Deno.mkdir(`${root}/${name}`);
      const restart = name === "b" ? "restart: { policy: on-failure }\n" : "";
      const reload = STOP_FIRST.includes(name) ? "reload: stop-first\n" : "";
      const manifest = `name: ${name}\n${MANIFEST}${restart}${reload}`;
      await Deno.writeTextFile(`${root}/${name}/engine.worker.yaml`, manifest);
    }
    await run(root);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

/** One action of a person, a program or the machine. */
async function step(world: SimSupervision): Promise<void> {
  const { random, supervisor } = world;
  const name = random.pick(NAMES.slice(0, random.once(3) ? NAMES.length : 2));
  const isListed = world.listed.has(name);
  const running = world.programs.filter(({ isRunning }) => isRunning);
  const program = running.length > 0 ? random.pick(running) : undefined;
  const choices: readonly (() => unknown)[] = [
    () => world.list(name, 1 + random.below(3), random.once(2)),
    () => world.list(name, 1 + random.below(3), false),
    () => world.remove(name),
    () => isListed && (world.desired.set(name, true), supervisor.start(name)),
    () => isListed && (world.desired.set(name, false), supervisor.stop(name)),
    () => isListed && restart(world, name),
    () => isListed && restart(world, name),
    () => world.edit(name),
    () => world.edit(name),
    () => program?.exit(random.once(2) ? 0 : 1),
    () => program?.hangUp(),
    ...Array(6).fill(() => program?.announce()),
    ...Array(4).fill(() => world.proceed()),
    () => world.clock.tick(150_000),
    ...Array(6).fill(() => world.clock.tick(random.below(3_000))),
    () => void (world.traffic.runningCalls = random.below(3)),
    () => world.traffic.handovers.forEach((handover) => handover.runningCalls = 0),
  ];
  await random.pick(choices)();
  if (!random.once(3)) await world.settle();
  assert.deepEqual(world.violations, []);
  await checkClaims(world);
}

function restart(world: SimSupervision, name: string): Promise<unknown> {
  world.desired.set(name, true);
  return world.supervisor.restart(name, { reinstall: world.random.once(2) });
}

/** What must hold of the status at any moment. */
async function checkClaims(world: SimSupervision): Promise<void> {
  for (const { name, replicas, state } of await world.supervisor.list()) {
    for (const replica of replicas) {
      if (replica.state !== "ready") continue;
      const program = world.running(name).find(({ pid }) => pid === replica.pid);
      assert.ok(program?.isAnnounced, `${name} ${replica.number} claims to be ready`);
    }
    const isOneReady = replicas.some((replica) => replica.state === "ready");
    assert.equal(state === "ready", isOneReady, `${name} is ${state}`);
  }
}

/** What must hold when nothing is pending. */
async function checkRest(world: SimSupervision): Promise<void> {
  const listed = await world.supervisor.list();
  assert.deepEqual(listed.map(({ name }) => name).sort(), [...world.listed.keys()].sort());
  for (const { name, replicas } of listed) {
    assert.equal(replicas.length, world.listed.get(name)!.replicas);
    for (const { number, state, pid } of replicas) {
      const settled = world.desired.get(name) ? ["ready", "failed"] : ["stopped"];
      if (name === "b") settled.push("stopped"); // Its policy does not restart it after a clean exit.
      assert.ok(settled.includes(state), `${name} ${number} is ${state}`);
      assert.equal(pid !== null, state === "ready", `${name} ${number} is ${state} with ${pid}`);
    }
    const pids = replicas.map(({ pid }) => pid).filter((pid) => pid !== null);
    assert.deepEqual(world.running(name).map(({ pid }) => pid).sort(), pids.sort());
  }
  const running = world.programs.filter(({ isRunning }) => isRunning);
  for (const { worker } of running) {
    assert.ok(world.desired.get(worker), `${worker} is not desired`);
  }
  assert.ok(world.traffic.handovers.every(({ isOver }) => isOver), "a handover is open");
  assert.equal(world.clock.waiting, 0, "a timer is left");
  assert.deepEqual(world.violations, []);
}

async function startAll(world: SimSupervision): Promise<void> {
  for (const name of world.listed.keys()) {
    world.desired.set(name, true);
    await world.supervisor.start(name);
  }
  await world.calmDown();
}

/** All workers are ready with the newest version. */
async function checkLife(world: SimSupervision): Promise<void> {
  for (const { name, replicas, state, reason } of await world.supervisor.list()) {
    assert.equal(state, "ready", `${name}: ${reason}`);
    assert.ok(replicas.every((replica) => replica.state === "ready"), `${name}: ${reason}`);
    const levels = world.running(name).map(({ spec }) => spec.env.LEVEL);
    const { LEVEL } = world.listed.get(name)!.env;
    assert.deepEqual(levels, levels.map(() => LEVEL), `${name} runs an old version: ${reason}`);
  }
  await checkRest(world);
}

/** A change of all workers succeeds, and they serve all the time, unless they stop first. */
async function checkRoll(world: SimSupervision): Promise<void> {
  for (const [name, { replicas }] of world.listed) world.list(name, replicas!, true);
  await world.calmDown(async () => {
    for (const { name, replicas, state } of await world.supervisor.list()) {
      const mayStop = replicas.length === 1 && STOP_FIRST.includes(name);
      assert.ok(state === "ready" || mayStop, `${name} is ${state} while it rolls`);
    }
  });
  await checkLife(world);
}

Deno.test("after random commands and failures exactly the desired programs run", async () => {
  await withRoot(async (root) => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      try {
        await using world = new SimSupervision(root, new Random(seed));
        for (let i = 0; i < STEPS; i++) await step(world);
        await world.calmDown();
        await checkRest(world);
        await startAll(world);
        await checkLife(world);
        await checkRoll(world);
      } catch (thrown) {
        throw new Error(`seed ${seed}`, { cause: thrown });
      }
    }
  });
});
