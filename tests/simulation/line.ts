/**
 * One worker of the simulation: its line, and what a bystander would know of it.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { ConnectionEvents } from "../../engine/ports/connection.ts";
import type { EngineMessage, Json } from "../../sdk/typescript/wire/protocol.ts";
import { FakeConnection } from "../fakes/fake_connection.ts";
import type { Random } from "../fakes/random.ts";

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
