import assert from "node:assert/strict";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { CHANNEL_FRAME_BYTES_MAX } from "../../sdk/typescript/wire/channels.ts";
import { createMemoryBudget } from "../platform/memory_budget.ts";
import { CHANNEL_HELD_BYTES_MAX } from "../ports/channels.ts";
import type { ConnectionEvents } from "../ports/connection.ts";
import { STREAM_AHEAD_BYTES } from "../ports/connection.ts";
import { Channel, UNPAUSED_BYTES_MAX } from "./channel.ts";

const MIB = 1024 * 1024;

Deno.test("what the writer sends reaches the reader unchanged, in order, and its end after it", () => {
  const { channel, writer, reader } = setup();
  const events = claim(channel, writer);
  claim(channel, reader, "read");

  say(events, "héllo");
  events.binary(Uint8Array.of(1, 2, 3));
  say(events, "");
  events.closed(1000, "stream_complete");

  assert.deepEqual(reader.takeTexts(), ["héllo", ""]);
  assert.deepEqual(reader.takeBinaries(), [Uint8Array.of(1, 2, 3)]);
  assert.deepEqual(reader.closing, { code: 1000, reason: "stream_complete" });
});

Deno.test("a reader that connects late gets what was held, and the end", () => {
  const { channel, writer, reader, ended, memory } = setup();
  const events = claim(channel, writer);
  events.binary(Uint8Array.of(1));
  say(events, "two");
  assert.equal(memory.usedBytes, 4);
  events.closed(1005, "");
  assert.equal(ended(), 0);

  const reading = claim(channel, reader, "read");

  assert.deepEqual(reader.takeBinaries(), [Uint8Array.of(1)]);
  assert.deepEqual(reader.takeTexts(), ["two"]);
  assert.equal(reader.closing?.code, 1000);
  assert.equal(memory.usedBytes, 0);
  reading.closed(1000, "");
  assert.equal(ended(), 1);
});

Deno.test("held bytes are a copy: the writer's connection reuses its memory", () => {
  const { channel, writer, reader } = setup();
  const events = claim(channel, writer);
  const bytes = Uint8Array.of(7, 7);
  events.binary(bytes);
  bytes.fill(0);

  claim(channel, reader, "read");

  assert.deepEqual(reader.takeBinaries(), [Uint8Array.of(7, 7)]);
});

Deno.test("the writer is not read while buffer_size frames wait for a reader", () => {
  const { channel, writer, reader } = setup({ bufferFrames: 3 });
  const events = claim(channel, writer);

  say(events, "1");
  say(events, "2");
  assert.equal(writer.paused, false);
  say(events, "3");
  assert.equal(writer.paused, true);

  claim(channel, reader, "read");
  assert.equal(writer.paused, false);
  assert.deepEqual(reader.takeTexts(), ["1", "2", "3"]);
});

Deno.test("nor while many bytes wait", () => {
  const { channel, writer } = setup();
  const events = claim(channel, writer);

  events.binary(new Uint8Array(CHANNEL_HELD_BYTES_MAX));

  assert.equal(writer.paused, true);
});

Deno.test("the writer is not read while the reader's connection has too much unsent", () => {
  const { channel, writer, reader } = setup();
  const events = claim(channel, writer);
  const reading = claim(channel, reader, "read");
  reader.queuedBytes = STREAM_AHEAD_BYTES;
  say(events, "fits");
  assert.equal(writer.paused, false);

  reader.queuedBytes++;
  say(events, "is too much");
  assert.equal(writer.paused, true);
  reading.drained();
  assert.equal(writer.paused, false);
});

Deno.test("a reader that claims with much to send at once pauses the writer until it is sent", () => {
  const { channel, writer, reader } = setup({ bufferFrames: 1 });
  const events = claim(channel, writer);
  events.binary(new Uint8Array(10));
  reader.queuedBytes = STREAM_AHEAD_BYTES + 1;

  const reading = claim(channel, reader, "read");
  assert.equal(writer.paused, true);
  reading.drained();

  assert.equal(writer.paused, false);
});

Deno.test("large frames of bytes are cut for readers, text messages are not", () => {
  const { channel, writer, reader } = setup();
  const events = claim(channel, writer);
  claim(channel, reader, "read");
  const large = new Uint8Array(2 * CHANNEL_FRAME_BYTES_MAX + 5).map((_, at) => at);

  events.binary(large);
  say(events, "x".repeat(2 * MIB));

  const parts = reader.takeBinaries();
  assert.deepEqual(parts.map(({ length }) => length), [MIB, MIB, 5]);
  assert.deepEqual(new Uint8Array(parts.flatMap((part) => [...part])), large);
  assert.equal(reader.takeTexts()[0]?.length, 2 * MIB);
});

Deno.test("a reader that leaves ends the writer, and the channel", () => {
  const { channel, writer, reader, ended } = setup();
  const events = claim(channel, writer);
  const reading = claim(channel, reader, "read");

  reading.closed(1000, "");

  assert.deepEqual(writer.closing, { code: 1000, reason: "reader_closed" });
  assert.equal(ended(), 1);
  say(events, "late");
  events.closed(1000, "");
  assert.equal(ended(), 1);
  assert.equal(channel.claimWriter(new FakeConnection("x")), undefined);
});

for (
  const [code, reason, told] of [
    [1006, "connection lost", /the writer was lost \(1006: connection lost\)/],
    [1008, "", /the writer was lost \(1008\)/],
    [4001, "no disk", /^no disk$/],
  ] as const
) {
  Deno.test(`a writer that ends with ${code} does not look like the end of the stream`, () => {
    const { channel, writer, reader } = setup();
    const events = claim(channel, writer);
    say(events, "part");
    events.closed(code, reason);

    claim(channel, reader, "read");

    assert.deepEqual(reader.takeTexts(), ["part"]);
    assert.equal(reader.closing?.code, 4001);
    assert.match(reader.closing?.reason ?? "", told);
  });
}

Deno.test("an end is claimed once", () => {
  const { channel, writer, reader } = setup();
  const events = claim(channel, writer);
  claim(channel, reader, "read");
  assert.ok(channel.isClaimed);

  assert.equal(channel.claimWriter(new FakeConnection("other")), undefined);
  assert.equal(channel.claimReader(new FakeConnection("other")), undefined);
  events.closed(1000, "");
  assert.equal(channel.claimWriter(new FakeConnection("other")), undefined, "also after its end");
});

Deno.test("a channel that is aborted closes both ends with the reason", () => {
  const { channel, writer, reader, ended, memory } = setup();
  const events = claim(channel, writer);
  say(events, "held");

  channel.abort(4001, "nothing came");

  assert.deepEqual(writer.closing, { code: 4001, reason: "nothing came" });
  assert.equal(ended(), 1);
  assert.equal(memory.usedBytes, 0);
  assert.equal(channel.claimReader(reader), undefined);
});

Deno.test("what is held counts in the memory budget; without room the channel ends", () => {
  const { channel, writer, memory } = setup({ memoryBytes: 1_000 });
  const events = claim(channel, writer);

  events.binary(new Uint8Array(900));
  assert.equal(closingOf(writer).code, 0);
  events.binary(new Uint8Array(200));

  assert.equal(closingOf(writer).code, 1009);
  assert.match(closingOf(writer).reason, /engine\.memory_mb is used up/);
  assert.equal(memory.usedBytes, 0);
});

Deno.test("a writer whose transport cannot stop reading is bounded in bytes", () => {
  const { channel, writer } = setup();
  writer.canPause = false;
  const events = claim(channel, writer);

  for (let i = 0; i < UNPAUSED_BYTES_MAX / MIB; i++) events.binary(new Uint8Array(MIB));
  assert.equal(closingOf(writer).code, 0);
  events.binary(new Uint8Array(1));

  assert.equal(closingOf(writer).code, 1009);
});

function setup({ bufferFrames = 64, memoryBytes = Infinity } = {}) {
  let ends = 0;
  const memory = createMemoryBudget(memoryBytes);
  const channel = new Channel({ bufferFrames, memory, moved() {}, ended: () => ends++ });
  const [writer, reader] = [new FakeConnection("writer"), new FakeConnection("reader")];
  return { channel, writer, reader, memory, ended: () => ends };
}

function claim(
  channel: Channel,
  connection: FakeConnection,
  direction: "read" | "write" = "write",
): ConnectionEvents {
  const events = direction === "write"
    ? channel.claimWriter(connection)
    : channel.claimReader(connection);
  assert.ok(events);
  return events;
}

function say(events: ConnectionEvents, text: string): void {
  const bytes = new TextEncoder().encode(`__${text}`);
  events.textBytes(bytes, 2, bytes.length, true);
}

function closingOf({ closing }: FakeConnection): { code: number; reason: string } {
  return closing ?? { code: 0, reason: "" };
}
