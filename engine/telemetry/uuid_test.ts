/**
 * UUIDs as four words of 32 bits.
 *
 * @module
 */
import assert from "node:assert/strict";
import { bytesOf } from "../core/wire/bytes.ts";
import { UUID_WORDS, uuidText, writeUuid } from "./uuid.ts";

function roundTrip(text: string): string | null {
  const words = new Uint32Array(UUID_WORDS + 2).fill(7);
  const memory = bytesOf(`0123456789${text}abcdef`);
  const isWritten = writeUuid(memory, 10, memory.length - 6, words, 1);
  assert.deepEqual([words[0], words.at(-1)], [7, 7]);
  assert.equal(isWritten, uuidText(words, 1) !== null);
  return uuidText(words, 1);
}

for (
  const text of [
    "00000000-1111-4000-8000-0000000000ff",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
    "00000000-0000-0000-0000-000000000001",
    "7d0e4b1e-9f0a-4f1b-8f4f-0123456789ab",
  ]
) {
  Deno.test(`writeUuid() keeps ${text}`, () => assert.equal(roundTrip(text), text));
}

for (
  const text of [
    "",
    "i1",
    "00000000-0000-0000-0000-000000000000",
    "7D0E4B1E-9F0A-4F1B-8F4F-0123456789AB",
    "7d0e4b1e-9f0a-4f1b-8f4f-0123456789a",
    "7d0e4b1e-9f0a-4f1b-8f4f-0123456789abc",
    "7d0e4b1e09f0a-4f1b-8f4f-0123456789ab",
    "00000001-0001-000x-8f4f-0123456789ab",
    "00000001-0001-0001-000x-0123456789ab",
    "00000001-0001-0001-0001-x123456789ab",
    "00000001-0001-0001-0001-0123456789ax",
    "x0000001-0001-0001-0001-0123456789ab",
    "{7d0e4b1e-9f0a-4f1b-8f4f-0123456789}",
  ]
) {
  Deno.test(`writeUuid() leaves "${text}" to others`, () => assert.equal(roundTrip(text), null));
}
