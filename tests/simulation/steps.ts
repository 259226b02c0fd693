/**
 * The steps of the simulation: everything that peers, time and the engine's owner can do.
 *
 * Each step updates the model of the world first, then the engine.
 *
 * @module
 */
import assert from "node:assert/strict";
import { SEND_AHEAD_BYTES } from "../../engine/ports/connection.ts";
import {
  answer,
  answerInvalidly,
  call,
  callTwice,
  callVoid,
  cancel,
  interfere,
  register,
  resultOf,
  sendProgress,
  TARGETS,
} from "./calls.ts";
import { comeBackLate, depart, drainSome, endSome, retake, succeed } from "./handovers.ts";
import { oddValue, SIM_TIMEOUT_MS, type SimPeer, type SimWorld, written } from "./world.ts";
import { addTrigger, provide, refuseTrigger, removeTrigger, withdraw } from "./triggers.ts";

const LINES_MAX = 6;
/** Names of workers; several connections have the same. */
const NAMES = ["shop", "shop", "billing"];

/** The steps, each with its relative frequency. */
const ACTIONS: readonly (readonly [weight: number, (world: SimWorld) => void])[] = [
  [4, arrive],
  [2, arriveBuiltin],
  [6, offer],
  [2, unregister],
  [20, call],
  [4, callVoid],
  [2, callTwice],
  [16, answer],
  [4, sendProgress],
  [3, answerInvalidly],
  [6, interfere],
  [3, cancel],
  [3, stall],
  [4, resumeReading],
  [3, suspect],
  [6, addTrigger],
  [2, removeTrigger],
  [3, provide],
  [1, withdraw],
  [2, refuseTrigger],
  [2, vanish],
  [2, comeBack],
  [2, comeBackWithWrongToken],
  [3, sendAfterClose],
  [2, sendGarbage],
  [5, wait],
  [4, drainSome],
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
  if (world.peers.length >= LINES_MAX) return;
  const peer = world.arrive(false);
  if (world.random.once(4)) return;
  const capabilities = ["cancel", "progress"].filter(() => world.random.once(2));
  peer.wantsCancel = capabilities.includes("cancel");
  peer.wantsProgress = capabilities.includes("progress");
  peer.name = world.random.pick(NAMES);
  const data = JSON.stringify({ name: peer.name, capabilities });
  peer.say(written(world.random, [
    ["type", '"invokefunction"'],
    ["function_id", '"engine::workers::register"'],
    ["data", data],
  ]));
}

function arriveBuiltin(world: SimWorld): void {
  if (world.peers.length >= LINES_MAX || world.peers.some(({ builtin }) => builtin)) return;
  const peer = world.arrive(true);
  for (const target of ["default state::get", "default engine::x"]) register(world, peer, target);
}

function offer(world: SimWorld): void {
  const peer = world.somePeer();
  if (peer) register(world, peer, world.random.pick(TARGETS));
}

function unregister(world: SimWorld): void {
  const peer = world.somePeer();
  if (!peer) return;
  const target = world.random.pick(TARGETS);
  const [namespace, id] = target.split(" ");
  world.unregister(peer, target);
  peer.say(JSON.stringify({ type: "unregisterfunction", id, namespace }));
}

function stall(world: SimWorld): void {
  const peer = world.somePeer();
  if (!peer) return;
  peer.isStalled = true;
  peer.queuedBytes = 2 * SEND_AHEAD_BYTES;
}

/** A peer leaves a ping unanswered, or is heard again; twice is as once. */
function suspect(world: SimWorld): void {
  if (world.peers.length === 0) return;
  const peer = world.random.pick(world.peers);
  peer.suspect(world.random.once(2) ? !peer.isSuspect : peer.isSuspect);
}

function resumeReading(world: SimWorld): void {
  const stalled = world.peers.filter(({ isStalled }) => isStalled);
  if (stalled.length > 0) world.random.pick(stalled).drain();
}

/** A connection is lost. */
export function leave(world: SimWorld, peer: SimPeer): void {
  world.bury(peer);
  peer.lose();
}

function vanish(world: SimWorld): void {
  if (world.peers.length > 0) leave(world, world.random.pick(world.peers));
}

/** A worker reattaches on a new connection while the engine still has the old one. */
function comeBack(world: SimWorld): void {
  const old = world.somePeer();
  if (!old || old.builtin) return;
  const { worker_id, reattach_token } = old;
  const frame = { type: "reattach", previous_worker_id: worker_id, reattach_token };
  const peer = world.arrive(false);
  world.handovers.follow(old, peer);
  world.bury(old);
  peer.say(JSON.stringify(frame));
  assert.ok(old.closing, "the old connection is closed when its worker comes back");
}

function comeBackWithWrongToken(world: SimWorld): void {
  if (world.peers.length === 0 || world.peers.length >= LINES_MAX) return;
  const { worker_id, reattach_token } = world.random.pick(world.peers);
  const wrong = reattach_token.replace(/.$/, "x");
  const type = "reattach";
  const frames = [
    { type, previous_worker_id: worker_id, reattach_token: wrong },
    { type, previous_worker_id: worker_id, reattach_token: "" },
    { type, previous_worker_id: worker_id },
  ];
  const peer = world.arrive(false, JSON.stringify(world.random.pick(frames)));
  // No longer the first frame, so even the right token does nothing.
  peer.say(JSON.stringify({ type, previous_worker_id: worker_id, reattach_token }));
}

/** A peer sends on a closed connection. */
function sendAfterClose(world: SimWorld): void {
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

function sendGarbage(world: SimWorld): void {
  const peer = world.somePeer();
  peer?.say(world.random.pick(["", "{", "[]", '{"type":"teleport"}', '{"type":"reattach"}', "\0"]));
}

function wait(world: SimWorld): void {
  world.clock.tick(world.random.below(SIM_TIMEOUT_MS / 2));
  world.calls.passed();
}
