/**
 * The example page of streams in a real browser, and its client of streams without one: live items,
 * and all that changed while the engine was away.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { StreamEvent } from "../../sdk/browser/mod.ts";
import { connectStreams } from "../../sdk/browser/mod.ts";
import { chromiumHere } from "../console/console_browser.ts";
import { HeadlessBrowser } from "../console/headless_browser.ts";
import { EngineProcess, freePort } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const ROOT = new URL("../../", import.meta.url);
const FILES: Readonly<Record<string, string>> = {
  "/live_items.html": "docs/examples/live_items.html",
  "/engine_sdk_browser.js": "sdk/npm/engine_sdk_browser.js",
};
const GROUP = { stream_name: "chat", group_id: "room-1" };

/** An engine with streams on a port that stays the same. */
async function setup(config = "") {
  const port = freePort();
  const engine = await EngineProcess.start(
    `  - name: engine-stream\n    config:\n      port: ${port}\n${config}`,
  );
  const set = async (item_id: string, data: string): Promise<void> => {
    await using worker = engine.connect();
    await worker.trigger({ function_id: "stream::set", payload: { ...GROUP, item_id, data } });
  };
  return {
    engine,
    set,
    url: `ws://127.0.0.1:${port}/`,
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

function servePage(): Deno.HttpServer<Deno.NetAddr> {
  return Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { pathname } = new URL(request.url);
    const file = FILES[pathname];
    if (file === undefined) return new Response("not here", { status: 404 });
    const type = pathname.endsWith(".js") ? "text/javascript" : "text/html";
    return new Response(await Deno.readTextFile(new URL(file, ROOT)), {
      headers: { "content-type": `${type}; charset=utf-8` },
    });
  });
}

Deno.test({
  name: "the example page shows live items, and comes back after a restart of the engine",
  ignore: chromiumHere === undefined,
  async fn(): Promise<void> {
    await using world = await setup();
    await using server = servePage();
    await using browser = await HeadlessBrowser.start();
    await world.set("m1", "hi");
    const query = `streams=${encodeURIComponent(world.url)}&stream=chat&group=room-1`;
    const address = `http://127.0.0.1:${server.addr.port}/live_items.html?${query}`;
    await using opened = await browser.open(address);
    const { page, problems } = opened;
    const shows = async (state: string, lines: string[]): Promise<void> => {
      await until(async () => {
        const now = await page.locator("#state").textContent();
        const shown = await page.locator("#items li").allTextContents();
        return now === state && JSON.stringify(shown) === JSON.stringify(lines);
      });
    };

    await shows("connected", ['m1: "hi"']);
    await world.set("m2", "<b>ho</b>");
    await shows("connected", ['m1: "hi"', 'm2: "<b>ho</b>"']);
    assert.deepEqual(problems, []);

    await world.engine.kill("SIGKILL");
    await shows("reconnecting", ['m1: "hi"', 'm2: "<b>ho</b>"']);
    await world.engine.start();
    await world.set("m1", "changed");
    await shows("connected", ['m1: "changed"', 'm2: "<b>ho</b>"']);
    await world.set("m3", "new");
    await shows("connected", ['m1: "changed"', 'm2: "<b>ho</b>"', 'm3: "new"']);
  },
});

Deno.test("the client gets items and events of the engine, and a sync after its restart", async () => {
  await using world = await setup();
  await world.set("m1", "hi");
  await using streams = connectStreams(world.url, { reconnect: { firstMs: 20, maxMs: 200 } });
  const room = streams.subscribe<string>("chat", "room-1");
  const one = streams.subscribe<string>("chat", "room-1", { id: "m2" });
  const next = async (from: typeof room): Promise<StreamEvent<string>> => {
    return (await from.next()).value;
  };
  const typeOf = async (from: typeof room): Promise<unknown[]> => {
    const event = await next(from);
    return [event.type, event.type === "sync" ? event.items : event.id];
  };

  assert.deepEqual(await typeOf(room), ["sync", ["hi"]]);
  assert.deepEqual(await typeOf(one), ["sync", []]);
  await world.set("m2", "ho");
  assert.deepEqual(await typeOf(room), ["create", "m2"]);
  assert.deepEqual(await typeOf(one), ["create", "m2"]);

  await world.engine.kill("SIGTERM");
  await until(() => !room.isLive);
  await world.engine.start();
  assert.deepEqual(await typeOf(room), ["sync", ["hi", "ho"]]);
  assert.deepEqual(await typeOf(one), ["sync", ["ho"]]);
  assert.deepEqual([...room.items], [["m1", "hi"], ["m2", "ho"]]);
});

Deno.test("the worker that decides gets the token, and refuses connections and groups", async () => {
  await using world = await setup("      auth_function: chat::auth\n");
  await using worker = world.engine.connect();
  worker.registerFunction("chat::auth", ({ headers, query_params }: {
    headers: Record<string, string>;
    query_params: Record<string, string>;
  }) => {
    const offered = headers["sec-websocket-protocol"]?.split(", ")[1];
    const user = offered ?? query_params.token;
    return user === undefined ? { unauthorized: true } : { context: { user } };
  });
  worker.registerFunction("chat::join", ({ group_id, context }: {
    group_id: string;
    context: { user: string };
  }) => ({ unauthorized: group_id === "staff" && context.user !== "ann" }));
  worker.registerTrigger({ type: "stream:join", function_id: "chat::join", config: {} });
  await worker.trigger({ function_id: "stream::list", payload: GROUP });

  const first = async (url: string, options: Parameters<typeof connectStreams>[1]) => {
    await using streams = connectStreams(url, options);
    return await streams.subscribe("chat", "staff").next()
      .then(({ value }) => value.type, (error) => error.code);
  };

  const { url, engine } = world;
  assert.equal(await first(url, {}), "unauthorized");
  assert.equal(await first(url, { token: "bob" }), "unauthorized");
  assert.equal(await first(url, { token: "ann" }), "sync");
  assert.equal(await first(`${engine.url}/stream`, { token: "ann", tokenIn: "query" }), "sync");
});
