import assert from "node:assert/strict";
import { FakeScreen } from "../tests/fakes/fake_terminal.ts";
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

Deno.test("permanent lines stand above those that are rewritten", () => {
  const { screen, lines } = setup();

  lines.draw([{ text: "a 1" }]);
  lines.above(["stays", "also \x1b[31mstays"]);
  lines.draw([{ text: "a 2" }]);
  lines.draw([{ text: "a 3" }]);

  assert.equal(screen.text, "stays\nalso stays\na 3");
  assert.ok(screen.isRestored);
});

Deno.test("a line is at most as long as the terminal is wide", () => {
  const { screen, lines } = setup(20);

  lines.draw([{ text: "x".repeat(30) }, { text: "name  starting", dimmed: "a long line" }]);

  assert.equal(screen.text, `${"x".repeat(18)}…\nname  starting`);
});

Deno.test("the end of a line is dimmed and cut to the width that is left", () => {
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

Deno.test("the output of a worker does not control the terminal", () => {
  const { screen, lines } = setup();

  lines.draw([{ text: "name", dimmed: "50 %\r\x1b[2J\x1b[H100\t%\x07 done\nmore" }]);

  assert.equal(screen.text, "name  50 %100 % done more");
});

Deno.test("lines that do not fit are counted, and nothing scrolls away", () => {
  const { screen, lines } = setup(40, 4);
  const texts = ["a", "b", "c", "d", "e"];

  lines.draw(texts.map((text) => ({ text: `${text} 1` })));
  lines.draw(texts.map((text) => ({ text: `${text} 2` })));

  assert.equal(screen.text, "a 2\nb 2\n… and 3 more");
  assert.ok(screen.isRestored);
});

Deno.test("lines are cut to the new width of a terminal", () => {
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

/** A keyboard whose input is typed by a test. */
function setupKeyboard(isTerminal = true) {
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
  const { keys, type } = setupKeyboard();
  await type("q");
  await type("ab");

  assert.deepEqual(keys, ["q", "a", "b"]);
});

Deno.test("Escape sequences such as arrow keys are ignored", async () => {
  const { keys, type } = setupKeyboard();
  await type("\x1b[A");
  await type("q");

  assert.deepEqual(keys, ["q"]);
});

Deno.test("Stopping restores the terminal once, and no more keys are reported", async () => {
  const { keys, raw, stop, type } = setupKeyboard();
  stop!();
  stop!();
  await type("q");

  assert.deepEqual(raw, [true, false]);
  assert.deepEqual(keys, []);
});

Deno.test("The end of the input is not a failure", async () => {
  const { keys, type } = setupKeyboard();
  await type(null);

  assert.deepEqual(keys, []);
});

Deno.test("An input that is no terminal has no keys", () => {
  const { raw, stop } = setupKeyboard(false);

  assert.equal(stop, undefined);
  assert.deepEqual(raw, []);
});
