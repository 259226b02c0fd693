import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import type { ChannelRef } from "../../sdk/typescript/wire/channels.ts";
import {
  CHANNEL_SWEEP_MS,
  CHANNEL_UNCLAIMED_MS,
  CHANNELS_MAX,
  CHANNELS_PER_OWNER_MAX,
} from "../ports/channels.ts";
import { UNLIMITED_MEMORY } from "../ports/memory.ts";
import { ChannelTable } from "./channel_table.ts";

Deno.test("ChannelTable.create() makes two references with keys of their own", () => {
  const { table } = setup();

  const { writer, reader } = table.create("w", 64);

  assert.equal(writer.channel_id, reader.channel_id);
  assert.notEqual(writer.access_key, reader.access_key);
  assert.deepEqual([writer.direction, reader.direction], ["write", "read"]);
  assert.deepEqual(table.stats, { open: 1, created: 1, bytes: 0 });
});

Deno.test("ends that connect exchange what is sent, and the channel ends with them", () => {
  const { table, connect } = setup();
  const { writer, reader } = table.create("w", 64);
  const [from, to] = [connect(writer), connect(reader)];

  from.events.binary(new Uint8Array(5));
  from.events.closed(1000, "");
  assert.equal(to.connection.takeBinaries()[0]?.length, 5);
  assert.equal(to.connection.closing?.code, 1000);
  to.events.closed(1000, "");

  assert.deepEqual(table.stats, { open: 0, created: 1, bytes: 5 });
});

Deno.test("a second connection of an end is closed at once, and the first goes on", () => {
  const { table, connect } = setup();
  const { writer, reader } = table.create("w", 64);
  const [from, to] = [connect(writer), connect(reader)];

  for (const ref of [writer, reader]) {
    const second = connect(ref);
    assert.equal(second.connection.closing?.code, 1008);
    second.events.closed(1008, "");
  }

  from.events.binary(new Uint8Array(1));
  assert.equal(to.connection.takeBinaries().length, 1);
});

for (
  const [what, status, change] of [
    ["an unknown id", 404, { channel_id: "nothing" }],
    ["no id", 404, { channel_id: "" }],
    ["a wrong key", 404, { access_key: "k" }],
    ["the key of the other end", 404, { direction: "read" }],
    ["a wrong key of the right length", 404, { access_key: crypto.randomUUID() }],
    ["an empty key", 400, { access_key: "" }],
    ["another direction", 400, { direction: "both" }],
    ["no direction", 400, { direction: "" }],
  ] as const
) {
  Deno.test(`${what} is refused with ${status}`, () => {
    const { table, ask } = setup();
    const { writer } = table.create("w", 64);

    const refused = ask({ ...writer, ...change } as ChannelRef);

    assert.ok(typeof refused !== "function");
    assert.equal(refused.status, status);
    assert.ok(!refused.message.includes(writer.access_key));
  });
}

Deno.test("a reference is of no use when its channel has ended", () => {
  const { table, connect, ask } = setup();
  const { writer, reader } = table.create("w", 64);
  connect(reader).events.closed(1000, "");

  assert.deepEqual(ask(writer), { status: 404, message: "Channel not found" });
});

Deno.test("a channel with an unclaimed end is removed in time, others stay", () => {
  const { table, connect, clock } = setup();
  const claimed = table.create("w", 64);
  const half = table.create("w", 64);
  table.create("w", 64);
  connect(claimed.writer);
  connect(claimed.reader);
  const { connection } = connect(half.writer);

  clock.tick(CHANNEL_UNCLAIMED_MS - 1);
  assert.equal(table.stats.open, 3);
  clock.tick(CHANNEL_SWEEP_MS);

  assert.equal(table.stats.open, 1);
  assert.equal(connection.closing?.code, 4001);
  assert.match(connection.closing?.reason ?? "", /did not connect within 300 s/);
});

Deno.test("no timer runs without channels", () => {
  const { table, connect, clock } = setup();
  const { reader } = table.create("w", 64);
  connect(reader).events.closed(1000, "");

  clock.tick(CHANNEL_SWEEP_MS);

  assert.equal(clock.waiting, 0);
});

Deno.test("channels of one worker are bounded, and those of another are not affected", () => {
  const { table, connect } = setup();
  const first = table.create("greedy", 64);
  for (let i = 1; i < CHANNELS_PER_OWNER_MAX; i++) table.create("greedy", 64);

  assert.throws(() => table.create("greedy", 64), { code: "overloaded" });
  table.create("other", 64);

  connect(first.reader).events.closed(1000, "");
  table.create("greedy", 64);
});

Deno.test("channels are bounded in all", () => {
  const { table } = setup();
  for (let i = 0; i < CHANNELS_MAX; i++) table.create(`w${i % 100}`, 64);

  assert.throws(() => table.create("one more", 64), { code: "overloaded" });
});

Deno.test("ChannelTable.close() ends every channel", () => {
  const { table, connect, clock } = setup();
  const { writer, reader } = table.create("w", 64);
  const [from, to] = [connect(writer), connect(reader)];
  table.create("w", 64);

  table.close();

  assert.deepEqual([from.connection.closing?.code, to.connection.closing?.code], [1001, 1001]);
  assert.equal(table.stats.open, 0);
  assert.equal(clock.waiting, 0);
});

function setup() {
  const clock = new FakeClock();
  const table = new ChannelTable({ clock, memory: UNLIMITED_MEMORY });
  const ask = ({ channel_id, access_key, direction }: ChannelRef) => {
    const query = new URLSearchParams({ key: access_key, dir: direction });
    const path = `/ws/channels/${channel_id}`;
    return table.claim({ path, query, headers: new Headers(), address: "127.0.0.1" });
  };
  const connect = (ref: ChannelRef) => {
    const accept = ask(ref);
    assert.ok(typeof accept === "function");
    const connection = new FakeConnection(ref.direction);
    return { connection, events: accept(connection) };
  };
  return { clock, table, ask, connect };
}
