import assert from "node:assert/strict";
import { channelUrl, shortReason } from "./socket.ts";

const REF = { channel_id: "c", access_key: "k", direction: "read" } as const;

for (
  const [engine, expected] of [
    ["ws://e:1", "ws://e:1/ws/channels/c?key=k&dir=read"],
    ["ws://e:1/", "ws://e:1/ws/channels/c?key=k&dir=read"],
    ["wss://e/base//?token=t", "wss://e/base/ws/channels/c?token=t&key=k&dir=read"],
  ] as const
) {
  Deno.test(`the ends of ${engine} are at ${expected}`, () => {
    assert.equal(channelUrl(engine, REF), expected);
  });
}

Deno.test("what a reference says cannot leave its place in the address", () => {
  const url = channelUrl("ws://e", { ...REF, channel_id: "../a?b#c", access_key: "k&dir=write" });

  assert.equal(url, "ws://e/ws/channels/..%2Fa%3Fb%23c?key=k%26dir%3Dwrite&dir=read");
});

Deno.test("a reason is cut so that it fits into a close frame", () => {
  assert.equal(shortReason("short"), "short");
  assert.equal(shortReason("é".repeat(100)), "é".repeat(61));
});
