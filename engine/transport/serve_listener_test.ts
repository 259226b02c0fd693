import assert from "node:assert/strict";
import { DRAINED_BYTES, SEND_AHEAD_BYTES, STALLED_MS } from "../ports/connection.ts";
import { createMemoryBudget } from "../platform/memory_budget.ts";
import type { MemoryBudget } from "../ports/memory.ts";
import { SERVE_SKIPS, testConnection } from "../../tests/contracts/connection_contract.ts";
import { RecordedConnection } from "../../tests/contracts/connection_setup.ts";
import { listenServe, ServeConnection } from "./serve_listener.ts";
import { until } from "../../tests/fakes/until.ts";

Deno.test("at most SEND_AHEAD_BYTES and one message are given to Deno", async () => {
  const { socket, recorded } = setup();
  const message = "x".repeat(SEND_AHEAD_BYTES / 4);

  for (let i = 0; i < 100; i++) recorded.connection.send(message);

  assert.equal(socket.sent.length, 4);
  assert.equal(recorded.connection.queuedBytes, 100 * message.length);
  recorded.connection.close(1000, "");
  await recorded.end();
});

Deno.test("queued messages follow as the socket empties, and drained is reported once at the end", async () => {
  const { socket, recorded } = setup();
  const texts = Array.from({ length: 40 }, (_, i) => `${i} ` + "x".repeat(SEND_AHEAD_BYTES / 4));

  for (const text of texts) recorded.connection.send(text);
  while (socket.sent.length < texts.length) {
    assert.equal(recorded.drains, 0);
    const before = socket.sent.length;
    socket.bufferedAmount = 0;
    await until(() => socket.sent.length > before, "more is handed over");
  }
  socket.bufferedAmount = DRAINED_BYTES;
  await until(() => recorded.drains === 1, "drained is reported");

  assert.deepEqual(socket.sent, texts);
  recorded.connection.send("on it goes");
  assert.equal(socket.sent.at(-1), "on it goes");
});

Deno.test("nothing overtakes queued messages, also when the socket has emptied meanwhile", async () => {
  const { socket, recorded } = setup();
  recorded.connection.send("x".repeat(SEND_AHEAD_BYTES));
  recorded.connection.send("first to wait");

  socket.bufferedAmount = 0;
  recorded.connection.send("second");
  await until(() => recorded.drains === 1, "all is handed over");

  assert.deepEqual(socket.sent.slice(1), ["first to wait", "second"]);
});

Deno.test("bytes that are queued are copied", async () => {
  const { socket, recorded } = setup();
  socket.bufferedAmount = SEND_AHEAD_BYTES;
  recorded.connection.send("x".repeat(SEND_AHEAD_BYTES));
  const bytes = Uint8Array.of(1, 2);

  recorded.connection.sendBinary(bytes);
  bytes.fill(0);
  socket.bufferedAmount = 0;
  await until(() => socket.sent.length === 2, "both are handed over");

  assert.deepEqual(socket.sent[1], Uint8Array.of(1, 2));
  socket.bufferedAmount = 0;
  await until(() => recorded.drains === 1, "nothing is left to do");
});

Deno.test("a connection whose queue has no memory left reports its end, without the peer", async () => {
  const memory = createMemoryBudget(2 * SEND_AHEAD_BYTES);
  const { socket, recorded, cuts } = setup({ memory });
  const message = "x".repeat(SEND_AHEAD_BYTES);

  for (let i = 0; i < 10; i++) recorded.connection.send(message);
  assert.deepEqual(recorded.closings, [], "not from within send()");
  await Promise.resolve();

  const why = "reads too slowly, and engine.memory_mb is used up";
  const reason = `peer ${why}: ${4 * SEND_AHEAD_BYTES} bytes unsent`;
  assert.deepEqual(recorded.closings, [{ code: 1008, reason }]);
  assert.deepEqual(cuts, [reason]);
  assert.deepEqual(socket.closes, [{ code: 1008, reason }]);
  assert.equal(memory.usedBytes, 0);
});

Deno.test("checkPeer() cuts a connection beyond its bound when nothing moved for 5 s", async () => {
  const { connection, recorded, cuts } = setup({ maxQueuedBytes: 3 * SEND_AHEAD_BYTES });
  for (let i = 0; i < 10; i++) connection.send("x".repeat(SEND_AHEAD_BYTES));

  connection.checkPeer(0);
  connection.checkPeer(STALLED_MS - 1);
  assert.deepEqual(cuts, []);
  connection.checkPeer(STALLED_MS);
  await Promise.resolve();

  assert.deepEqual(cuts, [`peer has stopped reading: ${10 * SEND_AHEAD_BYTES} bytes unsent`]);
  assert.equal(recorded.closings[0]?.code, 1008);
});

Deno.test("checkPeer() cuts a connection on which nothing moved for the longest silence", async () => {
  const { socket, connection, recorded, cuts } = setup({ silenceMs: 60_000 });
  connection.send("hello");

  for (const now of [0, 20_000, 40_000, 59_999]) connection.checkPeer(now);
  assert.deepEqual(cuts, []);
  connection.checkPeer(60_000);
  await Promise.resolve();

  assert.equal(cuts.length, 1);
  assert.deepEqual(recorded.closings[0]?.code, 1008);
  assert.equal(socket.closes.length, 1);
});

Deno.test("checkPeer() keeps a connection that sends, that empties, or that has nothing to send", async () => {
  const { socket, connection, recorded, cuts } = setup({ silenceMs: 60_000 });

  for (let now = 0; now < 300_000; now += 20_000) {
    socket.bufferedAmount = 0;
    connection.checkPeer(now);
  }
  for (let now = 300_000; now < 600_000; now += 20_000) {
    socket.bufferedAmount = 0;
    connection.send("again"); // Always the same amount, never the same bytes.
    connection.checkPeer(now);
  }
  for (let now = 600_000; now < 900_000; now += 20_000) {
    socket.bufferedAmount++;
    connection.checkPeer(now);
  }

  assert.deepEqual(cuts, []);
  connection.close(1000, "");
  await recorded.end();
});

Deno.test("a socket that breaks off is reported as 1006 with Deno's error message", () => {
  const { socket, recorded, goneCount } = setup();

  socket.onerror?.(new ErrorEvent("error", { message: "Reserved bits are not zero" }));
  socket.onclose?.(new CloseEvent("close", { code: 0 }));

  assert.deepEqual(recorded.closings, [{ code: 1006, reason: "Reserved bits are not zero" }]);
  assert.equal(goneCount(), 1);
});

Deno.test("a socket that closes late is removed then, and reports nothing twice", async () => {
  const { socket, recorded, goneCount } = setup();

  recorded.connection.close(1001, "going");
  await recorded.end();
  assert.equal(goneCount(), 0);
  socket.onclose?.(new CloseEvent("close", { code: 1005 }));

  assert.deepEqual(recorded.closings, [{ code: 1001, reason: "going" }]);
  assert.equal(goneCount(), 1);
});

interface Setup {
  maxQueuedBytes?: number;
  memory?: MemoryBudget;
  silenceMs?: number;
}

function setup({ maxQueuedBytes = 1 << 30, silenceMs = 60_000, memory }: Setup = {}) {
  const socket = new FakeSocket();
  const cuts: string[] = [];
  let gone = 0;
  const connection = new ServeConnection(socket as unknown as WebSocket, {
    maxMessageBytes: 1 << 26,
    maxQueuedBytes,
    memory,
    silenceMs,
    closeMs: 50,
    cut: (reason) => void cuts.push(reason),
    ended: () => void gone++,
  });
  const recorded = new RecordedConnection(connection);
  connection.start(recorded);
  return { socket, connection, recorded, cuts, goneCount: () => gone };
}

/** Deno's socket as a connection sees it: it keeps what it is given until the test takes it. */
class FakeSocket {
  bufferedAmount = 0;
  readonly sent: (string | Uint8Array)[] = [];
  readonly closes: { code: number; reason: string }[] = [];
  onmessage: ((event: MessageEvent) => void) | undefined;
  onerror: ((event: Event) => void) | undefined;
  onclose: ((event: CloseEvent) => void) | undefined;

  send(message: string | Uint8Array): void {
    this.sent.push(message);
    this.bufferedAmount += message.length;
  }

  close(code: number, reason: string): void {
    this.closes.push({ code, reason });
  }
}

testConnection("serve listener", { listen: listenServe }, { skips: SERVE_SKIPS });
