/**
 * The page's entry point: connects to the console and renders the app.
 *
 * @module
 */
import { render } from "preact";
import {
  browserAddressBar,
  browserClipboard,
  browserStorage,
  openSession,
  Preferences,
  withoutKey,
} from "./kit/browser.ts";
import type { ConsoleSocket } from "./kit/connection.ts";
import { ChartCursors, Toasts } from "./kit/context.tsx";
import { Live } from "./kit/live.ts";
import { Router } from "./kit/router.ts";
import { PAGES } from "./pages/mod.ts";
import { App, secondClock } from "./shell/app.tsx";

function start(): void {
  const [clock] = secondClock(Date.now);
  const meta = document.querySelector<HTMLMetaElement>('meta[name="engine-console-token"]');
  const bar = browserAddressBar;
  const withKey = new URLSearchParams(location.search).has("key");
  if (withKey) bar.write(withoutKey(bar.read()), true);
  const session = openSession({
    inPage: meta?.content ?? "",
    withKey,
    storage: browserStorage("sessionStorage"),
  });
  const address = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/live`;
  const live = new Live({
    open: () => new WebSocket(address) as ConsoleSocket,
    token: () => session.token(),
    later,
    now: Date.now,
  });
  live.status.subscribe(({ connection }) => {
    if (connection === "refused" && session.dropStored()) queueMicrotask(() => live.connect());
  });
  live.connect();
  const shell = {
    live,
    router: new Router(bar),
    toasts: new Toasts(later),
    preferences: new Preferences(browserStorage("localStorage")),
    clipboard: browserClipboard,
    session,
    clock,
    chartCursors: new ChartCursors(),
  };
  render(<App shell={shell} pages={PAGES} />, document.getElementById("app")!);
}

function later(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}

start();
