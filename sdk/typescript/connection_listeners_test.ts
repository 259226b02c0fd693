import assert from "node:assert/strict";
import { ConnectionListeners } from "./connection_listeners.ts";
import type { EngineError } from "./wire/errors.ts";

function setup() {
  const errors: EngineError[] = [];
  return { errors, listeners: new ConnectionListeners((error) => errors.push(error)) };
}

Deno.test("ConnectionListeners tells each as often as it was added, until it is taken out", () => {
  const { listeners } = setup();
  const heard: string[] = [];
  const listener = (state: string): void => void heard.push(state);
  const remove = listeners.add(listener);
  listeners.add(listener);

  listeners.tell("connected");
  remove();
  remove();
  listeners.tell("reconnecting");

  assert.deepEqual(heard, ["connected", "connected", "reconnecting"]);
});

Deno.test("ConnectionListeners reports one that fails, and the others still hear", () => {
  const { errors, listeners } = setup();
  const heard: string[] = [];
  listeners.add(() => {
    throw new Error("broken");
  });
  listeners.add((state) => heard.push(state));

  listeners.tell("failed");

  assert.deepEqual(heard, ["failed"]);
  const [error] = errors;
  assert.match(error!.message, /A listener for the connection state failed: .*broken/);
});

Deno.test("ConnectionListeners refuses what cannot be called", () => {
  const { listeners } = setup();

  assert.throws(() => listeners.add("x" as never), { code: "INVALID_ARGUMENTS" });
});
