/**
 * {@linkcode Preferences}: kept where the browser keeps something.
 *
 * @module
 */
import assert from "node:assert/strict";
import { type Keep, Preferences } from "./preferences.ts";

function keep(): Keep & { readonly kept: Map<string, string> } {
  const kept = new Map<string, string>();
  return {
    kept,
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => kept.set(name, value),
  };
}

Deno.test("a chosen theme is kept and read again", () => {
  const store = keep();
  const preferences = new Preferences(store);
  assert.equal(preferences.theme.value, "system");

  preferences.setTheme("dark");

  assert.equal(preferences.theme.value, "dark");
  assert.equal(new Preferences(store).theme.value, "dark");
});

Deno.test("a theme that is none is the system's", () => {
  const store = keep();
  store.kept.set("engine-console.theme", "<script>");

  assert.equal(new Preferences(store).theme.value, "system");
});

Deno.test("pages keep texts under names of their own", () => {
  const preferences = new Preferences(keep());

  preferences.write("functions.closed", "a");

  assert.equal(preferences.read("functions.closed"), "a");
  assert.equal(preferences.read("other"), null);
});

Deno.test("a browser that keeps nothing changes nothing else", () => {
  const fail = () => {
    throw new Error("The operation is insecure");
  };
  const preferences = new Preferences({ getItem: fail, setItem: fail });

  preferences.setTheme("light");

  assert.equal(preferences.theme.value, "light");
  assert.equal(preferences.read("theme"), null);
});
