import assert from "node:assert/strict";
import { isChannelRef } from "./channels.ts";

const REF = { channel_id: "c", access_key: "k", direction: "read" };

Deno.test("an object with the three fields is a reference, also with further ones", () => {
  assert.ok(isChannelRef(REF));
  assert.ok(isChannelRef({ ...REF, direction: "write" }));
  assert.ok(isChannelRef({ ...REF, size: 5 }));
});

for (
  const value of [
    null,
    "text",
    5,
    [],
    {},
    { ...REF, channel_id: 5 },
    { ...REF, access_key: null },
    { ...REF, direction: "both" },
    { channel_id: "c", access_key: "k" },
  ]
) {
  Deno.test(`${JSON.stringify(value)} is no reference`, () => {
    assert.equal(isChannelRef(value), false);
  });
}
