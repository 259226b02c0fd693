import assert from "node:assert/strict";
import { fakeEnds, settle } from "../../../tests/fakes/fake_channel_socket.ts";
import { ChannelWriter } from "./writer.ts";

const REF = { channel_id: "c", access_key: "k", direction: "write" } as const;

async function setup() {
  const { setup, sockets } = fakeEnds();
  const writer = new ChannelWriter(REF, setup);
  await writer.write("first");
  return { writer, socket: sockets[0]! };
}

/** Whether a promise is settled by now. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  promise.then(() => settled = true, () => settled = true);
  await settle();
  return settled;
}

Deno.test("a writer connects at the first write", async () => {
  const { setup, sockets } = fakeEnds();
  const writer = new ChannelWriter(REF, setup);
  await settle();
  assert.equal(sockets.length, 0);

  await writer.write("text");

  assert.equal(sockets[0]!.url, "ws://engine:1/ws/channels/c?key=k&dir=write");
  assert.deepEqual(sockets[0]!.sent, ["text"]);
});

Deno.test("writes that are not awaited keep their order; bytes are cut into 64 KiB", async () => {
  const { setup, sockets } = fakeEnds();
  const writer = new ChannelWriter(REF, setup);

  void writer.write("a");
  void writer.write(new Uint8Array(150_000));
  await writer.write("b");

  const sizes = sockets[0]!.sent.map((data) => typeof data === "string" ? data : data.length);
  assert.deepEqual(sizes, ["a", 65_536, 65_536, 18_928, "b"]);
});

Deno.test("a write waits while too much is unsent, and so do those behind it", async () => {
  const { writer, socket } = await setup();
  socket.isSlow = true;

  const [slow, behind] = [writer.write("slow"), writer.write("behind")];

  assert.equal(await isSettled(slow), false);
  assert.deepEqual(socket.sent, ["first", "slow"]);
  socket.drain();
  await slow;
  await settle();
  assert.deepEqual(socket.sent, ["first", "slow", "behind"]);
  socket.drain();
  await behind;
});

Deno.test("close() waits until the engine has all", async () => {
  const { writer, socket } = await setup();

  const closing = writer.close();

  assert.equal(await isSettled(closing), false);
  assert.deepEqual(socket.finished, { code: 1000, reason: "stream_complete" });
  socket.events.closed(1000, "stream_complete");
  await closing;
  await writer.close();
  assert.equal(writer.signal.aborted, false);
  await assert.rejects(writer.write("late"), { code: "INVALID_ARGUMENTS" });
});

Deno.test("a writer that writes nothing ends the stream, too", async () => {
  const { setup, sockets } = fakeEnds();

  const closing = new ChannelWriter(REF, setup).close();
  await settle();

  assert.equal(sockets[0]!.finished?.code, 1000);
  sockets[0]!.events.closed(1000, "");
  await closing;
});

Deno.test("when the reader leaves, waiting and later writes fail, and signal is aborted", async () => {
  const { writer, socket } = await setup();
  socket.isSlow = true;
  const waiting = writer.write("never taken");
  await settle();

  socket.events.closed(1000, "reader_closed");

  await assert.rejects(waiting, { code: "channel_closed", message: /reader .* has left/ });
  await assert.rejects(writer.write("x"), { code: "channel_closed" });
  await assert.rejects(writer.close(), { code: "channel_closed" });
  assert.equal(writer.signal.reason.code, "channel_closed");
});

Deno.test("a close that the engine cuts off fails", async () => {
  const { writer, socket } = await setup();
  const closing = writer.close();
  await settle();

  socket.events.closed(1006, "connection lost");

  await assert.rejects(closing, { code: "channel_closed", message: /connection lost/ });
});

Deno.test("abort() gives the reader a reason", async () => {
  const { writer, socket } = await setup();
  socket.isSlow = true;
  const waiting = writer.write("x");
  await settle();

  await writer.abort(new Error("the disk is full"));

  assert.deepEqual(socket.finished, { code: 4001, reason: "the disk is full" });
  await assert.rejects(waiting, { code: "channel_closed" });
  await writer.abort();
});

Deno.test("a failed connection fails the write", async () => {
  const { setup, sockets } = fakeEnds(true);
  const writing = new ChannelWriter(REF, setup).write("x");
  sockets[0]!.events.closed(1006, "HTTP 404");

  await assert.rejects(writing, { code: "channel_not_found" });
});

for (const value of [5, null, undefined, {}, [1], new ArrayBuffer(1)]) {
  Deno.test(`${Deno.inspect(value)} cannot be written`, async () => {
    const { writer } = await setup();

    await assert.rejects(writer.write(value as never), { code: "INVALID_ARGUMENTS" });
  });
}

Deno.test("writable is the writer as a stream", async () => {
  const { setup, sockets } = fakeEnds();
  const writer = new ChannelWriter(REF, setup);

  const piping = new Response("body").body!.pipeTo(writer.writable);
  while (sockets[0]?.finished === undefined) await new Promise((done) => setTimeout(done, 1));
  sockets[0].events.closed(1000, "");
  await piping;

  assert.equal(new TextDecoder().decode(sockets[0].sent[0] as Uint8Array), "body");
});

Deno.test("await using closes the writer", async () => {
  const { writer, socket } = await setup();

  const ended = (async () => {
    await using _writer = writer;
  })();
  await settle();

  assert.equal(socket.finished?.code, 1000);
  socket.events.closed(1000, "");
  await ended;
});
