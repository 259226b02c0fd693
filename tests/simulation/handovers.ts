/**
 * The model of handovers: which connections drain and which workers are expected back, derived from
 * the steps alone.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Handover } from "../../engine/ports/traffic.ts";
import { register } from "./calls.ts";
import type { SimPeer, SimWorld } from "./world.ts";
import { registerTrigger, type SimTrigger } from "./triggers.ts";

/** A handover that has not ended. */
export interface SimHandover {
  readonly isComingBack: boolean;
  /** The connections it drains, also those that are over. */
  readonly peers: Set<SimPeer>;
  /** Functions that they offered since. */
  readonly targets: Set<string>;
  /** The engine's; `undefined` until it has been asked. */
  handover: Handover | undefined;
}

/** All handovers of a simulated world. */
export class SimHandovers {
  readonly open: Set<SimHandover> = new Set();

  /** Connections are about to drain; `targets`: the functions they offer. */
  begin(peers: readonly SimPeer[], targets: Iterable<string>, isComingBack: boolean): SimHandover {
    for (const peer of peers) peer.isDraining = true;
    const handover = undefined;
    const begun = { isComingBack, peers: new Set(peers), targets: new Set(targets), handover };
    this.open.add(begun);
    return begun;
  }

  /** A connection is about to offer something. */
  offered(peer: SimPeer, target: string): void {
    for (const { peers, targets } of this.open) if (peers.has(peer)) targets.add(target);
  }

  /** A worker is about to come back on another connection; its old one may be over. */
  follow(old: SimPeer, peer: SimPeer): void {
    peer.isDraining = old.isDraining;
    for (const { peers } of this.open) if (peers.delete(old)) peers.add(peer);
  }

  /** Whether a handover of the connection is open. */
  concerns(peer: SimPeer): boolean {
    return [...this.open].some(({ peers }) => peers.has(peer));
  }

  /** The functions of the connections that drain together with this one. */
  offeredBy(peer: SimPeer): string[] {
    return [...this.open].flatMap(({ peers, targets }) => peers.has(peer) ? [...targets] : []);
  }

  /** Whether calls without a ready worker are parked. */
  isExpected(target: string): boolean {
    return [...this.open].some(({ isComingBack, targets }) => isComingBack && targets.has(target));
  }

  /** Whether the triggers of a connection stay when it is over. */
  keeps(peer: SimPeer): boolean {
    return [...this.open].some(({ isComingBack, peers }) => isComingBack && peers.has(peer));
  }

  /** The engine's count of running calls is the model's. */
  check(running: (peer: SimPeer) => number): void {
    for (const { peers, handover } of this.open) {
      const expected = [...peers].reduce((sum, peer) => sum + running(peer), 0);
      assert.equal(handover?.runningCalls, expected);
    }
  }
}

/** Some connections drain, perhaps some that do already, that are over or never existed. */
export function drainSome(world: SimWorld): void {
  const { random, handovers } = world;
  if (world.peers.length === 0 || handovers.open.size > 4) return;
  const peers = [random.pick(world.peers), random.pick(world.peers)].slice(random.below(2));
  const isComingBack = !random.once(4);
  const targets = [...world.offers].filter(([, replicas]) =>
    replicas.some((peer) => peers.includes(peer))
  ).map(([target]) => target);
  const ids = peers.map(({ worker_id }) => worker_id);
  if (random.once(3)) ids.push("unknown");
  const ghosts = world.ghosts.filter(() => random.once(4));
  ids.push(...ghosts.map(({ worker_id }) => worker_id));
  const left = ghosts.filter((ghost) => handovers.concerns(ghost));
  targets.push(...left.flatMap((ghost) => handovers.offeredBy(ghost)));
  const begun = handovers.begin([...peers, ...left], targets, isComingBack);
  begun.handover = world.router.traffic.drain(ids, { isComingBack });
}

/** A draining connection closes, whatever it runs. */
export function depart(world: SimWorld): void {
  const peers = world.peers.filter(({ isDraining }) => isDraining);
  if (peers.length === 0) return;
  const peer = world.random.pick(peers);
  world.bury(peer);
  peer.lose();
}

/** A handover ends, whether the worker has come back or not. */
export function endHandover(world: SimWorld, begun: SimHandover): void {
  world.handovers.open.delete(begun);
  for (const peer of begun.peers) {
    if (peer.isGone && !world.handovers.keeps(peer)) world.triggers.end(peer);
  }
  world.calls.dropUnexpected();
  begun.handover?.end();
  if (world.random.once(3)) begun.handover?.end();
}

/** A random handover ends. */
export function endSome(world: SimWorld): void {
  const open = [...world.handovers.open];
  if (open.length > 0) endHandover(world, world.random.pick(open));
}

/** A draining worker that lost its connection reattaches. */
export function comeBackLate(world: SimWorld): void {
  const left = [...world.handovers.open].flatMap(({ peers }) => [...peers])
    .filter((peer) => peer.isGone && !peer.builtin);
  if (left.length === 0) return;
  const old = world.random.pick(left);
  const peer = world.arrive(false);
  world.handovers.follow(old, peer);
  world.triggers.end(old);
  const { worker_id: previous_worker_id, reattach_token } = old;
  peer.say(JSON.stringify({ type: "reattach", previous_worker_id, reattach_token }));
}

/** A connection registers an orphaned trigger again, with its id or another. */
export function retake(world: SimWorld): void {
  const peer = world.somePeer();
  const left = [...world.triggers.all.values()].filter(({ owner }) => owner.isGone);
  if (peer && left.length > 0) retakeOne(world, peer, world.random.pick(left));
}

/** A worker connects that offers what is expected, and registers the orphaned triggers. */
export function succeed(world: SimWorld): void {
  const { random, handovers } = world;
  const expected = [...handovers.open].filter(({ isComingBack, peers }) =>
    isComingBack && [...peers].some(({ isGone }) => isGone)
  );
  const peer = expected.length > 0 && world.peers.length < 8 ? world.arrive(false) : undefined;
  if (!peer) return;
  const { peers, targets } = random.pick(expected);
  for (const target of targets) register(world, peer, target);
  for (const trigger of [...world.triggers.all.values()]) {
    if (peers.has(trigger.owner) && trigger.owner.isGone) retakeOne(world, peer, trigger);
  }
}

function retakeOne(world: SimWorld, peer: SimPeer, { id, trigger_type, config }: SimTrigger): void {
  const newId = world.random.once(2) ? id : world.name("t");
  registerTrigger(world, peer, newId, trigger_type, config);
}
