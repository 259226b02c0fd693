/**
 * @module
 */
import assert from "node:assert/strict";
import { ConsoleClient } from "../../tests/console/console_client.ts";
import { FakeConsoleWorker } from "../../tests/console/fake_console_worker.ts";
import { systemClock } from "../../engine/platform/system_clock.ts";
import { UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";
import { recordingLog } from "../../tests/fakes/fake_http.ts";
import { reachableUrl, runConsole } from "./run_console.ts";

const HOST = { clock: systemClock, log: recordingLog([]), memory: UNLIMITED_MEMORY };

async function setup(change: { version?: string; port?: number } = {}) {
  const worker = new FakeConsoleWorker();
  const running = await runConsole(worker, HOST, {
    host: "127.0.0.1",
    port: 0,
    socketsMax: 100,
    version: "1.2.3",
    secret: "secret",
    engineUrl: () => "ws://127.0.0.1:49134",
    operatorKey: () => Promise.resolve("key"),
    ...change,
  });
  return { worker, running, [Symbol.asyncDispose]: () => running[Symbol.asyncDispose]() };
}

Deno.test("runConsole() serves browsers over the worker it is given", async () => {
  await using it = await setup();
  it.worker.functions["math::add"] = () => 3;
  using client = await ConsoleClient.open(it.running.url);

  client.say({ type: "call", id: 1, function_id: "math::add" });

  assert.equal((await client.next("result", 1)).result, 3);
  assert.deepEqual(await client.next("welcome"), {
    type: "welcome",
    version: "1.2.3",
    engine_url: "ws://127.0.0.1:49134",
    operator: false,
  });
  await client.close();
});

Deno.test("runConsole() forwards requests of a page to where engine-http listens now", async () => {
  await using it = await setup();
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () => new Response("shop"),
  );
  const endpoints = [{ name: "http", url: `http://0.0.0.0:${server.addr.port}` }];
  it.worker.functions["engine::supervisor::info"] = () => ({ endpoints });
  using client = await ConsoleClient.open(it.running.url);

  client.say({ type: "http", id: 1, method: "GET", path: "/", headers: { connection: "close" } });
  assert.equal((await client.next("http_answer", 1)).body, "shop");
  endpoints.length = 0;
  client.say({ type: "http", id: 2, method: "GET", path: "/", headers: {} });
  assert.equal((await client.next("error", 2)).error.code, "NOT_FOUND");

  await client.close();
  await it.running[Symbol.asyncDispose]();
  await server.shutdown();
});

Deno.test("runConsole() releases everything when its port is taken", async () => {
  await using it = await setup();
  const worker = new FakeConsoleWorker();
  const port = Number(new URL(it.running.url).port);

  await assert.rejects(
    runConsole(worker, HOST, {
      host: "127.0.0.1",
      port,
      socketsMax: 100,
      version: "1",
      secret: "s",
      engineUrl: () => "",
      operatorKey: () => Promise.resolve(undefined),
    }),
    { code: "address_in_use", message: new RegExp(`Port ${port} is taken`) },
  );
  assert.equal(worker.listeners, 0);
});

Deno.test("reachableUrl() is the address of the engine's port as seen from the console", () => {
  const here = "ws://127.0.0.1:49134";
  const there = "ws://box.lan:49134";

  assert.equal(reachableUrl("http://127.0.0.1:3111", here), "http://127.0.0.1:3111");
  assert.equal(reachableUrl("http://0.0.0.0:3111", here), "http://127.0.0.1:3111");
  assert.equal(reachableUrl("http://[::]:3111", there), "http://box.lan:3111");
  assert.equal(reachableUrl("http://10.0.0.1:3111", there), "http://10.0.0.1:3111");
  assert.equal(reachableUrl("http://127.0.0.1:3111", there), undefined);
});
