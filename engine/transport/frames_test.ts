import assert from "node:assert/strict";
import {
  type FrameEvents,
  FrameReader,
  OPCODE,
  READ_BYTES_FIRST,
  truncateReason,
} from "./frames.ts";
import type { Pace } from "./tick_budget.ts";
import { LARGE_BYTES, type Outline, READ_BYTES_MAX } from "../ports/connection.ts";
import { textOf } from "../core/wire/bytes.ts";
import { membersOf } from "../core/wire/members.ts";

type Event = string | Uint8Array | { ping: Uint8Array } | { code: number; reason: string };

Deno.test("any cut of a stream gives the same messages, whatever masks and fragments", () => {
  const random = makeRandom(7);
  for (let round = 0; round < 300; round++) {
    const { stream, events: expected } = randomStream(random);
    const { reader, events } = setup();

    for (let at = 0; at < stream.length;) {
      const part = stream.subarray(at, at + 1 + random(round % 3 === 0 ? 9 : 9_000));
      feed(reader, part);
      at += part.length;
    }

    assert.deepEqual(events, expected);
  }
});

Deno.test("random bytes make the reader neither throw nor report anything after the end", () => {
  const random = makeRandom(11);
  for (let round = 0; round < 3_000; round++) {
    const { reader, events } = setup(1_000);
    const noise = Uint8Array.from({ length: 1 + random(400) }, () => random(256));
    // Half of them begin like a frame, so that more than the first byte is tried.
    if (round % 2) noise.set([0x80 | random(11), 0x80 | random(128)].slice(0, noise.length));

    feed(reader, noise);
    feed(reader, noise);

    const end = events.findIndex((event) => typeof event === "object" && "code" in event);
    assert.ok(end < 0 || end === events.length - 1);
  }
});

Deno.test("a valid stream with one bit changed makes the reader not throw", () => {
  const random = makeRandom(13);
  for (let round = 0; round < 1_000; round++) {
    const { stream } = randomStream(random);
    stream[random(stream.length)]! ^= 1 << random(8);

    feed(setup(100_000).reader, stream);
  }
});

Deno.test("a text keeps a byte order mark, characters of all lengths, and its exact end", () => {
  const texts = ["\ufeffa", "ü", "東京", "😀", "a\u0000b", "\u007f", ""];
  const { reader, events } = setup();

  for (const text of texts) feed(reader, frame(OPCODE.text, utf8(text)));

  assert.deepEqual(events, texts);
});

Deno.test("a character may be cut by fragments, and a half one at the end is 1007", () => {
  const [first, second] = [utf8("ü").subarray(0, 1), utf8("ü").subarray(1)];
  const { reader, events } = setup();

  feed(reader, frame(OPCODE.text, first, { fin: false }));
  feed(reader, frame(OPCODE.more, second));
  feed(reader, frame(OPCODE.text, first));
  feed(reader, frame(OPCODE.text, utf8("late")));

  assert.deepEqual(events, ["ü", { code: 1007, reason: "text that is not UTF-8" }]);
});

Deno.test("what is not UTF-8 is refused: too long, surrogates, beyond the last, a lone tail", () => {
  for (const bad of [[0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0x61, 0xbf]]) {
    const { reader, events } = setup();

    feed(reader, frame(OPCODE.text, Uint8Array.from(bad)));

    assert.deepEqual(events, [{ code: 1007, reason: "text that is not UTF-8" }]);
  }
});

Deno.test("close codes are those that RFC 6455 and its registry allow", () => {
  const allowed = [1000, 1001, 1002, 1003, 1007, 1011, 1014, 3000, 4999];
  const refused = [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535];

  for (const code of [...allowed, ...refused]) {
    const { reader, events } = setup();
    feed(reader, frame(OPCODE.close, Uint8Array.of(code >> 8, code & 255, ...utf8("why"))));

    const isAllowed = allowed.includes(code);
    const reason = isAllowed ? "why" : `close frame with code ${code}`;
    assert.deepEqual(events, [{ code: isAllowed ? code : 1002, reason }]);
  }
});

Deno.test("a close reason has to be UTF-8", () => {
  const { reader, events } = setup();

  feed(reader, frame(OPCODE.close, Uint8Array.of(3, 232, 0xff)));

  assert.deepEqual(events, [{ code: 1007, reason: "close reason that is not UTF-8" }]);
});

Deno.test("a size is refused when it is claimed, over all fragments and of 64 bits", () => {
  const reason = "message larger than 1000 bytes";
  const claims = (size: bigint): Uint8Array => {
    const header = new Uint8Array(14);
    header.set([0x82, 0xff]);
    new DataView(header.buffer).setBigUint64(2, size);
    return header;
  };

  for (const size of [1_001n, 1n << 31n, 1n << 32n, (1n << 64n) - 1n]) {
    const { reader, events } = setup(1_000);
    feed(reader, claims(size));
    assert.deepEqual(events, [{ code: 1009, reason }]);
  }
  const { reader, events } = setup(1_000);
  feed(reader, frame(OPCODE.text, new Uint8Array(600), { fin: false }));
  feed(reader, frame(OPCODE.more, new Uint8Array(400), { fin: false }));
  assert.deepEqual(events, []);
  feed(reader, frame(OPCODE.more, new Uint8Array(1)));
  assert.deepEqual(events, [{ code: 1009, reason }]);
});

Deno.test("memory grows with what comes, not with what a header claims", () => {
  const { reader } = setup();
  const claim = frame(OPCODE.text, new Uint8Array(60_000_000)).subarray(0, 20);

  feed(reader, claim);
  for (let i = 0; i < 2_000; i++) feed(reader, Uint8Array.of(0));

  assert.ok(reader.room().length <= READ_BYTES_FIRST * 4);
});

Deno.test("a full read enlarges the buffer, and shrinkBuffers() releases it", () => {
  const { reader } = setup();
  const busy = frame(OPCODE.text, new Uint8Array(50_000));
  feed(reader, joined(Array(20).fill(busy)));
  assert.equal(reader.room().length, READ_BYTES_MAX);

  reader.shrinkBuffers();
  feed(reader, frame(OPCODE.pong, new Uint8Array()));
  reader.shrinkBuffers();
  feed(reader, frame(OPCODE.pong, new Uint8Array()));

  assert.equal(reader.room().length, READ_BYTES_FIRST);
});

Deno.test("endsBehindHeader holds exactly while a header stands alone", () => {
  for (const size of [1, 125, 126, 65_536]) {
    const bytes = frame(OPCODE.text, new Uint8Array(size));
    const header = bytes.length - size;
    const { reader } = setup();

    const held = [...bytes.subarray(0, header + 2)].map((byte) => {
      feed(reader, Uint8Array.of(byte));
      return reader.endsBehindHeader;
    });

    assert.deepEqual(held.indexOf(true), header - 1);
    assert.equal(held.filter(Boolean).length, 1);
  }
});

Deno.test("pause() holds back what was read already, resume() lets it go on in order", () => {
  const { reader, events } = setup();
  const heard: string[] = [];
  const pausing = new FrameReader({
    ...ignore,
    text(memory, start, end) {
      heard.push(textOf(memory, start, end));
      pausing.pause();
    },
  }, 1_000);

  for (const one of [reader, pausing]) {
    feed(one, joined([frame(OPCODE.text, utf8("a")), frame(OPCODE.text, utf8("b"))]));
  }
  assert.deepEqual([events, heard], [["a", "b"], ["a"]]);
  pausing.read();
  assert.deepEqual(heard, ["a"]);
  pausing.resume();
  pausing.read();

  assert.deepEqual(heard, ["a", "b"]);
});

Deno.test("nothing is reported after stop(), also not when it comes from within a message", () => {
  const heard: string[] = [];
  const reader = new FrameReader({
    ...ignore,
    text(memory, start, end) {
      heard.push(textOf(memory, start, end));
      reader.stop();
    },
  }, 1_000);

  feed(reader, joined([frame(OPCODE.text, utf8("a")), frame(OPCODE.text, utf8("b"))]));
  reader.resume();
  feed(reader, frame(OPCODE.text, utf8("c")));

  assert.deepEqual(heard, ["a"]);
});

const ignore: FrameEvents = { text() {}, binary() {}, ping() {}, closeFrame() {}, violation() {} };

function setup(
  maxMessageBytes = 64 * 1024 * 1024,
  pace?: Pace,
): { reader: FrameReader; events: Event[] } {
  const events: Event[] = [];
  const reader = new FrameReader(
    {
      text: (memory, start, end) => void events.push(textOf(memory, start, end)),
      binary: (bytes) => void events.push(bytes.slice()),
      ping: (payload) => void events.push({ ping: payload.slice() }),
      closeFrame: (code, reason) => void events.push({ code, reason }),
      violation: (code, reason) => void events.push({ code, reason }),
    },
    maxMessageBytes,
    pace ? { pace } : {},
  );
  return { reader, events };
}

function feed(reader: FrameReader, bytes: Uint8Array): void {
  for (let rest = bytes; rest.length > 0;) {
    const room = reader.room();
    assert.ok(room.length > 0);
    const part = rest.subarray(0, room.length);
    room.set(part);
    reader.added(part.length);
    reader.read();
    rest = rest.subarray(part.length);
  }
}

function frame(
  opcode: number,
  payload: Uint8Array,
  { fin = true, mask = [0x12, 0x34, 0xd6, 0x78] }: { fin?: boolean; mask?: number[] } = {},
): Uint8Array<ArrayBuffer> {
  const size = payload.length;
  const length = size < 126
    ? [size]
    : size < 65_536
    ? [126, size >> 8, size & 255]
    : [127, 0, 0, 0, 0, size >>> 24, size >> 16 & 255, size >> 8 & 255, size & 255];
  length[0]! |= 0x80;
  const masked = payload.map((byte, i) => byte ^ mask[i & 3]!);
  return joined([Uint8Array.of((fin ? 0x80 : 0) | opcode, ...length, ...mask), masked]);
}

/** Messages whole and in fragments, with pings between, and what they come to. */
function randomStream(
  random: (below: number) => number,
): { stream: Uint8Array; events: Event[] } {
  const frames: Uint8Array[] = [];
  const events: Event[] = [];
  const mask = () => Array.from({ length: 4 }, () => random(256));
  for (let count = 1 + random(6); count > 0; count--) {
    const size = [0, 1, 125, 126, 3_000, 66_000][random(6)]! + random(5);
    const isText = random(2) === 0;
    const text = random(2) ? "x".repeat(size) : "aü東😀".repeat(1 + size / 10);
    const payload = isText ? utf8(text) : Uint8Array.from({ length: size }, () => random(256));
    const fragments = 1 + random(4);
    for (let i = 0, at = 0; i < fragments; i++) {
      const end = i === fragments - 1
        ? payload.length
        : Math.min(payload.length, at + random(size + 1));
      const opcode = i > 0 ? OPCODE.more : isText ? OPCODE.text : OPCODE.binary;
      const fin = i === fragments - 1;
      frames.push(frame(opcode, payload.subarray(at, end), { fin, mask: mask() }));
      at = end;
      if (random(3) > 0) continue;
      const ping = Uint8Array.from({ length: random(126) }, () => random(256));
      frames.push(frame(OPCODE.ping, ping, { mask: mask() }));
      if (!fin) events.push({ ping });
      else frames.pop();
    }
    events.push(isText ? text : payload);
  }
  return { stream: joined(frames), events };
}

function makeRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => (state = (state * 48_271) % 2_147_483_647) % below;
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function utf8(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

/** The messages of a batch, read so many at a time. */
function messagesOf(batch: string, atOnce = Infinity): string[] {
  const messages: string[] = [];
  const text = (memory: Uint8Array, start: number, end: number): void => {
    messages.push(new TextDecoder().decode(memory.subarray(start, end)));
  };
  const fail = (): void => assert.fail("only text is sent");
  const events = { text, binary: fail, ping: fail, closeFrame: fail, violation: fail };
  const pace = { credit: atOnce, isSpent: () => (pace.credit = atOnce) === atOnce };
  const reader = new FrameReader(events, 1_000, { isBatching: true, pace });
  const payload = [...new TextEncoder().encode(batch)];
  const frame = [0x81, 0x80 | payload.length, 0, 0, 0, 0, ...payload];
  reader.room().set(frame);
  reader.added(frame.length);
  for (let last = 0; reader.read(); last = messages.length) {
    assert.ok(messages.length - last <= atOnce, "it stops when the pace is spent");
  }
  return messages;
}

for (const atOnce of [Infinity, 1, 2]) {
  Deno.test(`a batch is what stands between newlines, in order, ${atOnce} at a time`, () => {
    assert.deepEqual(messagesOf("{}", atOnce), ["{}"]);
    const three = ['{"a":1}', '{"b":"ö"}', "[]"];
    assert.deepEqual(messagesOf(three.join("\n"), atOnce), three);
  });

  Deno.test(`empty lines of a batch, and an empty batch, are nothing, ${atOnce} at a time`, () => {
    assert.deepEqual(messagesOf("", atOnce), []);
    assert.deepEqual(messagesOf("\n", atOnce), []);
    assert.deepEqual(messagesOf("\n\n1\n\n\n2\n", atOnce), ["1", "2"]);
  });
}

Deno.test("a carriage return and a space of a batch stay: only a newline separates", () => {
  assert.deepEqual(messagesOf("1\r\n 2 \n"), ["1\r", " 2 "]);
});

Deno.test("truncateReason() leaves 123 bytes and cuts between characters", () => {
  assert.equal(truncateReason(""), "");
  assert.equal(truncateReason("x".repeat(123)), "x".repeat(123));
  assert.equal(truncateReason("x".repeat(124)), "x".repeat(123));
  assert.equal(truncateReason("ü".repeat(80)), "ü".repeat(61));
  assert.equal(truncateReason("xx" + "😀".repeat(40)), "xx" + "😀".repeat(30));
});

/** A JSON object of at least so many bytes. */
function largeJson(bytes: number, unit = '{"ü":[1]},'): string {
  return `{"type":"t","data":[${unit.repeat(bytes / utf8(unit).length)}1]}`;
}

/** Text messages with the members that their outlines have. */
interface Scanned {
  readonly text: string;
  readonly outline: Outline | undefined;
  readonly expected: ReturnType<typeof membersOf>;
}

/** The text messages of a stream that comes in reads of at most `readBytes`. */
function scanned(stream: Uint8Array, readBytes: number, isBatching = false): Scanned[] {
  const found: Scanned[] = [];
  const fail = (): void => assert.fail("only text is sent");
  const reader = new FrameReader(
    {
      text(memory, start, end, _isPlain, outline) {
        const expected = membersOf(memory, start, end);
        found.push({ text: textOf(memory, start, end), outline, expected });
      },
      binary: fail,
      ping() {},
      closeFrame: fail,
      violation: fail,
    },
    64 * 1024 * 1024,
    { isBatching },
  );
  for (let at = 0; at < stream.length;) {
    const room = reader.room().subarray(0, readBytes);
    const part = stream.subarray(at, at + room.length);
    room.set(part);
    reader.added(part.length);
    while (reader.read());
    at += part.length;
  }
  return found;
}

for (const readBytes of [65_537, 1_000_003, Infinity]) {
  Deno.test(`a large text has an outline, read ${readBytes} bytes at a time`, () => {
    const text = largeJson(LARGE_BYTES);
    const small = '{"type":"ping"}';
    const stream = joined([text, small, text].map((one) => frame(OPCODE.text, utf8(one))));

    const found = scanned(stream, readBytes);

    assert.deepEqual(found.map(({ text }) => text), [text, small, text]);
    assert.deepEqual(found.map(({ outline }) => outline === undefined), [false, true, false]);
    for (const { outline, expected } of [found[0]!, found[2]!]) {
      assert.ok(expected);
      assert.deepEqual(outline!.members, expected);
    }
  });

  Deno.test(`a large text in fragments has one, too, read ${readBytes} bytes at a time`, () => {
    const bytes = utf8(largeJson(2 * LARGE_BYTES));
    for (const cuts of [[3, 1_000_001], [LARGE_BYTES + 7], [2, LARGE_BYTES + 9]]) {
      const ends = [...cuts, bytes.length];
      const frames = ends.flatMap((end, i) => [
        frame(i === 0 ? OPCODE.text : OPCODE.more, bytes.subarray(ends[i - 1] ?? 0, end), {
          fin: i === ends.length - 1,
        }),
        ...i === ends.length - 1 ? [] : [frame(OPCODE.ping, utf8("between"))],
      ]);

      const [message, ...others] = scanned(joined(frames), readBytes);

      assert.equal(others.length, 0);
      assert.equal(message!.text, textOf(bytes, 0, bytes.length));
      assert.ok(message!.expected);
      assert.deepEqual(message!.outline?.members, message!.expected);
    }
  });
}

Deno.test("a large text that is no object has an outline without members", () => {
  const [message] = scanned(frame(OPCODE.text, utf8("x".repeat(LARGE_BYTES))), 1_000_000);

  assert.deepEqual(message!.outline, { members: undefined });
});

Deno.test("a large batch has an outline only if it is one message", () => {
  const text = largeJson(LARGE_BYTES);
  const batch = (content: string): Scanned[] =>
    scanned(frame(OPCODE.text, utf8(content)), 1_000_000, true);

  assert.deepEqual(batch(text)[0]!.outline!.members, batch(text)[0]!.expected);
  const two = batch(`${text}\n${text}`);
  assert.deepEqual(two.map(({ text }) => text), [text, text]);
  assert.deepEqual(two.map(({ outline }) => outline), [undefined, undefined]);
});

Deno.test("a large message is read in parts, and each part counts", () => {
  const spent: number[] = [];
  let received = 0;
  const pace = { credit: 0, isSpent: () => spent.push(received) > 0 };
  const { events, reader } = setup(64 * 1024 * 1024, pace);
  const bytes = frame(OPCODE.binary, new Uint8Array(LARGE_BYTES));

  for (; received < bytes.length;) {
    const room = reader.room();
    assert.ok(room.length <= 1024 * 1024, `a read of ${room.length} bytes`);
    const part = bytes.subarray(received, received + room.length);
    room.set(part);
    reader.added(part.length);
    received += part.length;
    // Others have their turn; then it waits for more.
    if (received > 20 && received < bytes.length) assert.ok(reader.read());
    assert.equal(reader.read(), received === bytes.length);
    // What came is unmasked, but for less than the length of the mask.
    const zeros = room.subarray(received === part.length ? 14 : 0, part.length - 3);
    assert.ok(zeros.every((byte) => byte === 0));
  }

  assert.equal(events.length, 1);
});
