/**
 * The first hour of a developer of web pages: a page that follows a stream, and one that is a
 * worker, both with the npm package behind any web server, in Chromium.
 *
 * @module
 */
import assert from "node:assert/strict";
import { HeadlessBrowser } from "../console/headless_browser.ts";
import { until } from "../fakes/until.ts";
import type { Newcomer, Packages } from "./newcomer.ts";

/** A page as its author writes it: modules by an import map, no bundler. */
function page(script: string): string {
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>shop</title><link rel="icon" href="data:,">
<script type="importmap">
{ "imports": {
  "engine-sdk": "/node_modules/engine-sdk/engine_sdk.js",
  "engine-sdk/browser": "/node_modules/engine-sdk/engine_sdk_browser.js"
} }
</script>
<p id="shown">nothing yet</p>
<script type="module">${script}</script>
</html>`;
}

const FOLLOWS = `
import { connectStreams } from "engine-sdk/browser";
const room = connectStreams("STREAMS").subscribe("chat", "room-1");
for await (const event of room) {
  const texts = [...room.items.values()].map(({ text }) => text);
  document.querySelector("#shown").textContent = texts.join(", ") || "empty";
}`;

const WORKS = `
import { registerWorker } from "engine-sdk";
const worker = registerWorker("WORKERS", { workerName: "page" });
worker.registerFunction("page::shout", ({ text }) => text.toUpperCase());
const answer = await worker.trigger({ function_id: "page::shout", payload: { text: "ready" } });
document.querySelector("#shown").textContent = answer;`;

/** All steps. */
export async function browserHour(user: Newcomer, { tarball }: Packages): Promise<void> {
  await user.installsEngine();
  await user.startsProject();
  await user.runs(`engine worker add engine-stream port=${user.streamPort}`, { expects: "ready" });
  await user.runs("npm init -y");
  await user.runs(`npm install --no-audit --no-fund ${tarball}`);
  const streams = `ws://127.0.0.1:${user.streamPort}/`;
  await user.writes("follows.html", page(FOLLOWS.replace("STREAMS", streams)));
  await user.writes("works.html", page(WORKS.replace("WORKERS", user.url)));

  await using server = serveFiles(user.project);
  await using browser = await HeadlessBrowser.start();
  const address = `http://localhost:${server.addr.port}`;

  await user.runs("engine stream set chat room-1 m1 text=hello");
  await using follows = await browser.open(`${address}/follows.html`);
  const shows = (opened: typeof follows, text: string) => async (): Promise<void> => {
    const shown = opened.page.locator("#shown");
    await until(async () => await shown.textContent() === text, () => opened.problems.join("\n"));
  };
  await user.does("the page shows the item", shows(follows, "hello"));
  await user.runs("engine stream set chat room-1 m2 text=world");
  await user.does("the page shows the next item, live", shows(follows, "hello, world"));

  await using works = await browser.open(`${address}/works.html`);
  await user.does("the page calls what it registered", shows(works, "READY"));
  await user.runs("engine trigger page::shout text=hi", { expects: '"HI"' });
  assert.deepEqual([follows.problems, works.problems], [[], []]);
}

/** Any web server: files of a folder. */
function serveFiles(folder: string): Deno.HttpServer<Deno.NetAddr> {
  return Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { pathname } = new URL(request.url);
    const type = pathname.endsWith(".js") ? "text/javascript" : "text/html";
    const body = await Deno.readFile(folder + pathname).catch(() => undefined);
    if (body === undefined) return new Response("not found", { status: 404 });
    return new Response(body, { headers: { "content-type": `${type}; charset=utf-8` } });
  });
}
