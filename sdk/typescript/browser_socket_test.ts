import assert from "node:assert/strict";
import { BrowserSocket } from "./browser_socket.ts";

/** Stands for the global `WebSocket` while `run` runs; it does what the test says. */
class FakeWebSocket {
  static readonly OPEN = 1;
  static last: FakeWebSocket;
  readyState = 0;
  bufferedAmount = 0;
  readonly sent: unknown[] = [];
  readonly closes: unknown[][] = [];
  onopen = () => {};
  onmessage = (_: { data: unknown }) => {};
  onerror = (_: { message?: string }) => {};
  onclose = (_: { code: number; reason: string }) => {};

  constructor() {
    FakeWebSocket.last = this;
  }
  send(message: unknown): void {
    this.sent.push(message);
  }
  close(...how: unknown[]): void {
    this.closes.push(how);
  }
}

function setup(): { socket: BrowserSocket; platform: FakeWebSocket; log: unknown[] } {
  const globals = globalThis as { WebSocket: unknown };
  const real = globals.WebSocket;
  globals.WebSocket = FakeWebSocket;
  const log: unknown[] = [];
  try {
    const socket = new BrowserSocket("ws://engine", {
      opened: () => log.push("opened"),
      text: (data) => log.push(data),
      binary: (data) => log.push([...data]),
      closed: (code, reason) => log.push([code, reason]),
    });
    return { socket, platform: FakeWebSocket.last, log };
  } finally {
    globals.WebSocket = real;
  }
}

Deno.test("events are passed on until the socket is over, which is said once", () => {
  const { socket, platform, log } = setup();
  platform.onopen();
  platform.onmessage({ data: "text" });
  platform.onmessage({ data: new Uint8Array([1, 2]).buffer });

  socket.end("ended");
  platform.onmessage({ data: "late" });
  platform.onclose({ code: 1000, reason: "late" });

  assert.deepEqual(log, ["opened", "text", [1, 2], [1006, "ended"]]);
  assert.equal(platform.closes.length, 1);
  socket.close(1000, "late");
  assert.equal(platform.closes.length, 1);
});

Deno.test("a connection that fails says why, where the platform does", () => {
  const [silent, told] = [setup(), setup()];
  silent.platform.onclose({ code: 0, reason: "" });
  told.platform.onerror({ message: "refused" });
  told.platform.onclose({ code: 1006, reason: "" });

  assert.deepEqual(silent.log, [[1006, "no connection"]]);
  assert.deepEqual(told.log, [[1006, "refused"]]);
});
