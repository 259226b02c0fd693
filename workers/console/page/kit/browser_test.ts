/**
 * The token of a tab: in the page, with a key, typed in, refused.
 *
 * @module
 */
import assert from "node:assert/strict";
import { type Keep, openSession, Preferences, withoutKey } from "./browser.ts";

function keep(kept = "") {
  return { getItem: () => kept, setItem: (_name: string, value: string) => kept = value };
}

Deno.test("the page's own token is used when nothing is kept", () => {
  const session = openSession({ inPage: "guest", withKey: false, keep: keep() });

  assert.equal(session.token(), "guest");
});

Deno.test("the token of a page with a key is kept for the pages after it", () => {
  const tab = keep();

  openSession({ inPage: "operator", withKey: true, keep: tab });
  const next = openSession({ inPage: "guest", withKey: false, keep: tab });

  assert.equal(next.token(), "operator");
});

Deno.test("a kept token that is refused makes way for the page's own, once", () => {
  const tab = keep("old");
  const session = openSession({ inPage: "guest", withKey: false, keep: tab });

  assert.equal(session.dropKept(), true);
  assert.equal(session.token(), "guest");
  assert.equal(session.dropKept(), false);
  assert.equal(tab.getItem(), "");
});

Deno.test("a typed-in token that is refused stays, for there is no other", () => {
  const session = openSession({ inPage: "", withKey: false, keep: keep() });
  assert.equal(session.token(), "");

  session.setToken("wrong");

  assert.equal(session.dropKept(), false);
  assert.equal(session.token(), "wrong");
});

Deno.test("a browser that keeps nothing still takes a token", () => {
  const fail = () => {
    throw new Error("insecure");
  };
  const session = openSession({
    inPage: "",
    withKey: false,
    keep: { getItem: fail, setItem: fail },
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

function keepOfPreferences(): Keep & { readonly kept: Map<string, string> } {
  const kept = new Map<string, string>();
  return {
    kept,
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => kept.set(name, value),
  };
}

Deno.test("a chosen theme is kept and read again", () => {
  const store = keepOfPreferences();
  const preferences = new Preferences(store);
  assert.equal(preferences.theme.value, "system");

  preferences.setTheme("dark");

  assert.equal(preferences.theme.value, "dark");
  assert.equal(new Preferences(store).theme.value, "dark");
});

Deno.test("a theme that is none is the system's", () => {
  const store = keepOfPreferences();
  store.kept.set("engine-console.theme", "<script>");

  assert.equal(new Preferences(store).theme.value, "system");
});

Deno.test("pages keep texts under names of their own", () => {
  const preferences = new Preferences(keepOfPreferences());

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
