/**
 * Channels whose ends are at different engines.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { ChannelRef } from "../../sdk/typescript/wire/channels.ts";
import { FakeCluster, type FakeEngine } from "../../tests/cluster/fake_engine.ts";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import type { ConnectionEvents } from "../ports/connection.ts";

interface End {
  readonly connection: FakeConnection;
  readonly events: ConnectionEvents;
}

/** A worker connects to an end of a channel at its engine. */
function connect(engine: FakeEngine, ref: ChannelRef): End | number {
  const claimed = engine.channels.claim({
    path: `/ws/channels/${ref.channel_id}`,
    query: new URLSearchParams({ key: ref.access_key, dir: ref.direction }),
    headers: new Headers(),
    address: "127.0.0.1",
  });
  if (typeof claimed !== "function") return claimed.status;
  const connection = new FakeConnection(ref.direction);
  return { connection, events: claimed(connection) };
}

function setup() {
  const cluster = new FakeCluster();
  const [a, b] = [cluster.start(), cluster.start()];
  cluster.clock.tick(300);
  const { clock } = cluster;
  return { cluster, clock, a, b, refs: b.channels.create("w", 64) };
}

for (const [writerAt, readerAt] of [["a", "a"], ["a", "b"], ["b", "a"]] as const) {
  Deno.test(`a channel of b has its writer at ${writerAt} and its reader at ${readerAt}`, async () => {
    const it = setup();
    const [writer, reader] = [
      connect(it[writerAt], it.refs.writer) as End,
      connect(it[readerAt], it.refs.reader) as End,
    ];
    it.clock.tick(10);

    writer.events.text('{"é":1}');
    writer.events.binary(new Uint8Array([1, 2, 3]));
    writer.events.binary(new Uint8Array(300_000).fill(7));
    writer.events.closed(1000, "stream_complete");
    it.clock.tick(20);

    assert.deepEqual(reader.connection.takeTexts(), ['{"é":1}']);
    const bytes = reader.connection.takeBinaries();
    assert.deepEqual([...bytes[0]!], [1, 2, 3]);
    assert.equal(bytes[1]!.length, 300_000);
    assert.deepEqual(reader.connection.closing, { code: 1000, reason: "stream_complete" });
    reader.events.closed(1000, "");
    it.clock.tick(20);
    await Promise.resolve();
    assert.equal(it.b.channels.stats.open, 0);
    it.cluster.stop();
  });
}

Deno.test("a reference of another engine names it, and a wrong key is refused there", () => {
  const { cluster, clock, a, b, refs } = setup();
  assert.ok(refs.writer.channel_id.startsWith(`${b.life}.`));

  const end = connect(a, { ...refs.writer, access_key: refs.reader.access_key }) as End;
  clock.tick(10);

  assert.deepEqual(end.connection.closing, { code: 4001, reason: "Channel not found" });
  const unknown = { ...refs.writer, channel_id: `${"f".repeat(16)}.x` };
  assert.equal(connect(a, unknown), 404, "no such engine");
  cluster.stop();
});

Deno.test("a slow reader at another engine slows its writer down", () => {
  const { cluster, clock, a, b, refs } = setup();
  const [writer, reader] = [connect(a, refs.writer) as End, connect(b, refs.reader) as End];
  clock.tick(10);
  reader.connection.queuedBytes = 10_000_000; // It reads nothing.

  let sent = 0;
  for (; !writer.connection.paused && sent < 1_000; sent++) {
    writer.events.binary(new Uint8Array(10_000));
    clock.tick(5);
  }
  assert.ok(sent < 100, `${sent} frames were read`);
  clock.tick(2_000);
  assert.ok(writer.connection.paused);

  reader.connection.queuedBytes = 0;
  reader.events.drained();
  clock.tick(10);
  assert.equal(writer.connection.paused, false);
  cluster.stop();
});

Deno.test("a writer waits for a slow reader at another engine than the channel's", () => {
  const { cluster, clock, a, b, refs } = setup();
  const [writer, reader] = [connect(b, refs.writer) as End, connect(a, refs.reader) as End];
  clock.tick(10);
  reader.connection.queuedBytes = 10_000_000;

  for (let i = 0; !writer.connection.paused && i < 1_000; i++) {
    writer.events.binary(new Uint8Array(10_000));
    clock.tick(5);
  }
  assert.ok(writer.connection.paused);
  assert.ok(reader.connection.takeBinaries().length < 100);

  reader.connection.queuedBytes = 0;
  reader.events.drained();
  clock.tick(10);
  assert.equal(writer.connection.paused, false);
  cluster.stop();
});

Deno.test("when the engine of a channel is gone, its stream is not whole", () => {
  const { cluster, clock, a, b, refs } = setup();
  const reader = connect(a, refs.reader) as End;
  connect(b, refs.writer);
  clock.tick(10);

  b.kill();
  clock.tick(500);

  assert.equal(reader.connection.closing?.code, 4001);
  cluster.stop();
});

Deno.test("when the engine of an end is gone, the other end learns of it", () => {
  const { cluster, clock, a, b, refs } = setup();
  const reader = connect(b, refs.reader) as End;
  connect(a, refs.writer);
  clock.tick(10);

  a.kill();
  clock.tick(500);

  assert.equal(reader.connection.closing?.code, 4001);
  assert.match(reader.connection.closing!.reason, /gone/);
  reader.events.closed(4001, "");
  assert.equal(b.channels.stats.open, 0);
  cluster.stop();
});

Deno.test("the reader leaves, and the writer at another engine learns of it", () => {
  const { cluster, clock, a, b, refs } = setup();
  const [writer, reader] = [connect(a, refs.writer) as End, connect(b, refs.reader) as End];
  clock.tick(10);

  reader.events.closed(1000, "");
  clock.tick(10);

  assert.deepEqual(writer.connection.closing, { code: 1000, reason: "reader_closed" });
  cluster.stop();
});
