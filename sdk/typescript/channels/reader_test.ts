import assert from "node:assert/strict";
import { fakeEnds, settle } from "../../../tests/fakes/fake_channel_socket.ts";
import { ChannelReader, HELD_BYTES_MAX } from "./reader.ts";

const REF = { channel_id: "c", access_key: "k", direction: "read" } as const;

async function setup() {
  const { setup, sockets } = fakeEnds();
  const reader = new ChannelReader(REF, setup);
  const first = reader.read();
  await settle();
  const [socket] = sockets;
  return { reader, first, socket: socket!, sockets };
}

/** A reader on which these messages have arrived, then the end. */
async function filled(...messages: (string | Uint8Array)[]): Promise<ChannelReader> {
  const { setup, sockets } = fakeEnds();
  const reader = new ChannelReader(REF, setup);
  const open = setup.open;
  Object.assign(setup, {
    open: (...args: Parameters<typeof open>) => {
      const socket = open(...args);
      queueMicrotask(() => {
        messages.forEach((message) => sockets[0]!.events.message(message));
        sockets[0]!.events.closed(1000, "stream_complete");
      });
      return socket;
    },
  });
  await settle();
  return reader;
}

Deno.test("a reader connects at the first read", async () => {
  const { setup, sockets } = fakeEnds();
  const reader = new ChannelReader(REF, setup);
  await settle();
  assert.equal(sockets.length, 0);

  const reading = reader.read();
  await settle();

  assert.equal(sockets[0]!.url, "ws://engine:1/ws/channels/c?key=k&dir=read");
  sockets[0]!.events.message("first");
  assert.equal(await reading, "first");
});

Deno.test("messages arrive in order, as strings and bytes, then the end", async () => {
  const reader = await filled("a", Uint8Array.of(1), "b");

  const all = [];
  for await (const message of reader) all.push(message);

  assert.deepEqual(all, ["a", Uint8Array.of(1), "b"]);
  assert.equal(await reader.read(), undefined);
});

Deno.test("bytes() and text() collect the stream, up to a limit", async () => {
  assert.deepEqual(await (await filled("é", Uint8Array.of(0))).bytes(), Uint8Array.of(195, 169, 0));
  assert.equal(await (await filled("é", Uint8Array.of(33))).text(), "é!");
  await assert.rejects((await filled("abc", "d")).text(3), { code: "body_too_large" });
});

Deno.test("readable is a stream of bytes that holds nothing by itself", async () => {
  const { reader, first, socket } = await setup();
  socket.events.message("1");
  await first;
  const stream = reader.readable.getReader();
  socket.events.message("é");
  socket.events.closed(1005, "");

  assert.deepEqual((await stream.read()).value, Uint8Array.of(195, 169));
  assert.equal((await stream.read()).done, true);
});

Deno.test("a reader that is behind stops reading, and goes on when half is taken", async () => {
  const { reader, first, socket } = await setup();
  const part = new Uint8Array(HELD_BYTES_MAX / 4);
  for (let i = 0; i < 4; i++) socket.events.message(part);
  await first;
  assert.equal(socket.isPaused, true);

  await reader.read();
  assert.equal(socket.isPaused, true);
  await reader.read();
  assert.equal(socket.isPaused, false);
});

Deno.test("many small messages count, too", async () => {
  const { first, socket } = await setup();

  for (let i = 0; i < 2_000; i++) socket.events.message("");

  assert.equal(socket.isPaused, true);
  await first;
});

for (
  const [code, reason, message] of [
    [4001, "the disk is full", "Channel c ended early: the disk is full"],
    [1006, "connection lost", "Channel c ended early: connection lost"],
    [1001, "", "Channel c ended early: close code 1001"],
  ] as const
) {
  Deno.test(`close code ${code} is not the end of the stream`, async () => {
    const { reader, first, socket } = await setup();
    socket.events.message("part");
    socket.events.closed(code, reason);

    assert.equal(await first, "part");
    await assert.rejects(reader.read(), { code: "channel_closed", message });
    await assert.rejects(reader.read(), { code: "channel_closed", message });
  });
}

Deno.test("a reference that is unknown or in use is channel_not_found", async () => {
  const { setup, sockets } = fakeEnds(true);
  const unknown = new ChannelReader(REF, setup).read();
  const refused = new ChannelReader(REF, setup).read();
  const lost = new ChannelReader(REF, setup).read();
  sockets[0]!.events.closed(1006, "HTTP 404");
  sockets[1]!.events.opened();
  sockets[1]!.events.closed(1008, "claimed");
  sockets[2]!.events.closed(1006, "connect ECONNREFUSED");

  await assert.rejects(unknown, { code: "channel_not_found" });
  await assert.rejects(refused, { code: "channel_not_found" });
  await assert.rejects(lost, { code: "engine_unreachable", message: /ECONNREFUSED/ });
});

Deno.test("leaving the loop early ends the channel", async () => {
  const { reader, first, socket } = await setup();
  socket.events.message("1");
  socket.events.message("2");
  await first;

  for await (const message of reader) {
    assert.equal(message, "2");
    break;
  }

  assert.equal(socket.finished?.code, 1000);
  assert.equal(socket.isTerminated, true);
  await assert.rejects(reader.read(), { code: "channel_closed" });
});

Deno.test("cancel() of a reader that never connected tells the writer", async () => {
  const { setup, sockets } = fakeEnds();

  await new ChannelReader(REF, setup).cancel();

  assert.equal(sockets[0]!.isTerminated, true);
});

Deno.test("a second read beside one that waits is refused", async () => {
  const { reader, first, socket } = await setup();

  await assert.rejects(reader.read(), { code: "INVALID_ARGUMENTS" });

  socket.events.message("1");
  assert.equal(await first, "1");
});

Deno.test("a reader in a payload is its reference", () => {
  const { setup } = fakeEnds();

  const text = JSON.stringify({ file: new ChannelReader({ ...REF, more: 1 } as never, setup) });

  assert.equal(text, '{"file":{"channel_id":"c","access_key":"k","direction":"read"}}');
});
