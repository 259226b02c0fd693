/**
 * Triggers whose type nobody provides: who looks after the engine hears of it, the worker does not.
 *
 * @module
 */
import assert from "node:assert/strict";
import { WARNINGS_MAX, WARNINGS_WINDOW_MS } from "../../sdk/typescript/wire/limits.ts";
import type { EngineEvent } from "../ports/events.ts";
import { fakeRouter } from "../../tests/fakes/fake_router.ts";

const TYPE = { type: "registertriggertype", id: "file-watch", description: "Files" };
const TRIGGER = {
  type: "registertrigger",
  id: "t1",
  trigger_type: "file-watch",
  function_id: "docs::index",
  config: { dir: "inbox" },
};

function parkedOf(events: readonly EngineEvent[]): EngineEvent[] {
  return events.filter((event) => event.type === "trigger_parked");
}

Deno.test("a trigger that waits for its type is reported, and nothing is sent to its worker", () => {
  const { open, events } = fakeRouter();
  const originator = open();

  originator.say(TRIGGER);

  assert.deepEqual(parkedOf(events), [{
    type: "trigger_parked",
    worker_id: originator.worker_id,
    trigger_id: "t1",
    trigger_type: "file-watch",
    function_id: "docs::index",
  }]);
  assert.deepEqual(originator.connection.take(), []);
});

Deno.test("a trigger with a provider is not reported as waiting", () => {
  const { open, events } = fakeRouter();
  open().say(TYPE);

  open().say(TRIGGER);

  assert.deepEqual(parkedOf(events), []);
});

Deno.test("a trigger is reported as waiting when the last provider of its type has left", () => {
  const { open, events } = fakeRouter();
  const [first, second, originator] = [open(), open(), open()];
  first.say(TYPE);
  second.say(TYPE);
  originator.say(TRIGGER);

  second.say({ type: "unregistertriggertype", id: "file-watch" });
  assert.deepEqual(parkedOf(events), []);
  first.cut();

  assert.deepEqual(parkedOf(events).length, 1);
  assert.deepEqual(originator.connection.take(), []);
});

Deno.test("triggers that wait because the engine goes down are no news", () => {
  const { open, events, router } = fakeRouter();
  const provider = open();
  provider.say(TYPE);
  open().say(TRIGGER);

  router.drain();
  provider.cut();

  assert.deepEqual(parkedOf(events), []);
});

Deno.test("a line has so many waiting triggers reported and no more, and keeps its warnings", () => {
  const { open, events, clock } = fakeRouter();
  const originator = open();
  const ask = (id: string) => originator.say({ ...TRIGGER, id });

  for (let i = 0; i < WARNINGS_MAX + 10; i++) ask(`t${i}`);
  assert.equal(parkedOf(events).length, WARNINGS_MAX);
  originator.say({ type: "invokefunction", function_id: "a::missing", data: null });
  assert.equal(events.at(-1)?.type, "warning");
  clock.tick(WARNINGS_WINDOW_MS);
  ask("later");

  assert.equal(parkedOf(events).length, WARNINGS_MAX + 1);
});
