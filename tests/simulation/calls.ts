/**
 * What may happen to calls, as somebody knows it who sees all lines but not the engine.
 *
 * Holds promises 1, 2, 3, 7, 8 and 9: each message towards a line is explained by what happened
 * before, or the simulation fails. A call that nobody can run now is held exactly when somebody is
 * expected to, starts when somebody can, in its turn, and ends in time.
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
import { markOf, oddValue, SIM_TIMEOUT_MS, type SimLine, type SimWorld, written } from "./world.ts";
import { SIM_TRACEPARENTS, type SimTraces } from "./traces.ts";

/** Calls that one worker of the simulation may have unanswered. */
export const SIM_CALLS_MAX = 3;

/** One call, from before it was made. */
export interface SimCall {
  readonly mark: string;
  readonly caller: SimLine;
  /** The caller's id; `undefined`: it does not wait. */
  readonly id: string | undefined;
  readonly target: string;
  /** Its own time-out; `undefined`: the engine's holds. */
  readonly timeout_ms: number | undefined;
  /** What its caller said of its trace. */
  readonly traceparent: string | undefined;
  readonly baggage: string | undefined;
  readonly madeAt: number;
  readonly endsAt: number;
  /** Waits for somebody to run it. */
  isHeld: boolean;
  /** Who was asked to run it, and under which id. */
  callee: SimLine | undefined;
  engineId: string | undefined;
  /** What its callee said before it ended. */
  said: string | undefined;
  isCancelled: boolean;
  isBroken: boolean;
  isOpen: boolean;
  progress: number;
  progressHeard: number;
}

/** What calls depend on. */
export interface SimOffers {
  /** Who offers a function now, the newest last. */
  replicas(target: string): readonly SimLine[];
  /** Whether somebody is expected to offer it. */
  isExpected(target: string): boolean;
}

/** What a line asks for. */
export interface SimRequest {
  readonly caller: SimLine;
  /** The caller's id; `undefined`: it does not wait. */
  readonly id: string | undefined;
  readonly target: string;
  /** Its own time-out; `undefined`: the engine's holds. */
  readonly timeout_ms: number | undefined;
  /** What its caller says of its trace. */
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

  /** Makes one; calls that name no time-out have `timeoutMs`. */
  constructor(clock: FakeClock, offers: SimOffers, timeoutMs: number, traces: SimTraces) {
    this.#traces = traces;
    this.#clock = clock;
    this.#offers = offers;
    this.#timeoutMs = timeoutMs;
  }

  /** Calls that run, as far as one can know. */
  open(): SimCall[] {
    return [...this.all.values()].filter((call) => call.isOpen);
  }

  /** What a worker has not answered. */
  runningAt(line: SimLine): SimCall[] {
    return this.open().filter((call) => call.callee === line);
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

  /** A line is about to end: nobody waits for its calls, and it answers none. */
  forget(line: SimLine): void {
    for (const call of this.open()) {
      const isVoidThere = call.callee === line && call.id === undefined;
      if ((call.caller === line && call.id !== undefined) || isVoidThere) call.isOpen = false;
    }
  }

  /** Time has passed: what nobody waits for is over without a word. */
  passed(): void {
    for (const call of this.open()) {
      if (lastMomentOf(call) > this.#clock.now()) continue;
      assert.equal(call.id, undefined, `call ${call.mark} outlived its deadline`);
      call.isOpen = false;
    }
  }

  /** Somebody has begun to offer a function: nothing waits for it any more. */
  offered(target: string): void {
    for (const call of this.#held(target)) {
      if (this.#ready(target).length === 0) continue;
      assert.equal(call.id, undefined, `call ${call.mark} did not start when it could`);
      this.#assertFull(target);
      call.isOpen = false;
    }
  }

  /** A handover is about to end: what waited in vain is over. */
  dropUnexpected(): void {
    for (const call of this.#held()) {
      if (call.id === undefined && !this.#offers.isExpected(call.target)) call.isOpen = false;
    }
  }

  /** What is held is held for a reason. */
  check(): void {
    for (const call of this.#held()) {
      const { mark, target } = call;
      assert.equal(this.#ready(target).length, 0, `call ${mark} waits and could run`);
      assert.ok(this.#offers.isExpected(target), `call ${mark} waits for nobody`);
      assert.ok(lastMomentOf(call) > this.#clock.now(), `call ${mark} waits too long`);
    }
  }

  /** A worker is asked to run something. */
  handed(line: SimLine, message: InvokeFunction, text: string): void {
    const call = this.all.get(markOf(message.data));
    assert.ok(call, `nobody called ${text}`);
    assert.equal(call.callee, undefined, `call ${call.mark} was handed out twice`);
    assert.equal(message.action, undefined, "an action was sent to a worker");
    assert.equal(message.caller, line.builtin ? call.caller.worker_id : undefined);
    assert.ok(text.endsWith(`"data":${oddValue(call.mark)}}`), `payload changed: ${text}`);
    const left = Math.ceil(call.endsAt - this.#clock.now());
    assert.equal(message.timeout_ms, call.timeout_ms && left, "not what is left of its time");
    assert.ok(left > 0, `call ${call.mark} started after its end`);
    assert.equal(message.baggage, call.baggage);
    this.#traces.handed(call, message);
    this.#assertChosen(line, call);
    if (call.isHeld) this.#assertFirst(call);
    call.isHeld = false;
    call.callee = line;
    call.engineId = message.invocation_id;
    call.isOpen = true;
  }

  /** A caller is told how a call ended. */
  ended(line: SimLine, message: InvocationResult, text: string): void {
    const call = this.#openOf(line, message.invocation_id);
    assert.ok(call, `${line.id} does not wait for ${text}`);
    call.isOpen = false;
    this.#traces.ended(line, call, message);
    if (!message.error) {
      assert.equal(call.said, call.mark, `call ${call.mark} ended with what nobody asked said`);
      assert.ok(text.endsWith(`"result":${oddValue(call.mark)}}`), `result changed: ${text}`);
      assert.equal(call.progressHeard, line.wantsProgress ? call.progress : 0);
      return;
    }
    assert.ok(this.#explains(call, message.error.code), `call ${call.mark}: why ${text}`);
  }

  /** A caller hears of a running call. */
  news(line: SimLine, message: InvocationProgress): void {
    const call = this.#openOf(line, message.invocation_id);
    assert.ok(call && line.wantsProgress, `${line.id} does not want ${message.invocation_id}`);
    assert.equal(message.data, ++call.progressHeard, "news came out of order");
  }

  /** A callee hears that nobody waits any more. */
  cancelled(line: SimLine, { invocation_id, reason }: CancelInvocation): void {
    const call = [...this.all.values()].find(({ engineId }) => engineId === invocation_id);
    assert.ok(call && call.callee === line && line.wantsCancel, `${line.id}: why cancel?`);
    const isLate = call.endsAt <= this.#clock.now();
    if (reason === "timeout") return assert.ok(isLate, "a call was given up before its time");
    if (reason === "caller_disconnected") return assert.ok(call.caller.isGone);
    assert.ok(call.isCancelled, "a call was cancelled and nobody asked for it");
  }

  /** Whether a call that is about to be made has to wait until somebody can run it. */
  #isHeld({ caller, target }: SimRequest): boolean {
    const isOwn = this.#mayRunOwn(caller, target) && !this.#isFull(caller);
    return this.#ready(target).length === 0 && !isOwn && this.#offers.isExpected(target);
  }

  #assertChosen(line: SimLine, call: SimCall): void {
    assert.ok(!this.#isFull(line), `${line.id} got a call beyond its bound`);
    const ready = this.#ready(call.target);
    if (line.isDraining) {
      const isOwn = line === call.caller && this.#mayRunOwn(line, call.target);
      return assert.ok(isOwn && ready.length === 0, `${line.id} drains and got ${call.mark}`);
    }
    assert.ok(ready.includes(line), `${line.id} does not offer ${call.target}`);
    const load = this.runningAt(line).length;
    for (const other of ready) {
      const isFreer = !this.#isFull(other) && this.runningAt(other).length < load;
      assert.ok(!isFreer, `${line.id} got a call for which ${other.id} had more room`);
    }
  }

  /** A held call starts in its turn; void ones before it may have been refused. */
  #assertFirst(call: SimCall): void {
    const [first] = this.#held(call.target).filter(({ id }) => id !== undefined);
    if (call.id !== undefined) assert.equal(first, call, `call ${call.mark} went ahead of others`);
  }

  #assertFull(target: string): void {
    const isFull = this.#ready(target).every((line) => this.#isFull(line));
    assert.ok(isFull, `a void call of ${target} was dropped though somebody had room`);
  }

  /** Whether something that happened can end a call like this. */
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
          ready.every((line) => this.#isFull(line));
      default:
        return false;
    }
  }

  /** Calls that wait, for a function or for any, in the order they came. */
  #held(target?: string): SimCall[] {
    return this.open().filter((call) =>
      call.isHeld && (target === undefined || call.target === target)
    );
  }

  /** Who may get calls of a function. */
  #ready(target: string): SimLine[] {
    return this.#offers.replicas(target).filter(({ isDraining }) => !isDraining);
  }

  /** Whether a line that drains may run what it calls itself: it runs a call that needs it. */
  #mayRunOwn(line: SimLine, target: string): boolean {
    return line.isDraining && this.runningAt(line).length > 0 &&
      this.#offers.replicas(target).includes(line);
  }

  #openOf(line: SimLine, id: string): SimCall | undefined {
    return this.open().find((call) => call.caller === line && call.id === id);
  }

  #isFull(line: SimLine): boolean {
    return line.isStalled || this.runningAt(line).length >= SIM_CALLS_MAX;
  }
}

/** When a call ends, or stops waiting, whatever else happens. */
function lastMomentOf({ isHeld, madeAt, endsAt }: SimCall): number {
  return isHeld ? Math.min(endsAt, madeAt + CALL_PARK_MS) : endsAt;
}

/** What there is to call, with its namespace. */
export const TARGETS: readonly string[] = [
  "default a",
  "default b",
  "eu a",
  "default state::get",
  "default engine::x",
];

/** A line offers a function. */
export function register(world: SimWorld, line: SimLine, target: string): void {
  const [namespace, id] = target.split(" ") as [string, string];
  world.offer(line, target);
  const fields: [string, string][] = [["type", '"registerfunction"'], ["id", JSON.stringify(id)]];
  if (namespace !== "default") fields.push(["namespace", JSON.stringify(namespace)]);
  line.say(written(world.random, fields));
  world.calls.offered(target);
}

function callOf(world: SimWorld, line: SimLine, id: string | undefined, isVoid: boolean): void {
  const { random } = world;
  const target = random.pick(TARGETS);
  const [namespace, function_id] = target.split(" ") as [string, string];
  const timeout_ms = random.once(2) ? 1 + random.below(SIM_TIMEOUT_MS) : undefined;
  const waits = isVoid ? undefined : id;
  const traceparent = random.once(3) ? random.pick(SIM_TRACEPARENTS) : undefined;
  const baggage = random.once(4) ? "tenant=a,user=%22b%22" : undefined;
  const trace = { traceparent, baggage };
  const made = world.calls.make({ caller: line, id: waits, target, timeout_ms, ...trace });
  const fields: [string, string][] = [["type", '"invokefunction"']];
  if (id !== undefined) fields.push(["invocation_id", JSON.stringify(id)]);
  fields.push(["function_id", JSON.stringify(function_id)]);
  if (namespace !== "default") fields.push(["namespace", JSON.stringify(namespace)]);
  if (isVoid) fields.push(["action", '{"type":"void"}']);
  if (timeout_ms) fields.push(["timeout_ms", String(timeout_ms)]);
  if (traceparent !== undefined) fields.push(["traceparent", JSON.stringify(traceparent)]);
  if (baggage !== undefined) fields.push(["baggage", JSON.stringify(baggage)]);
  fields.push(["data", oddValue(made.mark)]);
  line.say(written(random, fields));
}

/** A line calls something under an id it does not use yet. */
export function call(world: SimWorld): void {
  const line = world.someLine();
  // Few ids, so that callers share them all the time.
  if (!line) return;
  const taken = new Set(
    world.calls.open().filter(({ caller }) => caller === line).map(({ id }) => id),
  );
  const free = ["i1", "i2", "i3", "AaAa", "BBBB", "AaBB"].filter((id) => !taken.has(id));
  if (free.length > 0) callOf(world, line, world.random.pick(free), false);
}

/** A line calls something and does not wait. */
export function callVoid(world: SimWorld): void {
  const line = world.someLine();
  if (!line) return;
  callOf(world, line, world.random.once(2) ? "i1" : undefined, true);
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

/** A call that somebody runs and can answer now. */
function running(world: SimWorld): (SimCall & { callee: SimLine }) | undefined {
  const calls = world.calls.open().filter(({ callee }) => callee && !callee.paused);
  return calls.length > 0 ? world.random.pick(calls) as SimCall & { callee: SimLine } : undefined;
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

/** Somebody answers what it was asked, perhaps more than once. */
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

/** Somebody has news of what it runs. */
export function tellNews(world: SimWorld): void {
  const made = running(world);
  if (!made) return;
  made.progress++;
  made.callee.say(JSON.stringify({
    type: "invocationprogress",
    invocation_id: made.engineId,
    data: made.progress,
  }));
}

/** Somebody answers in a way nobody can read. */
export function answerBroken(world: SimWorld): void {
  const made = running(world);
  if (!made) return;
  made.isBroken = true;
  if (made.id === undefined) made.isOpen = false;
  made.callee.say(`{"type":"invocationresult","invocation_id":"${made.engineId}","result":1}`);
}

/** Somebody who was not asked answers, tells news, cancels or judges. */
export function lie(world: SimWorld): void {
  const line = world.someLine();
  if (!line) return;
  const calls = [...world.calls.all.values()].filter(({ callee, isOpen }) =>
    callee !== line || !isOpen
  );
  const made = calls.length > 0 ? world.random.pick(calls) : undefined;
  if (made?.engineId) line.say(resultOf(world, made.engineId, oddValue("forged")));
  if (made?.engineId) {
    const invocation_id = made.engineId;
    line.say(JSON.stringify({ type: "invocationprogress", invocation_id, data: "forged" }));
    line.say(JSON.stringify({ type: "cancelinvocation", invocation_id }));
  }
  for (const trigger of world.triggers.all.values()) {
    if (world.triggers.serving(trigger.trigger_type) === line) continue;
    // An id may outlive its trigger where equal ones of others live on: then this is no lie.
    if (world.triggers.heldBy(line).has(trigger.id)) continue;
    line.say(JSON.stringify({
      type: "triggerregistrationresult",
      id: trigger.id,
      trigger_type: trigger.trigger_type,
      function_id: "a",
      error: { code: "no", message: "forged" },
    }));
    if (trigger.owner !== line) line.say(`{"type":"unregistertrigger","id":"${trigger.id}"}`);
  }
}

/** Somebody no longer waits. */
export function cancel(world: SimWorld): void {
  const open = world.calls.open().filter(({ caller, id }) => id !== undefined && !caller.paused);
  if (open.length === 0) return;
  const made = world.random.pick(open);
  made.isCancelled = true;
  const { caller, id } = made;
  caller.say(JSON.stringify({ type: "cancelinvocation", invocation_id: id, reason: "enough" }));
}
