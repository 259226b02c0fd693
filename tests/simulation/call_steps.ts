/**
 * What callers and callees do in the simulation.
 *
 * Each step tells the world first, then the engine.
 *
 * @module
 */
import type { SimCall } from "./calls.ts";
import { oddValue, type SimLine, written } from "./line.ts";
import { SIM_TRACEPARENTS } from "./traces.ts";
import { SIM_TIMEOUT_MS, type SimWorld } from "./world.ts";

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
