import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import type { Turns, Work } from "../ports/turns.ts";
import { paceReading, SLICE_BYTES, SLICE_BYTES_MAX } from "./paced_reading.ts";

/** A socket whose reads a test makes, and turns that it gives. */
function setup() {
  let asked = 0;
  const socket = new Duplex({ read: () => void asked++, write: (_chunk, _coding, done) => done() });
  const waiting: Work[] = [];
  const turns: Turns = { queue: (work) => void waiting.push(work), isSpent: () => true };
  paceReading(socket, turns);
  const got: number[] = [];
  let isEnded = false;
  socket.on("data", (bytes: Uint8Array) => void got.push(bytes.length));
  socket.on("end", () => isEnded = true);
  /** Gives the next turn; whether there was work. */
  const turn = async (): Promise<boolean> => {
    const work = waiting.shift();
    if (work?.work()) waiting.push(work);
    await settled();
    return work !== undefined;
  };
  return { socket, got, turn, state: () => ({ asked, waits: waiting.length, isEnded }) };
}

const sumOf = (counts: readonly number[]): number => counts.reduce((sum, each) => sum + each, 0);

/** What a stream does behind the current tick is done. */
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

Deno.test("a small read goes on at once, and the next one is asked for", async () => {
  const { socket, got, state } = setup();
  await settled();
  const { asked } = state();

  assert.equal(socket.push(new Uint8Array(SLICE_BYTES)), true);
  await settled();

  assert.deepEqual(got, [SLICE_BYTES]);
  assert.deepEqual(state(), { asked: asked + 1, waits: 0, isEnded: false });
});

Deno.test("a large read comes in slices, one for each turn, and nothing is read until then", async () => {
  const { socket, got, turn, state } = setup();
  await settled();
  const { asked } = state();

  assert.equal(socket.push(new Uint8Array(64 * 1024)), false, "the platform stops reading");
  assert.deepEqual(got, [], "others have their turns first");
  await turn();
  assert.deepEqual(got, [SLICE_BYTES]);
  assert.equal(state().asked, asked);
  while (await turn());

  assert.equal(sumOf(got), 64 * 1024);
  assert.ok(got.length >= 8 && Math.max(...got) <= SLICE_BYTES_MAX);
  assert.equal(state().asked, asked + 1);
});

Deno.test("what follows a large read, the end included, waits behind it", async () => {
  const { socket, got, turn, state } = setup();

  socket.push(new Uint8Array(2 * SLICE_BYTES));
  socket.push(new Uint8Array(1));
  socket.push(null);
  await settled();
  assert.deepEqual([got, state().isEnded], [[], false]);
  while (await turn());

  assert.deepEqual([got.at(-1), state().isEnded], [1, true]);
});

Deno.test("slices that take long stay small", async () => {
  const { socket, got, turn } = setup();
  socket.on("data", () => {
    for (const end = performance.now() + 3; performance.now() < end;);
  });
  await settled();

  socket.push(new Uint8Array(16 * SLICE_BYTES));
  while (await turn());

  assert.deepEqual(got, Array.from({ length: 16 }, () => SLICE_BYTES));
});

Deno.test("a reader that is paused gets no more slices, and all of them when it goes on", async () => {
  const { socket, got, turn, state } = setup();
  socket.once("data", () => void socket.pause());

  socket.push(new Uint8Array(1024 * 1024));
  while (await turn());
  assert.equal(got.length, 1);
  assert.equal(state().waits, 0);
  socket.resume();
  await settled();
  while (await turn());

  assert.equal(sumOf(got), 1024 * 1024);
});

Deno.test("a socket that is destroyed hands on nothing more", async () => {
  const { socket, got, turn, state } = setup();

  socket.push(new Uint8Array(64 * 1024));
  await turn();
  socket.destroy();
  while (await turn());

  assert.equal(got.length, 1);
  assert.equal(state().waits, 0);
});
