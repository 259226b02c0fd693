import assert from "node:assert/strict";
import { SocketEngine } from "../../../tests/fakes/socket_server.ts";
import { until } from "../../../tests/fakes/until.ts";
import { openDenoSocket } from "./deno_socket.ts";
import { openBrowserSocket, openSocket } from "./open_socket.ts";
import { type ChannelSocket, channelUrl, type OpenChannelSocket } from "./socket.ts";
import { openWsSocket } from "./ws_socket.ts";

/** What happens on an end: `opened`, messages, then code and reason. */
function record(open: OpenChannelSocket, url: string): { socket: ChannelSocket; log: unknown[] } {
  const log: unknown[] = [];
  const socket = open(url, {
    opened: () => log.push("opened"),
    message: (data) => log.push(data),
    closed: (code, reason) => log.push([code, reason]),
  });
  return { socket, log };
}

for (const [name, open] of Object.entries({ openDenoSocket, openWsSocket, openBrowserSocket })) {
  Deno.test(`${name}() carries text and bytes, and both ends close when all is read`, async () => {
    await using engine = new SocketEngine();
    const refs = engine.channels.create("w", 64);
    const writer = record(open, channelUrl(engine.url, refs.writer));
    const reader = record(open, channelUrl(engine.url, refs.reader));
    await until(() => writer.log.length + reader.log.length === 2);

    const large = new Uint8Array(1_000_000).fill(7);
    await writer.socket.send("héllo");
    await writer.socket.send(large);
    writer.socket.finish(1000, "stream_complete");
    await until(() => writer.log.length === 2 && reader.log.length === 4);

    assert.deepEqual(writer.log, ["opened", [1000, "stream_complete"]]);
    assert.deepEqual(reader.log, ["opened", "héllo", large, [1000, "stream_complete"]]);
  });

  Deno.test(`${name}() reports an end that is refused`, async () => {
    await using engine = new SocketEngine();
    const { reader } = engine.channels.create("w", 64);

    const { log } = record(open, channelUrl(engine.url, { ...reader, access_key: "wrong" }));
    await until(() => log.length > 0);

    assert.equal((log[0] as unknown[])[0], 1006);
  });

  Deno.test(`${name}() can be ended at once`, async () => {
    await using engine = new SocketEngine();
    const { reader } = engine.channels.create("w", 64);
    const { socket, log } = record(open, channelUrl(engine.url, reader));
    await until(() => log.length > 0);

    socket.terminate();

    assert.deepEqual(log.at(-1), [1006, "ended"]);
    await until(() => engine.channels.stats.open === 0);
  });
}

Deno.test("openSocket() connects to an engine by the name localhost", async () => {
  await using engine = new SocketEngine();
  const { reader } = engine.channels.create("w", 64);
  const url = channelUrl(engine.url.replace("127.0.0.1", "localhost"), reader);
  const { socket, log } = record(openSocket, url);
  await until(() => log.length > 0);

  assert.deepEqual(log, ["opened"]);
  socket.terminate();
  await until(() => engine.channels.stats.open === 0);
});
