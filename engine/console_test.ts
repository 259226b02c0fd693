/**
 * The console in a process of its own, over a WebSocket to an engine that the test can restart.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../sdk/typescript/wire/protocol.ts";
import { registerWorker } from "../sdk/typescript/register_worker.ts";
import { ConsoleClient, tokenIn } from "../tests/console/console_client.ts";
import { operatorUrl, startConsole } from "./console.ts";
import { type Engine, startEngine } from "./engine.ts";
import type { EngineInfo } from "./ports/supervision.ts";

/** A project on a free port, and an engine on it. */
async function setup(settings = "", workers = "  - name: engine-state\n") {
  const directory = await Deno.makeTempDir({ prefix: "engine-console-" });
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  const configPath = `${directory}/config.yaml`;
  await Deno.writeTextFile(
    configPath,
    `engine:\n  port: ${port}\n${settings}workers:\n${workers}`,
  );
  const start = () => startEngine({ configPath, logLevel: "error" });
  let engine: Engine | undefined = await start();
  return {
    url: `ws://127.0.0.1:${port}`,
    port,
    stop: async () => {
      await engine?.stop({ drain: false });
      engine = undefined;
    },
    start: async () => void (engine = await start()),
    async [Symbol.asyncDispose]() {
      await engine?.stop({ drain: false });
      await Deno.remove(directory, { recursive: true });
    },
  };
}

Deno.test("startConsole() serves an engine somewhere else, and manages it for its user", async () => {
  await using there = await setup();
  await using running = await startConsole({ url: there.url, port: 0 });
  const { pathname, search, origin } = new URL(running.operatorUrl);
  assert.equal(origin, running.url);
  using client = await ConsoleClient.open(running.url, { page: pathname + search });
  assert.equal((await client.next("welcome")).operator, true);

  const payload = { name: "engine-state" };
  client.say({ type: "call", id: 1, function_id: "engine::supervisor::restart", payload });

  await client.next("result", 1);
  await client.close();
});

Deno.test("startConsole() comes back with the engine, and still manages it", async () => {
  await using there = await setup();
  await using running = await startConsole({ url: there.url, port: 0 });
  const { pathname, search } = new URL(running.operatorUrl);
  using client = await ConsoleClient.open(running.url, { page: pathname + search });
  client.say({
    type: "watch_query",
    id: 1,
    query: { function_id: "engine::supervisor::list", items: "workers", key: ["name"] },
    on: [{ type: "engine::supervisor-changed" }],
  });
  await client.next("snapshot", 1);

  let heard = client.heard.length;
  await there.stop();
  assert.equal((await client.next("engine", undefined, heard)).connected, false);
  client.say({ type: "call", id: 2, function_id: "engine::workers::list" });
  assert.equal((await client.next("error", 2)).error.code, "engine_unreachable");

  heard = client.heard.length;
  await there.start();
  assert.equal((await client.next("engine", undefined, heard)).connected, true);
  await client.next("snapshot", 1, heard);
  const payload = { name: "engine-state" };
  for (let id = 3; id < 100; id++) { // Its line may have begun with the key of before.
    client.say({ type: "call", id, function_id: "engine::supervisor::restart", payload });
    const answer = await Promise.race([client.next("result", id), client.next("error", id)]);
    if (answer.type === "result") break;
    assert.ok(id < 99, JSON.stringify(answer));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await client.close();
});

Deno.test("startConsole() names a port that is taken, and leaves the engine alone", async () => {
  await using there = await setup();

  await assert.rejects(startConsole({ url: there.url, port: there.port }), {
    code: "address_in_use",
  });
});

Deno.test("startConsole() has a token typed in where other machines reach it", async () => {
  await using there = await setup();
  const url = there.url;

  await assert.rejects(startConsole({ url, port: 0, host: "0.0.0.0" }), {
    code: "INVALID_ARGUMENTS",
  });
  const typed = { text: "shared", isOwn: false };
  await using running = await startConsole({ url, port: 0, host: "0.0.0.0", typed });
  const reached = running.url.replace("0.0.0.0", "127.0.0.1");
  using client = await ConsoleClient.open(reached, { token: "shared" });
  assert.equal((await client.next("welcome")).operator, false);
  await client.close();
});

Deno.test("the engine's own console refuses a page that would need a token as a worker", async () => {
  const config = "  - name: engine-console\n    config: { port: 0 }\n";
  await using there = await setup("  auth_token: secret\n", config);
  await using worker = registerWorker(there.url, { token: "secret", telemetry: false });
  const function_id = "engine::supervisor::info";
  const { endpoints } = await worker.trigger<Json, EngineInfo>({ function_id, payload: {} });
  const { url } = endpoints.find(({ name }) => name === "console")!;

  assert.equal(await tokenIn(url), "");
  const { pathname, search } = new URL(await operatorUrl(url, there.url));
  using client = await ConsoleClient.open(url, { page: pathname + search });
  assert.equal((await client.next("welcome")).operator, true);
  await client.close();
});
