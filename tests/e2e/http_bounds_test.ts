/**
 * The ports of HTTP and of the console under attack by clients of the same address: a canary is
 * answered, and the engine keeps its memory and its descriptors.
 *
 * @module
 */
import assert from "node:assert/strict";
import { ConsoleClient } from "../console/console_client.ts";
import { EngineProcess } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const PORTS = "  - name: engine-http\n    config: { port: 0 }\n" +
  "  - name: engine-console\n    config: { port: 0 }\n";
const DESCRIPTORS = 256;
/** Longest wait for one answer while the ports are full. */
const ANSWER_MS = 5_000;

/** An engine with few descriptors, and a route `/canary`. */
async function setup(descriptors = DESCRIPTORS, settings = "") {
  const stack = new AsyncDisposableStack();
  const engine = stack.use(await EngineProcess.start(PORTS, settings, undefined, { descriptors }));
  const worker = stack.use(engine.connect("shop"));
  worker.registerFunction("canary", ({ body }: { body: unknown }) => ({ body: { got: !!body } }));
  for (const http_method of ["GET", "POST"]) {
    const config = { api_path: "/canary", http_method };
    worker.registerTrigger({ type: "http", function_id: "canary", config });
  }
  const info = await worker.trigger<object, { endpoints: { name: string; url: string }[] }>({
    function_id: "engine::supervisor::info",
    payload: {},
  });
  const urlOf = (name: string) => info.endpoints.find((each) => each.name === name)!.url;
  const open: Deno.TcpConn[] = [];
  stack.defer(() => open.forEach((client) => client.close()));
  const http = urlOf("http");
  const canary = async () => {
    const response = await fetch(`${http}/canary`, {
      signal: AbortSignal.timeout(ANSWER_MS),
      headers: { connection: "close" },
    });
    return { status: response.status, text: await response.text() };
  };
  await until(async () => (await canary()).status === 200);
  return {
    engine,
    worker,
    http,
    console: urlOf("console"),
    canary,
    /** Opens connections that send this and no more. */
    async flood(url: string, count: number, text = ""): Promise<void> {
      const { hostname, port } = new URL(url);
      const bytes = new TextEncoder().encode(text);
      for (let i = 0; i < count; i++) {
        const client = await Deno.connect({ hostname, port: Number(port) });
        open.push(client);
        // The engine may have ended it already, for another one.
        if (text !== "") await client.write(bytes).catch(() => {});
      }
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const SLOW_BODY = "POST /canary HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n" +
  "content-length: 100\r\n\r\n{";

Deno.test("idle sockets, slow heads and slow bodies beyond every bound keep nothing from the engine", async () => {
  await using it = await setup();

  for (const text of ["", "GET /canary HTTP/1.1\r\nhost:", SLOW_BODY]) {
    for (const url of [it.http, it.console]) await it.flood(url, DESCRIPTORS, text);

    assert.deepEqual(await it.canary(), { status: 200, text: '{"got":false}' });
    const page = await fetch(it.console, { signal: AbortSignal.timeout(ANSWER_MS) });
    assert.equal(page.status, 200);
    await page.body?.cancel();
    // State is written and a worker joins: descriptors are left for both.
    await it.worker.trigger({
      function_id: "state::set",
      payload: { scope: "s", key: "k", value: text },
    });
    await using other = it.engine.connect("other");
    await other.trigger({ function_id: "state::get", payload: { scope: "s", key: "k" } });
  }

  assert.doesNotMatch(it.engine.stderr, /Too many open files/);
  assert.doesNotMatch(it.engine.stderr, /Uncaught/);
});

Deno.test("WebSockets that say nothing keep the operator out of no console", async () => {
  await using it = await setup();
  const origin = new URL(it.console);
  const upgrade = `GET /live HTTP/1.1\r\nhost: ${origin.host}\r\norigin: ${origin.origin}\r\n` +
    "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n" +
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
  await it.flood(it.console, 200, upgrade);

  using page = await ConsoleClient.open(it.console);

  assert.equal((await page.next("welcome")).version.length > 0, true);
  await page.close();
});

Deno.test("bodies of 15 MB share the memory budget, and the rest gets 429", async () => {
  await using it = await setup(2_000, "  memory_mb: 128\n");
  const body = JSON.stringify({ text: "x".repeat(15_000_000) });
  const statuses = await Promise.all(Array.from({ length: 40 }, async () => {
    const response = await fetch(`${it.http}/canary`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    await response.body?.cancel();
    return response.status;
  }));

  const known = new Set([200, 429, 503]);
  assert.ok(statuses.every((status) => known.has(status)), `${statuses}`);
  assert.ok(statuses.includes(200), `${statuses}`);
  assert.ok(statuses.includes(429), `${statuses}`);
  assert.deepEqual(await it.canary(), { status: 200, text: '{"got":false}' });
});
