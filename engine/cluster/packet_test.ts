import assert from "node:assert/strict";
import { HEAD_BYTES, KIND, makeMessage, makePacket, readHead, readMessage } from "./packet.ts";

Deno.test("a head is read as it was written", () => {
  const head = { number: 4_294_967_295, acknowledged: 2 ** 40, isLast: true };

  const packet = makePacket(KIND.part, 7, new Uint8Array([1, 2]), head);

  assert.equal(packet.length, HEAD_BYTES + 2);
  assert.deepEqual(readHead(packet), { kind: KIND.part, epoch: 7, ...head });
});

Deno.test("bytes that are no packet have no head", () => {
  assert.equal(readHead(new Uint8Array(0)), undefined);
  assert.equal(readHead(new Uint8Array(HEAD_BYTES - 1).fill(1)), undefined);
  assert.equal(readHead(new Uint8Array(HEAD_BYTES)), undefined, "no kind");
  assert.equal(readHead(makePacket(KIND.control + 1, 1)), undefined, "an unknown kind");
  assert.equal(readHead(makePacket(KIND.data, 1, undefined, { acknowledged: NaN })), undefined);
  assert.equal(readHead(makePacket(KIND.data, 1, undefined, { acknowledged: -1 })), undefined);
});

Deno.test("a message is read as it was written, and a body that is none is no message", () => {
  const message = { type: "load", functions: [["é\\", "default", 1, 2]] };

  assert.deepEqual(readMessage(makeMessage(KIND.control, 1, message)), message);
  assert.equal(readMessage(makePacket(KIND.control, 1, new Uint8Array([0xff]))), undefined);
});
