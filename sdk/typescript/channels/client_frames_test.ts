import assert from "node:assert/strict";
import { EngineFrames, FrameBuffer, OPCODE } from "./client_frames.ts";

const BYTES_MAX = 1_000_000;

type Event = string | Uint8Array | { code: number; reason: string } | { ping: Uint8Array };

function setup(bytesMax = BYTES_MAX) {
  const events: Event[] = [];
  const frames = new EngineFrames({
    text: (text) => events.push(text),
    binary: (bytes) => events.push(bytes),
    ping: (ping) => events.push({ ping }),
    pong: () => events.push("pong"),
    closeFrame: (code, reason) => events.push({ code, reason }),
    violation: (reason) => events.push({ code: 1002, reason }),
  }, bytesMax);
  return { frames, events };
}

/** Gives bytes to the reader as a socket does, at most `most` at once. */
function feed(frames: EngineFrames, bytes: Uint8Array, most = Infinity): void {
  for (let at = 0; at < bytes.length;) {
    const room = frames.room();
    const part = bytes.subarray(at, at + Math.min(room.length, most));
    room.set(part);
    frames.added(part.length);
    at += part.length;
    frames.read();
  }
}

/** A frame of an engine. */
function frame(first: number, payload: Uint8Array): Uint8Array {
  const { length } = payload;
  if (length < 126) return Uint8Array.of(first, length, ...payload);
  const head = length < 65_536
    ? [first, 126, length >> 8, length & 255]
    : [first, 127, 0, 0, 0, 0, 0, length >> 16, length >> 8 & 255, length & 255];
  const whole = new Uint8Array(head.length + length);
  whole.set(head);
  whole.set(payload, head.length);
  return whole;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
const SIZES = [0, 1, 125, 126, 5_000, 65_535, 65_536, 200_000];

Deno.test("FrameBuffer writes frames with a mask of zero, of each length", () => {
  for (const size of SIZES) {
    const payload = new Uint8Array(size).fill(5);
    const buffer = new FrameBuffer();
    buffer.add(OPCODE.ping, new Uint8Array());
    buffer.add(OPCODE.binary, payload);

    const bytes = buffer.bytes();
    assert.deepEqual(bytes.slice(0, 6), Uint8Array.of(0x89, 0x80, 0, 0, 0, 0));
    const expected = frame(0x82, payload);
    expected[1]! |= 0x80;
    const head = expected.length - size;
    assert.deepEqual(bytes.slice(6, 6 + head), expected.slice(0, head));
    assert.deepEqual(bytes.slice(6 + head, 10 + head), new Uint8Array(4));
    assert.deepEqual(bytes.slice(10 + head), payload);
    buffer.clear();
    assert.equal(buffer.length, 0);
  }
});

Deno.test("any cut of a stream gives the same messages, which are the receiver's", () => {
  const parts = SIZES.map((size) => new Uint8Array(size).map((_, i) => i * 7 + size));
  const stream = joined([
    ...parts.map((part) => frame(0x82, part)),
    frame(0x81, utf8("héllo")),
    frame(0x89, utf8("ping")),
    frame(0x01, utf8("in ")),
    frame(0x8a, utf8("")),
    frame(0x80, utf8("parts")),
    frame(0x88, Uint8Array.of(0x0f, 0xa1, ...utf8("bye"))),
    frame(0x82, utf8("late")),
  ]);
  const rest = ["héllo", { ping: utf8("ping") }, "pong", "in parts"];
  const expected = [...parts, ...rest, { code: 4001, reason: "bye" }];
  for (const most of [1_000, 4_096, 70_000, Infinity]) {
    const { frames, events } = setup();

    feed(frames, stream, most);

    assert.deepEqual(events, expected);
  }
});

Deno.test("messages of one byte at a time are whole", () => {
  const { frames, events } = setup();

  feed(frames, joined([frame(0x82, new Uint8Array(300)), frame(0x81, utf8("x"))]), 1);

  assert.deepEqual(events, [new Uint8Array(300), "x"]);
});

Deno.test("a reader that is paused reports nothing, and all of it later", () => {
  const { frames, events } = setup();
  frames.pause();
  feed(frames, joined([frame(0x81, utf8("a")), frame(0x81, utf8("b"))]));
  assert.deepEqual(events, []);

  frames.resume();
  frames.read();

  assert.deepEqual(events, ["a", "b"]);
});

for (
  const [what, bytes] of Object.entries({
    "a mask": [0x82, 0x81, 0, 0, 0, 0, 1],
    "a reserved bit": [0xc2, 0],
    "an unknown opcode": [0x83, 0],
    "an unknown control frame": [0x8b, 0],
    "a continuation of nothing": [0x80, 0],
    "a message between fragments": [0x01, 0, 0x81, 0],
    "a fragmented ping": [0x09, 0],
    "a large ping": [0x89, 126, 0, 126, ...new Uint8Array(126)],
    "a message that is too large": [0x82, 127, 0, 0, 0, 0, 0x7f, 0, 0, 0],
  })
) {
  Deno.test(`${what} ends the connection, and nothing follows`, () => {
    const { frames, events } = setup();

    feed(frames, Uint8Array.of(...bytes, 0x81, 0));

    assert.equal(events.length, 1);
    assert.equal((events[0] as { code: number }).code, 1002);
  });
}

Deno.test("random bytes make the reader neither throw nor report anything after the end", () => {
  let seed = 7;
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff;
    return seed % below;
  };
  for (let round = 0; round < 2_000; round++) {
    const { frames, events } = setup(1_000);
    const noise = Uint8Array.from({ length: 1 + random(400) }, () => random(256));
    if (round % 2) noise.set([0x80 | random(11), random(128)].slice(0, noise.length));

    feed(frames, noise);

    const end = events.findIndex((event) => typeof event === "object" && "code" in event);
    assert.ok(end < 0 || end === events.length - 1);
  }
});
