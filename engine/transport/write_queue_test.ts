import assert from "node:assert/strict";
import { BATCH_CHARS_MAX } from "../../sdk/typescript/wire/limits.ts";
import {
  BlockPool,
  WRITE_BYTES_FIRST,
  WRITE_BYTES_MAX,
  WRITE_POOL_BYTES_MAX,
  WriteQueue,
} from "./write_queue.ts";
import { OPCODE } from "./frames.ts";

const TEXTS = [
  ...[0, 1, 125, 126, 127, 5_000, 65_535, 65_536, 400_000].map((size) => "x".repeat(size)),
  // Their bytes are many more than their characters, around every border of the header.
  ...[42, 63, 64, 21_845, 40_000, 200_000].map((size) => "ü".repeat(size)),
  ...[42, 43, 21_845, 21_846].map((size) => "東".repeat(size)),
  "a" + "😀".repeat(16_384),
];

Deno.test("texts come out as frames, in order, whatever their length, characters and parts", () => {
  const queue = new WriteQueue(new BlockPool());

  for (const text of TEXTS) {
    queue.text(text);
    const [memory, behind] = [utf8(`before${text}behind`), utf8("behind").length];
    queue.textBytes(utf8("head ???"), 5, memory, 6, memory.length - behind);
    queue.textBytes(memory, 0, utf8(text), 0, utf8(text).length);
  }

  const expected = TEXTS.flatMap((text) => [text, "head " + text, text]);
  assert.deepEqual(framesOf(taken(queue)).map(({ text }) => text), expected);
  assert.equal(queue.bytes, 0);
});

Deno.test("a half surrogate is sent as the replacement character", () => {
  const queue = new WriteQueue(new BlockPool());

  queue.text("a\ud83d");
  queue.text("\udc00".repeat(50_000));

  const [first, second] = framesOf(taken(queue));
  assert.equal(first!.text, "a\ufffd");
  assert.equal(second!.text, "\ufffd".repeat(50_000));
});

Deno.test("a character whose bytes are in both parts stays one", () => {
  const queue = new WriteQueue(new BlockPool());

  const smile = utf8("😀");
  for (const size of [0, 10_000]) {
    for (let cut = 0; cut <= smile.length; cut++) {
      const head = Uint8Array.of(0x61, ...smile.subarray(0, cut));
      const rest = Uint8Array.of(...smile.subarray(cut), ...utf8("x".repeat(size)));
      queue.textBytes(head, head.length, rest, 0, rest.length);
    }
  }

  const texts = framesOf(taken(queue)).map(({ text }) => text);
  assert.deepEqual(texts, [
    ...Array(5).fill("a😀"),
    ...Array(5).fill("a😀" + "x".repeat(10_000)),
  ]);
});

Deno.test("what is sent before a write takes it leaves in one block", () => {
  const queue = new WriteQueue(new BlockPool());

  for (let i = 0; i < 64; i++) queue.text("x".repeat(1_000));
  const bytes = queue.next()!.length;

  assert.equal(bytes, 64 * 1_004);
  assert.equal(queue.bytes, bytes);
});

Deno.test("a block that is being written stays as it is, and what follows goes behind it", () => {
  const queue = new WriteQueue(new BlockPool());
  queue.text("first");
  const block = queue.next()!;
  const before = block.slice();

  queue.text("second");
  queue.wrote(3);
  const rest = queue.next()!;

  assert.deepEqual(block, before);
  assert.deepEqual(rest, before.subarray(3));
  queue.wrote(rest.length);
  assert.deepEqual(framesOf(taken(queue)).map(({ text }) => text), ["second"]);
});

Deno.test("drop() forgets what is not being written and leaves whole frames", () => {
  const queue = new WriteQueue(new BlockPool());
  queue.text("being written");
  queue.next();
  queue.wrote(1);
  for (let i = 0; i < 10; i++) queue.text("x".repeat(WRITE_BYTES_MAX));

  queue.drop();
  assert.equal(queue.bytes, "being written".length + 1);
  queue.control(OPCODE.close, new Uint8Array());

  const left = taken(queue);
  assert.deepEqual(left.slice(-2), Uint8Array.of(0x88, 0));
  assert.equal(left.length, "being written".length + 1 + 2);
});

Deno.test("texts of a turn share a frame where the peer takes batches, one to a line", () => {
  const queue = new WriteQueue(new BlockPool(), true);
  const [head, rest] = [utf8('{"a":'), utf8("1}")];

  queue.text('{"first":"ü"}');
  queue.textBytes(head, head.length, rest, 0, rest.length);
  queue.text("{}");
  const bytes = taken(queue);

  assert.deepEqual(framesOf(bytes).map(({ text }) => text), ['{"first":"ü"}\n{"a":1}\n{}']);
  assert.equal(queue.bytes, 0);
});

Deno.test("a batch is whole before a write, a ping, a close frame and a binary message", () => {
  const queue = new WriteQueue(new BlockPool(), true);

  queue.text("1");
  queue.text("2");
  const written = queue.next()!.slice();
  queue.text("3");
  queue.control(OPCODE.ping, new Uint8Array());
  queue.text("4");
  queue.binary(Uint8Array.of(0x35));
  queue.text("6");

  assert.deepEqual(framesOf(written).map(({ text }) => text), ["1\n2"]);
  assert.deepEqual(framesOf(taken(queue)).map(({ text }) => text), [
    "1\n2",
    "3",
    "",
    "4",
    "5",
    "6",
  ]);
});

Deno.test("batches of every size have the header that they need, and an end", () => {
  for (const size of [1, 61, 62, 63, 125, 126, 4_000, 32_766, 32_767, 65_000, 70_000, 400_000]) {
    const queue = new WriteQueue(new BlockPool(), true);
    const texts = Array.from({ length: 9 }, (_, i) => `${i}`.padEnd(size, "x"));

    for (const text of texts) queue.text(text);
    const total = queue.bytes;
    const bytes = taken(queue);

    const frames = framesOf(bytes).map(({ text }) => text);
    assert.deepEqual(frames.join("\n").split("\n"), texts, `${size}`);
    assert.ok(frames.every((frame) => frame.length <= Math.max(size, BATCH_CHARS_MAX)), `${size}`);
    assert.ok(size > 70 || frames.length === 1, `${size}`);
    assert.ok(Math.abs(total - bytes.length) <= 6 * frames.length, `${size}`);
    assert.equal(queue.bytes, 0);
  }
});

Deno.test("a newline between the tokens of a batched message becomes a space, others stay", () => {
  const batched = new WriteQueue(new BlockPool(), true);
  const single = new WriteQueue(new BlockPool());
  const memory = utf8('{\n"a":\n\n"\\n"\r\n}');

  for (const queue of [batched, single]) queue.textBytes(memory, 1, memory, 1, memory.length);

  const texts = [batched, single].map((queue) => framesOf(taken(queue)).map(({ text }) => text));
  assert.deepEqual(texts, [['{ "a":  "\\n"\r }'], ['{\n"a":\n\n"\\n"\r\n}']]);
  assert.deepEqual(memory, utf8('{\n"a":\n\n"\\n"\r\n}'));
});

Deno.test("drop() takes an open batch along", () => {
  const queue = new WriteQueue(new BlockPool(), true);
  queue.text("lost");

  queue.drop();
  queue.control(OPCODE.close, new Uint8Array());
  queue.text("kept");

  assert.deepEqual(framesOf(taken(queue)).map(({ text }) => text), ["", "kept"]);
});

Deno.test("memory is used again, in the size that is needed, and not kept without bound", () => {
  const pool = new BlockPool();
  const small = pool.take(10);
  pool.give(small);
  const large = pool.take(WRITE_BYTES_MAX + 1);
  pool.give(large);
  const huge = pool.take(WRITE_POOL_BYTES_MAX + 1);
  pool.give(huge);

  assert.ok(small.length < WRITE_BYTES_FIRST);
  assert.equal(pool.take(WRITE_BYTES_FIRST).length, WRITE_BYTES_FIRST);
  assert.equal(pool.take(small.length), small);
  assert.notEqual(pool.take(10), small);
  assert.equal(pool.take(WRITE_BYTES_MAX + 2), large);
  assert.notEqual(pool.take(WRITE_POOL_BYTES_MAX + 1), huge);
});

Deno.test("blocks beyond what is kept are not kept, also those of a connection that ends", () => {
  const pool = new BlockPool();
  const queues = Array.from({ length: 4 }, () => new WriteQueue(pool));
  const bytes = WRITE_POOL_BYTES_MAX / 2;
  const blocks = queues.map((queue) => {
    queue.raw(new Uint8Array(bytes));
    return queue.next()!.buffer;
  });

  for (const queue of queues) queue.end();

  assert.deepEqual(queues.map((queue) => queue.bytes), [0, 0, 0, 0]);
  const taken = Array.from({ length: 3 }, () => pool.take(bytes).buffer);
  assert.deepEqual(taken.map((buffer) => blocks.indexOf(buffer)), [1, 0, -1]);
});
Deno.test("textBytes() copies before it returns, heads and rests of every length", () => {
  const queue = new WriteQueue(new BlockPool());
  const lengths = [0, 1, 63, 64, 65, 125, 126, 1_000, 65_535, 65_536];
  const expected: string[] = [];

  for (const headBytes of lengths) {
    for (const bytes of lengths) {
      const [head, memory] = [utf8("h".repeat(headBytes)), utf8("m".repeat(bytes))];
      queue.textBytes(head, headBytes, memory, 0, bytes);
      head.fill(0);
      memory.fill(0);
      expected.push("h".repeat(headBytes) + "m".repeat(bytes));
    }
  }

  const frames = framesOf(taken(queue));
  assert.ok(frames.every(({ first, text }, i) => first === 0x81 && text === expected[i]));
  assert.equal(frames.length, expected.length);
});

/** Everything that is due, written in pieces of odd sizes. */
function taken(queue: WriteQueue): Uint8Array {
  const parts: number[] = [];
  const all: Uint8Array[] = [];
  for (let block = queue.next(); block; block = queue.next()) {
    const count = Math.min(block.length, 70_001 + parts.length);
    all.push(block.slice(0, count));
    parts.push(count);
    queue.wrote(count);
  }
  const joined = new Uint8Array(parts.reduce((sum, count) => sum + count, 0));
  let at = 0;
  for (const part of all) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

function framesOf(bytes: Uint8Array): { first: number; text: string }[] {
  const frames = [];
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  for (let at = 0; at < bytes.length;) {
    const first = bytes[at]!;
    const short = bytes[at + 1]!;
    const header = short < 126 ? 2 : short === 126 ? 4 : 10;
    const size = header === 2
      ? short
      : header === 4
      ? view.getUint16(at + 2)
      : Number(view.getBigUint64(at + 2));
    assert.ok(header === 2 || size >= (header === 4 ? 126 : 65_536), "the shortest length");
    const payload = bytes.subarray(at + header, at + header + size);
    assert.equal(payload.length, size);
    frames.push({ first, text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(payload) });
    at += header + size;
  }
  return frames;
}

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
