import assert from "node:assert/strict";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import type { LocalEnd } from "../ports/channels.ts";
import type { ConnectionEvents } from "../ports/connection.ts";
import { UNLIMITED_MEMORY } from "../ports/memory.ts";
import { Offers } from "./offers.ts";

/** An end in this process that records what it gets. */
class FakeEnd extends FakeConnection implements LocalEnd {
  events: ConnectionEvents | undefined;

  connected(events: ConnectionEvents): void {
    this.events = events;
  }
}

function setup() {
  let moved = 0;
  const offers = new Offers({ memory: UNLIMITED_MEMORY, moved: (bytes) => moved += bytes });
  const made: FakeEnd[] = [];
  const make = (name: string) => () => made[made.push(new FakeEnd(name)) - 1]!;
  const ends = { writerEnd: make("writer"), readerEnd: make("reader") };
  return { offers, ends, made, moved: () => moved };
}

Deno.test("a reader connects to a writing end, which is created then", async () => {
  const { offers, ends, made, moved } = setup();
  const offered = offers.offer(ends);
  const { reader: ref } = offered;
  assert.equal(ref.direction, "read");
  assert.equal(made.length, 0);

  const channel = offers.claim(ref.channel_id, "read", ref.access_key)!;
  const reader = new FakeConnection("reader");
  const events = channel.claimReader(reader)!;
  await Promise.resolve();
  const [end] = made;
  end!.events!.binary(new Uint8Array(3));
  end!.events!.closed(1000, "");

  assert.equal(reader.takeBinaries()[0]?.length, 3);
  assert.equal(reader.closing?.code, 1000);
  assert.equal(moved(), 3);
  events.closed(1000, "");
  assert.equal(offers.size, 1);
  offered.withdraw();
  assert.equal(offers.size, 0);
});

Deno.test("a writer connects to a reading end, which is created then", async () => {
  const { offers, ends, made } = setup();
  const offered = offers.offer(ends);
  const { writer: ref } = offered;

  const channel = offers.claim(ref.channel_id, "write", ref.access_key)!;
  const writer = new FakeConnection("writer");
  const events = channel.claimWriter(writer)!;
  await Promise.resolve();
  events.text("hello");
  const [end] = made;
  offered.withdraw();
  assert.equal(offers.size, 1);
  end!.events!.closed(1000, "");

  assert.deepEqual(end!.takeTexts(), ["hello"]);
  assert.equal(writer.closing?.reason, "reader_closed");
  assert.equal(offers.size, 0);
  assert.equal(made.length, 1);
});

Deno.test("only the reference itself claims an end, and only once", () => {
  const { offers, ends, made } = setup();
  const { reader: { channel_id, access_key }, writer } = offers.offer(ends);

  assert.equal(offers.claim(channel_id, "read", "k"), undefined);
  assert.equal(offers.claim(channel_id, "read", "0".repeat(32)), undefined);
  assert.equal(offers.claim(channel_id, "write", access_key), undefined);
  assert.equal(offers.claim(channel_id, "read", writer.access_key), undefined);
  assert.equal(offers.claim(writer.channel_id, "write", access_key), undefined);
  for (
    const id of ["local-0", "local-0-2-r", "local--1-1-r", "local-1-1-r", "local-0-1", "local-0-1x"]
  ) {
    assert.equal(offers.claim(id, "read", access_key), undefined, id);
  }
  assert.equal(made.length, 0);
  const channel = offers.claim(channel_id, "read", access_key)!;
  channel.claimReader(new FakeConnection("reader"));

  const again = offers.claim(channel_id, "read", access_key);
  assert.equal(again?.claimReader(new FakeConnection("second")), undefined);
});

Deno.test("an end that was in use cannot be claimed again when its channel has ended", () => {
  const { offers, ends } = setup();
  const { reader: { channel_id, access_key } } = offers.offer(ends);
  const channel = offers.claim(channel_id, "read", access_key)!;
  channel.claimReader(new FakeConnection("reader"))!.closed(1000, "");

  const again = offers.claim(channel_id, "read", access_key);

  assert.equal(again?.claimReader(new FakeConnection("second")), undefined);
});

Deno.test("an offer that is withdrawn leaves its place to another, whose references differ", () => {
  const { offers, ends } = setup();
  const first = offers.offer(ends);
  first.withdraw();
  first.withdraw();
  assert.equal(offers.size, 0);

  const { reader } = offers.offer(ends);

  assert.equal(offers.size, 1);
  assert.notEqual(reader.channel_id, first.reader.channel_id);
  const { channel_id, access_key } = first.reader;
  assert.equal(offers.claim(channel_id, "read", access_key), undefined);
  assert.equal(offers.claim(reader.channel_id, "read", access_key), undefined);
});

Deno.test("withdraw() leaves a channel that is claimed, and the other end to none", () => {
  const { offers, ends } = setup();
  const offered = offers.offer(ends);
  const { channel_id, access_key } = offered.reader;
  const reader = new FakeConnection("reader");
  offers.claim(channel_id, "read", access_key)!.claimReader(reader);

  offered.withdraw();
  assert.equal(offers.size, 1);
  const { writer } = offered;
  assert.equal(offers.claim(writer.channel_id, "write", writer.access_key), undefined);
  offers.close(1001, "stopping");

  assert.equal(reader.closing?.code, 1001);
  assert.equal(offers.size, 0);
});

Deno.test("keys are random and do not repeat", () => {
  const { offers, ends } = setup();

  const keys = new Set<string>();
  for (let i = 0; i < 500; i++) {
    const { reader, writer } = offers.offer(ends);
    keys.add(reader.access_key).add(writer.access_key);
  }

  assert.equal(keys.size, 1_000);
  assert.ok([...keys].every((key) => /^[0-9a-f]{32}$/.test(key)));
});
