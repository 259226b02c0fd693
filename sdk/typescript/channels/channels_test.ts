import assert from "node:assert/strict";
import { fakeEnds, settle } from "../../../tests/fakes/fake_channel_socket.ts";
import type { Json } from "../wire/protocol.ts";
import { Channels, mayHoldRefs } from "./channels.ts";
import { ChannelReader } from "./reader.ts";
import { ChannelWriter } from "./writer.ts";

const READ = { channel_id: "c", access_key: "k", direction: "read" } as const;
const WRITE = { channel_id: "d", access_key: "l", direction: "write" } as const;

function setup(isSilent = false) {
  const { setup: { open }, sockets } = fakeEnds(isSilent);
  return { channels: new Channels("ws://engine:1/base/?token=t", open), sockets };
}

Deno.test("Channels.revive() turns references anywhere in a value into ends", () => {
  const { channels } = setup();
  const value = { a: [1, { file: READ }], out: WRITE, text: "x" };

  const revived = channels.revive(structuredClone(value) as Json) as never as {
    a: [number, { file: ChannelReader }];
    out: ChannelWriter;
  };

  assert.ok(revived.a[1].file instanceof ChannelReader);
  assert.ok(revived.out instanceof ChannelWriter);
  assert.deepEqual(JSON.parse(JSON.stringify(revived)), value);
});

Deno.test("a value that is a reference becomes an end", () => {
  assert.ok(setup().channels.revive({ ...READ }) instanceof ChannelReader);
});

for (
  const value of [
    null,
    5,
    "text",
    [],
    { channel_id: "c" },
    { ...READ, direction: "both" },
    { ...READ, access_key: 5 },
  ]
) {
  Deno.test(`${JSON.stringify(value)} stays as it is`, () => {
    assert.deepEqual(setup().channels.revive(structuredClone(value)), value);
  });
}

Deno.test("a key __proto__ stays a key", () => {
  const value = JSON.parse(`{"__proto__":${JSON.stringify(READ)}}`);

  const revived = setup().channels.revive(value) as object;

  assert.deepEqual(Object.keys(revived), ["__proto__"]);
  assert.equal(Object.getPrototypeOf(revived), Object.prototype);
});

Deno.test("only a frame with an access key is searched", () => {
  assert.equal(mayHoldRefs('{"data":{"access_key":"k"}}'), true);
  assert.equal(mayHoldRefs('{"data":{"key":"access_key"}}'), true);
  assert.equal(mayHoldRefs('{"data":{"a":1}}'), false);
});

Deno.test("the address of an end keeps path and query of the engine's", async () => {
  const { channels, sockets } = setup();

  await (channels.end(WRITE) as ChannelWriter).write("x");

  assert.equal(sockets[0]!.url, "ws://engine:1/base/ws/channels/d?token=t&key=l&dir=write");
});

Deno.test("Channels.close() ends open ends, and those that open later", async () => {
  const { channels, sockets } = setup();
  const writer = channels.end(WRITE) as ChannelWriter;
  await writer.write("x");
  const reading = (channels.end(READ) as ChannelReader).read();
  await settle();

  channels.close();

  assert.ok(sockets.every(({ isTerminated }) => isTerminated));
  await assert.rejects(reading, { code: "SHUTDOWN" });
  await assert.rejects(writer.write("y"), { code: "SHUTDOWN" });
  await assert.rejects((channels.end(READ) as ChannelReader).read(), { code: "SHUTDOWN" });
});
