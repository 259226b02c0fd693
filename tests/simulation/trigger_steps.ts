/**
 * What originators and providers of triggers do in the simulation.
 *
 * Each step tells the world first, then the engine.
 *
 * @module
 */
import { type SimLine, written } from "./line.ts";
import type { SimWorld } from "./world.ts";

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
