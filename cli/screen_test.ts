import assert from "node:assert/strict";
import { FakeScreen } from "../tests/fakes/fake_screen.ts";
import { keyboardAt, LiveLines } from "./screen.ts";

function setup(columns = 40, rows = 10, hasColour = true) {
  const screen = new FakeScreen(columns, rows);
  return { screen, lines: new LiveLines(screen, hasColour) };
}

Deno.test("lines are rewritten in place, below what was there", () => {
  const { screen, lines } = setup();
  screen.print("$ engine worker add");

  lines.draw([{ text: "one  starting" }, { text: "two  waiting" }]);
  lines.draw([{ text: "one  ready" }, { text: "two  starting" }]);

  assert.equal(screen.text, "$ engine worker add\none  ready\ntwo  starting");
  assert.ok(screen.isRestored);
});

Deno.test("fewer lines than before leave none behind", () => {
  const { screen, lines } = setup();

  lines.draw([{ text: "one" }, { text: "two" }, { text: "three" }]);
  lines.draw([{ text: "only" }]);

  assert.equal(screen.text, "only");
  assert.ok(screen.isRestored);
});

Deno.test("lines that stay stand above those that are rewritten", () => {
  const { screen, lines } = setup();

  lines.draw([{ text: "a 1" }]);
  lines.above(["stays", "also \x1b[31mstays"]);
  lines.draw([{ text: "a 2" }]);
  lines.draw([{ text: "a 3" }]);

  assert.equal(screen.text, "stays\nalso stays\na 3");
  assert.ok(screen.isRestored);
});

Deno.test("a line is as long as the terminal is wide at most", () => {
  const { screen, lines } = setup(20);

  lines.draw([{ text: "x".repeat(30) }, { text: "name  starting", dimmed: "a long line" }]);

  assert.equal(screen.text, `${"x".repeat(18)}…\nname  starting`);
});

Deno.test("the end of a line is dimmed and cut to the room there is", () => {
  const { screen, lines } = setup(30);

  lines.draw([{ text: "name  starting", dimmed: "Collecting numpy" }]);

  assert.equal(screen.text, "name  starting  Collecting n…");
  assert.equal(screen.dimmed, "Collecting n…");
  assert.ok(screen.isRestored);
});

Deno.test("without colour nothing is dimmed", () => {
  const { screen, lines } = setup(40, 10, false);

  lines.draw([{ text: "name", dimmed: "printed" }]);

  assert.equal(screen.text, "name  printed");
  assert.equal(screen.dimmed, "");
});

Deno.test("what a worker printed does not steer the terminal", () => {
  const { screen, lines } = setup();

  lines.draw([{ text: "name", dimmed: "50 %\r\x1b[2J\x1b[H100\t%\x07 done\nmore" }]);

  assert.equal(screen.text, "name  50 %100 % done more");
});

Deno.test("more lines than the terminal has are counted, and nothing scrolls away", () => {
  const { screen, lines } = setup(40, 4);
  const texts = ["a", "b", "c", "d", "e"];

  lines.draw(texts.map((text) => ({ text: `${text} 1` })));
  lines.draw(texts.map((text) => ({ text: `${text} 2` })));

  assert.equal(screen.text, "a 2\nb 2\n… and 3 more");
  assert.ok(screen.isRestored);
});

Deno.test("a terminal that becomes narrower is followed", () => {
  const { screen, lines } = setup(40, 10);

  lines.draw([{ text: "a long line of text" }]);
  screen.resize(10, 10);
  lines.draw([{ text: "a long line of text" }]);

  assert.equal(screen.text, "a long l…");
});

Deno.test("lines that did not change are not written again", () => {
  const { screen, lines } = setup();

  lines.draw([{ text: "one" }]);
  lines.draw([{ text: "one" }]);

  assert.equal(screen.frames.length, 1);
});

/** An input whose reads end when a test types. */
function setupOfKeyboard(isTerminal = true) {
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
  const { keys, type } = setupOfKeyboard();
  await type("q");
  await type("ab");

  assert.deepEqual(keys, ["q", "a", "b"]);
});

Deno.test("Sequences such as arrow keys are none of the keys", async () => {
  const { keys, type } = setupOfKeyboard();
  await type("\x1b[A");
  await type("q");

  assert.deepEqual(keys, ["q"]);
});

Deno.test("The terminal is left as it was, once, and keys are heard no more", async () => {
  const { keys, raw, stop, type } = setupOfKeyboard();
  stop!();
  stop!();
  await type("q");

  assert.deepEqual(raw, [true, false]);
  assert.deepEqual(keys, []);
});

Deno.test("An input that ends is no failure", async () => {
  const { keys, type } = setupOfKeyboard();
  await type(null);

  assert.deepEqual(keys, []);
});

Deno.test("An input that is no terminal has no keys", () => {
  const { raw, stop } = setupOfKeyboard(false);

  assert.equal(stop, undefined);
  assert.deepEqual(raw, []);
});
