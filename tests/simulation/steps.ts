/**
 * What lines do in the simulation, and everything that can happen.
 *
 * Each step tells the world first, then the engine.
 *
 * @module
 */
import assert from "node:assert/strict";
import { SEND_AHEAD_BYTES } from "../../engine/ports/connection.ts";
import {
  answer,
  answerBroken,
  call,
  callTwice,
  callVoid,
  cancel,
  lie,
  register,
  resultOf,
  TARGETS,
  tellNews,
} from "./calls.ts";
import { comeBackLate, depart, endSome, relieve, retake, succeed } from "./handovers.ts";
import { oddValue, SIM_TIMEOUT_MS, type SimLine, type SimWorld, written } from "./world.ts";
import { addTrigger, provide, refuseTrigger, removeTrigger, withdraw } from "./triggers.ts";

const LINES_MAX = 6;

/** What can happen, and how often compared to the rest. */
const ACTIONS: readonly (readonly [weight: number, (world: SimWorld) => void])[] = [
  [4, arrive],
  [2, arriveOwn],
  [6, offer],
  [2, retract],
  [20, call],
  [4, callVoid],
  [2, callTwice],
  [16, answer],
  [4, tellNews],
  [3, answerBroken],
  [6, lie],
  [3, cancel],
  [3, stall],
  [4, drain],
  [6, addTrigger],
  [2, removeTrigger],
  [3, provide],
  [1, withdraw],
  [2, refuseTrigger],
  [2, vanish],
  [2, comeBack],
  [2, comeBackWithWrongToken],
  [3, haunt],
  [2, speakRubbish],
  [5, wait],
  [4, relieve],
  [4, depart],
  [2, endSome],
  [2, comeBackLate],
  [3, retake],
  [6, succeed],
];

/** Every step, as often as it is likely. */
export const STEPS: readonly ((world: SimWorld) => void)[] = ACTIONS.flatMap(([weight, action]) =>
  Array.from({ length: weight }, () => action)
);

function arrive(world: SimWorld): void {
  if (world.lines.length >= LINES_MAX) return;
  const line = world.arrive(false);
  if (world.random.once(4)) return;
  const capabilities = ["cancel", "progress"].filter(() => world.random.once(2));
  line.wantsCancel = capabilities.includes("cancel");
  line.wantsProgress = capabilities.includes("progress");
  const data = JSON.stringify({ name: "same-name", capabilities });
  line.say(written(world.random, [
    ["type", '"invokefunction"'],
    ["function_id", '"engine::workers::register"'],
    ["data", data],
  ]));
}

function arriveOwn(world: SimWorld): void {
  if (world.lines.length >= LINES_MAX || world.lines.some(({ builtin }) => builtin)) return;
  const line = world.arrive(true);
  for (const target of ["default state::get", "default engine::x"]) register(world, line, target);
}

function offer(world: SimWorld): void {
  const line = world.someLine();
  if (line) register(world, line, world.random.pick(TARGETS));
}

function retract(world: SimWorld): void {
  const line = world.someLine();
  if (!line) return;
  const target = world.random.pick(TARGETS);
  const [namespace, id] = target.split(" ");
  world.retract(line, target);
  line.say(JSON.stringify({ type: "unregisterfunction", id, namespace }));
}

function stall(world: SimWorld): void {
  const line = world.someLine();
  if (!line) return;
  line.isStalled = true;
  line.queuedBytes = 2 * SEND_AHEAD_BYTES;
}

function drain(world: SimWorld): void {
  const stalled = world.lines.filter(({ isStalled }) => isStalled);
  if (stalled.length > 0) world.random.pick(stalled).drain();
}

/** A line is lost. */
export function leave(world: SimWorld, line: SimLine): void {
  world.bury(line);
  line.lose();
}

function vanish(world: SimWorld): void {
  if (world.lines.length > 0) leave(world, world.random.pick(world.lines));
}

/** A worker whose old line the engine still believes in comes back on a new one. */
function comeBack(world: SimWorld): void {
  const old = world.someLine();
  if (!old || old.builtin) return;
  const { worker_id, reattach_token } = old;
  const frame = { type: "reattach", previous_worker_id: worker_id, reattach_token };
  const line = world.arrive(false);
  world.handovers.follow(old, line);
  world.bury(old);
  line.say(JSON.stringify(frame));
  assert.ok(old.closing, "the old line is closed when its worker comes back");
}

function comeBackWithWrongToken(world: SimWorld): void {
  if (world.lines.length === 0 || world.lines.length >= LINES_MAX) return;
  const { worker_id, reattach_token } = world.random.pick(world.lines);
  const wrong = reattach_token.replace(/.$/, "x");
  const type = "reattach";
  const frames = [
    { type, previous_worker_id: worker_id, reattach_token: wrong },
    { type, previous_worker_id: worker_id, reattach_token: "" },
    { type, previous_worker_id: worker_id },
  ];
  const line = world.arrive(false, JSON.stringify(world.random.pick(frames)));
  // No longer the first frame, so even the right token does nothing.
  line.say(JSON.stringify({ type, previous_worker_id: worker_id, reattach_token }));
}

/** A line that is over goes on talking. */
function haunt(world: SimWorld): void {
  if (world.ghosts.length === 0) return;
  const ghost = world.random.pick(world.ghosts);
  ghost.paused = false;
  ghost.say('{"type":"registerfunction","id":"a"}');
  ghost.say('{"type":"registertrigger","id":"t","trigger_type":"files","function_id":"a"}');
  ghost.say('{"type":"invokefunction","invocation_id":"i1","function_id":"a","data":1}');
  for (const made of world.calls.all.values()) {
    if (made.callee !== ghost) continue;
    ghost.say(resultOf(world, made.engineId, oddValue("late")));
  }
  ghost.lose();
}

function speakRubbish(world: SimWorld): void {
  const line = world.someLine();
  line?.say(world.random.pick(["", "{", "[]", '{"type":"teleport"}', '{"type":"reattach"}', "\0"]));
}

function wait(world: SimWorld): void {
  world.clock.tick(world.random.below(SIM_TIMEOUT_MS / 2));
  world.calls.passed();
}
