/**
 * @module
 */
import assert from "node:assert/strict";
import { CHORD_MS, KeyChords } from "./keys.tsx";

function setup() {
  const ran: string[] = [];
  const bind = (name: string) => [name, () => ran.push(name)] as const;
  const names = ["?", "/", "Ctrl+k", "g w", "g l"];
  const chords = new KeyChords(Object.fromEntries(names.map(bind)) as Record<string, () => void>);
  let at_ms = 0;
  const press = (
    key: string,
    more: { isCommand?: boolean; isTyping?: boolean; wait?: number } = {},
  ) => {
    at_ms += more.wait ?? 1;
    const { isCommand = false, isTyping = false } = more;
    return chords.press({ key, isCommand, isTyping, at_ms });
  };
  return { ran, press };
}

Deno.test("KeyChords runs what a single key is bound to", () => {
  const { ran, press } = setup();

  assert.deepEqual(["?", "x", "/"].map((key) => press(key)), [true, false, true]);
  assert.deepEqual(ran, ["?", "/"]);
});

Deno.test("KeyChords waits for the second key after a leader", () => {
  const { ran, press } = setup();

  assert.deepEqual([press("g"), press("w"), press("w")], [true, true, false]);
  assert.deepEqual(ran, ["g w"]);
});

Deno.test("KeyChords takes a second key that is late or not bound by itself", () => {
  const { ran, press } = setup();

  press("g");
  assert.equal(press("w", { wait: CHORD_MS + 1 }), false);
  press("g");
  press("?");

  assert.deepEqual(ran, ["?"]);
});

Deno.test("KeyChords starts again with a second leader", () => {
  const { ran, press } = setup();

  press("g");
  press("g");
  press("l");

  assert.deepEqual(ran, ["g l"]);
});

Deno.test("KeyChords ignores keys typed into a field, except with Ctrl", () => {
  const { ran, press } = setup();

  assert.equal(press("?", { isTyping: true }), false);
  assert.equal(press("g", { isTyping: true }), false);
  assert.equal(press("w"), false);
  assert.equal(press("K", { isTyping: true, isCommand: true }), true);

  assert.deepEqual(ran, ["Ctrl+k"]);
});

Deno.test("KeyChords separates a key from the same key with Ctrl", () => {
  const { ran, press } = setup();

  assert.equal(press("g", { isCommand: true }), false);
  assert.equal(press("w"), false);

  assert.deepEqual(ran, []);
});
