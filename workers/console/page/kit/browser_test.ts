/**
 * @module
 */
import assert from "node:assert/strict";
import { type BrowserStorage, openSession, Preferences, withoutKey } from "./browser.ts";

function tabStorage(kept = "") {
  return { getItem: () => kept, setItem: (_name: string, value: string) => kept = value };
}

Deno.test("Session uses the page's token when none is stored", () => {
  const session = openSession({ inPage: "guest", withKey: false, storage: tabStorage() });

  assert.equal(session.token(), "guest");
});

Deno.test("Session stores the token of a page that was opened with a key", () => {
  const tab = tabStorage();

  openSession({ inPage: "operator", withKey: true, storage: tab });
  const next = openSession({ inPage: "guest", withKey: false, storage: tab });

  assert.equal(next.token(), "operator");
});

Deno.test("Session.dropStored() goes back to the page's own token, once", () => {
  const tab = tabStorage("old");
  const session = openSession({ inPage: "guest", withKey: false, storage: tab });

  assert.equal(session.dropStored(), true);
  assert.equal(session.token(), "guest");
  assert.equal(session.dropStored(), false);
  assert.equal(tab.getItem(), "");
});

Deno.test("Session.dropStored() keeps a typed token when the page has none", () => {
  const session = openSession({ inPage: "", withKey: false, storage: tabStorage() });
  assert.equal(session.token(), "");

  session.setToken("wrong");

  assert.equal(session.dropStored(), false);
  assert.equal(session.token(), "wrong");
});

Deno.test("Session takes a token without storage", () => {
  const fail = () => {
    throw new Error("insecure");
  };
  const session = openSession({
    inPage: "",
    withKey: false,
    storage: { getItem: fail, setItem: fail },
  });

  session.setToken("typed");

  assert.equal(session.token(), "typed");
});

for (
  const [address, clean] of [
    ["/?key=abc", "/"],
    ["/workers?tab=logs&key=abc", "/workers?tab=logs"],
    ["/workers", "/workers"],
  ] as const
) {
  Deno.test(`${address} without its key is ${clean}`, () =>
    assert.equal(withoutKey(address), clean));
}

function memoryStorage(): BrowserStorage & { readonly kept: Map<string, string> } {
  const kept = new Map<string, string>();
  return {
    kept,
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => kept.set(name, value),
  };
}

Deno.test("Preferences store the chosen theme", () => {
  const store = memoryStorage();
  const preferences = new Preferences(store);
  assert.equal(preferences.theme.value, "system");

  preferences.setTheme("dark");

  assert.equal(preferences.theme.value, "dark");
  assert.equal(new Preferences(store).theme.value, "dark");
});

Deno.test("Preferences ignore an unknown stored theme", () => {
  const store = memoryStorage();
  store.kept.set("engine-console.theme", "<script>");

  assert.equal(new Preferences(store).theme.value, "system");
});

Deno.test("Preferences store texts by name", () => {
  const preferences = new Preferences(memoryStorage());

  preferences.write("functions.closed", "a");

  assert.equal(preferences.read("functions.closed"), "a");
  assert.equal(preferences.read("other"), null);
});

Deno.test("Preferences hold values without storage", () => {
  const fail = () => {
    throw new Error("The operation is insecure");
  };
  const preferences = new Preferences({ getItem: fail, setItem: fail });

  preferences.setTheme("light");

  assert.equal(preferences.theme.value, "light");
  assert.equal(preferences.read("theme"), null);
});
