import assert from "node:assert/strict";
import { SocketEngine, upgrade } from "../../../tests/fakes/socket_server.ts";
import { until } from "../../../tests/fakes/until.ts";
import { isForDeno, openDenoSocket } from "./deno_socket.ts";
import { type ChannelSocket, channelUrl } from "./socket.ts";

/** What happens on an end: `opened`, messages, then code and reason. */
function open(url: string): { socket: ChannelSocket; log: unknown[] } {
  const log: unknown[] = [];
  const socket = openDenoSocket(url, {
    opened: () => log.push("opened"),
    message: (data) => log.push(data),
    closed: (code, reason) => log.push([code, reason]),
  });
  return { socket, log };
}

/** A server whose connections a test plays. */
function serve(play: (connection: Deno.TcpConn) => Promise<unknown>) {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const played = (async () => {
    const connection = await listener.accept();
    await play(connection).finally(() => connection.close());
  })();
  const { port } = listener.addr as Deno.NetAddr;
  return {
    url: `ws://127.0.0.1:${port}/ws/channels/c?key=k&dir=read`,
    async [Symbol.asyncDispose]() {
      await played;
      listener.close();
    },
  };
}

const say = (connection: Deno.TcpConn, text: string): Promise<number> => {
  return connection.write(new TextEncoder().encode(text));
};

/** Reads until the peer has ended its half. */
async function drain(connection: Deno.TcpConn): Promise<number> {
  const memory = new Uint8Array(64 * 1024);
  for (let bytes = 0;;) {
    const count = await connection.read(memory).catch(() => null);
    if (count === null) return bytes;
    bytes += count;
  }
}

Deno.test("only an engine on this machine without TLS is reached so", () => {
  assert.ok(isForDeno("ws://127.0.0.1:1/ws/channels/c?key=k&dir=read"));
  assert.ok(isForDeno("ws://localhost:1"));
  assert.ok(isForDeno("ws://[::1]:1"));
  assert.ok(!isForDeno("wss://localhost:1"));
  assert.ok(!isForDeno("ws://engine:1"));
  assert.ok(!isForDeno("ws://10.0.0.1:1"));
});

for (
  const [answer, reason] of [
    ["HTTP/1.1 503 Busy\r\n\r\n", "HTTP 503"],
    ["HTTP/1.1 101 Ok\r\nsec-websocket-accept: x\r\n\r\n", "the upgrade was not accepted"],
    ["SSH-2.0-x\r\n\r\n", "HTTP "],
    ["HTTP/1.1 101", "the response to the upgrade is not HTTP"],
  ] as const
) {
  Deno.test(`the answer ${JSON.stringify(answer)} is a failed connection`, async () => {
    await using server = serve((connection) => say(connection, answer));

    const { socket, log } = open(server.url);
    await until(() => log.length > 0);

    assert.deepEqual(log, [[1006, reason]]);
    assert.equal(socket.send("late"), undefined);
  });
}

Deno.test("a port that refuses is a failed connection, which is reported once", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  listener.close();

  const { socket, log } = open(`ws://127.0.0.1:${(listener.addr as Deno.NetAddr).port}/`);
  await until(() => log.length > 0);
  socket.terminate();

  assert.equal(log.length, 1);
  assert.match(String((log[0] as unknown[])[1]), /refused/i);
});

Deno.test("a connection that breaks off is reported, and frees who waits to send", async () => {
  const left = Promise.withResolvers<void>();
  await using server = serve(async (connection) => {
    await upgrade(connection);
    await left.promise;
  });
  const { socket, log } = open(server.url);
  await until(() => log.length > 0);
  const part = new Uint8Array(1024 * 1024);
  let sent: Promise<void> | undefined;
  for (let i = 0; i < 256 && !sent; i++) sent = socket.send(part);
  assert.ok(sent, "more is unsent than may be");

  left.resolve();
  await sent;

  await until(() => log.length === 2);
  assert.equal((log[1] as unknown[])[0], 1006);
  assert.equal(socket.send(part), undefined);
});

Deno.test("what comes with the response to the upgrade is read", async () => {
  const more = new Uint8Array(10_000).fill(7);
  const frames = [0x81, 1, 0x61, 0x82, 126, 0x27, 0x10, ...more, 0x88, 2, 0x03, 0xe8];
  await using server = serve(async (connection) => {
    await upgrade(connection, undefined, Uint8Array.from(frames));
    await drain(connection);
  });

  const { log } = open(server.url);
  await until(() => log.length === 4);

  assert.deepEqual(log, ["opened", "a", more, [1000, ""]]);
});

Deno.test("a frame that breaks the protocol ends the connection", async () => {
  await using server = serve(async (connection) => {
    await upgrade(connection);
    await connection.write(Uint8Array.of(0x83, 0));
    await drain(connection);
  });

  const { log } = open(server.url);
  await until(() => log.length === 2);

  assert.deepEqual(log[1], [1006, "a frame is out of order"]);
});

Deno.test("all that was sent leaves before the close frame", async () => {
  await using engine = new SocketEngine();
  const refs = engine.channels.create("w", 64);
  const writer = open(channelUrl(engine.url, refs.writer));
  const reader = open(channelUrl(engine.url, refs.reader));
  await until(() => writer.log.length + reader.log.length === 2);

  for (let i = 0; i < 1_000; i++) void writer.socket.send(new Uint8Array(10_000).fill(i));
  writer.socket.finish(1000, "stream_complete");
  assert.equal(writer.socket.send("late"), undefined);
  await until(() => writer.log.length === 2);
  await until(() => Array.isArray(reader.log.at(-1)));

  const parts = reader.log.slice(1, -1) as Uint8Array[];
  assert.equal(parts.length, 1_000);
  assert.ok(parts.every((part, i) => part.length === 10_000 && part.every((x) => x === (i & 255))));
  assert.deepEqual(reader.log.at(-1), [1000, "stream_complete"]);
  assert.deepEqual(writer.log[1], [1000, "stream_complete"]);
});
