/**
 * A router in a random but repeatable run.
 *
 * Workers connect, register, call, answer, send wrong frames, stall, cancel, vanish and reattach. The
 * model learns of each step before the engine does, so that each consequence can be checked
 * at once.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Router } from "../../engine/core/router.ts";
import { type ConnectionEvents, SEND_AHEAD_BYTES } from "../../engine/ports/connection.ts";
import type { EngineMessage, Json } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../fakes/fake_clock.ts";
import { FakeConnection } from "../fakes/fake_connection.ts";
import { DEFAULT_SETTINGS, fakeSchemas } from "../fakes/fake_router.ts";
import type { Random } from "../fakes/random.ts";
import { SIM_CALLS_MAX, SimCalls } from "./calls.ts";
import { SimHandovers } from "./handovers.ts";
import { SimTraces } from "./traces.ts";
import { SimTriggers } from "./triggers.ts";

/** Timeout of calls without one: longer than any may be parked. */
export const SIM_TIMEOUT_MS = 8_000;

/** A router, its peers and the models. */
export class SimWorld {
  readonly clock: FakeClock = new FakeClock();
  readonly random: Random;
  readonly router: Router;
  readonly traces: SimTraces;
  readonly calls: SimCalls;
  readonly triggers: SimTriggers = new SimTriggers();
  readonly handovers: SimHandovers = new SimHandovers();
  /** Connections that are not over. */
  peers: SimPeer[] = [];
  /** Connections that are over; frames they still send must change nothing. */
  readonly ghosts: SimPeer[] = [];
  /** Peers that offer a function, the newest last. */
  readonly offers: Map<string, SimPeer[]> = new Map();
  /** Called synchronously when the engine reports an event. */
  onEvent: () => void = () => {};
  #ids = 0;

  /** An empty world, whose calls are recorded or not. */
  constructor(random: Random, isTracing: boolean) {
    this.random = random;
    this.traces = new SimTraces(this.clock, isTracing);
    const offers = {
      replicas: (target: string) => this.offers.get(target) ?? [],
      isExpected: (target: string) => this.handovers.isExpected(target),
    };
    this.calls = new SimCalls(this.clock, offers, SIM_TIMEOUT_MS, this.traces);
    this.router = new Router({
      clock: this.clock,
      schemas: fakeSchemas,
      settings: {
        ...DEFAULT_SETTINGS,
        invocation_timeout_ms: SIM_TIMEOUT_MS,
        max_inflight_calls_per_worker: SIM_CALLS_MAX,
        max_inflight_bytes_per_worker: 100_000,
      },
      newId: () => `00000000-0000-4000-9000-${String(++this.#ids).padStart(12, "0")}`,
      report: () => this.onEvent(),
      observer: this.traces.recorder,
    });
  }

  /** A fresh name. */
  name(prefix: string): string {
    return `${prefix}${++this.#ids}`;
  }

  /** A connection that the engine reads; `undefined` when there is none. */
  somePeer(): SimPeer | undefined {
    const peers = this.peers.filter(({ paused }) => !paused);
    return peers.length > 0 ? this.random.pick(peers) : undefined;
  }

  /** A connection opens; `before` is its first frame. */
  arrive(builtin: boolean, before?: string): SimPeer {
    const peer = new SimPeer(this.name(builtin ? "own" : "w"), builtin, this.#receive.bind(this));
    peer.canPause = !this.random.once(3);
    if (builtin) peer.name = "engine-sim";
    const info = { address: null, launch_id: null, builtin: peer.name ?? null };
    peer.events = this.router.open(peer, info);
    this.peers.push(peer);
    assert.notEqual(peer.worker_id, "", "a connection is greeted at once");
    if (before !== undefined) peer.say(before);
    return peer;
  }

  /** The model ends a connection; the engine learns of it afterwards. */
  bury(peer: SimPeer): void {
    peer.isGone = true;
    this.peers = this.peers.filter((other) => other !== peer);
    this.ghosts.push(peer);
    for (const [target, replicas] of this.offers) {
      this.#setOffers(target, replicas.filter((other) => other !== peer));
    }
    this.calls.forget(peer);
    this.triggers.forget(peer, this.handovers.keeps(peer));
  }

  /** A connection is about to offer a function. */
  offer(peer: SimPeer, target: string): void {
    const replicas = this.offers.get(target) ?? [];
    const isOwn = replicas.some((other) => other.builtin);
    if ((isOwn || target.includes(" engine::")) && !peer.builtin) return;
    const kept = replicas.filter((other) => other !== peer && (other.builtin || !peer.builtin));
    this.#setOffers(target, [...kept, peer]);
    this.handovers.offered(peer, target);
  }

  /** A connection is about to unregister a function. */
  unregister(peer: SimPeer, target: string): void {
    this.#setOffers(target, (this.offers.get(target) ?? []).filter((other) => other !== peer));
  }

  /** The engine's lists match the model. */
  check(): void {
    const { directory } = this.router;
    const shown = directory.functions().filter(({ worker_ids }) => worker_ids.length > 0)
      .map(({ namespace, function_id, worker_ids }) => [`${namespace} ${function_id}`, worker_ids]);
    const expected = [...this.offers]
      .map(([target, peers]) => [target, peers.map(({ worker_id }) => worker_id)]);
    assert.deepEqual(Object.fromEntries(shown), Object.fromEntries(expected));
    assert.deepEqual(
      directory.workers().map(({ id, status, suspect, active_invocations }) =>
        `${id} ${status} ${suspect} ${active_invocations}`
      ).sort(),
      this.peers.map((peer) => {
        const status = peer.isDraining ? "draining" : "connected";
        return `${peer.worker_id} ${status} ${peer.isSuspect} ${this.calls.runningAt(peer).length}`;
      }).sort(),
    );
    assert.deepEqual(
      directory.triggers().map(({ id, state }) => `${id} ${state}`).sort(),
      [...this.triggers.all.values()].map(({ id, trigger_type, isRefused }) => {
        const state = isRefused ? "refused" : "offered";
        return `${id} ${this.triggers.serving(trigger_type) ? state : "parked"}`;
      }).sort(),
    );
    this.triggers.check(this.peers);
    this.handovers.check((peer) => this.calls.runningAt(peer).length);
    this.calls.check();
    assert.equal(this.router.runningCalls, this.calls.open().length);
    this.traces.check(this.calls.open());
  }

  #setOffers(target: string, peers: SimPeer[]): void {
    if (peers.length > 0) this.offers.set(target, peers);
    else this.offers.delete(target);
  }

  #receive(peer: SimPeer, message: EngineMessage, text: string): void {
    if (peer.isStalled) peer.queuedBytes += SEND_AHEAD_BYTES;
    switch (message.type) {
      case "workerregistered":
        peer.worker_id = message.worker_id;
        peer.reattach_token = message.reattach_token;
        return;
      case "invokefunction":
        return this.calls.handed(peer, message, text);
      case "invocationresult":
        return this.calls.ended(peer, message, text);
      case "invocationprogress":
        return this.calls.news(peer, message);
      case "cancelinvocation":
        return this.calls.cancelled(peer, message);
      case "registertrigger":
        return this.triggers.given(peer, message);
      case "unregistertrigger":
        return this.triggers.taken(peer, message);
      case "triggerregistrationresult":
        return this.triggers.answered(peer, message);
      case "registrationrejected":
        return assert.ok(message.function_id?.startsWith("engine::"));
      case "error":
        return assert.match(
          message.error.code,
          /^(bad_message|overloaded)$/,
          message.error.message,
        );
      case "ping":
      case "pong":
        return;
    }
  }
}

/** A simulated worker. */
export class SimPeer extends FakeConnection {
  readonly builtin: boolean;
  /** As announced. */
  name: string | undefined;
  worker_id = "";
  reattach_token = "";
  /** Closed in the model; the engine must not send any more. */
  isGone = false;
  /** Gets no new calls; stays so to its end. */
  isDraining = false;
  /** Has left a ping unanswered: others are preferred. */
  isSuspect = false;
  wantsCancel = false;
  wantsProgress = false;
  /** Does not read: messages to it queue up. */
  isStalled = false;
  /** Received frames. */
  received: { message: EngineMessage; text: string }[] = [];
  readonly #receive: (peer: SimPeer, message: EngineMessage, text: string) => void;
  #events: ConnectionEvents | undefined;

  /** `receive` is called with each message. */
  constructor(
    id: string,
    builtin: boolean,
    receive: (peer: SimPeer, message: EngineMessage, text: string) => void,
  ) {
    super(id);
    this.builtin = builtin;
    this.#receive = receive;
  }

  /** The receiver of the connection's events, once it is known. */
  set events(events: ConnectionEvents) {
    this.#events = events;
  }

  override send(text: string): void {
    assert.ok(!this.isGone, `${this.id} was sent ${text} after its end`);
    assert.equal(this.closing, undefined, `${this.id} was sent something after it was closed`);
    this.#receive(this, JSON.parse(text) as EngineMessage, text);
  }

  /** Sends a frame, if the engine reads it. */
  say(text: string): void {
    if (!this.paused) this.#events?.text(text);
  }

  /** Loses the connection; the model must have ended it before. */
  lose(): void {
    assert.ok(this.isGone);
    this.#events?.closed(1006, "");
  }

  /** Leaves a ping unanswered, or is heard again. */
  suspect(isSuspect: boolean): void {
    this.isSuspect = isSuspect;
    this.#events?.suspected(isSuspect);
  }

  /** Reads again, to the end. */
  drain(): void {
    this.isStalled = false;
    this.queuedBytes = 0;
    this.#events?.drained();
    assert.ok(!this.paused, `${this.id} drained and is still not read`);
  }
}

/**
 * A message as an SDK may write it: in canonical order, with all behind its ids in any order,
 * or with its keys in any order, white space and unknown names. Values are JSON texts.
 */
export function written(random: Random, fields: readonly (readonly [string, string])[]): string {
  const kept = random.pick([fields.length, fields.length, 3, 0]);
  const rest = fields.slice(kept);
  const parts = fields.slice(0, kept).map(([key, value]) => `"${key}":${value}`);
  if (kept === 0) rest.push(["colour", '"red"']);
  while (rest.length > 0) {
    const [key, value] = rest.splice(random.below(rest.length), 1)[0]!;
    parts.push(kept === 0 ? ` "${key}" : ${value} ` : `"${key}":${value}`);
  }
  return `{${parts.join(",")}}`;
}

/** A JSON text that parsing and writing would change, with a mark to recognize it. */
export function oddValue(mark: string): string {
  return `{"mark":"${mark}", "n":12345678901234567890,"f":1.50,"e":[ ],"x":null}`;
}

/** The mark in such a value. */
export function markOf(value: Json | undefined): string {
  return String((value as Record<string, Json> | undefined)?.mark);
}
