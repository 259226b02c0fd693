import assert from "node:assert/strict";
import { UPGRADE_HEAD_BYTES_MAX } from "./http.ts";
import { GIVEN_UP_PER_TURN } from "../ports/listen.ts";
import { listenRaw, RawRequest, UPGRADE_HEAD_MS } from "./raw_listener.ts";
import { testConnection } from "../../tests/contracts/connection_contract.ts";
import { bytes, Port } from "../../tests/contracts/connection_setup.ts";
import type { AnswerPage } from "../ports/connection.ts";
import { createMemoryBudget } from "../platform/memory_budget.ts";
import { OP } from "../../tests/fakes/raw_ws_client.ts";
import { descriptorsOfBurst } from "../../tests/contracts/burst.ts";
import { until } from "../../tests/fakes/until.ts";
import { RawSocket } from "./socket.ts";

testConnection("raw listener", { listen: listenRaw }, { skips: {} });

Deno.test("an exception of the gate or of the receiver closes one connection", async () => {
  let asked = 0;
  await using port = new Port({ listen: listenRaw }, {}, () => {
    asked++;
    if (asked === 1) throw new Error("no verdict");
    if (asked === 3) return { status: 403, message: "Not you" };
    return () => {
      throw new Error("no taker");
    };
  });

  assert.ok(Number.isNaN((await port.ask()).status));
  assert.ok(Number.isNaN((await port.ask()).status));
  assert.equal((await port.ask()).status, 403);

  const reason = "an upgrade could not be handled: Error: no ";
  assert.deepEqual(port.cuts, [reason + "verdict", reason + "taker"]);
});

Deno.test("a connection carries one request, whatever its headers say, and is closed", async () => {
  const answerPage: AnswerPage = ({ path }) =>
    path === "/healthz"
      ? Promise.resolve({ status: 200, contentType: "text/plain", body: "ok" })
      : undefined;
  await using port = new Port({ listen: listenRaw }, { answerPage });
  const heads: Readonly<Record<string, number>> = {
    "GET /healthz HTTP/1.1": 200,
    "HEAD /healthz HTTP/1.1": 200,
    "GET /healthz HTTP/1.0": 200,
    "POST /healthz HTTP/1.1": 426,
    "OPTIONS * HTTP/1.1": 426,
    "GET /no HTTP/1.1": 426,
    "PUT / HTTP/1.1": 426,
    "get /healthz HTTP/1.1": 400,
  };

  for (const [head, status] of Object.entries(heads)) {
    const request = `${head}\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n`;
    const client = await port.send([bytes(request + request)]);

    assert.equal(client.status, status, head);
    assert.match(client.head, /\r\nconnection: close(\r\n|$)/);
    const length = Number(/content-length: (\d+)/.exec(client.head)?.[1]);
    const rest = await client.rest();
    assert.equal(rest.length, head.startsWith("HEAD") ? 0 : length, head);
  }
});

Deno.test("batches are accepted only where the largest of them is within the message limit", async () => {
  for (const [maxMessageBytes, isTaken] of [[1024 * 1024 - 1, false], [1024 * 1024, true]]) {
    await using port = new Port({ listen: listenRaw }, {
      maxMessageBytes: Number(maxMessageBytes),
    });

    const client = await port.ask({
      headers: { "sec-websocket-protocol": "engine.batch.v1" },
    });

    assert.equal(/engine\.batch\.v1/.test(client.head), isTaken);
  }
});

Deno.test("connections that arrive while the port closes leave nothing open", async () => {
  for (let round = 0; round < 20; round++) {
    const listener = listenRaw({
      hostname: "127.0.0.1",
      port: 0,
      maxMessageBytes: 1_000,
      maxQueuedBytes: 1_000,
    }, () => ({ status: 404, message: "Nothing here" }));

    const dialling = Array.from({ length: 5 }, () => dial(listener.port));
    if (round % 2) await Promise.any(dialling);
    await listener.close();

    for (const peer of await Promise.all(dialling)) peer?.close();
  }
});

function dial(port: number): Promise<Deno.TcpConn | undefined> {
  return Deno.connect({ hostname: "127.0.0.1", port }).catch(() => undefined);
}

Deno.test("a head in pieces is joined, and bytes behind it are kept", async () => {
  await using pair = await Pair.open();
  const asked = new RawRequest(pair.socket, "").read();

  for (const part of ["GET / HT", "TP/1.1\r\nhost: a\r\n", "\r", "\nbehind"]) {
    await pair.write(part);
  }

  const { head, rest } = (await asked)!;
  assert.equal(head.headers.get("host"), "a");
  assert.ok("behind".startsWith(new TextDecoder().decode(rest)));
});

Deno.test("a head that is too long is answered before it ends", async () => {
  await using pair = await Pair.open();
  const asked = new RawRequest(pair.socket, "").read();

  await pair.write("GET / HTTP/1.1\r\nx: " + "a".repeat(UPGRADE_HEAD_BYTES_MAX));

  assert.match(await pair.answer(), /^HTTP\/1\.1 431 /);
  pair.peer.close();
  assert.equal(await asked, undefined);
});

Deno.test("a head that is not complete in time is answered with 408", async () => {
  await using pair = await Pair.open();
  const request = new RawRequest(pair.socket, "");
  const asked = request.read();
  await pair.write("GET / HT");

  request.checkPeer(performance.now());
  request.checkPeer(performance.now() + UPGRADE_HEAD_MS + 1);

  assert.match(await pair.answer(), /^HTTP\/1\.1 408 .*\r\n\r\nThe head/s);
  pair.peer.close();
  assert.equal(await asked, undefined);
});

Deno.test("a peer that leaves or is destroyed in the middle of its head makes no request", async () => {
  await using left = await Pair.open();
  await using sent = await Pair.open();
  const [first, second] = [new RawRequest(left.socket, ""), new RawRequest(sent.socket, "")];
  const asked = [first.read(), second.read()];

  left.peer.close();
  second.destroy();

  assert.deepEqual(await Promise.all(asked), [undefined, undefined]);
});

Deno.test("a head that is not complete when the port closes is answered with 503", async () => {
  await using pair = await Pair.open();
  const request = new RawRequest(pair.socket, "");
  const asked = request.read();
  await pair.write("GET / HT");
  await new Promise((resolve) => setTimeout(resolve, 20)); // Until it was read.

  request.close();

  assert.match(await pair.answer(), /^HTTP\/1\.1 503 .*\r\n\r\nThe engine is stopping/s);
  pair.peer.close();
  assert.equal(await asked, undefined);
});

Deno.test("a full port gives the socket of the oldest request to a new peer", async () => {
  await using port = new Port({ listen: listenRaw }, { maxSockets: 8 });
  const idle = [];
  for (let i = 0; i < 20; i++) idle.push(await port.dial());

  const { client, recorded } = await port.open();
  recorded.onText = (text) => recorded.connection.send(text);
  await client.text("served");

  assert.equal(await client.nextText(), "served");
  for (const socket of idle) socket.close();
});

Deno.test("a peer that leaves a ping unanswered is suspected until it sends something", async () => {
  await using port = new Port({ listen: listenRaw }, { silenceMs: 3_000, heartbeatMs: 200 });
  const { client, recorded } = await port.open();

  await until(() => recorded.suspicions.length > 0, "it is suspected");
  await client.text("here");
  await until(() => recorded.suspicions.length > 1, "it is not any more");

  assert.deepEqual(recorded.suspicions.slice(0, 2), [true, false]);
});

Deno.test("probe() sends a ping now, and none while one is unanswered", async () => {
  await using port = new Port({ listen: listenRaw });
  const { client, recorded } = await port.open();

  recorded.connection.probe!();
  recorded.connection.probe!();
  recorded.connection.send("behind it");

  assert.deepEqual([(await client.next())?.opcode, (await client.next())?.opcode], [9, 1]);
});

Deno.test("unfinished messages that hold all memory are cut, so that another can be read", async () => {
  const memory = createMemoryBudget(4 * 1024 * 1024);
  await using port = new Port({ listen: listenRaw }, { memory });
  const part = new Uint8Array(500_000).fill(120);
  const holders = [];
  for (let i = 0; i < 5; i++) {
    const { client, recorded } = await port.open();
    await client.frame(OP.text, part, { claims: 2_000_000n });
    holders.push(recorded);
  }
  const { client, recorded } = await port.open();

  await client.text("small");
  await until(() => recorded.texts.length === 1, "a small message always fits");
  const large = client.text("x".repeat(2_500_000));
  await until(() => recorded.texts.length === 2, "memory was made for a large one");
  await large;

  const ends = holders.flatMap(({ closings }) => closings);
  assert.ok(ends.length > 0);
  for (const { code, reason } of ends) {
    assert.equal(code, 1009);
    assert.match(reason, /^unfinished message of \d+ bytes .*engine.memory_mb is used up$/);
  }
});

Deno.test({
  name: "a burst of clients at a full port takes few descriptors beyond its sockets",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const most = await descriptorsOfBurst(() => {
      const port = new Port({ listen: listenRaw }, { maxSockets: 20 });
      return { port: port.listener.port, close: () => port[Symbol.asyncDispose]() };
    });

    assert.ok(most <= 20 + GIVEN_UP_PER_TURN, `${most} descriptors`);
  },
});

/** A connection and its other end. */
class Pair implements AsyncDisposable {
  readonly socket: RawSocket;
  readonly peer: Deno.TcpConn;

  private constructor(socket: RawSocket, peer: Deno.TcpConn) {
    this.socket = socket;
    this.peer = peer;
  }

  static async open(): Promise<Pair> {
    using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const peer = await Deno.connect({ hostname: "127.0.0.1", port: listener.addr.port });
    peer.setNoDelay();
    return new Pair(new RawSocket(await listener.accept()), peer);
  }

  async write(text: string): Promise<void> {
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.length;) at += await this.peer.write(bytes.subarray(at));
  }

  /** What came, up to the end of the other half. */
  async answer(): Promise<string> {
    const bytes = new Uint8Array(10_000);
    let end = 0;
    for (let count = await this.peer.read(bytes); count !== null;) {
      end += count;
      count = await this.peer.read(bytes.subarray(end));
    }
    return new TextDecoder().decode(bytes.subarray(0, end));
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy();
    try {
      this.peer.close();
    } catch {
      // The test closed it.
    }
    return Promise.resolve();
  }
}
