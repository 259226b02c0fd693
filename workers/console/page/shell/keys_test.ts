/**
 * {@linkcode KeyChords}: single keys, leaders, fields that somebody writes into.
 *
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
    more: { command?: boolean; writing?: boolean; wait?: number } = {},
  ) => {
    at_ms += more.wait ?? 1;
    const { command = false, writing = false } = more;
    return chords.press({ key, command, writing, at_ms });
  };
  return { ran, press };
}

Deno.test("a single key runs what it is bound to, others nothing", () => {
  const { ran, press } = setup();

  assert.deepEqual(["?", "x", "/"].map((key) => press(key)), [true, false, true]);
  assert.deepEqual(ran, ["?", "/"]);
});

Deno.test("a leader waits for its second key", () => {
  const { ran, press } = setup();

  assert.deepEqual([press("g"), press("w"), press("w")], [true, true, false]);
  assert.deepEqual(ran, ["g w"]);
});

Deno.test("a second key that comes late or fits nothing counts by itself", () => {
  const { ran, press } = setup();

  press("g");
  assert.equal(press("w", { wait: CHORD_MS + 1 }), false);
  press("g");
  press("?");

  assert.deepEqual(ran, ["?"]);
});

Deno.test("two leaders in a row begin anew", () => {
  const { ran, press } = setup();

  press("g");
  press("g");
  press("l");

  assert.deepEqual(ran, ["g l"]);
});

Deno.test("while somebody writes only keys with Ctrl count", () => {
  const { ran, press } = setup();

  assert.equal(press("?", { writing: true }), false);
  assert.equal(press("g", { writing: true }), false);
  assert.equal(press("w"), false);
  assert.equal(press("K", { writing: true, command: true }), true);

  assert.deepEqual(ran, ["Ctrl+k"]);
});

Deno.test("a key with Ctrl is not the key without", () => {
  const { ran, press } = setup();

  assert.equal(press("g", { command: true }), false);
  assert.equal(press("w"), false);

  assert.deepEqual(ran, []);
});
