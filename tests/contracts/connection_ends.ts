/**
 * Claims about how a connection begins and ends: refusals, close frames, lost peers, violations.
 *
 * @module
 */
import assert from "node:assert/strict";
import { bytes, type Carrier, type Claim, Port } from "./connection_setup.ts";
import { OP, type RawWsClient } from "../fakes/raw_ws_client.ts";
import { PATIENCE_MS, until } from "../fakes/until.ts";

/** For a peer that does not answer a close frame. */
const CLOSE_MS = 300;

export const END_CLAIMS: readonly Claim[] = [
  {
    name: "a close frame of the peer is answered, and its code and reason are reported",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded } = await port.open();

      await client.text("last words");
      await client.close(4001, "done");

      assert.deepEqual(await client.nextClose(), { code: 4001, reason: "done" });
      assert.equal(await client.next(), undefined);
      assert.deepEqual(await recorded.end(), { code: 4001, reason: "done" });
      assert.deepEqual(recorded.texts, ["last words"]);
    },
  },
  {
    name: "a close frame without a code is reported as 1005",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded } = await port.open();

      await client.frame(OP.close);

      assert.deepEqual(await recorded.end(), { code: 1005, reason: "" });
    },
  },
  {
    name: "the engine's close frame follows the messages sent before, and is reported",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded } = await port.open();
      const reason = "ü".repeat(80);

      recorded.connection.send("last words");
      recorded.connection.close(1008, reason);
      recorded.connection.close(1001, "again");

      assert.equal(await client.nextText(), "last words");
      const told = await client.nextClose();
      assert.equal(told?.code, 1008);
      assert.equal(told.reason, "ü".repeat(61), "cut to what a close frame can hold");
      await client.close(1008);
      assert.deepEqual(await recorded.end(), { code: 1008, reason });
    },
  },
  {
    name: "closed is reported also when the peer does not answer the engine's close frame",
    async run(carrier) {
      await using port = new Port(carrier, { closeMs: CLOSE_MS });
      const { recorded } = await port.open();

      recorded.connection.close(1001, "going");

      assert.deepEqual(await recorded.end(), { code: 1001, reason: "going" });
    },
  },
  {
    name: "a peer that breaks off is reported as 1006, once",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded } = await port.open();

      await client.frame(OP.text, bytes("half a mess"), { fin: false });
      client.destroy();

      assert.equal((await recorded.end()).code, 1006);
      assert.deepEqual(recorded.texts, []);
    },
  },
  {
    name:
      "a peer that ends its half without a close frame is reported as 1006, and its socket is released",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded } = await port.open();

      await client.text("half open");
      await client.endWriting();

      assert.equal((await recorded.end()).code, 1006);
      assert.deepEqual(recorded.texts, ["half open"]);
      while (await client.next());
    },
  },
  {
    name: "messages sent on a closed connection are dropped",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded } = await port.open();
      client.destroy();
      await recorded.end();

      recorded.connection.send("late");
      recorded.connection.sendBinary(bytes("late"));
      recorded.connection.close(1000, "late");
      recorded.connection.pause();
      recorded.connection.resume();

      assert.equal(recorded.connection.queuedBytes, 0);
    },
  },
  {
    name: "nothing that arrives after the engine's close frame is reported",
    async run(carrier) {
      await using port = new Port(carrier, { closeMs: CLOSE_MS });
      const { client, recorded } = await port.open();
      recorded.onText = () => recorded.connection.close(1000, "enough");

      await client.write(new Uint8Array([...textFrame("one"), ...textFrame("two")]));
      await recorded.end();

      assert.deepEqual(recorded.texts, ["one"]);
    },
  },
  ...brokenClaims(),
  {
    name: "random bytes close their connection and no other",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client: healthy, recorded } = await port.open();
      let seed = 1;
      const random = () => (seed = (seed * 48_271) % 2_147_483_647);

      const rounds = carrier.ca === undefined ? 100 : 25; // A TLS handshake takes a while.
      for (let round = 0; round < rounds; round++) {
        const { client } = await port.open();
        await client.write(Uint8Array.from({ length: 1 + random() % 300 }, () => random() >> 8));
        client.destroy();
      }

      await until(
        () => port.connections.slice(1).every((broken) => broken.closings.length === 1),
        "every broken connection is closed",
      );
      await healthy.text("still here");
      await until(() => recorded.texts.length === 1, "the healthy connection is heard");
    },
  },
  {
    name: "a gate's refusal is the HTTP answer, and opens no connection",
    async run(carrier) {
      await using port = new Port(carrier, {}, () => ({ status: 403, message: "Not you" }));

      const client = await port.ask();

      assert.equal(client.status, 403);
      assert.doesNotMatch(client.head, /upgrade: websocket/i);
      assert.equal(port.connections.length, 0);
    },
  },
  {
    name: "a request that is no upgrade gets 426 and a sentence",
    async run(carrier) {
      await using port = new Port(carrier);

      const response = await port.fetch("/");

      assert.equal(response.status, 426);
      assert.match(await response.text(), /WebSocket/);
    },
  },
  {
    name: "an upgrade that is not WebSocket 13 with a key is refused",
    async run(carrier) {
      await using port = new Port(carrier);

      const old = await port.ask({ headers: { "Sec-WebSocket-Version": "8" } });
      const keyless = await port.ask({ without: ["Sec-WebSocket-Key"] });

      assert.equal(old.status, 426);
      assert.match(old.head, /sec-websocket-version: 13/i);
      assert.equal(keyless.status, 400);
      assert.equal(port.connections.length, 0);
    },
  },
  {
    name: "subprotocols and extensions that are offered are not chosen",
    async run(carrier) {
      await using port = new Port(carrier);
      const headers = {
        "Sec-WebSocket-Protocol": "chat, other",
        "Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits",
      };

      const { client } = await port.open({ headers });

      assert.doesNotMatch(client.head, /sec-websocket-(protocol|extensions)/i);
    },
  },
  {
    name: "an upgrade whose head stalls is closed",
    async run(carrier) {
      await using port = new Port(carrier, { upgradeHeadMs: 500 });
      const tcp = await port.dial();
      await tcp.write(bytes("GET / HTTP/1.1\r\nHos"));

      const limit = setTimeout(() => tcp.close(), PATIENCE_MS);
      await tcp.read(new Uint8Array(1_000)).catch(() => 0);
      clearTimeout(limit);
      tcp.close(); // Throws if the limit closed it.
    },
  },
  {
    name:
      "close() ends connections with 1001, takes no new ones, and does not wait for peers that do not answer",
    async run(carrier) {
      await using port = new Port(carrier, { closeMs: CLOSE_MS });
      const { client: polite, recorded: first } = await port.open();
      const { recorded: second } = await port.open();
      const stalled = await port.dial();
      await stalled.write(bytes("GET / HTTP/1.1\r\nHos"));

      const closing = port.listener.close();
      assert.equal((await polite.nextClose())?.code, 1001);
      await polite.close(1001);
      await closing;
      await port.listener.close();

      assert.equal((await first.end()).code, 1001);
      assert.equal((await second.end()).code, 1001);
      await assert.rejects(port.ask());
      stalled.close();
    },
  },
  {
    name: "a port that is taken is named, with what to do",
    async run(carrier) {
      await using port = new Port(carrier);
      const taken = port.listener.port;

      assert.throws(() => new Port(carrier, { port: taken }), {
        code: "address_in_use",
        message: `Port ${taken} is taken; stop the other program or set engine.port in config.yaml`,
        details: { host: "127.0.0.1", port: taken },
      });
    },
  },
  {
    name: "an address that is not this machine's is named",
    run(carrier) {
      const hostname = "203.0.113.7";
      assert.throws(() => new Port(carrier, { hostname }), { code: "address_not_available" });
      return Promise.resolve();
    },
  },
];

/** Violations of the protocol: each closes the connection, by RFC 6455 with a certain code. */
function brokenClaims(): Claim[] {
  const broken: readonly [name: string, code: number, send: (c: RawWsClient) => Promise<void>][] = [
    ["text that is not UTF-8", 1007, (c) => c.frame(OP.text, Uint8Array.of(0xff, 0xfe))],
    ["a reserved bit", 1002, (c) => c.frame(OP.text, bytes("x"), { reserved: 4 })],
    ["an unknown opcode", 1002, (c) => c.frame(3, bytes("x"))],
    ["a continuation of nothing", 1002, (c) => c.frame(OP.more, bytes("x"))],
    ["a text amid fragments", 1002, async (c) => {
      await c.frame(OP.text, bytes("x"), { fin: false });
      await c.frame(OP.text, bytes("y"));
    }],
    ["a ping of 126 bytes", 1002, (c) => c.frame(OP.ping, new Uint8Array(126))],
    ["a ping in fragments", 1002, (c) => c.frame(OP.ping, bytes("x"), { fin: false })],
    ["a close frame with half a code", 1002, (c) => c.frame(OP.close, Uint8Array.of(3))],
    ["a close frame with a forbidden code", 1002, (c) => c.close(1005)],
    ["a frame without a mask", 1002, (c) => c.frame(OP.text, bytes("x"), { masked: false })],
  ];
  return broken.flatMap(([name, code, send]) => [
    { name: `${name} ends the connection`, run: (carrier) => closesConnection(carrier, send) },
    { name: `${name} is closed with ${code}`, run: (carrier) => isClosedWith(carrier, send, code) },
  ]);
}

async function closesConnection(
  carrier: Carrier,
  send: (c: RawWsClient) => Promise<void>,
): Promise<void> {
  await using port = new Port(carrier);
  const { client, recorded } = await port.open();

  await send(client);

  await recorded.end();
  assert.deepEqual(recorded.texts, []);
}

async function isClosedWith(
  carrier: Carrier,
  send: (c: RawWsClient) => Promise<void>,
  code: number,
): Promise<void> {
  await using port = new Port(carrier);
  const { client } = await port.open();

  await send(client);

  assert.equal((await client.nextClose())?.code, code);
}

function textFrame(text: string): number[] {
  return [0x81, 0x80 | text.length, 0, 0, 0, 0, ...bytes(text)];
}
