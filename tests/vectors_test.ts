/**
 * The golden frames, read by this SDK; the Python one reads the same files.
 *
 * A vector says who sends the frame (`direction`) and what it means: `message`, or the code of the
 * `error` it is refused with. `canonical`: writing the message gives the frame again.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  decodeEngineMessage,
  decodeWorkerMessage,
  encodeMessage,
} from "../sdk/typescript/wire/codec.ts";
import type { EngineMessage, WorkerMessage } from "../sdk/typescript/wire/protocol.ts";
import { readVectors } from "./fakes/source_tree.ts";

for (const vector of await readVectors()) {
  const decode = vector.direction === "worker" ? decodeWorkerMessage : decodeEngineMessage;

  Deno.test(`vector: ${vector.name}`, () => {
    if (vector.error !== undefined) {
      assert.throws(() => decode(vector.frame), { name: "EngineError", code: vector.error });
      return;
    }
    assert.deepEqual(decode(vector.frame), vector.message);
    const message = vector.message as unknown as WorkerMessage | EngineMessage;
    if (vector.canonical) assert.equal(encodeMessage(message), vector.frame);
    assert.deepEqual(decode(encodeMessage(message)), vector.message);
  });
}

Deno.test("vectors have names of their own", async () => {
  const names = (await readVectors()).map((vector) => vector.name);

  assert.equal(new Set(names).size, names.length);
});
