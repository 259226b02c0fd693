/**
 * The port with real sockets: who gets one, and what a client sees.
 *
 * @module
 */
import assert from "node:assert/strict";
import { createMemoryBudget } from "../../../engine/platform/memory_budget.ts";
import type { MemoryBudget } from "../../../engine/ports/memory.ts";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { type LogLine, recordingLog } from "../../../tests/fakes/fake_http.ts";
import { descriptorsOfBurst } from "../../../tests/contracts/burst.ts";
import { until } from "../../../tests/fakes/until.ts";
import { MEMORY_WAIT_MS } from "../held_memory.ts";
import { GIVEN_UP_PER_TURN } from "../../../engine/ports/listen.ts";
import { CHECK_MS, HttpPort } from "./port.ts";
import { HEAD_MS, IDLE_MS, SLOW_BODY_MS, SLOW_READER_MS } from "./connection.ts";
import type { ServedRequest, ServedResponse } from "./response.ts";

const SETTINGS = { port: "port", address: "host or port" };
/** More than the kernel takes for a client that does not read; some allow buffers of 32 MiB. */
const LARGE = 64 * 1024 * 1024;
const LIMIT = 1.5 * LARGE;

interface Setup {
  readonly socketsMax?: number;
  readonly memory?: MemoryBudget;
  handle?(request: ServedRequest): ServedResponse | Promise<ServedResponse>;
}

/** A port that answers with what it was asked; `/wait` waits for `finish`. */
function setup({ socketsMax = 100, handle, memory = createMemoryBudget(LIMIT) }: Setup = {}) {
  const clock = new FakeClock();
  const lines: LogLine[] = [];
  const waiting: (() => void)[] = [];
  const seen: ServedRequest[] = [];
  const respond = async (request: ServedRequest): Promise<ServedResponse> => {
    seen.push(request);
    if (handle) return await handle(request);
    if (request.target === "/wait") await new Promise<void>((resolve) => waiting.push(resolve));
    let text = `${request.method} ${request.target} `;
    for (const target = new Uint8Array(64);;) {
      const count = await request.body.read(target);
      if (count === 0) break;
      text += new TextDecoder().decode(target.subarray(0, count));
    }
    return { status: 200, headers: [], body: text };
  };
  const port = new HttpPort({
    host: "127.0.0.1",
    port: 0,
    name: "test",
    settings: SETTINGS,
    clock,
    log: recordingLog(lines),
    memory,
    socketsMax,
    handle: respond,
  });
  const open: Deno.TcpConn[] = [];
  return {
    port,
    clock,
    lines,
    waiting,
    seen,
    memory,
    async connect(text = "") {
      const { hostname, port: number } = new URL(port.url);
      const client = await Deno.connect({ hostname, port: Number(number) });
      open.push(client);
      if (text !== "") await client.write(new TextEncoder().encode(text));
      return client;
    },
    /** Lets time pass; the port looks at its connections on the way. */
    pass(ms: number) {
      for (let left = ms; left > 0; left -= CHECK_MS) clock.tick(Math.min(left, CHECK_MS));
    },
    async [Symbol.asyncDispose]() {
      for (const client of open) client.close();
      waiting.forEach((finish) => finish());
      await port.close();
      port.destroy();
      await until(() => port.openSockets === 0);
      assert.equal(memory.usedBytes, 0);
    },
  };
}

/** What comes until a text, or the end of the connection. */
async function readUntil(client: Deno.TcpConn, end: string): Promise<string> {
  let text = "";
  const decoder = new TextDecoder("latin1");
  for (const bytes = new Uint8Array(64 * 1024); end === "" || !text.includes(end);) {
    const count = await client.read(bytes).catch(() => null);
    if (count === null) break;
    text += decoder.decode(bytes.subarray(0, count));
  }
  return text;
}

/** A request that does not keep its connection. */
function last(line: string): string {
  return `${line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`;
}

const POST = "POST /p HTTP/1.1\r\nhost: a\r\n";

Deno.test("HttpPort serves requests one after another on a connection, also in one write", async () => {
  await using it = setup();
  const requests = "GET /1 HTTP/1.1\r\nhost: a\r\n\r\n" +
    `${POST}content-length: 5\r\n\r\nhello` +
    `${POST}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`;
  const client = await it.connect(`\r\n${requests}${last("GET /4")}`);

  const text = await readUntil(client, "");

  assert.deepEqual(text.match(/(GET|POST) \/.*?(?=HTTP|$)/gs), [
    "GET /1 ",
    "POST /p hello",
    "POST /p abc",
    "GET /4 ",
  ]);
  assert.match(text, /^HTTP\/1\.1 200 OK\r\ncontent-length: 7\r\ndate: \w+, .* GMT\r\n\r\n/);
  assert.match(text, /connection: close\r\ndate: [^\r]+\r\n\r\nGET \/4 $/);
});

Deno.test("HttpPort serves thousands of requests of one write, with turns for others", async () => {
  await using it = setup({ handle: ({ target }) => ({ status: 200, headers: [], body: target }) });
  const client = await it.connect();
  void client.write(new TextEncoder().encode(
    `${"GET /x HTTP/1.1\r\nhost: a\r\n\r\n".repeat(200)}${last("GET /end")}`,
  ));
  const reading = readUntil(client, "");

  for (let i = 0; i < 1_000 && it.port.openSockets < 2; i++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    it.clock.tick(0);
    if (it.seen.length === 201) break;
  }

  assert.equal((await reading).match(/\/x/g)?.length, 200);
});

Deno.test("HttpPort keeps a connection of HTTP/1.0 only if asked to", async () => {
  await using it = setup();

  const once = await readUntil(await it.connect("GET /a HTTP/1.0\r\n\r\n"), "");
  const kept = await it.connect("GET /a HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");

  assert.match(once, /connection: close\r\n/);
  assert.match(await readUntil(kept, "GET /a"), /connection: keep-alive\r\n/);
});

Deno.test("HttpPort shows no upgrade of HTTP/1.0, though its headers were read before", async () => {
  await using it = setup();
  const rest = "host: a\r\nconnection: keep-alive\r\nupgrade: websocket\r\n\r\n";

  const client = await it.connect(`GET /a HTTP/1.1\r\n${rest}GET /b HTTP/1.0\r\n${rest}`);
  await readUntil(client, "GET /b");

  const [now, old] = it.seen;
  assert.equal(now!.headers.upgrade, "websocket");
  assert.deepEqual(old!.headers, { host: "a", connection: "keep-alive" });
  assert.deepEqual(JSON.parse(old!.headersJson), old!.headers);
});

Deno.test("HttpPort tells a client that waits to send its body", async () => {
  await using it = setup();
  const client = await it.connect(`${POST}content-length: 2\r\nexpect: 100-continue\r\n\r\n`);

  assert.equal(await readUntil(client, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  await client.write(new TextEncoder().encode("ok"));
  assert.match(await readUntil(client, "ok"), /^HTTP\/1\.1 200 OK/);
});

Deno.test("HttpPort sends the head alone to HEAD", async () => {
  await using it = setup();

  const text = await readUntil(await it.connect(last("HEAD /x")), "");

  assert.match(text, /content-length: 8\r\n/);
  assert.ok(text.endsWith("\r\n\r\n"));
});

for (
  const [sent, status] of [
    ["\x16\x03\x01", 400],
    ["GET / HTTP/1.1\r\n\r\n", 400],
    ["GET / HTTP/3.0\r\nhost: a\r\n\r\n", 505],
    [`GET / HTTP/1.1\r\nhost: a\r\nx: ${"y".repeat(70_000)}`, 431],
    [`${POST}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`, 400],
  ] as const
) {
  Deno.test(`HttpPort answers ${JSON.stringify(sent.slice(0, 40))} with ${status} and ends`, async () => {
    await using it = setup();

    const text = await readUntil(await it.connect(sent), "");

    assert.ok(text.startsWith(`HTTP/1.1 ${status} `), text);
    assert.match(text, /"error":\{"code":"bad_message","message":".+","error_id":/);
    assert.deepEqual(it.seen, []);
  });
}

Deno.test("HttpPort gives a response also to a client whose body is not read", async () => {
  const refusal: ServedResponse = { status: 413, headers: [], body: "too large" };
  await using it = setup({ handle: () => refusal });
  const client = await it.connect(`${POST}content-length: 3000000\r\n\r\n`);
  const sending = client.write(new Uint8Array(300_000)).catch(() => 0);

  const text = await readUntil(client, "");

  assert.match(text, /connection: close[^]*too large$/);
  await sending;
});

Deno.test("HttpPort ends heads that do not come, with 408 if they began", async () => {
  await using it = setup();
  const silent = await it.connect();
  const slow = await it.connect("GET / HT");
  await until(() => it.port.openSockets === 2);
  await readUntil(await it.connect(last("GET /later")), ""); // By now the others were read.

  it.pass(HEAD_MS + 2 * CHECK_MS);

  assert.equal(await readUntil(silent, ""), "");
  assert.match(await readUntil(slow, ""), /^HTTP\/1\.1 408 .*"code":"timeout"/s);
});

Deno.test("HttpPort ends a connection that has been idle for long", async () => {
  await using it = setup();
  const client = await it.connect("GET /a HTTP/1.1\r\nhost: a\r\n\r\n");
  await readUntil(client, "GET /a");

  it.pass(IDLE_MS - 2 * CHECK_MS);
  await client.write(new TextEncoder().encode("GET /b HTTP/1.1\r\nhost: a\r\n\r\n"));
  assert.match(await readUntil(client, "GET /b"), /200/);
  it.pass(IDLE_MS + 2 * CHECK_MS);

  assert.equal(await readUntil(client, ""), "");
});

Deno.test("HttpPort ends a body that comes too slowly", async () => {
  await using it = setup();
  const client = await it.connect(`${POST}content-length: 1000\r\n\r\nabc`);
  await until(() => it.seen.length === 1);

  it.pass(SLOW_BODY_MS + 2 * CHECK_MS);

  assert.match(await readUntil(client, ""), /^HTTP\/1\.1 408 .*240 bytes a second/s);
});

Deno.test("HttpPort gives the memory of a response back when its client does not read", async () => {
  const body = "x".repeat(LARGE);
  await using it = setup({ handle: () => ({ status: 200, headers: [], body }) });
  const slow = await it.connect("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  await until(() => it.memory.used("bodies") === body.length);
  const other = await it.connect("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  await until(() => it.seen.length === 2);

  it.pass(MEMORY_WAIT_MS);

  assert.match(
    await readUntil(other, "error_id"),
    /^HTTP\/1\.1 503 .*retry-after: 1.*"overloaded"/s,
  );
  it.pass(SLOW_READER_MS + 2 * CHECK_MS);
  await until(() => it.memory.usedBytes === 0);
  await readUntil(slow, "");
});

Deno.test("HttpPort takes a new client when all sockets are idle, and ends the oldest", async () => {
  await using it = setup({ socketsMax: 5 });
  const idle = [];
  for (let i = 0; i < 5; i++) {
    idle.push(await it.connect());
    await until(() => it.port.openSockets === i + 1);
  }

  const text = await readUntil(await it.connect(last("GET /new")), "");

  assert.match(text, /GET \/new/);
  assert.equal(await readUntil(idle[0]!, ""), "");
});

Deno.test("HttpPort gives up slow heads and bodies for new clients, and never a running request", async () => {
  await using it = setup({ socketsMax: 4 });
  const running = await it.connect("GET /wait HTTP/1.1\r\nhost: a\r\n\r\n");
  await until(() => it.waiting.length === 1);
  const body = await it.connect(`${POST}content-length: 10\r\n\r\na`);
  await until(() => it.seen.length === 2);
  const head = await it.connect("GET /slow");
  const idle = await it.connect("GET /x HTTP/1.1\r\nhost: a\r\n\r\n");
  await readUntil(idle, "GET /x");
  const busy = [];
  for (let i = 1; i <= 3; i++) {
    busy.push(await it.connect("GET /wait HTTP/1.1\r\nhost: a\r\n\r\n"));
    await until(() => it.waiting.length === i + 1);
  }
  const refused = await it.connect();

  assert.equal(await readUntil(idle, ""), "");
  assert.match(await readUntil(head, ""), /^HTTP\/1\.1 503 .*closed to make room for others/s);
  assert.match(await readUntil(body, ""), /^HTTP\/1\.1 503 .*closed to make room for others/s);
  assert.match(await readUntil(refused, ""), /^HTTP\/1\.1 503 .*has a running request/s);
  it.waiting.forEach((finish) => finish());
  for (const client of [running, ...busy]) assert.match(await readUntil(client, "/wait"), /200/);
  assert.deepEqual(it.lines.map(({ level, text }) => [level, text]), [
    ["warn", "a port cannot take all connections"],
  ]);
});

Deno.test("a canary is answered while slow clients take every socket", async () => {
  await using it = setup({ socketsMax: 20 });
  for (let i = 0; i < 60; i++) {
    await it.connect(i % 2 ? "GET /slow" : `${POST}content-length: 10\r\n\r\na`);
    if (i % 6 === 0) {
      assert.match(await readUntil(await it.connect(last("GET /canary")), ""), /GET \/canary/);
    }
    assert.ok(it.port.openSockets <= 20);
  }
});

Deno.test("HttpPort tells a handler that its client has left", async () => {
  const gone = Promise.withResolvers<void>();
  await using it = setup({
    handle: (request) => {
      request.watch(gone.resolve);
      return gone.promise.then(() => ({ status: 200, headers: [], body: null }));
    },
  });
  const client = await it.connect("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  await until(() => it.seen.length === 1);

  await client.closeWrite();

  await gone.promise;
});

Deno.test("HttpPort hands a socket over with what was received already", async () => {
  let rest = "";
  await using it = setup({
    handle: () => ({
      status: 101,
      headers: [],
      body: null,
      upgrade: async (stream, bytes) => {
        rest = new TextDecoder().decode(bytes);
        await stream.write(new TextEncoder().encode("now mine"));
      },
    }),
  });

  const text = await readUntil(await it.connect(`${last("GET /")}more`), "");

  assert.equal(text, "now mine");
  assert.equal(rest, "more");
});

Deno.test("HttpPort drains: a new request ends its connection, a running one finishes", async () => {
  await using it = setup();
  const running = await it.connect("GET /wait HTTP/1.1\r\nhost: a\r\n\r\n");
  await until(() => it.waiting.length === 1);
  it.port.drain();
  const quiet = it.port.quiet();

  const late = await readUntil(await it.connect("GET /late HTTP/1.1\r\nhost: a\r\n\r\n"), "");
  it.waiting[0]!();

  assert.match(late, /connection: close[^]*GET \/late/);
  assert.match(await readUntil(running, ""), /connection: close[^]*GET \/wait/);
  await quiet;
});

Deno.test({
  name: "a burst of clients at a full port takes few descriptors beyond its sockets",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const most = await descriptorsOfBurst(() => {
      const { port } = setup({ socketsMax: 20 });
      return { port: Number(new URL(port.url).port), close: () => port.close() };
    });

    assert.ok(most <= 20 + GIVEN_UP_PER_TURN, `${most} descriptors`);
  },
});
