/**
 * The model of triggers: which provider must hold which trigger, derived from the steps alone.
 *
 * Holds promises 4 and 5 for triggers: after each step every trigger of a type with a provider
 * is held once, by the right one. Triggers of a closed connection stay in the model while
 * their originator is expected back.
 *
 * @module
 */
import assert from "node:assert/strict";
import type {
  RegisterTrigger,
  TriggerRegistrationResult,
  UnregisterTrigger,
} from "../../sdk/typescript/wire/protocol.ts";
import { type SimPeer, type SimWorld, written } from "./world.ts";

/** One trigger. */
export interface SimTrigger {
  readonly id: string;
  readonly owner: SimPeer;
  readonly trigger_type: string;
  /** What distinguishes it from others of the type. */
  readonly config: number;
  isRefused: boolean;
}

/** All triggers and types of a simulated world. */
export class SimTriggers {
  readonly all: Map<string, SimTrigger> = new Map();
  /** Providers of each type, the newest last. */
  readonly #providers = new Map<string, SimPeer[]>();
  /** What each provider holds, by id. */
  readonly #held = new Map<SimPeer, Map<string, RegisterTrigger>>();
  /** Ids of orphaned triggers, in the order their connections ended. */
  #left: string[] = [];
  /** A trigger is being taken over; its provider must receive nothing. */
  #isSilent = false;
  /** Connections to notify that a trigger is not theirs, by its id. */
  readonly #toNotify = new Map<string, SimPeer>();

  /** The provider that serves a type now: a built-in one if there is one, else the newest. */
  serving(type: string): SimPeer | undefined {
    return this.#providers.get(type)?.at(-1);
  }

  /** The triggers that a provider holds. */
  heldBy(peer: SimPeer): Map<string, RegisterTrigger> {
    const known = this.#held.get(peer) ?? new Map();
    this.#held.set(peer, known);
    return known;
  }

  /** A trigger is about to be registered. */
  add(trigger: SimTrigger): void {
    const before = this.all.get(trigger.id);
    if (before && before.owner !== trigger.owner) {
      const isSame = trigger.owner.name !== undefined && trigger.owner.name === before.owner.name &&
        trigger.owner.builtin === before.owner.builtin;
      const isRetaken = before.owner.isGone && before.trigger_type === trigger.trigger_type &&
        before.config === trigger.config;
      if (!isSame && !isRetaken) {
        this.#toNotify.set(trigger.id, trigger.owner);
        this.#isSilent = true;
        return;
      }
      if (!before.owner.isGone) this.#toNotify.set(trigger.id, before.owner);
    }
    const isOwn = this.serving(trigger.trigger_type)?.builtin ?? false;
    const equals = this.#left.map((id) => this.all.get(id)!).filter((left) =>
      left.trigger_type === trigger.trigger_type && left.config === trigger.config
    );
    this.#isSilent = isOwn && equals.length > 0 && (!before || equals.includes(before)) ||
      before !== undefined && equals.includes(before) && !before.isRefused;
    this.#drop(trigger.id);
    this.all.set(trigger.id, trigger);
    // Types of workers do not join equal triggers: the new one replaces the orphaned one.
    if (!before && !isOwn && equals[0]) this.#drop(equals[0].id);
  }

  /** The trigger was registered. */
  added(): void {
    this.#isSilent = false;
    assert.equal(this.#toNotify.size, 0, "no connection was notified of the refusal");
  }

  /** A connection is notified that its trigger is not registered. */
  answered(peer: SimPeer, { id }: TriggerRegistrationResult): void {
    if (this.#toNotify.get(id) === peer) this.#toNotify.delete(id);
    else assert.equal(this.all.get(id)?.owner, peer);
  }

  /** A connection is about to register a type. */
  provide(peer: SimPeer, type: string): void {
    const providers = this.#providers.get(type) ?? [];
    const serving = providers.at(-1);
    if (serving?.builtin && !peer.builtin) return;
    if (serving === peer) this.#forgetHeld(peer, type);
    this.#providers.set(type, [...providers.filter((other) => other !== peer), peer]);
    for (const trigger of this.all.values()) {
      if (trigger.trigger_type === type) trigger.isRefused = false;
    }
  }

  /** A connection is about to unregister a type. */
  withdraw(peer: SimPeer, type: string): void {
    const providers = this.#providers.get(type) ?? [];
    if (!providers.includes(peer)) return;
    const wasServing = providers.at(-1) === peer;
    if (wasServing) this.#forgetHeld(peer, type);
    this.#providers.set(type, providers.filter((other) => other !== peer));
    for (const trigger of this.all.values()) {
      if (wasServing && trigger.trigger_type === type) trigger.isRefused = false;
    }
  }

  /** A connection is about to end; its triggers stay if it is expected back. */
  forget(peer: SimPeer, isKept: boolean): void {
    if (isKept) this.#left.push(...this.#of(peer));
    else this.end(peer);
    for (const type of this.#providers.keys()) this.withdraw(peer, type);
    this.#held.delete(peer);
  }

  /** The triggers of a connection are about to end. */
  end(peer: SimPeer): void {
    for (const id of this.#of(peer)) this.#drop(id);
  }

  /** A provider receives a trigger. */
  given(peer: SimPeer, message: RegisterTrigger): void {
    assert.ok(!this.#isSilent, `${peer.id} was given ${message.id}, which was taken over`);
    const held = this.heldBy(peer);
    assert.ok(!held.has(message.id), `${peer.id} was given ${message.id} twice`);
    held.set(message.id, message);
  }

  /** A provider receives the withdrawal of a trigger. */
  taken(peer: SimPeer, { id }: UnregisterTrigger): void {
    assert.ok(!this.#isSilent, `${peer.id} is to end ${id}, which was taken over`);
    assert.ok(this.heldBy(peer).delete(id), `${peer.id} is to end ${id}, which it has not`);
  }

  /** Each provider holds exactly the expected triggers. */
  check(peers: readonly SimPeer[]): void {
    for (const peer of peers) {
      const expected: string[] = [];
      for (const type of this.#providers.keys()) {
        if (this.serving(type) === peer) expected.push(...this.#expected(peer, type));
      }
      const held = [...this.heldBy(peer).values()]
        .map((message) => nameOf(peer, message.id, message.trigger_type, message.config));
      assert.deepEqual(held.sort(), expected.sort(), `${peer.id} holds the wrong triggers`);
    }
  }

  #of(peer: SimPeer): string[] {
    return [...this.all.values()].filter(({ owner }) => owner === peer).map(({ id }) => id);
  }

  #expected(peer: SimPeer, type: string): string[] {
    const live = [...this.all.values()]
      .filter((trigger) => trigger.trigger_type === type && !trigger.isRefused);
    return [...new Set(live.map(({ id, config }) => nameOf(peer, id, type, config)))];
  }

  #drop(id: string): void {
    this.all.delete(id);
    this.#left = this.#left.filter((other) => other !== id);
  }

  #forgetHeld(peer: SimPeer, type: string): void {
    for (const [id, { trigger_type }] of this.heldBy(peer)) {
      if (trigger_type === type) this.heldBy(peer).delete(id);
    }
  }
}

/** Built-in providers hold equal triggers once, under the id of any of them. */
function nameOf({ builtin }: SimPeer, id: string, type: string, config: unknown): string {
  return builtin ? `${type} ${config}` : `${type} ${config} ${id}`;
}

const TYPES = ["files", "mail"];

/** A connection registers a trigger, under a new id, one it has, or one that is taken. */
export function addTrigger(world: SimWorld): void {
  const owner = world.somePeer();
  if (!owner || world.triggers.all.size > 20) return;
  const { random, triggers } = world;
  const config = random.below(3);
  const trigger_type = random.pick(TYPES);
  const own = [...triggers.all.values()].filter((trigger) => trigger.owner === owner);
  const all = [...triggers.all.values()];
  const isTaken = all.length > 0 && random.once(6);
  const known = isTaken ? all : own;
  const id = known.length > 0 && random.once(3) ? random.pick(known).id : world.name("t");
  registerTrigger(world, owner, id, trigger_type, config);
}

/** A connection registers a trigger, unless it has an equal one. */
export function registerTrigger(
  { random, triggers }: SimWorld,
  owner: SimPeer,
  id: string,
  trigger_type: string,
  config: number,
): void {
  const bytesEqual = [...triggers.all.values()].some((trigger) =>
    trigger.owner === owner && trigger.id !== id && trigger.trigger_type === trigger_type &&
    trigger.config === config
  );
  if (bytesEqual) return;
  triggers.add({ id, owner, trigger_type, config, isRefused: false });
  owner.say(written(random, [
    ["type", '"registertrigger"'],
    ["id", JSON.stringify(id)],
    ["trigger_type", JSON.stringify(trigger_type)],
    ["function_id", '"a"'],
    ["config", String(config)],
  ]));
  triggers.added();
}

/** A connection unregisters one of its triggers. */
export function removeTrigger(world: SimWorld): void {
  const all = [...world.triggers.all.values()].filter(({ owner }) =>
    !owner.paused && !owner.isGone
  );
  if (all.length === 0) return;
  const { id, owner } = world.random.pick(all);
  world.triggers.all.delete(id);
  owner.say(JSON.stringify({ type: "unregistertrigger", id }));
}

/** A connection provides a type. */
export function provide(world: SimWorld): void {
  const peer = world.somePeer();
  if (!peer) return;
  const id = world.random.pick(TYPES);
  world.triggers.provide(peer, id);
  peer.say(JSON.stringify({ type: "registertriggertype", id, description: "" }));
}

/** A connection unregisters a type, perhaps one it never registered. */
export function withdraw(world: SimWorld): void {
  const peer = world.somePeer();
  if (!peer) return;
  const id = world.random.pick(TYPES);
  world.triggers.withdraw(peer, id);
  peer.say(JSON.stringify({ type: "unregistertriggertype", id }));
}

/** A provider rejects a trigger. */
export function refuseTrigger(world: SimWorld): void {
  const all = [...world.triggers.all.values()].filter((trigger) => {
    const peer = world.triggers.serving(trigger.trigger_type);
    return peer && !peer.builtin && !peer.paused && !trigger.isRefused;
  });
  if (all.length === 0) return;
  const trigger = world.random.pick(all);
  const { id, trigger_type } = trigger;
  const peer = world.triggers.serving(trigger_type)!;
  trigger.isRefused = true;
  world.triggers.heldBy(peer).delete(id);
  const error = { code: "no", message: "no" };
  const type = "triggerregistrationresult";
  peer.say(JSON.stringify({ type, id, trigger_type, function_id: "a", error }));
}
