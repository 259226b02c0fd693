import assert from "node:assert/strict";
import { fakeEnds, settle } from "../../../tests/fakes/fake_channel_socket.ts";
import { EngineError } from "../wire/errors.ts";
import { EndConnection } from "./end.ts";

const REF = { channel_id: "c", access_key: "k", direction: "read" } as const;

function setup(isSilent = false) {
  const { setup, sockets } = fakeEnds(isSilent);
  const life: string[] = [];
  const all = { ...setup, opened: () => life.push("opened"), closed: () => life.push("closed") };
  const closings: (EngineError | undefined)[] = [];
  const end = new EndConnection(REF, all as never, {
    message() {},
    closed: (error) => closings.push(error),
  });
  return { end, sockets, life, closings };
}

Deno.test("an end connects once", async () => {
  const { end, sockets, life } = setup();
  assert.equal(end.socket, undefined);

  await Promise.all([end.connect(), end.connect()]);

  assert.equal(sockets.length, 1);
  assert.equal(end.socket, sockets[0]);
  assert.deepEqual(life, ["opened"]);
});

Deno.test("an end reports once how it closed", async () => {
  const { end, sockets, life, closings } = setup();
  await end.connect();

  sockets[0]!.events.closed(1005, "");
  sockets[0]!.events.closed(1006, "again");

  assert.deepEqual(closings, [undefined]);
  assert.deepEqual(life, ["opened", "closed"]);
  assert.equal(end.socket, undefined);
});

Deno.test("an end that is ended before it is open settles who waits for it", async () => {
  const { end, sockets, closings } = setup(true);
  const connecting = end.connect();

  end.end(new EngineError("SHUTDOWN", "over"));
  sockets[0]!.events.closed(1006, "ended");
  await connecting;
  await settle();

  assert.equal(closings[0]?.code, "SHUTDOWN");
  assert.equal(closings.length, 1);
  assert.equal(sockets[0]!.isTerminated, true);
});

Deno.test("an end that was ended does not connect", async () => {
  const { end, sockets } = setup();
  end.end(new EngineError("SHUTDOWN", "over"));

  await end.connect();

  assert.equal(sockets.length, 0);
});

Deno.test("errors of ends say which channel and which close code", async () => {
  const { end, sockets, closings } = setup();
  await end.connect();

  sockets[0]!.events.closed(4001, "no disk");

  const [error] = closings;
  assert.equal(error?.message, "Channel c ended early: no disk");
  assert.deepEqual(error?.details, { channel_id: "c", close_code: 4001, reason: "no disk" });
});
