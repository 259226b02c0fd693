import assert from "node:assert/strict";
import { UNLIMITED_MEMORY } from "../ports/memory.ts";
import { Incoming } from "./incoming.ts";
import { HEAD_BYTES, KIND, type LinkEnd, makePacket, type NewHead, readHead } from "./packet.ts";

const encoder = new TextEncoder();

function setup(maxMessageBytes = 1_000) {
  const frames: string[] = [];
  const plain: boolean[] = [];
  const failed: LinkEnd[] = [];
  let controls = 0;
  const incoming = new Incoming({
    memory: UNLIMITED_MEMORY,
    maxMessageBytes,
    frame(memory, start, end, isPlain) {
      frames.push(new TextDecoder().decode(memory.subarray(start, end)));
      plain.push(isPlain);
    },
    control: () => controls++,
    fail: (reason) => failed.push(reason),
  });
  const take = (kind: number, number: number, body: Uint8Array, head: NewHead = {}): void => {
    const packet = makePacket(kind, 1, body, { ...head, number });
    incoming.take(readHead(packet)!, packet);
  };
  return { incoming, frames, plain, failed, take, controls: () => controls };
}

function framed(...texts: string[]): Uint8Array {
  const parts = texts.map((text) => encoder.encode(text));
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + 4 + length, 0));
  let at = 0;
  for (const part of parts) {
    new DataView(bytes.buffer).setUint32(at, part.length);
    bytes.set(part, at + 4);
    at += 4 + part.length;
  }
  return bytes;
}

Deno.test("frames come out in order, and it is known which have a backslash", () => {
  const { frames, plain, take, incoming } = setup();

  take(KIND.data, 0, framed("one", "t\\wo", ""));
  take(KIND.data, 1, framed("three"));

  assert.deepEqual(frames, ["one", "t\\wo", "", "three"]);
  assert.deepEqual(plain, [true, false, true, true]);
  assert.equal(incoming.handledBytes, 2 * HEAD_BYTES + 4 * 4 + 3 + 4 + 5);
});

Deno.test("parts become one frame", () => {
  const { frames, take } = setup();

  take(KIND.part, 0, encoder.encode("ab"));
  take(KIND.part, 1, encoder.encode("cd"));
  assert.deepEqual(frames, []);
  take(KIND.part, 2, encoder.encode("e"), { isLast: true });
  take(KIND.part, 3, encoder.encode("f"), { isLast: true });

  assert.deepEqual(frames, ["abcde", "f"]);
});

Deno.test("a gap ends the link; what comes twice or late is passed over", () => {
  const { frames, failed, take, incoming } = setup();

  take(KIND.data, 0, framed("a"));
  take(KIND.data, 0, framed("a"));
  assert.ok(incoming.checkNumber(1));
  assert.ok(incoming.checkNumber(0));
  assert.deepEqual(failed, []);
  take(KIND.data, 2, framed("c"));

  assert.deepEqual(frames, ["a"]);
  assert.deepEqual(failed, ["lost"]);
});

Deno.test("the number of a packet without one of its own tells of a lost last packet", () => {
  const { failed, incoming } = setup();

  assert.equal(incoming.checkNumber(1), false);

  assert.deepEqual(failed, ["lost"]);
});

Deno.test("control packets have numbers, too", () => {
  const { take, controls, frames } = setup();

  take(KIND.control, 0, encoder.encode("{}"));
  take(KIND.data, 1, framed("a"));

  assert.equal(controls(), 1);
  assert.deepEqual(frames, ["a"]);
});

Deno.test("lengths that do not fit end the link", () => {
  for (const body of [new Uint8Array([0, 0, 0]), new Uint8Array([255, 255, 255, 255, 1])]) {
    const { take, failed } = setup();
    take(KIND.data, 0, body);
    assert.deepEqual(failed, ["malformed"]);
  }
});

Deno.test("a message beyond the limit ends the link before it is whole", () => {
  const { take, failed, frames } = setup(10_000);

  take(KIND.part, 0, new Uint8Array(9_000));
  take(KIND.part, 1, new Uint8Array(9_000));

  assert.deepEqual(failed, ["long"]);
  assert.deepEqual(frames, []);
});

Deno.test("after its end nothing is handled", () => {
  const { take, frames, incoming } = setup();
  incoming.close();
  take(KIND.data, 0, framed("a"));

  assert.deepEqual(frames, []);
});
