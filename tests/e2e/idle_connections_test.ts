/**
 * The memory of an idle connection: with 10,000 of them, each kilobyte of live
 * objects is some twenty megabytes of the engine's memory, garbage and gaps included.
 *
 * @module
 */
import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { makeGate } from "../../engine/transport/gate.ts";
import { listenRaw } from "../../engine/transport/raw_listener.ts";
import { noopObserver, Router } from "../../engine/core/router.ts";
import { systemClock } from "../../engine/platform/system_clock.ts";
import { DEFAULT_SETTINGS, fakeSchemas } from "../fakes/fake_router.ts";

/** Live objects of one connection, its client in this process included: 6.8 KB are measured. */
const CONNECTION_BYTES_MAX = 7_500;
const CONNECTIONS = 600;
/** The least of these counts: V8 compiles and grows tables in some of them. */
const ROUNDS = 4;
const UPGRADE = new TextEncoder().encode(
  "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
);

Deno.test("an idle connection keeps few bytes alive", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const router = new Router({
    clock: systemClock,
    schemas: fakeSchemas,
    settings: DEFAULT_SETTINGS,
    newId: () => crypto.randomUUID(),
    report: () => {},
    observer: noopObserver,
  });
  const listener = listenRaw(
    { hostname: "127.0.0.1", port: 0, maxMessageBytes: 2 ** 26, maxQueuedBytes: 2 ** 28 },
    makeGate({
      allowedOrigins: [],
      maxConnections: 2 * CONNECTIONS,
      accept: ({ address }) => (connection) =>
        router.open(connection, { address, launch_id: null, builtin: null }),
      acceptTelemetry: () => () => assert.fail("no client asks for it"),
    }),
  );
  const clients: Deno.TcpConn[] = [];
  const open = async (count: number) => {
    for (let i = 0; i < count; i++) clients.push(await connect(listener.port));
  };
  const live = () => {
    collect();
    const { heapUsed, external } = Deno.memoryUsage();
    return heapUsed + external;
  };

  await open(CONNECTIONS / 4); // Until code and tables have their size.
  let bytes = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    const before = live();
    await open(CONNECTIONS / ROUNDS);
    bytes = Math.min(bytes, (live() - before) / (CONNECTIONS / ROUNDS));
  }

  for (const client of clients) client.close();
  await listener.close();
  assert.ok(bytes < CONNECTION_BYTES_MAX, `${Math.round(bytes)} bytes per connection`);
});

/** Opens a connection; resolves when the router has accepted it. */
async function connect(port: number): Promise<Deno.TcpConn> {
  const client = await Deno.connect({ hostname: "127.0.0.1", port });
  await client.write(UPGRADE);
  const received = new Uint8Array(2_048);
  for (let text = ""; !text.includes("workerregistered");) {
    const count = await client.read(received);
    text += new TextDecoder().decode(received.subarray(0, count ?? assert.fail("refused")));
  }
  return client;
}
