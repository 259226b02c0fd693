import assert from "node:assert/strict";
import { Certificates, findOpenssl } from "../../tests/fakes/certificates.ts";
import { Random } from "../../tests/fakes/random.ts";
import { RawSocket, TLS_FIRST_BYTE, TlsServer, type TlsStream } from "./socket.ts";

Deno.test("finish() lets the peer read everything, and waits for the peer's end", async () => {
  const { socket, peer } = await connect();
  let isFinished = false;
  await peer.write(new Uint8Array(100_000)); // Unread: closing at once would take back "bye".

  await socket.write(new TextEncoder().encode("bye"));
  const finished = socket.finish().then(() => isFinished = true);
  const heard = new Uint8Array(10);

  assert.equal(await peer.read(heard), 3);
  assert.equal(await peer.read(heard), null);
  assert.equal(isFinished, false);
  peer.close();
  await finished;
});

Deno.test("destroy() ends what is under way, and may come twice", async () => {
  const { socket, peer } = await connect();
  const reading = socket.read(new Uint8Array(10)).catch(() => "broken off");
  const finishing = socket.finish();

  socket.destroy();
  socket.destroy();
  await finishing;

  assert.ok([null, "broken off"].includes(await reading as null));
  peer.close();
});

Deno.test("what was read and given back is read first, in parts that fit, and then the rest", async () => {
  const { socket, peer } = await connect();
  await peer.write(Uint8Array.of(4));

  socket.unread(Uint8Array.of(1, 2, 3));
  const read = async () => {
    const into = new Uint8Array(2);
    return [...into.subarray(0, await socket.read(into) ?? 0)];
  };

  assert.deepEqual([await read(), await read(), await read()], [[1, 2], [3], [4]]);
  socket.destroy();
  peer.close();
});

async function connect(): Promise<{ socket: RawSocket; peer: Deno.TcpConn }> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const peer = await Deno.connect({ hostname: "127.0.0.1", port: listener.addr.port });
  return { socket: new RawSocket(await listener.accept()), peer };
}

const ignore = !await findOpenssl("engine/transport/socket_test.ts");

/** A port that speaks TLS with one client at a time. */
async function setup() {
  const stack = new AsyncDisposableStack();
  const made = stack.use(await Certificates.make());
  const tls = new TlsServer({ cert: made.read("cert.pem"), key: made.read("key.pem") });
  const listener = stack.use(Deno.listen({ hostname: "127.0.0.1", port: 0 }));
  const { port } = listener.addr;
  const hostname = "127.0.0.1";
  return {
    dialPlain: () => Deno.connect({ hostname, port }),
    dial: () => Deno.connectTls({ hostname, port, caCerts: [made.read("ca.pem")] }),
    async accept(): Promise<TlsStream> {
      const tcp = await listener.accept();
      const first = new Uint8Array(100);
      const count = await tcp.read(first);
      return tls.open(tcp, first.subarray(0, count ?? 0));
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

async function readAll(
  stream: { read(into: Uint8Array): Promise<number | null> },
  size: number,
): Promise<Uint8Array> {
  const all = new Uint8Array(size);
  for (let at = 0; at < size;) {
    const count = await stream.read(all.subarray(at, at + 10_000));
    assert.ok(count !== null, `ended after ${at} bytes`);
    at += count;
  }
  return all;
}

async function writeAll(
  stream: { write(bytes: Uint8Array): Promise<number> },
  bytes: Uint8Array,
): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await stream.write(bytes.subarray(at));
}

Deno.test(
  { ignore, name: "megabytes pass both ways at once, and memory may be used again" },
  async () => {
    await using port = await setup();
    const [client, stream] = await Promise.all([port.dial(), port.accept()]);
    const sent = Uint8Array.from({ length: 3_000_000 }, (_, i) => i * 7 >> 3);
    const copy = sent.slice();

    const [there, back] = await Promise.all([
      readAll(stream, sent.length),
      readAll(client, sent.length),
      writeAll(client, sent),
      writeAll(stream, copy).then(() => copy.fill(0)),
    ]);

    assert.deepEqual(there, sent);
    assert.deepEqual(back, sent);
    client.close();
    stream.close();
  },
);

Deno.test({ ignore, name: "the end of one half leaves the other open" }, async () => {
  await using port = await setup();
  const [client, stream] = await Promise.all([port.dial(), port.accept()]);
  await client.write(Uint8Array.of(1));
  await readAll(stream, 1);

  await stream.write(Uint8Array.of(2));
  await stream.closeWrite();
  assert.deepEqual(await readAll(client, 1), Uint8Array.of(2));
  assert.equal(await client.read(new Uint8Array(1)), null);
  await client.write(Uint8Array.of(3));

  assert.deepEqual(await readAll(stream, 1), Uint8Array.of(3));
  client.close();
  stream.close();
  assert.equal(await stream.read(new Uint8Array(1)), null);
});

Deno.test(
  { ignore, name: "nothing is written at once when there is nothing to write" },
  async () => {
    await using port = await setup();
    const [client, stream] = await Promise.all([port.dial(), port.accept()]);

    assert.equal(await stream.write(new Uint8Array()), 0);

    stream.close();
    client.close();
  },
);

Deno.test(
  { ignore, name: "close() ends all that is under way, and may come at once and again" },
  async () => {
    await using port = await setup();
    const [client, stream] = await Promise.all([port.dial(), port.accept()]);
    const reads = [stream.read(new Uint8Array(1)), stream.read(new Uint8Array(1))];

    stream.close();
    stream.close();

    assert.deepEqual(await Promise.all(reads.map((read) => read.catch(() => null))), [null, null]);
    await stream.closeWrite();
    await assert.rejects(stream.write(Uint8Array.of(1)));
    client.close();
  },
);

Deno.test(
  { ignore, name: "a handshake that fails is named, one that succeeds is not" },
  async () => {
    await using port = await setup();
    const [client, good] = await Promise.all([port.dial(), port.accept()]);
    await client.handshake();
    await client.write(Uint8Array.of(1));
    await readAll(good, 1);
    const [noisy, bad] = await Promise.all([
      port.dialPlain().then(async (tcp) => (await tcp.write(new Uint8Array(99).fill(22)), tcp)),
      port.accept(),
    ]);

    await assert.rejects(bad.read(new Uint8Array(1)));

    assert.equal(typeof bad.handshakeFailure, "string");
    assert.equal(good.handshakeFailure, undefined);
    for (const each of [client, noisy, good, bad]) each.close();
  },
);

Deno.test(
  { ignore, name: "noise instead of a handshake, cut anywhere, ends a stream and no more" },
  async () => {
    await using port = await setup();
    const random = new Random(22);
    const hello = await helloOf();

    for (let round = 0; round < 150; round++) {
      const noise = hello.slice();
      for (let i = random.below(4); i > 0; i--) noise[5 + random.below(noise.length - 5)] = i * 71;
      noise[0] = TLS_FIRST_BYTE;
      const tcp = await port.dialPlain();
      await tcp.write(noise.subarray(0, 1 + random.below(noise.length)));
      const stream = await port.accept();
      if (random.once(2)) stream.close();
      const ended = stream.read(new Uint8Array(10)).catch(() => null);

      tcp.close();

      assert.equal(await ended, null);
      stream.close();
    }
  },
);

/** How a client begins. */
async function helloOf(): Promise<Uint8Array> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const client = await Deno.connectTls({ hostname: "127.0.0.1", port: listener.addr.port });
  const shaking = client.handshake().catch(() => {});
  const tcp = await listener.accept();
  const hello = new Uint8Array(4_000);
  const count = await tcp.read(hello);
  tcp.close();
  await shaking;
  client.close();
  return hello.slice(0, count ?? 0);
}
