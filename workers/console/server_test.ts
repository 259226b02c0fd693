/**
 * @module
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { systemClock } from "../../engine/platform/system_clock.ts";
import { createMemoryBudget } from "../../engine/platform/memory_budget.ts";
import { recordingLog } from "../../tests/fakes/fake_http.ts";
import { until } from "../../tests/fakes/until.ts";
import { ConsoleClient, tokenIn } from "../../tests/console/console_client.ts";
import { FakeConsoleWorker } from "../../tests/console/fake_console_worker.ts";
import { EngineClient } from "./engine_client.ts";
import { QueryFeeds } from "./query_feeds.ts";
import {
  BROWSERS_MAX,
  ConsoleServer,
  type ConsoleServerOptions,
  GREETINGS_MAX,
  GUESTS_MAX,
  pageResponse,
  preparePage,
} from "./server.ts";
import { TriggerFeeds } from "./trigger_feeds.ts";
import { HELLO_BYTES_MAX } from "./web_socket.ts";

const HTML = '<meta name="engine-console-token" content=""><script>start()</script>';

async function setup(change: Partial<ConsoleServerOptions> = {}) {
  const worker = new FakeConsoleWorker();
  const engine = new EngineClient(worker, systemClock);
  const triggers = new TriggerFeeds(engine, worker);
  const queries = new QueryFeeds(engine, triggers, systemClock);
  const memory = createMemoryBudget(64 * 1024 * 1024);
  const server = await ConsoleServer.open({
    host: "127.0.0.1",
    port: 0,
    log: recordingLog([]),
    memory,
    socketsMax: 200,
    page: HTML,
    secret: "secret",
    operatorKey: () => Promise.resolve("the-key"),
    services: {
      clock: systemClock,
      engine,
      triggers,
      queries,
      http: { send: () => Promise.reject(new Error("not here")) },
      version: "0.1.0",
      engineUrl: () => "ws://127.0.0.1:49134",
    },
    ...change,
  });
  return {
    worker,
    server,
    url: server.url,
    async [Symbol.asyncDispose]() {
      queries.stop();
      triggers.stop();
      await server[Symbol.asyncDispose]();
      await until(() => memory.usedBytes === 0);
    },
  };
}

/** The status of an answer, whose body is of no interest. */
async function status(answer: Promise<Response>): Promise<number> {
  const response = await answer;
  await response.body?.cancel();
  return response.status;
}

Deno.test("ConsoleServer serves the page at every path without a dot", async () => {
  await using it = await setup();

  for (const path of ["/", "/workers", "/functions/math%3A%3Aadd?tab=calls", "/a/b/c/d"]) {
    const answer = await fetch(it.url + path);
    assert.equal(answer.headers.get("content-type"), "text/html; charset=utf-8", path);
    assert.match(await answer.text(), /start\(\)/);
  }
  assert.equal(await status(fetch(`${it.url}/favicon.ico`)), 404);
  assert.equal(await status(fetch(`${it.url}/.git/config`)), 404);
});

Deno.test("ConsoleServer answers GET and HEAD only", async () => {
  await using it = await setup();

  const head = await fetch(it.url, { method: "HEAD" });
  assert.deepEqual([head.status, await head.text()], [200, ""]);
  for (const method of ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"]) {
    assert.equal(await status(fetch(it.url, { method })), 405, method);
  }
});

Deno.test("ConsoleServer puts the operator's token into a page opened with the key", async () => {
  await using it = await setup();

  const [plain, wrong, operator] = await Promise.all([
    tokenIn(it.url),
    tokenIn(it.url, "/workers?key=wrong"),
    tokenIn(it.url, "/workers?key=the-key"),
  ]);

  assert.match(plain, /^[0-9a-f]{32}$/);
  assert.match(operator, /^[0-9a-f]{32}$/);
  assert.equal(wrong, plain);
  assert.notEqual(operator, plain);
});

Deno.test("ConsoleServer makes no page the operator's when there is no key", async () => {
  await using it = await setup({ operatorKey: () => Promise.resolve(undefined) });

  assert.equal(await tokenIn(it.url, "/?key="), await tokenIn(it.url));
  assert.equal(await tokenIn(it.url, "/?key=undefined"), await tokenIn(it.url));
});

Deno.test("ConsoleServer derives the same tokens from the same secret", async () => {
  const tokens: string[] = [];
  for (const secret of ["one", "one", "two"]) {
    await using it = await setup({ secret });
    tokens.push(await tokenIn(it.url, "/?key=the-key"));
  }

  assert.equal(tokens[0], tokens[1]);
  assert.notEqual(tokens[0], tokens[2]);
});

Deno.test("ConsoleServer grants rights by the page's token", async () => {
  await using it = await setup();
  using guest = await ConsoleClient.open(it.url);
  using operator = await ConsoleClient.open(it.url, { page: "/?key=the-key" });

  const rights = [await guest.next("welcome"), await operator.next("welcome")];

  assert.deepEqual(rights.map((welcome) => welcome.operator), [false, true]);
  await Promise.all([guest.close(), operator.close()]);
});

Deno.test("ConsoleServer with an access token puts no token into the page", async () => {
  await using it = await setup({ accessToken: { text: "typed in", rights: "guest" } });

  assert.equal(await tokenIn(it.url), "");
  using wrong = await ConsoleClient.open(it.url, { token: "" });
  assert.equal(await wrong.closed, 4401);
  using client = await ConsoleClient.open(it.url, { token: "typed in" });
  assert.equal((await client.next("welcome")).operator, false);
  await client.close();
});

Deno.test("ConsoleServer refuses a public address without an access token", async () => {
  await assert.rejects(setup({ host: "0.0.0.0" }), {
    code: "INVALID_ARGUMENTS",
    message: "Other machines can reach 0.0.0.0; set token of engine-console",
  });
});

Deno.test("ConsoleServer reports a taken port and an address that is not this machine's", async () => {
  await using it = await setup();
  const port = Number(new URL(it.url).port);

  await assert.rejects(setup({ port }), {
    code: "address_in_use",
    message: `Port ${port} is taken; stop the other program or set port of engine-console`,
  });
  const accessToken = { text: "t", rights: "guest" } as const;
  await assert.rejects(setup({ host: "203.0.113.7", accessToken }), {
    code: "address_not_available",
  });
});

Deno.test("ConsoleServer keeps places for the operator beside the pages of guests", async () => {
  await using it = await setup();
  const token = await tokenIn(it.url, "/?key=the-key");
  const clients: ConsoleClient[] = [];
  const open = async (options?: { token: string }) => {
    const client = await ConsoleClient.open(it.url, options);
    clients.push(client);
    return client;
  };
  for (let i = 0; i < GUESTS_MAX; i++) await (await open()).next("welcome");

  assert.equal(await (await open()).closed, 1013);
  for (let i = GUESTS_MAX; i < BROWSERS_MAX; i++) await (await open({ token })).next("welcome");
  using refused = await ConsoleClient.open(it.url, { token });
  await refused.closed;
  assert.deepEqual(refused.heard, []);
  await clients.pop()!.close();
  await until(() => it.server.browsers < BROWSERS_MAX);
  await (await open({ token })).next("welcome");

  await Promise.all(clients.map((each) => each.close()));
});

Deno.test("ConsoleServer is open to a page while others connect and say nothing", async () => {
  await using it = await setup();
  const silent: ConsoleClient[] = [];
  for (let i = 0; i < 2 * BROWSERS_MAX; i++) silent.push(await ConsoleClient.silent(it.url));
  assert.equal(it.server.browsers, GREETINGS_MAX);

  using client = await ConsoleClient.open(it.url);
  await client.next("welcome");

  await Promise.all([...silent, client].map((each) => each.close()));
});

Deno.test("ConsoleServer cuts a connection that sends much before its hello", async () => {
  await using it = await setup();
  const silent = await ConsoleClient.silent(it.url);

  silent.text("x".repeat(HELLO_BYTES_MAX + 1));

  assert.equal(await silent.closed, 1008);
});

Deno.test("ConsoleServer closes all connections and its port when it stops", async () => {
  await using it = await setup();
  using client = await ConsoleClient.open(it.url);
  await client.next("welcome");

  await it.server[Symbol.asyncDispose]();

  assert.equal(await client.closed, 1001);
  await assert.rejects(fetch(it.url));
});

Deno.test("ConsoleServer answers 426 to a plain request for /live", async () => {
  await using it = await setup();

  const origin = it.url;
  assert.equal(await status(fetch(`${it.url}/live`, { headers: { origin } })), 426);
});

const SERVED_PAGE_HTML = `<!doctype html><html><head>
<meta name="engine-console-token" content="">
<style>b{color:red}</style><style></style></head>
<body><div id="app"></div><script type="module">alert("<b>")</script></body></html>`;

const hash = (text: string): string =>
  `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const ask = (headers: Record<string, string> = {}): Request =>
  new Request("http://localhost/", { headers });

Deno.test("preparePage() puts the token where the page looks for it", async () => {
  const page = await preparePage(SERVED_PAGE_HTML, "abc123");

  const text = await pageResponse(page, ask()).text();
  assert.equal(text, SERVED_PAGE_HTML.replace('content=""', 'content="abc123"'));
});

Deno.test("preparePage() allows only the scripts and styles of the page", async () => {
  const { headers } = await preparePage(SERVED_PAGE_HTML, "abc123");

  const policy = headers["content-security-policy"]!.split("; ");
  assert.deepEqual(policy, [
    "default-src 'none'",
    `script-src ${hash('alert("<b>")')}`,
    `style-src ${hash("b{color:red}")}`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]);
});

Deno.test("preparePage() allows no script at all in a page without one", async () => {
  const { headers } = await preparePage("<p>hello</p>", "");

  assert.match(headers["content-security-policy"]!, /script-src 'none'; style-src 'none'/);
});

Deno.test("pageResponse() compresses the page for browsers that take gzip", async () => {
  const page = await preparePage(SERVED_PAGE_HTML, "abc123");

  const packed = pageResponse(page, ask({ "accept-encoding": "br, gzip" }));
  const plain = pageResponse(page, ask({ "accept-encoding": "br" }));

  assert.equal(packed.headers.get("content-encoding"), "gzip");
  assert.equal(plain.headers.get("content-encoding"), null);
  const unpacked = packed.body!.pipeThrough(new DecompressionStream("gzip"));
  assert.equal(await new Response(unpacked).text(), await plain.text());
});

Deno.test("pageResponse() answers 304 when the browser has the page", async () => {
  const page = await preparePage(SERVED_PAGE_HTML, "abc123");
  const other = await preparePage(SERVED_PAGE_HTML, "xyz");
  const etag = pageResponse(page, ask()).headers.get("etag")!;

  assert.equal(pageResponse(page, ask({ "if-none-match": etag })).status, 304);
  assert.equal(pageResponse(other, ask({ "if-none-match": etag })).status, 200);
});

Deno.test("pageResponse() forbids caching, framing and sniffing", async () => {
  const { headers } = pageResponse(await preparePage(SERVED_PAGE_HTML, "abc123"), ask());

  assert.deepEqual(
    ["cache-control", "x-frame-options", "x-content-type-options", "referrer-policy"]
      .map((name) => headers.get(name)),
    ["no-store", "DENY", "nosniff", "no-referrer"],
  );
});
