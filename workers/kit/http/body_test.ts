/**
 * Bodies of requests in every framing, cut at every byte.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { BodyError, RequestBody } from "./body.ts";
import { CHUNKED } from "./head.ts";
import {
  BodyReadTurns,
  type ByteStream,
  ClientGone,
  Input,
  TURN_BYTES,
  TURNS_PER_TICK,
} from "./input.ts";

/** A connection that brings these pieces, then ends. */
function streamOf(pieces: readonly string[]): ByteStream {
  const left = pieces.map((piece) => new TextEncoder().encode(piece));
  return {
    read(into) {
      const piece = left.shift();
      if (!piece) return Promise.resolve(null);
      const part = piece.subarray(0, into.length);
      into.set(part);
      if (part.length < piece.length) left.unshift(piece.subarray(part.length));
      return Promise.resolve(part.length);
    },
    write: (bytes) => Promise.resolve(bytes.length),
    closeWrite: () => Promise.resolve(),
    close() {},
  };
}

function setup(bytes: number, ...pieces: string[]) {
  const input = new Input(streamOf(pieces), new BodyReadTurns(new FakeClock()));
  return { input, body: new RequestBody(input, bytes, undefined) };
}

/** The whole body, read into buffers of this size. */
async function textOf(body: RequestBody, size = 7): Promise<string> {
  let text = "";
  for (;;) {
    const target = new Uint8Array(size);
    const count = await body.read(target);
    if (count === 0) return text;
    text += new TextDecoder().decode(target.subarray(0, count));
  }
}

const CHUNKS = "5\r\nhello\r\n1;ext=1\r\n \r\n0A\r\n0123456789\r\n0\r\ntrailer: x\r\n\r\n";

Deno.test("a chunked body is read whole, wherever it is cut", async () => {
  for (let cut = 0; cut <= CHUNKS.length; cut++) {
    for (const size of [1, 7, 100]) {
      const pieces = [CHUNKS.slice(0, cut), `${CHUNKS.slice(cut)}GET /`].filter((part) => part);
      const { body, input } = setup(CHUNKED, ...pieces);

      assert.equal(await textOf(body, size), "hello 0123456789", `cut at ${cut}`);
      assert.equal(body.isDone, true);
      assert.equal(await body.read(new Uint8Array(1)), 0);
      assert.ok(input.waiting <= 5);
    }
  }
});

Deno.test("a chunked body comes byte by byte", async () => {
  const { body } = setup(CHUNKED, ...CHUNKS);

  assert.equal(await textOf(body), "hello 0123456789");
});

for (
  const wrong of [
    "x\r\n",
    "-1\r\n",
    "\r\n",
    "5 5\r\nhello\r\n",
    "5\nhello\r\n",
    "5\r\nhello!\r\n0\r\n\r\n",
    "5\r\nhelloX\n0\r\n\r\n",
    "1234567890123\r\n",
    `${"0".repeat(300)}`,
    "0\r\na\n\r\n\n",
    `0\r\n${"a: b\r\n".repeat(3_000)}\r\n`,
  ]
) {
  Deno.test(`a body with the chunks ${JSON.stringify(wrong).slice(0, 30)} is refused`, async () => {
    const { body } = setup(CHUNKED, wrong);

    await assert.rejects(textOf(body), BodyError);
  });
}

for (const bytes of [CHUNKED, 9]) {
  Deno.test(`a body of length ${bytes} that breaks off is an error`, async () => {
    const { body } = setup(bytes, bytes === CHUNKED ? "9\r\nhello" : "hello");

    await assert.rejects(textOf(body), ClientGone);
  });
}

Deno.test("a body of a declared length leaves the next request alone", async () => {
  const { body, input } = setup(5, "he", "lloGET /");

  assert.equal(await textOf(body), "hello");
  assert.equal(body.isDone, true);
  await input.fill(100);
  assert.equal(new TextDecoder().decode(input.bytes.subarray(input.start, input.end)), "GET /");
});

Deno.test("takeReceived() gives a body that is there, and nothing else", async () => {
  const { body, input } = setup(5, "hello!");
  assert.equal(body.takeReceived(), undefined);
  await input.fill(100);

  assert.equal(new TextDecoder().decode(body.takeReceived()), "hello");
  assert.equal(body.isDone, true);
  assert.equal(input.waiting, 1);
});

Deno.test("the client may go on before the first byte is read, once", async () => {
  let told = 0;
  const input = new Input(streamOf(["he", "llo"]), new BodyReadTurns(new FakeClock()));
  const body = new RequestBody(input, 5, () => Promise.resolve(void told++));
  assert.equal(told, 0);

  assert.equal(await textOf(body, 1), "hello");
  assert.equal(told, 1);
});

Deno.test("a body that was cancelled is read no further", async () => {
  const { body } = setup(5, "hello");
  assert.equal(await body.read(new Uint8Array(2)), 2);

  body.cancel();

  await assert.rejects(body.read(new Uint8Array(2)), ClientGone);
});

Deno.test("a body of many bytes lets others have a turn", async () => {
  const clock = new FakeClock();
  const piece = "x".repeat(64 * 1024);
  const input = new Input(streamOf(Array<string>(64).fill(piece)), new BodyReadTurns(clock));
  const body = new RequestBody(input, 64 * piece.length, undefined);

  const whole = textOf(body, piece.length);
  let turns = 0;
  for (let i = 0; i < 10_000; i++) {
    await Promise.resolve();
    if (clock.waiting > 0) {
      turns++;
      clock.tick(0);
    }
  }

  assert.equal((await whole).length, 64 * piece.length);
  assert.equal(turns, 4);
});

/** A connection on which a body arrives as fast as it is read; counts the reads and their bytes. */
function endless(piece: string) {
  const counts = { reads: 0, bytes: 0 };
  const bytes = new TextEncoder().encode(piece.repeat(Math.ceil(TURN_BYTES * 4 / piece.length)));
  let at = 0;
  const stream = streamOf([]);
  stream.read = (into) => {
    const part = bytes.subarray(at, at + into.length);
    into.set(part);
    at = (at + part.length) % bytes.length;
    counts.reads++;
    counts.bytes += part.length;
    return Promise.resolve(part.length);
  };
  return { stream, counts };
}

for (
  const [what, length, piece, bytesMax] of [
    ["of many bytes", 2 ** 40, "x", TURN_BYTES],
    ["in chunks of one byte", CHUNKED, "1\r\nx\r\n", 16 * 1024],
  ] as const
) {
  Deno.test(`many bodies ${what} at once leave each tick to others`, async () => {
    const ticks: (() => void)[] = [];
    const turns = new BodyReadTurns({ after: (_, task) => (ticks.push(task), () => {}) });
    const clients = Array.from({ length: 20 }, () => endless(piece));
    let isOver = false;
    const readings = clients.map(async ({ stream }) => {
      const body = new RequestBody(new Input(stream, turns), length, undefined);
      const target = new Uint8Array(TURN_BYTES * 8);
      while (!isOver) await body.read(target);
    });
    const bytesOf = (): number => clients.reduce((sum, { counts }) => sum + counts.bytes, 0);
    /** What is read without another tick. */
    const read = async (): Promise<number> => {
      const before = bytesOf();
      for (let i = 0; i < 500; i++) await Promise.resolve();
      return bytesOf() - before;
    };
    await read(); // Each begins at once.

    for (let tick = 0; tick < 10; tick++) {
      for (const task of ticks.splice(0)) task();
      const bytes = await read();
      assert.ok(bytes > 0 && bytes <= TURNS_PER_TICK * bytesMax, `${bytes} bytes`);
    }
    const shares = clients.map(({ counts }) => counts.reads);
    assert.ok(Math.max(...shares) - Math.min(...shares) <= 80, `${shares}`);

    isOver = true;
    for (let i = 0; i < 100; i++) {
      for (const task of ticks.splice(0)) task();
      await read();
    }
    await Promise.all(readings);
  });
}
