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
  return { offers, end: new FakeEnd("local"), moved: () => moved };
}

Deno.test("a reader connects to a writing end of this process", async () => {
  const { offers, end, moved } = setup();
  const { ref } = offers.offer("read", end);
  assert.equal(ref.direction, "read");

  const channel = offers.claim(ref.channel_id, "read", ref.access_key)!;
  const reader = new FakeConnection("reader");
  const events = channel.claimReader(reader)!;
  await Promise.resolve();
  end.events!.binary(new Uint8Array(3));
  end.events!.closed(1000, "");

  assert.equal(reader.takeBinaries()[0]?.length, 3);
  assert.equal(reader.closing?.code, 1000);
  assert.equal(moved(), 3);
  assert.equal(offers.size, 1);
  events.closed(1000, "");
  assert.equal(offers.size, 0);
});

Deno.test("a writer connects to a reading end of this process", async () => {
  const { offers, end } = setup();
  const { ref } = offers.offer("write", end);

  const channel = offers.claim(ref.channel_id, "write", ref.access_key)!;
  const writer = new FakeConnection("writer");
  const events = channel.claimWriter(writer)!;
  await Promise.resolve();
  events.text("hello");
  end.events!.closed(1000, "");

  assert.deepEqual(end.takeTexts(), ["hello"]);
  assert.equal(writer.closing?.reason, "reader_closed");
  assert.equal(offers.size, 0);
});

Deno.test("only the reference itself claims an end, and only once", () => {
  const { offers, end } = setup();
  const { ref: { channel_id, access_key } } = offers.offer("read", end);

  assert.equal(offers.claim(channel_id, "read", "k"), undefined);
  assert.equal(offers.claim(channel_id, "read", "0".repeat(32)), undefined);
  assert.equal(offers.claim(channel_id, "write", access_key), undefined);
  for (const id of ["local-0", "local-0-2", "local--1-1", "local-1-1", "local-0-1x", "x"]) {
    assert.equal(offers.claim(id, "read", access_key), undefined, id);
  }
  const channel = offers.claim(channel_id, "read", access_key)!;
  channel.claimReader(new FakeConnection("reader"));

  const again = offers.claim(channel_id, "read", access_key);
  assert.equal(again?.claimReader(new FakeConnection("second")), undefined);
});

Deno.test("an offer that is withdrawn leaves its place to another, whose reference differs", () => {
  const { offers, end } = setup();
  const first = offers.offer("read", end);
  first.withdraw();
  first.withdraw();
  assert.equal(offers.size, 0);

  const { ref } = offers.offer("read", end);

  assert.equal(offers.size, 1);
  assert.notEqual(ref.channel_id, first.ref.channel_id);
  const { channel_id, access_key } = first.ref;
  assert.equal(offers.claim(channel_id, "read", access_key), undefined);
  assert.equal(offers.claim(ref.channel_id, "read", access_key), undefined);
});

Deno.test("withdraw() leaves a channel that is claimed, close() ends it", () => {
  const { offers, end } = setup();
  const offer = offers.offer("read", end);
  const { channel_id, access_key } = offer.ref;
  const reader = new FakeConnection("reader");
  offers.claim(channel_id, "read", access_key)!.claimReader(reader);

  offer.withdraw();
  assert.equal(offers.size, 1);
  offers.close(1001, "stopping");

  assert.equal(reader.closing?.code, 1001);
  assert.equal(offers.size, 0);
});

Deno.test("keys are random and do not repeat", () => {
  const { offers, end } = setup();

  const keys = new Set<string>();
  for (let i = 0; i < 1_000; i++) keys.add(offers.offer("read", end).ref.access_key);

  assert.equal(keys.size, 1_000);
  assert.ok([...keys].every((key) => /^[0-9a-f]{32}$/.test(key)));
});
