import assert from "node:assert/strict";
import { BodyReadTurns, type ByteStream, Input } from "./input.ts";

/** A connection whose reads the test answers. */
function setup() {
  const reads: { into: Uint8Array; answer: (count: number | null) => void }[] = [];
  const stream: ByteStream = {
    read: (into) => new Promise((answer) => reads.push({ into, answer })),
    write: (bytes) => Promise.resolve(bytes.length),
    closeWrite: () => Promise.resolve(),
    close() {},
  };
  const receive = (text: string) => {
    const { into, answer } = reads.shift()!;
    answer(new TextEncoder().encodeInto(text, into).written);
  };
  const turns = new BodyReadTurns({ after: () => () => {} });
  return { input: new Input(stream, turns), stream, reads, receive };
}

async function readText(stream: ByteStream, bytes = 100): Promise<string | null> {
  const into = new Uint8Array(bytes);
  const count = await stream.read(into);
  return count === null ? null : new TextDecoder().decode(into.subarray(0, count));
}

Deno.test("Input.handOver() gives what waits, and the connection itself", async () => {
  const { input, stream, receive } = setup();
  const filled = input.fill(8_192);
  receive("rest");
  await filled;

  const handed = input.handOver();

  assert.equal(new TextDecoder().decode(handed.rest), "rest");
  assert.equal(handed.stream, stream);
  assert.equal(input.waiting, 0);
});

Deno.test("Input.handOver() while the client is watched loses nothing of what comes first", async () => {
  const { input, receive, reads } = setup();
  input.watch(() => {});

  const { stream, rest } = input.handOver();
  assert.equal(rest.length, 0);
  const first = readText(stream, 3);
  assert.equal(reads.length, 1, "there is one read of the socket at a time");
  receive("hello");

  assert.equal(await first, "hel");
  assert.equal(await readText(stream), "lo");
  const next = readText(stream);
  receive("more");
  assert.equal(await next, "more");
});

Deno.test("Input.handOver() passes the end on that came while the client was watched", async () => {
  const { input, reads } = setup();
  let gone = 0;
  input.watch(() => gone++);
  const { stream } = input.handOver();

  reads.shift()!.answer(null);

  assert.equal(await readText(stream), null);
  assert.equal(await readText(stream), null);
  assert.equal(gone, 1);
});
