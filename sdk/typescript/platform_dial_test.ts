import assert from "node:assert/strict";
import { dialPlatform, headersOf } from "./platform_dial.ts";
import type { TransportEvents } from "./wire/transport.ts";

Deno.test("headersOf() sends the user's headers, the token and the launch id", () => {
  Deno.env.set("ENGINE_LAUNCH_ID", "launch-7");
  const headers = headersOf({ headers: { "x-team": "shop" }, token: "secret" });
  Deno.env.delete("ENGINE_LAUNCH_ID");

  assert.deepEqual(headers, {
    "x-team": "shop",
    "Authorization": "Bearer secret",
    "x-engine-launch-id": "launch-7",
  });
  assert.deepEqual(headersOf({}), {});
});

Deno.test("dialPlatform takes the platform's own WebSocket where there is no process", () => {
  const globals = globalThis as { process?: unknown; WebSocket: unknown };
  const { process, WebSocket } = globals;
  const dialled: string[] = [];
  globals.process = undefined;
  globals.WebSocket = class {
    constructor(url: string) {
      dialled.push(url);
    }
    close(): void {
      (this as { onclose?: (event: unknown) => void }).onclose?.({ code: 1000, reason: "" });
    }
  };
  const events: TransportEvents = { opened() {}, text() {}, binary() {}, closed() {} };
  try {
    dialPlatform("ws://127.0.0.1:1/", events, {}).close();
  } finally {
    Object.assign(globals, { process, WebSocket });
  }

  assert.deepEqual(dialled, ["ws://127.0.0.1:1/"]);
});
