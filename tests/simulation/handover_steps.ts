/**
 * What whoever restarts workers does in the simulation, and what those workers do.
 *
 * Each step tells the world first, then the engine.
 *
 * @module
 */
import { register } from "./call_steps.ts";
import type { SimHandover } from "./handovers.ts";
import type { SimLine } from "./line.ts";
import { registerTrigger } from "./trigger_steps.ts";
import type { SimTrigger } from "./triggers.ts";
import type { SimWorld } from "./world.ts";

/** Some lines are relieved, perhaps some that are already, that are over or never were. */
export function relieve(world: SimWorld): void {
  const { random, handovers } = world;
  if (world.lines.length === 0 || handovers.open.size > 4) return;
  const lines = [random.pick(world.lines), random.pick(world.lines)].slice(random.below(2));
  const isComingBack = !random.once(4);
  const targets = [...world.offers].filter(([, replicas]) =>
    replicas.some((line) => lines.includes(line))
  ).map(([target]) => target);
  const ids = lines.map(({ worker_id }) => worker_id);
  if (random.once(3)) ids.push("nobody");
  const ghosts = world.ghosts.filter(() => random.once(4));
  ids.push(...ghosts.map(({ worker_id }) => worker_id));
  const left = ghosts.filter((ghost) => handovers.concerns(ghost));
  targets.push(...left.flatMap((ghost) => handovers.offeredBy(ghost)));
  const begun = handovers.begin([...lines, ...left], targets, isComingBack);
  begun.handover = world.router.traffic.drain(ids, { isComingBack });
}

/** A relieved line leaves, whatever it runs. */
export function depart(world: SimWorld): void {
  const lines = world.lines.filter(({ isDraining }) => isDraining);
  if (lines.length === 0) return;
  const line = world.random.pick(lines);
  world.bury(line);
  line.lose();
}

/** A handover is over, whoever has come or not. */
export function endHandover(world: SimWorld, begun: SimHandover): void {
  world.handovers.open.delete(begun);
  for (const line of begun.lines) {
    if (line.isGone && !world.handovers.keeps(line)) world.triggers.end(line);
  }
  world.calls.dropUnexpected();
  begun.handover?.end();
  if (world.random.once(3)) begun.handover?.end();
}

/** Some handover is over. */
export function endSome(world: SimWorld): void {
  const open = [...world.handovers.open];
  if (open.length > 0) endHandover(world, world.random.pick(open));
}

/** A relieved worker that was cut off comes back before anybody ended it. */
export function comeBackLate(world: SimWorld): void {
  const left = [...world.handovers.open].flatMap(({ lines }) => [...lines])
    .filter((line) => line.isGone && !line.builtin);
  if (left.length === 0) return;
  const old = world.random.pick(left);
  const line = world.arrive(false);
  world.handovers.follow(old, line);
  world.triggers.end(old);
  const { worker_id: previous_worker_id, reattach_token } = old;
  line.say(JSON.stringify({ type: "reattach", previous_worker_id, reattach_token }));
}

/** A line registers a trigger that one which is over has left, with its id or another. */
export function retake(world: SimWorld): void {
  const line = world.someLine();
  const left = [...world.triggers.all.values()].filter(({ owner }) => owner.isGone);
  if (line && left.length > 0) retakeOne(world, line, world.random.pick(left));
}

/** A worker comes that offers what is expected, and has the triggers that were left. */
export function succeed(world: SimWorld): void {
  const { random, handovers } = world;
  const expected = [...handovers.open].filter(({ isComingBack, lines }) =>
    isComingBack && [...lines].some(({ isGone }) => isGone)
  );
  const line = expected.length > 0 && world.lines.length < 8 ? world.arrive(false) : undefined;
  if (!line) return;
  const { lines, targets } = random.pick(expected);
  for (const target of targets) register(world, line, target);
  for (const trigger of [...world.triggers.all.values()]) {
    if (lines.has(trigger.owner) && trigger.owner.isGone) retakeOne(world, line, trigger);
  }
}

function retakeOne(world: SimWorld, line: SimLine, { id, trigger_type, config }: SimTrigger): void {
  const newId = world.random.once(2) ? id : world.name("t");
  registerTrigger(world, line, newId, trigger_type, config);
}
