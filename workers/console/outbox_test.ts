/**
 * @module
 */
import assert from "node:assert/strict";
import {
  CONSOLE_AHEAD_BYTES,
  CONSOLE_BEHIND_LOOK_MS,
  CONSOLE_STALLED_MS,
  CONSOLE_UNSENT_BYTES_MAX,
} from "./limits.ts";
import { FakeBrowserSocket } from "../../tests/fakes/fake_browser_socket.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { Outbox } from "./outbox.ts";

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

Deno.test("Outbox sends what is pushed while the browser keeps up, and sets no timer", () => {
  const { clock, socket, outbox } = setup();

  outbox.push(fired(1));
  outbox.pushState(2, () => '{"type":"value","id":2,"value":1}', () => {});

  assert.deepEqual(socket.sent, [fired(1), { type: "value", id: 2, value: 1 }]);
  assert.equal(clock.waiting, 0);
});

Deno.test("Outbox counts what a browser that is behind misses, and tells it when it has read", () => {
  const { clock, socket, outbox } = setup();
  socket.bufferedAmount = CONSOLE_AHEAD_BYTES + 1;

  for (let i = 0; i < 5; i++) outbox.push(fired(1));
  outbox.push(fired(2));
  clock.tick(CONSOLE_BEHIND_LOOK_MS);
  assert.deepEqual(socket.sent, []);
  socket.bufferedAmount = 0;
  clock.tick(CONSOLE_BEHIND_LOOK_MS);
  outbox.push(fired(1));

  assert.deepEqual(socket.sent, [
    { type: "missed", id: 1, count: 5 },
    { type: "missed", id: 2, count: 1 },
    fired(1),
  ]);
  assert.equal(clock.waiting, 0);
});

Deno.test("Outbox has a watch say everything once, however much of it was left out", () => {
  const { clock, socket, outbox } = setup();
  const said: string[] = [];
  const push = (text: string): void =>
    outbox.pushState(1, () => JSON.stringify({ type: "value", id: 1, value: text }), () => {
      said.push(text);
      outbox.sendText('{"type":"value","id":1,"value":"all"}');
    });
  socket.bufferedAmount = CONSOLE_AHEAD_BYTES + 1;
  push("a");
  push("b");

  socket.bufferedAmount = 0;
  push("c"); // A patch now would be one to what the page has not got.
  clock.tick(CONSOLE_BEHIND_LOOK_MS);
  push("d");

  assert.deepEqual(said, ["c"]);
  assert.deepEqual(socket.sent.map((message) => (message as { value: unknown }).value), [
    "all",
    "d",
  ]);
});

Deno.test("Outbox sends answers also to a browser that is behind", () => {
  const { socket, outbox } = setup();
  socket.bufferedAmount = CONSOLE_AHEAD_BYTES + 1;

  outbox.send(fired(1));

  assert.deepEqual(socket.sent, [fired(1)]);
  outbox.stop();
});

Deno.test("Outbox makes good only as much as there is room for", () => {
  const { clock, socket, outbox } = setup();
  socket.bufferedAmount = CONSOLE_AHEAD_BYTES + 1;
  outbox.push(fired(1));
  outbox.pushState(2, () => "", () => {
    socket.bufferedAmount = CONSOLE_AHEAD_BYTES + 1;
    socket.sent.push(fired(2));
  });
  outbox.pushState(3, () => "", () => void socket.sent.push(fired(3)));

  socket.bufferedAmount = 0;
  clock.tick(CONSOLE_BEHIND_LOOK_MS);
  assert.deepEqual(socket.sent, [{ type: "missed", id: 1, count: 1 }, fired(2)]);
  socket.bufferedAmount = 0;
  clock.tick(CONSOLE_BEHIND_LOOK_MS);

  assert.deepEqual(socket.sent.at(-1), fired(3));
});

Deno.test("Outbox tells nothing of what was forgotten", () => {
  const { clock, socket, outbox } = setup();
  socket.bufferedAmount = CONSOLE_AHEAD_BYTES + 1;
  outbox.push(fired(1));
  outbox.pushState(2, () => "", () => assert.fail("it was forgotten"));

  outbox.forget(1);
  outbox.forget(2);
  socket.bufferedAmount = 0;
  clock.tick(CONSOLE_BEHIND_LOOK_MS);

  assert.deepEqual(socket.sent, []);
});

Deno.test("Outbox cuts a browser that reads nothing for long, and not one that reads slowly", () => {
  const { clock, socket, outbox, cuts } = setup();
  socket.bufferedAmount = CONSOLE_AHEAD_BYTES * 3;
  outbox.push(fired(1));

  for (let ms = 0; ms < 3 * CONSOLE_STALLED_MS; ms += CONSOLE_STALLED_MS / 2) {
    clock.tick(CONSOLE_STALLED_MS / 2);
    socket.bufferedAmount -= 1;
  }
  assert.deepEqual(cuts, []);
  clock.tick(CONSOLE_STALLED_MS + 2 * CONSOLE_BEHIND_LOOK_MS);

  assert.deepEqual(cuts, ["it has read nothing for too long"]);
  assert.equal(clock.waiting, 0);
});

Deno.test("Outbox cuts a browser for which too much waits", () => {
  const { socket, outbox, cuts } = setup();
  socket.bufferedAmount = CONSOLE_UNSENT_BYTES_MAX + 1;

  outbox.send(fired(1));

  assert.deepEqual(cuts, ["it does not read what was sent to it"]);
});

Deno.test("Outbox sends nothing on a line that is over", () => {
  const { clock, socket, outbox } = setup();
  socket.readyState = 2;

  outbox.send(fired(1));
  outbox.push(fired(1));

  assert.deepEqual([socket.sent, clock.waiting], [[], 0]);
});
