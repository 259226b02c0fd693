import assert from "node:assert/strict";
import { keyboardAt } from "./keyboard.ts";

/** An input whose reads end when a test types. */
function setup(isTerminal = true) {
  const raw: boolean[] = [];
  let wake: ((text: string | null) => void) | undefined;
  const input = {
    isTerminal: () => isTerminal,
    setRaw: (isRaw: boolean) => void raw.push(isRaw),
    read: async (buffer: Uint8Array) => {
      const text = await new Promise<string | null>((resolve) => wake = resolve);
      return text === null ? null : new TextEncoder().encodeInto(text, buffer).written;
    },
  };
  const keys: string[] = [];
  const stop = keyboardAt(input).listen((key) => keys.push(key));
  const type = async (text: string | null) => {
    wake!(text);
    for (let i = 0; i < 5; i++) await Promise.resolve();
  };
  return { raw, keys, stop, type };
}

Deno.test("Keys come one by one", async () => {
  const { keys, type } = setup();
  await type("q");
  await type("ab");

  assert.deepEqual(keys, ["q", "a", "b"]);
});

Deno.test("Sequences such as arrow keys are none of the keys", async () => {
  const { keys, type } = setup();
  await type("\x1b[A");
  await type("q");

  assert.deepEqual(keys, ["q"]);
});

Deno.test("The terminal is left as it was, once, and keys are heard no more", async () => {
  const { keys, raw, stop, type } = setup();
  stop!();
  stop!();
  await type("q");

  assert.deepEqual(raw, [true, false]);
  assert.deepEqual(keys, []);
});

Deno.test("An input that ends is no failure", async () => {
  const { keys, type } = setup();
  await type(null);

  assert.deepEqual(keys, []);
});

Deno.test("An input that is no terminal has no keys", () => {
  const { raw, stop } = setup(false);

  assert.equal(stop, undefined);
  assert.deepEqual(raw, []);
});
