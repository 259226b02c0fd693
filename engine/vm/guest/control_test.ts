import assert from "node:assert/strict";
import {
  ControlConnection,
  decodeControl,
  encodeControl,
  type GuestMessage,
  signalName,
} from "./control.ts";

Deno.test("encodeControl() writes one line a message", () => {
  assert.equal(
    encodeControl({ type: "run", channel: 0, script: 12, endMark: "ab-c" }),
    "run 0 12 ab-c\n",
  );
  assert.equal(encodeControl({ type: "signal", channel: 3, name: "TERM" }), "signal 3 TERM\n");
  assert.equal(encodeControl({ type: "off" }), "off\n");
});

Deno.test("decodeControl() decodes the messages of a guest", () => {
  const exit = { type: "exit", channel: 0, code: null, signal: null, outOfMemory: false };
  assert.deepEqual(decodeControl("ready"), { type: "ready" });
  assert.deepEqual(decodeControl("started 4"), { type: "started", channel: 4 });
  assert.deepEqual(decodeControl("exit 0 code 255"), { ...exit, code: 255 });
  assert.deepEqual(decodeControl("exit 2 signal 9 oom"), {
    ...exit,
    channel: 2,
    signal: 9,
    outOfMemory: true,
  });
});

Deno.test("decodeControl() returns undefined for malformed lines", () => {
  const lines = ["", " ready", "ready ", "READY", "started", "started x", "started -1", "exit 0"];
  lines.push(
    "exit 0 code",
    "exit 0 code x",
    "exit 0 code 1 2",
    "exit 0 code 1 oops",
    "exit 0 code 1000",
  );
  lines.push("exit 0 signal 9 oom ", "run 0 1 x", "toString", "\u0000ready");
  for (const line of lines) assert.equal(decodeControl(line), undefined, JSON.stringify(line));
});

Deno.test("signalName() names signals", () => {
  assert.deepEqual([1, 6, 9, 11, 15, 31].map(signalName), [
    "SIGHUP",
    "SIGABRT",
    "SIGKILL",
    "SIGSEGV",
    "SIGTERM",
    "SIGSYS",
  ]);
  assert.deepEqual([34, 36].map(signalName), ["SIGRTMIN", "SIGRTMIN+2"]);
});

Deno.test("ControlConnection sends in order and reads lines split anywhere", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  const [near, far] = await Promise.all([
    Deno.connect({ hostname: "127.0.0.1", port }),
    listener.accept(),
  ]);
  const received: GuestMessage[] = [];
  const control = new ControlConnection(near, (message) => void received.push(message));

  for (let script = 1; script <= 200; script++) {
    control.send({ type: "run", channel: 0, script, endMark: "m" });
  }
  control.send({ type: "off" });
  let text = "";
  const decoder = new TextDecoder();
  for (const buffer = new Uint8Array(64); !text.endsWith("off\n");) {
    text += decoder.decode(buffer.subarray(0, (await far.read(buffer))!));
  }
  for (const part of ["rea", "dy\nnonsense\nstar", "ted 0\n", "started 1\nexit 1 code 0\n"]) {
    await far.write(new TextEncoder().encode(part));
  }
  far.close();
  await control.closed;
  near.close();

  assert.equal(text.split("\n").length, 202);
  assert.ok(text.startsWith("run 0 1 m\nrun 0 2 m\n"));
  assert.deepEqual(received.map(({ type }) => type), ["ready", "started", "started", "exit"]);
  control.send({ type: "off" }); // Does not throw on a closed connection.
});
