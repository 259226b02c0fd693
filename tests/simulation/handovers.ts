/**
 * Which lines drain and what is expected back, as somebody knows it who sees all lines but not
 * the engine.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Handover } from "../../engine/ports/traffic.ts";
import { register } from "./calls.ts";
import type { SimLine, SimWorld } from "./world.ts";
import { registerTrigger, type SimTrigger } from "./triggers.ts";

/** A handover that has not ended. */
export interface SimHandover {
  readonly isComingBack: boolean;
  /** The lines it relieves, also those that are over. */
  readonly lines: Set<SimLine>;
  /** What they offered since. */
  readonly targets: Set<string>;
  /** The engine's; `undefined` until it has been asked. */
  handover: Handover | undefined;
}

/** All handovers of a simulated world. */
export class SimHandovers {
  readonly open: Set<SimHandover> = new Set();

  /** Lines are about to be relieved, which offer so much. */
  begin(lines: readonly SimLine[], targets: Iterable<string>, isComingBack: boolean): SimHandover {
    for (const line of lines) line.isDraining = true;
    const handover = undefined;
    const begun = { isComingBack, lines: new Set(lines), targets: new Set(targets), handover };
    this.open.add(begun);
    return begun;
  }

  /** A line is about to offer something. */
  offered(line: SimLine, target: string): void {
    for (const { lines, targets } of this.open) if (lines.has(line)) targets.add(target);
  }

  /** A worker is about to come back on another line; its old one may be over. */
  follow(old: SimLine, line: SimLine): void {
    line.isDraining = old.isDraining;
    for (const { lines } of this.open) if (lines.delete(old)) lines.add(line);
  }

  /** Whether a handover of the line is open. */
  concerns(line: SimLine): boolean {
    return [...this.open].some(({ lines }) => lines.has(line));
  }

  /** What the lines offered that are relieved together with this one. */
  offeredBy(line: SimLine): string[] {
    return [...this.open].flatMap(({ lines, targets }) => lines.has(line) ? [...targets] : []);
  }

  /** Whether calls that nobody can run wait. */
  isExpected(target: string): boolean {
    return [...this.open].some(({ isComingBack, targets }) => isComingBack && targets.has(target));
  }

  /** Whether the triggers of a line stay when it is over. */
  keeps(line: SimLine): boolean {
    return [...this.open].some(({ isComingBack, lines }) => isComingBack && lines.has(line));
  }

  /** The engine counts what drains as it is. */
  check(running: (line: SimLine) => number): void {
    for (const { lines, handover } of this.open) {
      const expected = [...lines].reduce((sum, line) => sum + running(line), 0);
      assert.equal(handover?.runningCalls, expected);
    }
  }
}

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
