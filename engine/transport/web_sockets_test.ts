import assert from "node:assert/strict";
import type { Connection, ConnectionEvents } from "../ports/connection.ts";
import { SOCKET_FREE_BYTES, type SocketStart } from "../ports/web_sockets.ts";
import { createMemoryBudget } from "../platform/memory_budget.ts";
import { RawWsClient } from "../../tests/fakes/raw_ws_client.ts";
import { until } from "../../tests/fakes/until.ts";
import { TickBudget } from "./tick_budget.ts";
import { RawWebSockets } from "./web_sockets.ts";

const KEY = "dGhlIHNhbXBsZSBub25jZQ==";
const HEADERS = {
  "upgrade": "websocket",
  "connection": "Upgrade",
  "host": "localhost",
  "sec-websocket-version": "13",
  "sec-websocket-key": KEY,
};

/** An echo on a port that reads the request as a server of HTTP would. */
function setup(more: Partial<SocketStart> = {}, silenceMs = 60_000) {
  const memory = createMemoryBudget(64 * 1024 * 1024);
  const cuts: string[] = [];
  const sockets = new RawWebSockets({
    ticks: new TickBudget(),
    memory,
    silenceMs,
    onCut: (_address, reason) => void cuts.push(reason),
  });
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const closed: [number, string][] = [];
  let connection: Connection | undefined;
  const serving = (async () => {
    const stream = await listener.accept();
    const bytes = new Uint8Array(4_096);
    const count = await stream.read(bytes) ?? 0;
    const end = new TextDecoder().decode(bytes).indexOf("\r\n\r\n") + 4;
    await sockets.accept({
      request: { method: "GET", headers: HEADERS },
      stream,
      rest: bytes.slice(end, count),
      address: "127.0.0.1",
      protocol: undefined,
      maxMessageBytes: 1_000_000,
      maxQueuedBytes: 1_000_000,
      ...more,
    }, (opened): ConnectionEvents => {
      connection = opened;
      return {
        text() {},
        textBytes: (from, start, to) => opened.forward(new Uint8Array(), 0, from, start, to),
        binary: (data) => opened.sendBinary(data),
        drained() {},
        suspected() {},
        closed: (code, reason) => void closed.push([code, reason]),
      };
    });
  })();
  const { port } = listener.addr as Deno.NetAddr;
  return {
    sockets,
    memory,
    cuts,
    closed,
    port,
    connection: () => connection!,
    async [Symbol.asyncDispose]() {
      listener.close();
      await serving;
    },
  };
}

Deno.test("RawWebSockets answers the upgrade and carries messages, also those behind the request", async () => {
  await using it = setup({ protocol: "v1" });
  const behind = Uint8Array.of(0x81, 0x82, 0, 0, 0, 0, 104, 105);
  using client = await RawWsClient.connect(it.port, { behind });

  assert.equal(client.status, 101);
  assert.match(client.head, /sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/i);
  assert.match(client.head, /sec-websocket-protocol: v1$/im);
  assert.equal(await client.nextText(), "hi");
  await client.text("a");
  assert.equal(await client.nextText(), "a");
  assert.equal(it.sockets.size, 1);
  await client.close(4000, "done");
  assert.equal((await client.nextClose())?.code, 4000);
  client.destroy();
  await until(() => it.sockets.size === 0);
  assert.deepEqual(it.closed, [[4000, "done"]]);
});

Deno.test("RawWebSockets takes memory for what a client does not read, from few bytes on", async () => {
  await using it = setup();
  using client = await RawWsClient.connect(it.port);
  await until(() => it.connection() !== undefined);

  it.connection().send("x".repeat(SOCKET_FREE_BYTES / 2));
  assert.equal(it.memory.usedBytes, 0);
  it.connection().send("x".repeat(SOCKET_FREE_BYTES));
  assert.ok(it.memory.usedBytes > 0);
  client.destroy();
  await until(() => it.sockets.size === 0);
  assert.equal(it.memory.usedBytes, 0);
});

Deno.test("RawWebSockets pings, and ends a connection that stays silent", async () => {
  await using it = setup({}, 300);
  using client = await RawWsClient.connect(it.port);

  assert.equal((await client.next())?.opcode, 9);
  await until(() => it.closed.length === 1);
  assert.equal(it.closed[0]![0], 1006);
  assert.match(it.cuts[0]!, /silent/);
});

Deno.test("RawWebSockets says why a request is no upgrade", () => {
  const sockets = new RawWebSockets({ ticks: new TickBudget(), memory: createMemoryBudget(1) });
  const problem = (headers: Record<string, string>, method = "GET") =>
    sockets.problemOf({ method, headers: { ...HEADERS, ...headers } })?.status;

  assert.equal(problem({}), undefined);
  assert.equal(problem({}, "POST"), 400);
  assert.equal(problem({ "sec-websocket-version": "7" }), 426);
  assert.equal(problem({ "sec-websocket-key": `${KEY}x` }), 400);
  assert.equal(problem({ "upgrade": "h2c" }), 426);
});
