import assert from "node:assert/strict";
import { UNLIMITED_MEMORY } from "../ports/memory.ts";
import { Outgoing } from "./outgoing.ts";
import { HEAD_BYTES, KIND, type LinkEnd, PACKET_BYTES, PART_BYTES, readHead } from "./packet.ts";

function setup(windowBytes = 1_000_000, memory = UNLIMITED_MEMORY) {
  const packets: Uint8Array[] = [];
  const failed: LinkEnd[] = [];
  let due: (() => void)[] = [];
  const outgoing = new Outgoing({
    epoch: 3,
    memory,
    publish: (packet) => packets.push(packet),
    defer: (task) => due.push(task),
    received: () => 17,
    fail: (reason) => failed.push(reason),
  }, windowBytes);
  const send = (bytes: number, fill = 1): void =>
    outgoing.send(new Uint8Array(4).fill(9), 4, new Uint8Array(bytes - 4).fill(fill), 0, bytes - 4);
  const endTick = (): void => {
    const tasks = due;
    due = [];
    for (const task of tasks) task();
  };
  return { outgoing, packets, failed, send, endTick };
}

/** Lengths of the frames in a packet. */
function framesOf(packet: Uint8Array): number[] {
  const view = new DataView(packet.buffer, packet.byteOffset, packet.length);
  const lengths: number[] = [];
  for (let at = HEAD_BYTES; at < packet.length; at += 4 + lengths.at(-1)!) {
    lengths.push(view.getUint32(at));
  }
  return lengths;
}

Deno.test("the frames of a tick share a packet, and the next tick has another", () => {
  const { packets, send, endTick } = setup();
  for (const bytes of [10, 20, 30]) send(bytes);
  assert.equal(packets.length, 0);
  endTick();
  send(40);
  endTick();

  assert.deepEqual(packets.map(framesOf), [[10, 20, 30], [40]]);
  const [first, second] = packets.map((packet) => readHead(packet)!);
  assert.deepEqual([first!.kind, first!.epoch, first!.number, first!.acknowledged], [1, 3, 0, 17]);
  assert.equal(second!.number, 1);
});

Deno.test("a frame is prefix and memory together", () => {
  const { outgoing, packets, endTick } = setup();

  outgoing.send(new Uint8Array([1, 2, 3]), 2, new Uint8Array([4, 5, 6, 7]), 1, 3);
  endTick();

  assert.deepEqual([...packets[0]!.subarray(HEAD_BYTES + 4)], [1, 2, 5, 6]);
});

Deno.test("a full packet is sent before the end of the tick; no memory is used twice", () => {
  const { packets, send, endTick } = setup(1e9);
  const copies: string[] = [];
  for (let i = 0; i < 100; i++) {
    send(30_000, i);
    while (copies.length < packets.length) copies.push(String(packets[copies.length]));
  }
  endTick();

  assert.ok(packets.length >= 50);
  for (const packet of packets) assert.ok(packet.length <= PACKET_BYTES + HEAD_BYTES + 4);
  assert.deepEqual(packets.slice(0, copies.length).map(String), copies);
  assert.deepEqual(packets.flatMap(framesOf), Array(100).fill(30_000));
});

Deno.test("a long frame goes in parts behind the frames before it", () => {
  const { packets, send, endTick } = setup(1e9);
  send(10);
  send(PACKET_BYTES + 1);
  send(2 * PART_BYTES + 5);
  endTick();

  const heads = packets.map((packet) => readHead(packet)!);
  assert.deepEqual(heads.map(({ kind, isLast }) => [kind, isLast]), [
    [KIND.data, false],
    [KIND.part, true],
    [KIND.part, false],
    [KIND.part, false],
    [KIND.part, true],
  ]);
  assert.deepEqual(heads.map(({ number }) => number), [0, 1, 2, 3, 4]);
  assert.deepEqual(packets.slice(2).map(({ length }) => length - HEAD_BYTES), [
    PART_BYTES,
    PART_BYTES,
    5,
  ]);
  assert.deepEqual([...packets[2]!.subarray(HEAD_BYTES, HEAD_BYTES + 5)], [9, 9, 9, 9, 1]);
});

Deno.test("what is beyond the window waits for acknowledgements, and counts as queued", () => {
  const { outgoing, packets, send, endTick } = setup(100_000);
  for (let i = 0; i < 10; i++) {
    send(50_000);
    endTick();
  }
  assert.equal(packets.length, 2);
  assert.equal(outgoing.queuedBytes, 8 * (50_000 + 4 + HEAD_BYTES));

  assert.equal(outgoing.acknowledge(packets[0]!.length), true);
  assert.equal(packets.length, 3);
  assert.equal(outgoing.acknowledge(packets[0]!.length), false, "the same again");
  assert.equal(outgoing.acknowledge(1e12), false, "more than was sent");
  while (outgoing.acknowledge(outgoing.sentBytes)) { /* Until nothing waits. */ }

  assert.equal(packets.length, 10);
  assert.deepEqual(packets.map((packet) => readHead(packet)!.number), [...Array(10).keys()]);
  assert.equal(outgoing.queuedBytes, 0);
});

Deno.test("without memory for what waits the link ends, and all of it is returned", () => {
  let used = 0;
  const memory = {
    ...UNLIMITED_MEMORY,
    take: (_use: unknown, bytes: number) => used + bytes <= 100_000 && (used += bytes) > 0,
    release: (_use: unknown, bytes: number) => void (used -= bytes),
  };
  const { outgoing, failed, send, endTick } = setup(10, memory as typeof UNLIMITED_MEMORY);
  for (let i = 0; i < 4; i++) {
    send(50_000);
    endTick();
  }

  assert.equal(failed[0], "behind");
  assert.ok(used > 50_000);
  outgoing.close();
  assert.equal(used, 0);
});

Deno.test("after its end nothing is sent", () => {
  const { outgoing, packets, send, endTick } = setup();
  send(10);
  outgoing.close();
  send(10);
  outgoing.sendControl(new Uint8Array(3));
  endTick();

  assert.equal(packets.length, 0);
});
