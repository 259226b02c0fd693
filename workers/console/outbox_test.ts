/**
 * @module
 */
import assert from "node:assert/strict";
import { FakeBrowserSocket } from "../../tests/fakes/fake_connection.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { BEHIND_BYTES, BEHIND_CHECK_MS, Outbox, STALLED_MS } from "./outbox.ts";

function setup() {
  const clock = new FakeClock();
  const socket = new FakeBrowserSocket();
  const cuts: string[] = [];
  const outbox = new Outbox(socket, clock, (reason) => {
    cuts.push(reason);
    outbox.stop();
  });
  return { clock, socket, outbox, cuts };
}

const fired = (id: number) => ({ type: "fired", id, payload: null }) as const;

Deno.test("Outbox sends pushed messages while the page keeps up, without a timer", () => {
  const { clock, socket, outbox } = setup();

  outbox.push(fired(1));
  outbox.pushState(2, () => '{"type":"value","id":2,"value":1}', () => {});

  assert.deepEqual(socket.sent, [fired(1), { type: "value", id: 2, value: 1 }]);
  assert.equal(clock.waiting, 0);
});

Deno.test("Outbox counts messages dropped while the page is behind, and reports them afterwards", () => {
  const { clock, socket, outbox } = setup();
  socket.bufferedAmount = BEHIND_BYTES + 1;

  for (let i = 0; i < 5; i++) outbox.push(fired(1));
  outbox.push(fired(2));
  clock.tick(BEHIND_CHECK_MS);
  assert.deepEqual(socket.sent, []);
  socket.bufferedAmount = 0;
  clock.tick(BEHIND_CHECK_MS);
  outbox.push(fired(1));

  assert.deepEqual(socket.sent, [
    { type: "missed", id: 1, count: 5 },
    { type: "missed", id: 2, count: 1 },
    fired(1),
  ]);
  assert.equal(clock.waiting, 0);
});

Deno.test("Outbox sends the whole state of a query once, however many changes were dropped", () => {
  const { clock, socket, outbox } = setup();
  const said: string[] = [];
  const push = (text: string): void =>
    outbox.pushState(1, () => JSON.stringify({ type: "value", id: 1, value: text }), () => {
      said.push(text);
      outbox.pushState(1, () => '{"type":"value","id":1,"value":"all"}', () => {});
    });
  socket.bufferedAmount = BEHIND_BYTES + 1;
  push("a");
  push("b");

  socket.bufferedAmount = 0;
  push("c"); // A patch now would be one to what the page has not got.
  clock.tick(BEHIND_CHECK_MS);
  push("d");

  assert.deepEqual(said, ["c"]);
  assert.deepEqual(socket.sent.map((message) => (message as { value: unknown }).value), [
    "all",
    "d",
  ]);
});

Deno.test("Outbox sends answers even while the page is behind", () => {
  const { socket, outbox } = setup();
  socket.bufferedAmount = BEHIND_BYTES + 1;

  outbox.send(fired(1));

  assert.deepEqual(socket.sent, [fired(1)]);
  outbox.stop();
});

Deno.test("Outbox catches up only as far as there is room", () => {
  const { clock, socket, outbox } = setup();
  socket.bufferedAmount = BEHIND_BYTES + 1;
  outbox.push(fired(1));
  outbox.pushState(2, () => "", () => {
    socket.bufferedAmount = BEHIND_BYTES + 1;
    socket.sent.push(fired(2));
  });
  outbox.pushState(3, () => "", () => void socket.sent.push(fired(3)));

  socket.bufferedAmount = 0;
  clock.tick(BEHIND_CHECK_MS);
  assert.deepEqual(socket.sent, [{ type: "missed", id: 1, count: 1 }, fired(2)]);
  socket.bufferedAmount = 0;
  clock.tick(BEHIND_CHECK_MS);

  assert.deepEqual(socket.sent.at(-1), fired(3));
});

Deno.test("Outbox sends nothing for a forgotten id", () => {
  const { clock, socket, outbox } = setup();
  socket.bufferedAmount = BEHIND_BYTES + 1;
  outbox.push(fired(1));
  outbox.pushState(2, () => "", () => assert.fail("it was forgotten"));

  outbox.forget(1);
  outbox.forget(2);
  socket.bufferedAmount = 0;
  clock.tick(BEHIND_CHECK_MS);

  assert.deepEqual(socket.sent, []);
});

Deno.test("Outbox disconnects a page that reads nothing, but not one that reads slowly", () => {
  const { clock, socket, outbox, cuts } = setup();
  socket.bufferedAmount = BEHIND_BYTES * 3;
  outbox.push(fired(1));

  for (let ms = 0; ms < 3 * STALLED_MS; ms += STALLED_MS / 2) {
    clock.tick(STALLED_MS / 2);
    socket.bufferedAmount -= 1;
  }
  assert.deepEqual(cuts, []);
  clock.tick(STALLED_MS + 2 * BEHIND_CHECK_MS);

  assert.deepEqual(cuts, ["it has read nothing for too long"]);
  assert.equal(clock.waiting, 0);
});

Deno.test("Outbox keeps a page that reads, however much waits for it", () => {
  const { clock, socket, outbox, cuts } = setup();
  socket.bufferedAmount = 8 * 45 * 1024 * 1024;

  outbox.send(fired(1));
  for (let i = 0; i < 5; i++) {
    clock.tick(STALLED_MS / 2);
    socket.bufferedAmount -= 1_000_000;
  }

  assert.deepEqual(cuts, []);
  outbox.stop();
});

Deno.test("Outbox sends nothing on a closed socket", () => {
  const { clock, socket, outbox } = setup();
  socket.readyState = 2;

  outbox.send(fired(1));
  outbox.push(fired(1));

  assert.deepEqual([socket.sent, clock.waiting], [[], 0]);
});
