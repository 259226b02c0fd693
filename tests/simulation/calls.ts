/**
 * The model of calls: which outcomes are allowed, derived from the steps alone, without the engine.
 *
 * Holds promises 1, 2, 3, 7, 8 and 9: each message towards a connection is explained by what happened
 * before, or the simulation fails. A call without a ready worker is parked exactly when a worker is
 * expected for it, starts in order when one registers, and ends in time.
 *
 * @module
 */
import assert from "node:assert/strict";
import { CALL_PARK_MS } from "../../engine/core/parked_calls.ts";
import type {
  CancelInvocation,
  InvocationProgress,
  InvocationResult,
  InvokeFunction,
} from "../../sdk/typescript/wire/protocol.ts";
import type { FakeClock } from "../fakes/fake_clock.ts";
import { markOf, oddValue, SIM_TIMEOUT_MS, type SimPeer, type SimWorld, written } from "./world.ts";
import { SIM_TRACEPARENTS, type SimTraces } from "./traces.ts";

/** Calls that one worker of the simulation may have unanswered. */
export const SIM_CALLS_MAX = 3;

/** A call, created before it is sent. */
export interface SimCall {
  readonly mark: string;
  readonly caller: SimPeer;
  /** The caller's id; `undefined` for a void call. */
  readonly id: string | undefined;
  readonly target: string;
  /** Its own timeout; `undefined`: the engine's applies. */
  readonly timeout_ms: number | undefined;
  /** The trace context that its caller sent. */
  readonly traceparent: string | undefined;
  readonly baggage: string | undefined;
  readonly madeAt: number;
  readonly endsAt: number;
  /** Parked until a worker can run it. */
  isHeld: boolean;
  /** The callee, and the id of the call there. */
  callee: SimPeer | undefined;
  engineId: string | undefined;
  /** The result that its callee sent before the connection ended. */
  said: string | undefined;
  isCancelled: boolean;
  isBroken: boolean;
  isOpen: boolean;
  progress: number;
  progressHeard: number;
}

/** The state of the world that calls depend on. */
export interface SimOffers {
  /** Peers that offer a function now, the newest last. */
  replicas(target: string): readonly SimPeer[];
  /** Whether a worker that offers it is expected back. */
  isExpected(target: string): boolean;
}

/** A call that a peer makes. */
export interface SimRequest {
  readonly caller: SimPeer;
  /** The caller's id; `undefined` for a void call. */
  readonly id: string | undefined;
  readonly target: string;
  /** Its own timeout; `undefined`: the engine's applies. */
  readonly timeout_ms: number | undefined;
  /** The trace context that its caller sends. */
  readonly traceparent: string | undefined;
  readonly baggage: string | undefined;
}

/** All calls of a simulated world. */
export class SimCalls {
  readonly all: Map<string, SimCall> = new Map();
  readonly #clock: FakeClock;
  readonly #offers: SimOffers;
  readonly #timeoutMs: number;
  readonly #traces: SimTraces;
  #marks = 0;

  /** Calls without a timeout of their own have `timeoutMs`. */
  constructor(clock: FakeClock, offers: SimOffers, timeoutMs: number, traces: SimTraces) {
    this.#traces = traces;
    this.#clock = clock;
    this.#offers = offers;
    this.#timeoutMs = timeoutMs;
  }

  /** Calls that run, as far as the model knows. */
  open(): SimCall[] {
    return [...this.all.values()].filter((call) => call.isOpen);
  }

  /** The calls that a worker has not answered. */
  runningAt(peer: SimPeer): SimCall[] {
    return this.open().filter((call) => call.callee === peer);
  }

  /** A call is about to be made. */
  make(request: SimRequest): SimCall {
    const { id, timeout_ms = this.#timeoutMs } = request;
    const madeAt = this.#clock.now();
    const isHeld = this.#isHeld(request);
    const call: SimCall = {
      mark: `m${++this.#marks}`,
      ...request,
      madeAt,
      endsAt: madeAt + timeout_ms,
      isHeld,
      callee: undefined,
      engineId: undefined,
      said: undefined,
      isCancelled: false,
      isBroken: false,
      isOpen: id !== undefined || isHeld,
      progress: 0,
      progressHeard: 0,
    };
    this.all.set(call.mark, call);
    return call;
  }

  /** A connection is about to end: its calls have no caller any more, and it answers none. */
  forget(peer: SimPeer): void {
    for (const call of this.open()) {
      const isVoidThere = call.callee === peer && call.id === undefined;
      if ((call.caller === peer && call.id !== undefined) || isVoidThere) call.isOpen = false;
    }
  }

  /** Time has passed: calls without a caller end without a message. */
  passed(): void {
    for (const call of this.open()) {
      if (lastMomentOf(call) > this.#clock.now()) continue;
      assert.equal(call.id, undefined, `call ${call.mark} outlived its deadline`);
      call.isOpen = false;
    }
  }

  /** A peer has begun to offer a function: no call of it is parked any more. */
  offered(target: string): void {
    for (const call of this.#held(target)) {
      if (this.#ready(target).length === 0) continue;
      assert.equal(call.id, undefined, `call ${call.mark} did not start when it could`);
      this.#assertFull(target);
      call.isOpen = false;
    }
  }

  /** A handover is about to end: calls that are still parked for it fail. */
  dropUnexpected(): void {
    for (const call of this.#held()) {
      if (call.id === undefined && !this.#offers.isExpected(call.target)) call.isOpen = false;
    }
  }

  /** Each parked call has a reason to be parked. */
  check(): void {
    for (const call of this.#held()) {
      const { mark, target } = call;
      assert.equal(this.#ready(target).length, 0, `call ${mark} waits and could run`);
      assert.ok(this.#offers.isExpected(target), `call ${mark} is parked without a reason`);
      assert.ok(lastMomentOf(call) > this.#clock.now(), `call ${mark} waits too long`);
    }
  }

  /** A worker receives a call. */
  handed(peer: SimPeer, message: InvokeFunction, text: string): void {
    const call = this.all.get(markOf(message.data));
    assert.ok(call, `no peer called ${text}`);
    assert.equal(call.callee, undefined, `call ${call.mark} was handed out twice`);
    assert.equal(message.action, undefined, "an action was sent to a worker");
    assert.equal(message.caller, peer.builtin ? call.caller.worker_id : undefined);
    assert.ok(text.endsWith(`"data":${oddValue(call.mark)}}`), `payload changed: ${text}`);
    const left = Math.ceil(call.endsAt - this.#clock.now());
    assert.equal(message.timeout_ms, call.timeout_ms && left, "not what is left of its time");
    assert.ok(left > 0, `call ${call.mark} started after its end`);
    assert.equal(message.baggage, call.baggage);
    this.#traces.handed(call, message);
    this.#assertChosen(peer, call);
    if (call.isHeld) this.#assertFirst(call);
    call.isHeld = false;
    call.callee = peer;
    call.engineId = message.invocation_id;
    call.isOpen = true;
  }

  /** A caller receives a result. */
  ended(peer: SimPeer, message: InvocationResult, text: string): void {
    const call = this.#openOf(peer, message.invocation_id);
    assert.ok(call, `${peer.id} does not wait for ${text}`);
    call.isOpen = false;
    this.#traces.ended(peer, call, message);
    if (!message.error) {
      assert.equal(
        call.said,
        call.mark,
        `call ${call.mark} ended with the result of a peer that was not called`,
      );
      assert.ok(text.endsWith(`"result":${oddValue(call.mark)}}`), `result changed: ${text}`);
      assert.equal(call.progressHeard, peer.wantsProgress ? call.progress : 0);
      return;
    }
    assert.ok(this.#explains(call, message.error.code), `call ${call.mark}: why ${text}`);
  }

  /** A caller receives progress of a running call. */
  news(peer: SimPeer, message: InvocationProgress): void {
    const call = this.#openOf(peer, message.invocation_id);
    assert.ok(call && peer.wantsProgress, `${peer.id} does not want ${message.invocation_id}`);
    assert.equal(message.data, ++call.progressHeard, "news came out of order");
  }

  /** A callee receives the cancellation of a call. */
  cancelled(peer: SimPeer, { invocation_id, reason }: CancelInvocation): void {
    const call = [...this.all.values()].find(({ engineId }) => engineId === invocation_id);
    assert.ok(call && call.callee === peer && peer.wantsCancel, `${peer.id}: why cancel?`);
    const isLate = call.endsAt <= this.#clock.now();
    if (reason === "timeout") return assert.ok(isLate, "a call was given up before its time");
    if (reason === "caller_disconnected") return assert.ok(call.caller.isGone);
    assert.ok(call.isCancelled, "a call was cancelled without a request");
  }

  /** Whether a call that is about to be made has to be parked. */
  #isHeld({ caller, target }: SimRequest): boolean {
    const isOwn = this.#mayRunOwn(caller, target) && !this.#isFull(caller);
    return this.#ready(target).length === 0 && !isOwn && this.#offers.isExpected(target);
  }

  #assertChosen(peer: SimPeer, call: SimCall): void {
    assert.ok(!this.#isFull(peer), `${peer.id} got a call beyond its bound`);
    const ready = this.#ready(call.target);
    if (peer.isDraining) {
      const isOwn = peer === call.caller && this.#mayRunOwn(peer, call.target);
      return assert.ok(isOwn && ready.length === 0, `${peer.id} drains and got ${call.mark}`);
    }
    assert.ok(ready.includes(peer), `${peer.id} does not offer ${call.target}`);
    const load = this.runningAt(peer).length;
    for (const other of ready) {
      const isFreer = !this.#isFull(other) && this.runningAt(other).length < load;
      assert.ok(!isFreer, `${peer.id} got a call for which ${other.id} had more room`);
    }
  }

  /** A parked call starts in order; void calls before it may have been refused. */
  #assertFirst(call: SimCall): void {
    const [first] = this.#held(call.target).filter(({ id }) => id !== undefined);
    if (call.id !== undefined) assert.equal(first, call, `call ${call.mark} went ahead of others`);
  }

  #assertFull(target: string): void {
    const isFull = this.#ready(target).every((peer) => this.#isFull(peer));
    assert.ok(isFull, `a void call of ${target} was dropped though a worker had room`);
  }

  /** Whether an event of the world explains this end of a call. */
  #explains(call: SimCall, code: string): boolean {
    const ready = this.#ready(call.target);
    switch (code) {
      case "timeout":
        return (call.callee !== undefined || call.isHeld) && call.endsAt === this.#clock.now() &&
          (!call.isHeld || call.endsAt < call.madeAt + CALL_PARK_MS);
      case "cancelled":
        return call.isCancelled;
      case "invocation_stopped":
        return call.callee?.isGone === true;
      case "bad_message":
        return call.isBroken;
      case "function_not_found":
        return call.callee === undefined && ready.length === 0 &&
          (!this.#offers.isExpected(call.target) ||
            call.isHeld && call.madeAt + CALL_PARK_MS === this.#clock.now());
      case "overloaded":
        return call.callee === undefined && ready.length > 0 &&
          ready.every((peer) => this.#isFull(peer));
      default:
        return false;
    }
  }

  /** Parked calls, of a function or of any, in the order they came. */
  #held(target?: string): SimCall[] {
    return this.open().filter((call) =>
      call.isHeld && (target === undefined || call.target === target)
    );
  }

  /** Peers that may receive calls of a function: suspect ones if there are no others. */
  #ready(target: string): SimPeer[] {
    const ready = this.#offers.replicas(target).filter(({ isDraining }) => !isDraining);
    const preferred = ready.filter(({ isSuspect }) => !isSuspect);
    return preferred.length > 0 ? preferred : ready;
  }

  /** Whether a connection that drains may run what it calls itself: it runs a call that needs it. */
  #mayRunOwn(peer: SimPeer, target: string): boolean {
    return peer.isDraining && this.runningAt(peer).length > 0 &&
      this.#offers.replicas(target).includes(peer);
  }

  #openOf(peer: SimPeer, id: string): SimCall | undefined {
    return this.open().find((call) => call.caller === peer && call.id === id);
  }

  #isFull(peer: SimPeer): boolean {
    return peer.isStalled || this.runningAt(peer).length >= SIM_CALLS_MAX;
  }
}

/** The latest time at which a call ends, or stops being parked. */
function lastMomentOf({ isHeld, madeAt, endsAt }: SimCall): number {
  return isHeld ? Math.min(endsAt, madeAt + CALL_PARK_MS) : endsAt;
}

/** Functions to call, with their namespaces. */
export const TARGETS: readonly string[] = [
  "default a",
  "default b",
  "eu a",
  "default state::get",
  "default engine::x",
];

/** A connection offers a function. */
export function register(world: SimWorld, peer: SimPeer, target: string): void {
  const [namespace, id] = target.split(" ") as [string, string];
  world.offer(peer, target);
  const fields: [string, string][] = [["type", '"registerfunction"'], ["id", JSON.stringify(id)]];
  if (namespace !== "default") fields.push(["namespace", JSON.stringify(namespace)]);
  peer.say(written(world.random, fields));
  world.calls.offered(target);
}

function callOf(world: SimWorld, peer: SimPeer, id: string | undefined, isVoid: boolean): void {
  const { random } = world;
  const target = random.pick(TARGETS);
  const [namespace, function_id] = target.split(" ") as [string, string];
  const timeout_ms = random.once(2) ? 1 + random.below(SIM_TIMEOUT_MS) : undefined;
  const waits = isVoid ? undefined : id;
  const traceparent = random.once(3) ? random.pick(SIM_TRACEPARENTS) : undefined;
  const baggage = random.once(4) ? "tenant=a,user=%22b%22" : undefined;
  const trace = { traceparent, baggage };
  const made = world.calls.make({ caller: peer, id: waits, target, timeout_ms, ...trace });
  const fields: [string, string][] = [["type", '"invokefunction"']];
  if (id !== undefined) fields.push(["invocation_id", JSON.stringify(id)]);
  fields.push(["function_id", JSON.stringify(function_id)]);
  if (namespace !== "default") fields.push(["namespace", JSON.stringify(namespace)]);
  if (isVoid) fields.push(["action", '{"type":"void"}']);
  if (timeout_ms) fields.push(["timeout_ms", String(timeout_ms)]);
  if (traceparent !== undefined) fields.push(["traceparent", JSON.stringify(traceparent)]);
  if (baggage !== undefined) fields.push(["baggage", JSON.stringify(baggage)]);
  fields.push(["data", oddValue(made.mark)]);
  peer.say(written(random, fields));
}

/** A connection calls something under an id it does not use yet. */
export function call(world: SimWorld): void {
  const peer = world.somePeer();
  // Few ids, so that callers share them all the time.
  if (!peer) return;
  const taken = new Set(
    world.calls.open().filter(({ caller }) => caller === peer).map(({ id }) => id),
  );
  const free = ["i1", "i2", "i3", "AaAa", "BBBB", "AaBB"].filter((id) => !taken.has(id));
  if (free.length > 0) callOf(world, peer, world.random.pick(free), false);
}

/** A connection calls something and does not wait. */
export function callVoid(world: SimWorld): void {
  const peer = world.somePeer();
  if (!peer) return;
  callOf(world, peer, world.random.once(2) ? "i1" : undefined, true);
}

/** An id that is still open must not start a second call. */
export function callTwice(world: SimWorld): void {
  const open = world.calls.open().filter(({ caller, id }) => id !== undefined && !caller.paused);
  if (open.length === 0) return;
  const { caller, id } = world.random.pick(open);
  caller.say(written(world.random, [
    ["type", '"invokefunction"'],
    ["invocation_id", JSON.stringify(id!)],
    ["function_id", '"a"'],
    ["data", oddValue("never")],
  ]));
}

/** A call that a peer runs and can answer now. */
function running(world: SimWorld): (SimCall & { callee: SimPeer }) | undefined {
  const calls = world.calls.open().filter(({ callee }) => callee && !callee.paused);
  return calls.length > 0 ? world.random.pick(calls) as SimCall & { callee: SimPeer } : undefined;
}

/** A result as its callee writes it. */
export function resultOf(world: SimWorld, id: string | undefined, value: string): string {
  return written(world.random, [
    ["type", '"invocationresult"'],
    ["invocation_id", JSON.stringify(id ?? "")],
    ["function_id", '"a"'],
    ["result", value],
  ]);
}

/** A callee answers a call, perhaps more than once. */
export function answer(world: SimWorld): void {
  const made = running(world);
  if (!made) return;
  made.said = made.mark;
  if (made.id === undefined) made.isOpen = false;
  for (let i = world.random.below(3); i >= 0; i--) {
    made.callee.say(resultOf(world, made.engineId, oddValue(made.mark)));
    if (made.callee.paused) return;
  }
}

/** A callee sends progress of a call. */
export function sendProgress(world: SimWorld): void {
  const made = running(world);
  if (!made) return;
  made.progress++;
  made.callee.say(JSON.stringify({
    type: "invocationprogress",
    invocation_id: made.engineId,
    data: made.progress,
  }));
}

/** A callee sends an invalid result. */
export function answerInvalidly(world: SimWorld): void {
  const made = running(world);
  if (!made) return;
  made.isBroken = true;
  if (made.id === undefined) made.isOpen = false;
  made.callee.say(`{"type":"invocationresult","invocation_id":"${made.engineId}","result":1}`);
}

/** A peer that does not run a call answers it, sends progress, cancels it or rejects a trigger. */
export function interfere(world: SimWorld): void {
  const peer = world.somePeer();
  if (!peer) return;
  const calls = [...world.calls.all.values()].filter(({ callee, isOpen }) =>
    callee !== peer || !isOpen
  );
  const made = calls.length > 0 ? world.random.pick(calls) : undefined;
  if (made?.engineId) peer.say(resultOf(world, made.engineId, oddValue("forged")));
  if (made?.engineId) {
    const invocation_id = made.engineId;
    peer.say(JSON.stringify({ type: "invocationprogress", invocation_id, data: "forged" }));
    peer.say(JSON.stringify({ type: "cancelinvocation", invocation_id }));
  }
  for (const trigger of world.triggers.all.values()) {
    if (world.triggers.serving(trigger.trigger_type) === peer) continue;
    // An id may outlive its trigger while equal triggers of others exist: then this answer is valid.
    if (world.triggers.heldBy(peer).has(trigger.id)) continue;
    peer.say(JSON.stringify({
      type: "triggerregistrationresult",
      id: trigger.id,
      trigger_type: trigger.trigger_type,
      function_id: "a",
      error: { code: "no", message: "forged" },
    }));
    if (trigger.owner !== peer) peer.say(`{"type":"unregistertrigger","id":"${trigger.id}"}`);
  }
}

/** A caller cancels a call. */
export function cancel(world: SimWorld): void {
  const open = world.calls.open().filter(({ caller, id }) => id !== undefined && !caller.paused);
  if (open.length === 0) return;
  const made = world.random.pick(open);
  made.isCancelled = true;
  const { caller, id } = made;
  caller.say(JSON.stringify({ type: "cancelinvocation", invocation_id: id, reason: "enough" }));
}
