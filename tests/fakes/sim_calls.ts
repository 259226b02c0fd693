/**
 * What may happen to calls, as somebody knows it who sees all lines but not the engine.
 *
 * Holds promises 1, 2, 3, 7, 8 and 9: each message towards a line is explained by what happened
 * before, or the simulation fails.
 *
 * @module
 */
import assert from "node:assert/strict";
import type {
  CancelInvocation,
  InvocationProgress,
  InvocationResult,
  InvokeFunction,
} from "../../sdk/typescript/protocol.ts";
import type { FakeClock } from "./fake_clock.ts";
import { markOf, oddValue, type SimLine } from "./sim_line.ts";

/** Calls that one worker of the simulation may have unanswered. */
export const SIM_CALLS_MAX = 3;

/** One call, from before it was made. */
export interface SimCall {
  readonly mark: string;
  readonly caller: SimLine;
  /** The caller's id; `undefined`: it does not wait. */
  readonly id: string | undefined;
  readonly target: string;
  readonly endsAt: number;
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

/** All calls of a simulated world. */
export class SimCalls {
  readonly all: Map<string, SimCall> = new Map();
  readonly #clock: FakeClock;
  readonly #replicas: (target: string) => readonly SimLine[];
  #marks = 0;

  /** Makes one; `replicas` says who offers a function now. */
  constructor(clock: FakeClock, replicas: (target: string) => readonly SimLine[]) {
    this.#clock = clock;
    this.#replicas = replicas;
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
  make(caller: SimLine, id: string | undefined, target: string, timeoutMs: number): SimCall {
    const call: SimCall = {
      mark: `m${++this.#marks}`,
      caller,
      id,
      target,
      endsAt: this.#clock.now() + timeoutMs,
      callee: undefined,
      engineId: undefined,
      said: undefined,
      isCancelled: false,
      isBroken: false,
      isOpen: id !== undefined,
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
      if (call.endsAt > this.#clock.now()) continue;
      assert.equal(call.id, undefined, `call ${call.mark} outlived its deadline`);
      call.isOpen = false;
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
    const replicas = this.#replicas(call.target);
    assert.ok(replicas.includes(line), `${line.id} does not offer ${call.target}`);
    assert.ok(!this.#isFull(line), `${line.id} got a call beyond its bound`);
    const load = this.runningAt(line).length;
    for (const other of replicas) {
      const isFreer = !this.#isFull(other) && this.runningAt(other).length < load;
      assert.ok(!isFreer, `${line.id} got a call for which ${other.id} had more room`);
    }
    call.callee = line;
    call.engineId = message.invocation_id;
    call.isOpen = true;
  }

  /** A caller is told how a call ended. */
  ended(line: SimLine, message: InvocationResult, text: string): void {
    const call = this.#openOf(line, message.invocation_id);
    assert.ok(call, `${line.id} does not wait for ${text}`);
    call.isOpen = false;
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

  /** Whether something that happened can end a call like this. */
  #explains(call: SimCall, code: string): boolean {
    const replicas = this.#replicas(call.target);
    switch (code) {
      case "timeout":
        return call.callee !== undefined && call.endsAt === this.#clock.now();
      case "cancelled":
        return call.isCancelled;
      case "invocation_stopped":
        return call.callee?.isGone === true;
      case "bad_message":
        return call.isBroken;
      case "function_not_found":
        return call.callee === undefined && replicas.length === 0;
      case "overloaded":
        return call.callee === undefined && replicas.length > 0 &&
          replicas.every((line) => this.#isFull(line));
      default:
        return false;
    }
  }

  #openOf(line: SimLine, id: string): SimCall | undefined {
    return this.open().find((call) => call.caller === line && call.id === id);
  }

  #isFull(line: SimLine): boolean {
    return line.isStalled || this.runningAt(line).length >= SIM_CALLS_MAX;
  }
}
