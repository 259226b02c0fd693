import assert from "node:assert/strict";
import { settle } from "../../../tests/fakes/fake_http.ts";
import { fakeSockets } from "../../../tests/fakes/fake_sockets.ts";
import { UNSENT_BYTES_MAX } from "./client_socket.ts";
import { frameOfValue } from "./frame.ts";
import { IDLE_CHECK_MS, type Reached } from "./sockets.ts";

Deno.test("Sockets.send() to many goes out in parts, and a client that is behind is closed", async () => {
  const it = fakeSockets({}, { max: 1_000 });
  const all = Array.from({ length: 600 }, (_, i) => it.open(["all"], `192.0.2.${i % 200}`));
  all[300]!.connection.queuedBytes = UNSENT_BYTES_MAX;
  const members = [...it.sockets.membersOf("all")];

  const sending = Promise.resolve(it.sockets.send(members, frameOfValue("a")));
  await settle();
  it.turns.give();
  const first = all.filter(({ connection }) => connection.takeTexts().length > 0).length;
  assert.equal(first, 256);
  for (let i = 0; i < 3; i++) await it.pass(1);

  assert.deepEqual(await sending, { reached: 599, closed: 1 });
  assert.equal(all[300]!.connection.closing?.code, 1013);
  assert.equal(it.sockets.membersOf("all").size, 599);
  assert.equal(it.memory.used("queues"), 0);
});

Deno.test("Sockets.send() keeps the order, also where a small message follows one to many", async () => {
  const it = fakeSockets({}, { max: 1_000 });
  const all = Array.from({ length: 300 }, (_, i) => it.open(["all"], `192.0.2.${i % 100}`));
  const last = all.at(-1)!;

  void it.sockets.send([...it.sockets.membersOf("all")], frameOfValue("first"));
  void it.sockets.send([last.socket], frameOfValue("second"));
  const closed = it.sockets.inOrder(() => last.connection.takeTexts());
  await settle();
  for (let i = 0; i < 3; i++) await it.pass(1);

  assert.deepEqual(await closed, ["first", "second"]);
});

Deno.test("Sockets.send() refuses a message to many that the memory has no room for", () => {
  const it = fakeSockets({}, { max: 1_000, memoryBytes: 200_000 });
  for (let i = 0; i < 300; i++) it.open(["all"], `192.0.2.${i % 100}`);
  const members = [...it.sockets.membersOf("all")];

  assert.throws(() => it.sockets.send(members, frameOfValue("x".repeat(300_000))), {
    code: "overloaded",
  });
});

Deno.test("Sockets.send() copies large messages to few clients at once", async () => {
  const it = fakeSockets();
  const all = Array.from({ length: 6 }, () => it.open(["all"]));
  const frame = frameOfValue("x".repeat(2 * 1024 * 1024));

  const sending = it.sockets.send([...it.sockets.membersOf("all")], frame) as Promise<Reached>;
  await settle();
  it.turns.give();
  assert.equal(all.filter(({ connection }) => connection.takeTexts().length > 0).length, 2);
  await it.pass(1);
  await it.pass(1);
  assert.equal((await sending).reached, 6);
});

Deno.test("Sockets.send() to many stops when its turn on the thread is over", async () => {
  const it = fakeSockets({}, { max: 1_000 });
  const all = Array.from({ length: 300 }, (_, i) => it.open(["all"], `192.0.2.${i % 100}`));
  const sentTo = () => all.filter(({ connection }) => connection.takeTexts().length > 0).length;

  const sending = it.sockets.send([...it.sockets.membersOf("all")], frameOfValue("a"));
  await settle();
  it.turns.give(9);
  const perTurn = [sentTo()];
  it.turns.give();
  perTurn.push(sentTo());
  it.turns.give();
  perTurn.push(sentTo());

  assert.deepEqual(perTurn, [10, 256, 34]);
  assert.equal((await sending).reached, 300);
  assert.equal(it.turns.waiting, 0);
});

Deno.test("Sockets closes connections without messages, and looks only while there are some", async () => {
  const it = fakeSockets({ idle_timeout_ms: 5_000 });
  it.functions.f = () => {};
  const { socket, connection } = it.open();
  const quiet = it.open();

  await it.pass(4_000);
  socket.text("a");
  await it.pass(IDLE_CHECK_MS);
  assert.equal(quiet.connection.closing?.code, 1001);
  assert.equal(socket.isOpen, true);
  await it.pass(3_000);
  socket.send(frameOfValue("b"));
  await it.pass(4_000);
  assert.equal(socket.isOpen, true);
  await it.pass(IDLE_CHECK_MS);

  assert.equal(connection.closing?.code, 1001);
  assert.equal(it.clock.waiting, 0);
});

Deno.test("Sockets.drain() closes all, delivers each close, and then accepts none", async () => {
  const it = fakeSockets({ close_function_id: "left" });
  let release = (): void => {};
  it.functions.left = () => new Promise<void>((resolve) => release = resolve);
  const { connection } = it.open();
  let isDrained = false;

  void it.sockets.drain().then(() => isDrained = true);
  await settle();
  assert.deepEqual([connection.closing?.code, isDrained], [1001, false]);
  assert.equal(it.sockets.reserve({ name: "a", sockets: 1, running: 0 }), false);
  let hasAnswered = (): void => {};
  void it.sockets.carry(new Promise((resolve) => hasAnswered = resolve));
  release();
  await settle();
  assert.equal(isDrained, false, "the client has not answered the close frame");
  hasAnswered();
  await settle();
  assert.equal(isDrained, true);
  await it.sockets.drain();
});

Deno.test("Sockets.reserve() returns places, of all and of each client", () => {
  const it = fakeSockets({}, { max: 8 });
  const client = { name: "a", sockets: 1, running: 0 };
  const other = { name: "b", sockets: 1, running: 0 };

  const own = Array.from({ length: 8 }, () => it.sockets.reserve(client));
  assert.deepEqual(own, [...Array(7).fill(true), false]);
  assert.deepEqual([it.sockets.reserve(other), it.sockets.reserve(other)], [true, false]);
  it.sockets.cancel(client);
  assert.equal(it.sockets.reserve(other), true);
});

Deno.test("Sockets.join() needs memory for the name, which leaving returns", () => {
  const it = fakeSockets({}, { memoryBytes: 1_000 });
  const { socket } = it.open();

  it.sockets.join(socket, "x".repeat(200));
  assert.throws(() => it.sockets.join(socket, "y".repeat(250)), { code: "overloaded" });
  it.sockets.leave(socket, "x".repeat(200));
  assert.equal(it.memory.usedBytes, 0);
  assert.equal(it.sockets.join(socket, "y".repeat(250)), true);
});
