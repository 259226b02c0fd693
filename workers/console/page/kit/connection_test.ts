/**
 * {@linkcode LiveLine}: hello, numbers, what survives a loss and what fails with it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { REQUESTS_MAX, RETRY_MS, RETRY_MS_MAX } from "./connection.ts";
import type { ConsoleMessage } from "../../wire.ts";
import { WRONG_TOKEN_CLOSE } from "../../wire.ts";
import { type Answer, type LineSocket, type LineState, LiveLine } from "./connection.ts";

class FakeSocket implements LineSocket {
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
  const states: LineState[] = [];
  const news: Exclude<ConsoleMessage, Answer>[] = [];
  const waits: { ms: number; run: () => void }[] = [];
  const line = new LiveLine({
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
    onNews: (message) => news.push(message),
  });
  const connect = () => {
    const socket = sockets.at(-1)!;
    socket.onopen?.();
    socket.say(WELCOME);
    return socket;
  };
  const lose = (code = 1006) => sockets.at(-1)!.onclose?.({ code });
  return { line, sockets, states, news, waits, connect, lose };
}

Deno.test("LiveLine says hello with the token and nothing before it", () => {
  const { line, sockets } = setup();
  line.start();
  line.ask(CALL, false, () => {});

  sockets[0]!.onopen?.();

  assert.deepEqual(sockets[0]!.sent, [{ type: "hello", token: "secret" }]);
});

Deno.test("LiveLine sends what was asked before the welcome, each with a number of its own", () => {
  const { line, connect, states } = setup();
  line.start();
  line.ask(CALL, false, () => {});
  line.ask(WATCH, true, () => {});

  const socket = connect();

  assert.deepEqual(socket.sent.slice(1), [{ ...CALL, id: 1 }, { ...WATCH, id: 2 }]);
  assert.deepEqual(states, ["open"]);
});

Deno.test("LiveLine hands each answer to who asked, and only the last one ends a call", () => {
  const { line, connect } = setup();
  const heard: string[] = [];
  line.start();
  line.ask(CALL, false, ({ type }) => heard.push(type));
  const socket = connect();

  socket.say({ type: "progress", id: 1, data: 1 });
  socket.say({ type: "result", id: 1, result: 3, duration_ms: 1, trace_id: null });
  socket.say({ type: "result", id: 1, result: 4, duration_ms: 1, trace_id: null });
  socket.say({ type: "result", id: 99, duration_ms: 1, trace_id: null });

  assert.deepEqual(heard, ["progress", "result"]);
});

Deno.test("LiveLine asks watches again after a loss and fails calls", () => {
  const { line, connect, lose, waits, sockets, states } = setup();
  const codes: string[] = [];
  line.start();
  connect();
  line.ask(CALL, false, (answer) => answer.type === "error" && codes.push(answer.error.code));
  line.ask(WATCH, true, () => codes.push("watch"));

  lose();
  waits[0]!.run();
  const socket = connect();

  assert.deepEqual(codes, ["engine_unreachable"]);
  assert.equal(sockets.length, 2);
  assert.deepEqual(socket.sent.slice(1), [{ ...WATCH, id: 2 }]);
  assert.deepEqual(states, ["open", "lost", "open"]);
});

Deno.test("LiveLine fails a call at once while the line is lost", async () => {
  const { line, lose } = setup();
  line.start();
  lose();

  const answer = await new Promise<Answer>((resolve) => line.ask(CALL, false, resolve));

  assert.equal(answer.type === "error" && answer.error.code, "engine_unreachable");
});

Deno.test("LiveLine waits longer after each failure, up to a bound, and briefly after a success", () => {
  const { line, connect, lose, waits } = setup();
  line.start();

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

Deno.test("LiveLine tries nothing more after a wrong token, until it is told", () => {
  const { line, lose, waits, states, sockets } = setup();
  line.start();

  lose(WRONG_TOKEN_CLOSE);

  assert.equal(waits.length, 0);
  assert.deepEqual(states, ["refused"]);
  line.start();
  assert.equal(sockets.length, 2);
});

Deno.test("LiveLine takes back what was ended and hears no more of it", () => {
  const { line, connect } = setup();
  let count = 0;
  line.start();
  const socket = connect();
  const end = line.ask(WATCH, true, () => count++);

  end();
  end();
  socket.say({ type: "fired", id: 1, payload: 1 });

  assert.equal(count, 0);
  assert.deepEqual(socket.sent.slice(1), [{ ...WATCH, id: 1 }, { type: "end", id: 1 }]);
});

Deno.test("LiveLine tells what belongs to no request", () => {
  const { line, connect, news } = setup();
  line.start();
  const socket = connect();

  socket.say({ type: "engine", connected: false, since_ms: 5 });

  assert.deepEqual(news.map(({ type }) => type), ["welcome", "engine"]);
});

for (const text of ["", "{", "null", "7", '"text"', "[]", "{}"]) {
  Deno.test(`LiveLine passes over ${JSON.stringify(text)}`, () => {
    const { line, connect, news, states } = setup();
    line.start();

    connect().say(text);

    assert.equal(news.length, 1);
    assert.deepEqual(states, ["open"]);
  });
}

Deno.test("LiveLine refuses more calls than a page may have open", async () => {
  const { line } = setup();
  line.start();
  for (let i = 0; i < REQUESTS_MAX; i++) line.ask(CALL, false, () => {});

  const answer = await new Promise<Answer>((resolve) => line.ask(CALL, false, resolve));

  assert.equal(answer.type === "error" && answer.error.code, "overloaded");
});

Deno.test("LiveLine.stop() closes the socket and hears nothing more", () => {
  const { line, connect, states } = setup();
  line.start();
  const socket = connect();

  line.stop();
  socket.say(WELCOME);

  assert.ok(socket.isClosed);
  assert.deepEqual(states, ["open"]);
});
