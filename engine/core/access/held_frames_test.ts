import assert from "node:assert/strict";
import { FakeConnection } from "../../../tests/fakes/fake_connection.ts";
import { createMemoryBudget } from "../../platform/memory_budget.ts";
import { HELD_BYTES, HeldFrames } from "./held_frames.ts";

function setup(limitBytes = 1024 * 1024) {
  const connection = new FakeConnection("c");
  const memory = createMemoryBudget(limitBytes);
  const seen: string[] = [];
  let ended = 0;
  const held = new HeldFrames(connection, memory, () => ended++);
  let pauses = 0;
  const receiver = {
    peer: {
      pauseReading: () => (pauses++, true),
      resumeReading: () => void pauses--,
    },
    text: (text: string) => void seen.push(text),
    textBytes: (memory: Uint8Array, start: number, end: number, isPlain: boolean) =>
      void seen.push(`${new TextDecoder().decode(memory.subarray(start, end))}${isPlain}`),
    binary: (bytes: Uint8Array) => void seen.push(`binary ${bytes.length}`),
    drained: () => void seen.push("drained"),
    suspected: (is: boolean) => void seen.push(`suspected ${is}`),
    retire: () => seen.push("retire") > 0,
    closed: (code: number) => void seen.push(`closed ${code}`),
  };
  return { connection, memory, held, receiver, seen, ended: () => ended, pauses: () => pauses };
}

const bytes = (text: string) => new TextEncoder().encode(text);

Deno.test("frames are held in order, copied, and handed on by release()", () => {
  const { held, receiver, seen, memory } = setup();
  const first = bytes("--one--");
  held.textBytes(first, 2, 5, true);
  first.fill(0);
  held.text("t\\o");
  held.binary(new Uint8Array(3));

  assert.deepEqual(seen, []);
  held.release(receiver);
  held.text("four");

  assert.deepEqual(seen, ["onetrue", "t\\ofalse", "binary 3", "four"]);
  assert.equal(memory.usedBytes, 0);
});

Deno.test("a frame that is handed on can hold those behind it", () => {
  const { held, receiver, seen } = setup();
  const holding = {
    ...receiver,
    textBytes: (...args: Parameters<typeof receiver.textBytes>) => {
      receiver.textBytes(...args);
      held.hold();
    },
  };
  for (const text of ["1", "2", "3"]) held.text(text);

  held.release(holding);
  assert.deepEqual(seen, ["1true"]);
  held.text("4");
  held.release();

  assert.deepEqual(seen, ["1true", "2true"]);
  held.release();
  held.release();
  assert.deepEqual(seen, ["1true", "2true", "3true", "4true"]);
});

Deno.test("a peer that sends much meanwhile is not read, and read again after release()", () => {
  const { held, receiver, connection, pauses } = setup();

  held.text("x".repeat(HELD_BYTES));
  assert.equal(connection.paused, true);
  held.release(receiver);
  assert.equal(connection.paused, false);

  held.hold();
  held.text("x".repeat(HELD_BYTES));
  assert.equal(pauses(), 1);
  held.release();
  assert.equal(pauses(), 0);
});

Deno.test("a connection whose frames do not fit into the memory is closed with 1009", () => {
  const { held, connection, memory } = setup(1_000);

  held.text("x".repeat(2_000));

  assert.equal(connection.closing?.code, 1009);
  assert.equal(memory.usedBytes, 0);
});

Deno.test("a connection that closes while it is held frees its memory and is never received", () => {
  const { held, receiver, seen, memory, ended } = setup();
  held.text("one");

  held.closed(1006, "");
  held.release(receiver);
  held.closed(1006, "");

  assert.deepEqual([seen, memory.usedBytes, ended(), held.isClosed], [[], 0, 1, true]);
});

Deno.test("a close behind release() reaches the receiver, also while frames are held", () => {
  const { held, receiver, seen, ended, memory } = setup();
  held.release(receiver);
  held.drained();
  held.suspected(true);
  held.hold();
  held.text("never");

  assert.equal(held.retire(), true);
  held.closed(1001, "");

  assert.deepEqual(seen, ["drained", "suspected true", "retire", "closed 1001"]);
  assert.deepEqual([ended(), memory.usedBytes], [0, 0]);
});
