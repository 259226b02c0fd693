import assert from "node:assert/strict";
import type { AnswerPage } from "../ports/connection.ts";
import { testConnection } from "../../tests/connection_contract.ts";
import { bytes, Port } from "../../tests/connection_setup.ts";
import { listenRaw } from "./raw_listener.ts";

testConnection("raw listener", { listen: listenRaw }, { skips: {} });

Deno.test("a mistake of the gate or of who takes the line costs one connection", async () => {
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

Deno.test("a connection carries one request, whatever is asked for, and is closed", async () => {
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

Deno.test("batches are taken only where the largest of them is no message that is too large", async () => {
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

Deno.test("connections that come while the port closes leave nothing open", async () => {
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
