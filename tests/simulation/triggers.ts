/**
 * Who should hold which trigger, as somebody knows it who sees all lines but not the engine.
 *
 * Holds promises 4 and 5 for triggers: after each step every trigger of a type that somebody
 * provides is held once, by the one who should. Triggers of a line that is over stay in here while
 * somebody is expected to register them again.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { RegisterTrigger, UnregisterTrigger } from "../../sdk/typescript/wire/protocol.ts";
import { type SimLine, type SimWorld, written } from "./world.ts";

/** One trigger. */
export interface SimTrigger {
  readonly id: string;
  readonly owner: SimLine;
  readonly trigger_type: string;
  /** What distinguishes it from others of the type. */
  readonly config: number;
  isRefused: boolean;
}

/** All triggers and types of a simulated world. */
export class SimTriggers {
  readonly all: Map<string, SimTrigger> = new Map();
  /** Providers of each type, the newest last. */
  readonly #providers = new Map<string, SimLine[]>();
  /** What each provider holds, by id. */
  readonly #held = new Map<SimLine, Map<string, RegisterTrigger>>();
  /** Ids of triggers whose lines are over, in the order of their ends. */
  #left: string[] = [];
  /** A trigger is being taken over, of which its provider must not hear. */
  #isSilent = false;

  /** Who serves a type now: the engine's own line if there is one, else the newest. */
  serving(type: string): SimLine | undefined {
    return this.#providers.get(type)?.at(-1);
  }

  /** What a provider holds. */
  heldBy(line: SimLine): Map<string, RegisterTrigger> {
    const known = this.#held.get(line) ?? new Map();
    this.#held.set(line, known);
    return known;
  }

  /** A trigger is about to be registered. */
  add(trigger: SimTrigger): void {
    const before = this.all.get(trigger.id);
    const isOwn = this.serving(trigger.trigger_type)?.builtin ?? false;
    const equals = this.#left.map((id) => this.all.get(id)!).filter((left) =>
      left.trigger_type === trigger.trigger_type && left.config === trigger.config
    );
    this.#isSilent = isOwn && equals.length > 0 && (!before || equals.includes(before)) ||
      before !== undefined && equals.includes(before) && !before.isRefused;
    this.#drop(trigger.id);
    this.all.set(trigger.id, trigger);
    // Types of workers know no equal triggers: the new one stands for the one that was left.
    if (!before && !isOwn && equals[0]) this.#drop(equals[0].id);
  }

  /** It was registered. */
  added(): void {
    this.#isSilent = false;
  }

  /** A line is about to say that it provides a type. */
  provide(line: SimLine, type: string): void {
    const providers = this.#providers.get(type) ?? [];
    const serving = providers.at(-1);
    if (serving?.builtin && !line.builtin) return;
    if (serving === line) this.#forgetHeld(line, type);
    this.#providers.set(type, [...providers.filter((other) => other !== line), line]);
    for (const trigger of this.all.values()) {
      if (trigger.trigger_type === type) trigger.isRefused = false;
    }
  }

  /** A line is about to take a type back. */
  withdraw(line: SimLine, type: string): void {
    const providers = this.#providers.get(type) ?? [];
    if (!providers.includes(line)) return;
    const wasServing = providers.at(-1) === line;
    if (wasServing) this.#forgetHeld(line, type);
    this.#providers.set(type, providers.filter((other) => other !== line));
    for (const trigger of this.all.values()) {
      if (wasServing && trigger.trigger_type === type) trigger.isRefused = false;
    }
  }

  /** A line is about to end; its triggers stay if it is expected back. */
  forget(line: SimLine, isKept: boolean): void {
    if (isKept) this.#left.push(...this.#of(line));
    else this.end(line);
    for (const type of this.#providers.keys()) this.withdraw(line, type);
    this.#held.delete(line);
  }

  /** The triggers of a line are about to end. */
  end(line: SimLine): void {
    for (const id of this.#of(line)) this.#drop(id);
  }

  /** A provider is given a trigger. */
  given(line: SimLine, message: RegisterTrigger): void {
    assert.ok(!this.#isSilent, `${line.id} was given ${message.id}, which was taken over`);
    const held = this.heldBy(line);
    assert.ok(!held.has(message.id), `${line.id} was given ${message.id} twice`);
    held.set(message.id, message);
  }

  /** A provider is to end a trigger. */
  taken(line: SimLine, { id }: UnregisterTrigger): void {
    assert.ok(!this.#isSilent, `${line.id} is to end ${id}, which was taken over`);
    assert.ok(this.heldBy(line).delete(id), `${line.id} is to end ${id}, which it has not`);
  }

  /** Everything is as it should be. */
  check(lines: readonly SimLine[]): void {
    for (const line of lines) {
      const expected: string[] = [];
      for (const type of this.#providers.keys()) {
        if (this.serving(type) === line) expected.push(...this.#expected(line, type));
      }
      const held = [...this.heldBy(line).values()]
        .map((message) => nameOf(line, message.id, message.trigger_type, message.config));
      assert.deepEqual(held.sort(), expected.sort(), `${line.id} holds the wrong triggers`);
    }
  }

  #of(line: SimLine): string[] {
    return [...this.all.values()].filter(({ owner }) => owner === line).map(({ id }) => id);
  }

  #expected(line: SimLine, type: string): string[] {
    const live = [...this.all.values()]
      .filter((trigger) => trigger.trigger_type === type && !trigger.isRefused);
    return [...new Set(live.map(({ id, config }) => nameOf(line, id, type, config)))];
  }

  #drop(id: string): void {
    this.all.delete(id);
    this.#left = this.#left.filter((other) => other !== id);
  }

  #forgetHeld(line: SimLine, type: string): void {
    for (const [id, { trigger_type }] of this.heldBy(line)) {
      if (trigger_type === type) this.heldBy(line).delete(id);
    }
  }
}

/** The engine's own lines hold equal triggers once, under the id of any of them. */
function nameOf({ builtin }: SimLine, id: string, type: string, config: unknown): string {
  return builtin ? `${type} ${config}` : `${type} ${config} ${id}`;
}

const TYPES = ["files", "mail"];

/** A line registers a trigger, under a new id or one it has. */
export function addTrigger(world: SimWorld): void {
  const owner = world.someLine();
  if (!owner || world.triggers.all.size > 20) return;
  const { random, triggers } = world;
  const config = random.below(3);
  const trigger_type = random.pick(TYPES);
  const own = [...triggers.all.values()].filter((trigger) => trigger.owner === owner);
  const id = own.length > 0 && random.once(3) ? random.pick(own).id : world.name("t");
  registerTrigger(world, owner, id, trigger_type, config);
}

/** A line registers a trigger, unless it has an equal one. */
export function registerTrigger(
  { random, triggers }: SimWorld,
  owner: SimLine,
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

/** A line ends one of its triggers. */
export function removeTrigger(world: SimWorld): void {
  const all = [...world.triggers.all.values()].filter(({ owner }) =>
    !owner.paused && !owner.isGone
  );
  if (all.length === 0) return;
  const { id, owner } = world.random.pick(all);
  world.triggers.all.delete(id);
  owner.say(JSON.stringify({ type: "unregistertrigger", id }));
}

/** A line provides a type. */
export function provide(world: SimWorld): void {
  const line = world.someLine();
  if (!line) return;
  const id = world.random.pick(TYPES);
  world.triggers.provide(line, id);
  line.say(JSON.stringify({ type: "registertriggertype", id, description: "" }));
}

/** A line no longer provides a type, perhaps one it never did. */
export function withdraw(world: SimWorld): void {
  const line = world.someLine();
  if (!line) return;
  const id = world.random.pick(TYPES);
  world.triggers.withdraw(line, id);
  line.say(JSON.stringify({ type: "unregistertriggertype", id }));
}

/** A provider says no to a trigger. */
export function refuseTrigger(world: SimWorld): void {
  const all = [...world.triggers.all.values()].filter((trigger) => {
    const line = world.triggers.serving(trigger.trigger_type);
    return line && !line.builtin && !line.paused && !trigger.isRefused;
  });
  if (all.length === 0) return;
  const trigger = world.random.pick(all);
  const { id, trigger_type } = trigger;
  const line = world.triggers.serving(trigger_type)!;
  trigger.isRefused = true;
  world.triggers.heldBy(line).delete(id);
  const error = { code: "no", message: "no" };
  const type = "triggerregistrationresult";
  line.say(JSON.stringify({ type, id, trigger_type, function_id: "a", error }));
}
