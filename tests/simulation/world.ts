/**
 * A router under a random but repeatable life.
 *
 * Workers come, offer, call, answer, lie, stall, cancel, vanish and come back; time passes. The
 * world learns of each step before the engine does, so that whatever follows can be checked on
 * the spot.
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

/** Time-out of calls that name none: longer than any may wait to start. */
export const SIM_TIMEOUT_MS = 8_000;

/** Everything there is. */
export class SimWorld {
  readonly clock: FakeClock = new FakeClock();
  readonly random: Random;
  readonly router: Router;
  readonly traces: SimTraces;
  readonly calls: SimCalls;
  readonly triggers: SimTriggers = new SimTriggers();
  readonly handovers: SimHandovers = new SimHandovers();
  /** Lines that are not over. */
  lines: SimLine[] = [];
  /** Lines that are over; what they still say must change nothing. */
  readonly ghosts: SimLine[] = [];
  /** Who offers a function, the newest last. */
  readonly offers: Map<string, SimLine[]> = new Map();
  /** Called when the engine reports something, from within its turn. */
  onEvent: () => void = () => {};
  #ids = 0;

  /** Makes an empty world, whose calls are recorded or not. */
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

  /** A line that the engine listens to; `undefined` when there is none. */
  someLine(): SimLine | undefined {
    const lines = this.lines.filter(({ paused }) => !paused);
    return lines.length > 0 ? this.random.pick(lines) : undefined;
  }

  /** A line opens; `before` is said first of all. */
  arrive(builtin: boolean, before?: string): SimLine {
    const line = new SimLine(this.name(builtin ? "own" : "w"), builtin, this.#hear.bind(this));
    line.canPause = !this.random.once(3);
    const info = { address: null, launch_id: null, builtin: builtin ? "engine-sim" : null };
    line.events = this.router.open(line, info);
    this.lines.push(line);
    assert.notEqual(line.worker_id, "", "a line is greeted at once");
    if (before !== undefined) line.say(before);
    return line;
  }

  /** A line is over, as far as the world knows; the engine is still to be told. */
  bury(line: SimLine): void {
    line.isGone = true;
    this.lines = this.lines.filter((other) => other !== line);
    this.ghosts.push(line);
    for (const [target, replicas] of this.offers) {
      this.#setOffers(target, replicas.filter((other) => other !== line));
    }
    this.calls.forget(line);
    this.triggers.forget(line, this.handovers.keeps(line));
  }

  /** A line is about to offer a function. */
  offer(line: SimLine, target: string): void {
    const replicas = this.offers.get(target) ?? [];
    const isOwn = replicas.some((other) => other.builtin);
    if ((isOwn || target.includes(" engine::")) && !line.builtin) return;
    const kept = replicas.filter((other) => other !== line && (other.builtin || !line.builtin));
    this.#setOffers(target, [...kept, line]);
    this.handovers.offered(line, target);
  }

  /** A line is about to take an offer back. */
  retract(line: SimLine, target: string): void {
    this.#setOffers(target, (this.offers.get(target) ?? []).filter((other) => other !== line));
  }

  /** What the engine shows is what happened. */
  check(): void {
    const { directory } = this.router;
    const shown = directory.functions().filter(({ worker_ids }) => worker_ids.length > 0)
      .map(({ namespace, function_id, worker_ids }) => [`${namespace} ${function_id}`, worker_ids]);
    const expected = [...this.offers]
      .map(([target, lines]) => [target, lines.map(({ worker_id }) => worker_id)]);
    assert.deepEqual(Object.fromEntries(shown), Object.fromEntries(expected));
    assert.deepEqual(
      directory.workers().map(({ id, status, active_invocations }) =>
        `${id} ${status} ${active_invocations}`
      ).sort(),
      this.lines.map((line) => {
        const status = line.isDraining ? "draining" : "connected";
        return `${line.worker_id} ${status} ${this.calls.runningAt(line).length}`;
      }).sort(),
    );
    assert.deepEqual(
      directory.triggers().map(({ id, state }) => `${id} ${state}`).sort(),
      [...this.triggers.all.values()].map(({ id, trigger_type, isRefused }) => {
        const state = isRefused ? "refused" : "offered";
        return `${id} ${this.triggers.serving(trigger_type) ? state : "parked"}`;
      }).sort(),
    );
    this.triggers.check(this.lines);
    this.handovers.check((line) => this.calls.runningAt(line).length);
    this.calls.check();
    assert.equal(this.router.runningCalls, this.calls.open().length);
    this.traces.check(this.calls.open());
  }

  #setOffers(target: string, lines: SimLine[]): void {
    if (lines.length > 0) this.offers.set(target, lines);
    else this.offers.delete(target);
  }

  #hear(line: SimLine, message: EngineMessage, text: string): void {
    if (line.isStalled) line.queuedBytes += SEND_AHEAD_BYTES;
    switch (message.type) {
      case "workerregistered":
        line.worker_id = message.worker_id;
        line.reattach_token = message.reattach_token;
        return;
      case "invokefunction":
        return this.calls.handed(line, message, text);
      case "invocationresult":
        return this.calls.ended(line, message, text);
      case "invocationprogress":
        return this.calls.news(line, message);
      case "cancelinvocation":
        return this.calls.cancelled(line, message);
      case "registertrigger":
        return this.triggers.given(line, message);
      case "unregistertrigger":
        return this.triggers.taken(line, message);
      case "triggerregistrationresult":
        return assert.equal(this.triggers.all.get(message.id)?.owner, line);
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

/** What a simulated worker knows of itself. */
export class SimLine extends FakeConnection {
  readonly builtin: boolean;
  worker_id = "";
  reattach_token = "";
  /** Over, as far as the world knows; the engine must not send any more. */
  isGone = false;
  /** Relieved of its calls; stays so to its end. */
  isDraining = false;
  wantsCancel = false;
  wantsProgress = false;
  /** Does not read: what it is sent piles up. */
  isStalled = false;
  /** Frames that came. */
  received: { message: EngineMessage; text: string }[] = [];
  readonly #hear: (line: SimLine, message: EngineMessage, text: string) => void;
  #events: ConnectionEvents | undefined;

  /** Makes one; `hear` gets each message when it comes. */
  constructor(
    id: string,
    builtin: boolean,
    hear: (line: SimLine, message: EngineMessage, text: string) => void,
  ) {
    super(id);
    this.builtin = builtin;
    this.#hear = hear;
  }

  /** What the line reports to, once it is known. */
  set events(events: ConnectionEvents) {
    this.#events = events;
  }

  override send(text: string): void {
    assert.ok(!this.isGone, `${this.id} was sent ${text} after its end`);
    assert.equal(this.closing, undefined, `${this.id} was sent something after it was closed`);
    this.#hear(this, JSON.parse(text) as EngineMessage, text);
  }

  /** Says something, if the engine reads it. */
  say(text: string): void {
    if (!this.paused) this.#events?.text(text);
  }

  /** Is lost; the world must know before. */
  lose(): void {
    assert.ok(this.isGone);
    this.#events?.closed(1006, "");
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
 * A message as somebody might write it: in canonical order, with all behind its ids in any order,
 * or with its keys in any order, white space and names nobody knows. Values are JSON texts.
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

/** A JSON text that no two parsers and writers would leave alone, and a mark to know it by. */
export function oddValue(mark: string): string {
  return `{"mark":"${mark}", "n":12345678901234567890,"f":1.50,"e":[ ],"x":null}`;
}

/** The mark in such a value. */
export function markOf(value: Json | undefined): string {
  return String((value as Record<string, Json> | undefined)?.mark);
}
