/**
 * @module
 */
import assert from "node:assert/strict";
import { WRONG_TOKEN_CLOSE } from "../../wire.ts";
import {
  type Answer,
  Connection,
  type ConnectionState,
  type ConsoleSocket,
  type Notice,
  REQUESTS_MAX,
  RETRY_MS,
  RETRY_MS_MAX,
} from "./connection.ts";

class FakeSocket implements ConsoleSocket {
  readonly sent: unknown[] = [];
  isClosed = false;
  onopen: (() => void) | null = null;
  onmessage: ((event: { readonly data: unknown }) => void) | null = null;
  onclose: ((event: { readonly code: number }) => void) | null = null;

  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }

  close(): void {
    this.isClosed = true;
  }

  say(message: unknown): void {
    this.onmessage?.({ data: typeof message === "string" ? message : JSON.stringify(message) });
  }
}

const WELCOME = { type: "welcome", version: "1", engine_url: "ws://e", operator: true };
const CALL = { type: "call", function_id: "math::add" } as const;
const WATCH = { type: "watch_trigger", trigger: { type: "log" } } as const;

function setup() {
  const sockets: FakeSocket[] = [];
  const states: ConnectionState[] = [];
  const notices: Notice[] = [];
  const waits: { ms: number; run: () => void }[] = [];
  const connection = new Connection({
    open: () => {
      const socket = new FakeSocket();
      sockets.push(socket);
      return socket;
    },
    token: () => "secret",
    later: (ms, run) => {
      waits.push({ ms, run });
      return () => {};
    },
    onState: (state) => states.push(state),
    onNotice: (message) => notices.push(message),
  });
  const connect = () => {
    const socket = sockets.at(-1)!;
    socket.onopen?.();
    socket.say(WELCOME);
    return socket;
  };
  const lose = (code = 1006) => sockets.at(-1)!.onclose?.({ code });
  return { connection, sockets, states, notices, waits, connect, lose };
}

Deno.test("Connection sends hello with the token first", () => {
  const { connection, sockets } = setup();
  connection.open();
  connection.request(CALL, false, () => {});

  sockets[0]!.onopen?.();

  assert.deepEqual(sockets[0]!.sent, [{ type: "hello", token: "secret" }]);
});

Deno.test("Connection sends requests made before welcome, each with its own id", () => {
  const { connection, connect, states } = setup();
  connection.open();
  connection.request(CALL, false, () => {});
  connection.request(WATCH, true, () => {});

  const socket = connect();

  assert.deepEqual(socket.sent.slice(1), [{ ...CALL, id: 1 }, { ...WATCH, id: 2 }]);
  assert.deepEqual(states, ["open"]);
});

Deno.test("Connection routes answers by id, and only the last one ends a call", () => {
  const { connection, connect } = setup();
  const received: string[] = [];
  connection.open();
  connection.request(CALL, false, ({ type }) => received.push(type));
  const socket = connect();

  socket.say({ type: "progress", id: 1, data: 1 });
  socket.say({ type: "result", id: 1, result: 3, duration_ms: 1, trace_id: null });
  socket.say({ type: "result", id: 1, result: 4, duration_ms: 1, trace_id: null });
  socket.say({ type: "result", id: 99, duration_ms: 1, trace_id: null });

  assert.deepEqual(received, ["progress", "result"]);
});

Deno.test("Connection sends watches again after a loss, and fails calls", () => {
  const { connection, connect, lose, waits, sockets, states } = setup();
  const codes: string[] = [];
  connection.open();
  connect();
  connection.request(
    CALL,
    false,
    (answer) => answer.type === "error" && codes.push(answer.error.code),
  );
  connection.request(WATCH, true, () => codes.push("watch"));

  lose();
  waits[0]!.run();
  const socket = connect();

  assert.deepEqual(codes, ["engine_unreachable"]);
  assert.equal(sockets.length, 2);
  assert.deepEqual(socket.sent.slice(1), [{ ...WATCH, id: 2 }]);
  assert.deepEqual(states, ["open", "lost", "open"]);
});

Deno.test("Connection fails a call at once while it is lost", async () => {
  const { connection, lose } = setup();
  connection.open();
  lose();

  const answer = await new Promise<Answer>((resolve) => connection.request(CALL, false, resolve));

  assert.equal(answer.type === "error" && answer.error.code, "engine_unreachable");
});

Deno.test("Connection doubles its wait after each failure, up to a bound, and resets it after a success", () => {
  const { connection, connect, lose, waits } = setup();
  connection.open();

  for (let i = 0; i < 8; i++) {
    lose();
    waits.at(-1)!.run();
  }
  const failing = waits.map(({ ms }) => ms);
  connect();
  lose();

  assert.deepEqual(failing.slice(0, 3), [RETRY_MS, RETRY_MS * 2, RETRY_MS * 4]);
  assert.equal(failing.at(-1), RETRY_MS_MAX);
  assert.equal(waits.at(-1)!.ms, RETRY_MS);
});

Deno.test("Connection stays closed after a wrong token until open()", () => {
  const { connection, lose, waits, states, sockets } = setup();
  connection.open();

  lose(WRONG_TOKEN_CLOSE);

  assert.equal(waits.length, 0);
  assert.deepEqual(states, ["refused"]);
  connection.open();
  assert.equal(sockets.length, 2);
});

Deno.test("Connection sends end for an ended request, and ignores its answers", () => {
  const { connection, connect } = setup();
  let count = 0;
  connection.open();
  const socket = connect();
  const end = connection.request(WATCH, true, () => count++);

  end();
  end();
  socket.say({ type: "fired", id: 1, payload: 1 });

  assert.equal(count, 0);
  assert.deepEqual(socket.sent.slice(1), [{ ...WATCH, id: 1 }, { type: "end", id: 1 }]);
});

Deno.test("Connection reports messages that belong to no request", () => {
  const { connection, connect, notices } = setup();
  connection.open();
  const socket = connect();

  socket.say({ type: "engine", connected: false, since_ms: 5 });

  assert.deepEqual(notices.map(({ type }) => type), ["welcome", "engine"]);
});

for (const text of ["", "{", "null", "7", '"text"', "[]", "{}"]) {
  Deno.test(`Connection ignores ${JSON.stringify(text)}`, () => {
    const { connection, connect, notices, states } = setup();
    connection.open();

    connect().say(text);

    assert.equal(notices.length, 1);
    assert.deepEqual(states, ["open"]);
  });
}

Deno.test("Connection refuses calls beyond its bound", async () => {
  const { connection } = setup();
  connection.open();
  for (let i = 0; i < REQUESTS_MAX; i++) connection.request(CALL, false, () => {});

  const answer = await new Promise<Answer>((resolve) => connection.request(CALL, false, resolve));

  assert.equal(answer.type === "error" && answer.error.code, "overloaded");
});

Deno.test("Connection.close() closes the socket and ignores further messages", () => {
  const { connection, connect, states } = setup();
  connection.open();
  const socket = connect();

  connection.close();
  socket.say(WELCOME);

  assert.ok(socket.isClosed);
  assert.deepEqual(states, ["open"]);
});
