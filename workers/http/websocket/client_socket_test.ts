import assert from "node:assert/strict";
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import type { FakeConnection } from "../../../tests/fakes/fake_connection.ts";
import { failure, settle } from "../../../tests/fakes/fake_http.ts";
import { fakeSockets } from "../../../tests/fakes/fake_sockets.ts";
import { UNSENT_BYTES_MAX, WAITING_MESSAGES_MAX } from "./client_socket.ts";
import { frameOfValue } from "./frame.ts";
import { RETURN_MS } from "./live_routes.ts";

function codeOf({ closing }: FakeConnection): number | undefined {
  return closing?.code;
}

/** A function whose calls the test ends one by one. */
function held() {
  const waiting: ((value?: unknown) => void)[] = [];
  return {
    run: () => new Promise((resolve) => waiting.push(resolve)),
    end: async (value?: unknown) => {
      waiting.shift()!(value);
      await settle();
    },
  };
}

Deno.test("ClientSocket stops reading at a bound of messages that wait, and goes on below it", async () => {
  const it = fakeSockets();
  const { run, end } = held();
  it.functions.f = run;
  const { socket, connection } = it.open();

  for (let i = 0; i < WAITING_MESSAGES_MAX; i++) socket.text(`${i}`);
  assert.equal(connection.paused, false);
  socket.text("last");
  assert.equal(connection.paused, true);
  await settle();
  assert.equal(it.calls.length, 1);
  await end();

  assert.equal(connection.paused, false);
  assert.equal(it.calls.length, 2);
});

Deno.test("ClientSocket stops reading at a bound of bytes that wait", () => {
  const it = fakeSockets();
  it.functions.f = held().run;
  const { socket, connection } = it.open();

  socket.binary(new Uint8Array(40_000));
  assert.equal(connection.paused, false);
  socket.binary(new Uint8Array(40_000));
  assert.equal(connection.paused, true);
});

Deno.test("ClientSocket holds memory for messages until they were handled", async () => {
  const it = fakeSockets({}, { memoryBytes: 10_000 });
  const { run, end } = held();
  it.functions.f = run;
  const { socket, connection } = it.open();
  const { usedBytes } = it.memory;

  for (let i = 0; i < 3; i++) {
    socket.text("x".repeat(6_000));
    assert.equal(it.memory.usedBytes - usedBytes, 6_000);
    await settle();
    await end();
    assert.equal(it.memory.usedBytes, usedBytes);
  }
  socket.text("x".repeat(6_000));
  socket.text("x".repeat(6_000));
  assert.equal(connection.closing?.code, 1013);
  await settle();
  await end();

  assert.equal(it.memory.usedBytes, 0);
  assert.equal(it.calls.length, 4);
});

Deno.test("ClientSocket waits for a function that is not there, then closes with 1013", async () => {
  const it = fakeSockets();
  const { socket, connection } = it.open();

  socket.text("a");
  await it.pass(1_000);
  it.functions.f = () => "back";
  for (let i = 0; i < 2; i++) await it.pass(250);
  assert.deepEqual(connection.takeTexts(), ["back"]);

  delete it.functions.f;
  socket.text("b");
  await settle();
  for (let ms = 0; ms < RETURN_MS; ms += 250) {
    assert.equal(connection.closing, undefined);
    await it.pass(250);
  }
  assert.equal(connection.closing?.code, 1013);
});

Deno.test("ClientSocket does not run a function again that passes on an error of another one", async () => {
  const it = fakeSockets();
  it.functions.f = () => {
    throw failure("function_not_found", "Function other::f not found");
  };
  const { socket, connection } = it.open();

  socket.text("a");
  await it.pass(RETURN_MS);

  assert.equal(it.calls.length, 1);
  assert.equal(connection.closing?.code, 1013);
});

Deno.test("ClientSocket tries again what was refused as overloaded, and not what was stopped", async () => {
  const it = fakeSockets();
  const answers = [failure("overloaded", "x", { retryable: true }), undefined];
  it.functions.f = () => {
    const error = answers.shift();
    if (error) throw error;
  };
  const { socket, connection } = it.open();

  socket.text("a");
  await settle();
  await it.pass(250);
  assert.deepEqual([it.calls.length, connection.closing], [2, undefined]);

  answers.push(failure("invocation_stopped", "Invocation stopped"));
  socket.text("b");
  await settle();
  assert.deepEqual([it.calls.length, connection.closing?.code], [3, 1013]);
});

Deno.test("ClientSocket delivers what waits before the close, and the close once", async () => {
  const it = fakeSockets({ close_function_id: "left" });
  const { run, end } = held();
  it.functions.f = run;
  it.functions.left = () => {};
  const { socket } = it.open(["g"]);
  socket.text("a");
  socket.text("b");
  await settle();

  socket.closed(1006, "connection lost");
  socket.closed(1000, "");
  assert.equal(it.sockets.size, 0);
  assert.equal(it.sockets.groupCount, 0);
  await end();
  await end();

  const events = it.calls.map(({ payload }) => payload as Record<string, unknown>);
  assert.deepEqual(events.map(({ event, data, code }) => data ?? [event, code]), [
    "a",
    "b",
    ["close", 1006],
  ]);
  assert.deepEqual(events[2]!.groups, ["g"]);
  assert.equal(it.memory.usedBytes, 0);
});

Deno.test("ClientSocket drops what waits when the connection is ended for a failure", async () => {
  const it = fakeSockets({ close_function_id: "left" });
  it.functions.left = () => {};
  it.functions.f = () => {
    throw new Error("broken");
  };
  const { socket, connection } = it.open();

  socket.text("a");
  socket.text("b");
  await settle();

  assert.deepEqual(it.calls.map(({ function_id }) => function_id), ["f", "left"]);
  assert.equal(connection.closing?.code, 1011);
});

Deno.test("ClientSocket.send() refuses while the client is behind, sooner where memory is tight", () => {
  const it = fakeSockets({}, { memoryBytes: 1_000 });
  const { socket, connection } = it.open();
  const frame = frameOfValue("x".repeat(100));

  assert.equal(socket.send(frame), true);
  connection.queuedBytes = UNSENT_BYTES_MAX - 100;
  assert.equal(socket.send(frame), true);
  connection.queuedBytes++;
  assert.equal(socket.send(frame), false);
  assert.equal(connection.closing, undefined);
  connection.queuedBytes = 5_000;
  assert.equal(socket.send(frame), true);
  it.memory.take("queues", 900);
  assert.equal(socket.send(frame), false);
  assert.equal(socket.sendOrClose(frame), false);
  assert.equal(codeOf(connection), 1013);
  it.memory.release("queues", 900);
});

Deno.test("ClientSocket tells a client whose function took too long, without the log's text", async () => {
  const it = fakeSockets({ timeout_ms: 70 });
  it.functions.f = () => {
    throw failure("timeout", "Invocation of f timed out after 70 ms");
  };
  const { socket, connection } = it.open();

  socket.text("a");
  await settle();

  assert.equal(it.calls[0]!.timeout_ms, 70);
  assert.match(connection.closing!.reason, /did not end in time/);
  assert.equal(connection.closing!.code, 1011);
});

Deno.test("ClientSocket.stop() cancels what runs and delivers the close without waiting", async () => {
  const it = fakeSockets({ close_function_id: "left" });
  it.functions.f = () =>
    new Promise((_, reject) => {
      it.calls[0]!.signal.addEventListener(
        "abort",
        () => reject(new EngineError("cancelled", "x")),
      );
    });
  const { socket, connection } = it.open();
  socket.text("a");
  await settle();

  it.sockets.stop();
  await settle();

  assert.equal(connection.closing?.code, 1001);
  assert.deepEqual(it.calls.map(({ function_id }) => function_id), ["f", "left"]);
  assert.equal(it.clock.waiting, 0);
});
