/**
 * Where the page starts in the browser: lends the browser's own things to the app and draws it.
 *
 * @module
 */
import { render } from "preact";
import {
  browserClipboard,
  type Keep,
  openSession,
  Preferences,
  withoutKey,
} from "./kit/browser.ts";
import { Live } from "./kit/live.ts";
import type { LineSocket } from "./kit/connection.ts";
import { type AddressBar, Router } from "./kit/router.ts";
import { Toasts } from "./kit/context.tsx";
import { PAGES } from "./pages/mod.ts";
import { App, secondClock } from "./shell/app.tsx";

function start(): void {
  const [clock] = secondClock(Date.now);
  const meta = document.querySelector<HTMLMetaElement>('meta[name="engine-console-token"]');
  const bar = addressBar();
  const withKey = new URLSearchParams(location.search).has("key");
  if (withKey) bar.write(withoutKey(bar.read()), true);
  const keep = kept("sessionStorage");
  const session = openSession({ inPage: meta?.content ?? "", withKey, keep });
  const address = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/live`;
  const live = new Live({
    open: () => new WebSocket(address) as LineSocket,
    token: () => session.token(),
    later,
    now: Date.now,
  });
  live.connection.subscribe(({ line }) => {
    if (line === "refused" && session.dropKept()) queueMicrotask(() => live.start());
  });
  live.start();
  const shell = {
    live,
    router: new Router(bar),
    toasts: new Toasts(later),
    preferences: new Preferences(kept("localStorage")),
    clipboard: browserClipboard,
    session,
    clock,
  };
  render(<App shell={shell} pages={PAGES} />, document.getElementById("app")!);
}

function later(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}

function addressBar(): AddressBar {
  return {
    read: () => location.pathname + location.search,
    write: (address, replace) =>
      replace ? history.replaceState(null, "", address) : history.pushState(null, "", address),
    onChange(heard) {
      addEventListener("popstate", heard);
      return () => removeEventListener("popstate", heard);
    },
  };
}

/** The browser's storage; only naming it fails where it is switched off. */
function kept(name: "localStorage" | "sessionStorage"): Keep {
  return {
    getItem: (key) => globalThis[name].getItem(key),
    setItem: (key, value) => globalThis[name].setItem(key, value),
  };
}

start();
