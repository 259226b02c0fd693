/**
 * Every claim about a connection once more in TLS, on both listeners, and what TLS adds to them.
 *
 * @module
 */
import assert from "node:assert/strict";
import { listenRaw, listenRawTls } from "../../engine/transport/raw_listener.ts";
import { listenServeTls } from "../../engine/transport/serve_listener.ts";
import { WARNINGS_MAX } from "../../engine/ports/events.ts";
import { SERVE_SKIPS, testConnection } from "./connection_contract.ts";
import { bytes, type Carrier, Port } from "./connection_setup.ts";
import { Certificates, findOpenssl } from "../fakes/certificates.ts";
import { PATIENCE_MS, until } from "../fakes/until.ts";

if (await findOpenssl("tests/contracts/connection_tls_test.ts")) await testAll();

async function testAll(): Promise<void> {
  await using made = await Certificates.make();
  const certificate = { cert: made.read("cert.pem"), key: made.read("key.pem") };
  const ca = made.read("ca.pem");
  const raw: Carrier = { listen: listenRawTls(certificate), ca };
  const serve: Carrier = { listen: listenServeTls(certificate), ca };

  testConnection("raw listener in TLS", raw, { skips: {} });
  testConnection("serve listener in TLS", serve, {
    skips: SERVE_SKIPS,
    leaves: "Deno keeps a WebSocket in TLS for a while whose peer breaks off",
  });
  testMismatches(raw);
}

/** Peers that speak another protocol than the port, or stop during the handshake. */
function testMismatches(raw: Carrier): void {
  const plain: Carrier = { listen: listenRaw };

  Deno.test("a plain request on a port with TLS gets 426 at once, and is logged", async () => {
    await using port = new Port(raw);

    const answer = await fetch(`http://127.0.0.1:${port.listener.port}/`);

    assert.equal(answer.status, 426);
    assert.equal(answer.headers.get("upgrade"), "TLS/1.2, HTTP/1.1");
    assert.match(await answer.text(), /speaks TLS; connect to it with wss:/);
    await until(() => port.cuts.length > 0, "it is logged");
    const reason = "plain ws:// on a port with TLS: the peer has to dial wss://";
    assert.deepEqual(port.cuts, [reason]);
  });

  Deno.test("a TLS hello on a port without TLS is refused at once, and logged", async () => {
    await using port = new Port(plain);
    const { port: number } = port.listener;

    const tls = await Deno.connectTls({ hostname: "127.0.0.1", port: number });
    await assert.rejects(tls.handshake());
    tls.close();

    await until(() => port.cuts.length > 0, "it is logged");
    const reason = "TLS on a port without it: the peer has to dial ws://, or set engine.tls";
    assert.deepEqual(port.cuts, [reason]);
  });

  Deno.test("a client that does not trust the certificate is logged, and so is noise", async () => {
    await using port = new Port(raw);
    const { port: number } = port.listener;

    const untrusting = await Deno.connectTls({ hostname: "127.0.0.1", port: number });
    await assert.rejects(untrusting.handshake());
    untrusting.close();
    const noisy = await Deno.connect({ hostname: "127.0.0.1", port: number });
    await noisy.write(new Uint8Array(200).fill(22));
    await toEnd(noisy);

    await until(() => port.cuts.length === 2, "both are logged");
    for (const cut of port.cuts) assert.match(cut, /^TLS handshake failed: /);
    assert.equal(port.connections.length, 0);
  });

  Deno.test("a flood of peers that cannot connect is logged a few times only", async () => {
    await using port = new Port(raw);

    for (let i = 0; i < 2 * WARNINGS_MAX; i++) {
      const tcp = await Deno.connect({ hostname: "127.0.0.1", port: port.listener.port });
      await tcp.write(bytes("GET / HTTP/1.1\r\n\r\n"));
      await toEnd(tcp);
    }

    await until(() => port.cuts.length > 0, "some are logged");
    assert.ok(port.cuts.length <= WARNINGS_MAX, `${port.cuts.length} are logged`);
  });

  for (const [what, first] of [["that stalls", [22, 3, 1]], ["that never begins", []]] as const) {
    Deno.test(`a TLS handshake ${what} is closed`, async () => {
      await using port = new Port(raw, { upgradeHeadMs: 500, closeMs: 500 });
      const tcp = await Deno.connect({ hostname: "127.0.0.1", port: port.listener.port });
      await tcp.write(Uint8Array.from(first));

      const limit = setTimeout(() => tcp.close(), PATIENCE_MS);
      await toEnd(tcp);
      clearTimeout(limit);
    });
  }

  Deno.test("a port closes at once during a TLS handshake", async () => {
    const port = new Port(raw);
    const tcp = await Deno.connect({ hostname: "127.0.0.1", port: port.listener.port });
    await tcp.write(Uint8Array.of(22, 3, 1));
    const shaking = port.dial().then((tls) => tls.close(), () => {});

    await port[Symbol.asyncDispose]();

    await toEnd(tcp);
    await shaking;
  });
}

/** Reads until the other side has ended, however. */
async function toEnd(connection: Deno.Conn): Promise<void> {
  const bytes = new Uint8Array(1_000);
  try {
    while (await connection.read(bytes) !== null);
  } catch {
    // Broken off: an end, too.
  }
  connection.close();
}
