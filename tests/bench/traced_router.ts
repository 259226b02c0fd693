/**
 * A router behind a port and a built-in worker whose function `bench::empty` does nothing. It
 * records calls as the first argument says: `on`, `off` (only counts), `bare` (no observer).
 * Prints its port.
 *
 * @module
 */
import { Router } from "../../engine/core/router.ts";
import { localDial } from "../../engine/transport/local_connection.ts";
import { makeGate } from "../../engine/transport/gate.ts";
import { listenRaw } from "../../engine/transport/raw_listener.ts";
import { type ConnectionEvents, MESSAGE_BYTES_MAX } from "../../engine/ports/connection.ts";
import { tickClock } from "../../engine/platform/system_clock.ts";
import { CallRecorder } from "../../engine/telemetry/call_recorder.ts";
import { ENGINE_URL_DEFAULT } from "../../sdk/typescript/wire/limits.ts";
import { INFLIGHT_BYTES_MAX } from "../../engine/config/config.ts";
import { registerWorker } from "../../sdk/typescript/register_worker.ts";
import { DEFAULT_SETTINGS, fakeSchemas } from "../fakes/fake_router.ts";

const [mode] = Deno.args;
const recorder = new CallRecorder({ clock: tickClock });
if (mode === "on") {
  recorder.configure({
    enabled: true,
    ratio: 1,
    rules: [],
    memory_bytes: 32 * 1024 * 1024,
    payload_chars: 2_048,
  });
}
const router = new Router({
  clock: tickClock,
  schemas: fakeSchemas,
  settings: DEFAULT_SETTINGS,
  newId: () => crypto.randomUUID(),
  report: () => {},
  ...mode === "bare" ? {} : { observer: recorder },
});
registerWorker(ENGINE_URL_DEFAULT, { dial: localDial(router, "bench") })
  .registerFunction("bench::empty", () => null);
const deaf: ConnectionEvents = {
  text() {},
  textBytes() {},
  binary() {},
  drained() {},
  suspected() {},
  closed() {},
};
const gate = makeGate({
  allowedOrigins: [],
  maxConnections: 100,
  accept: ({ address }) => (connection) =>
    router.open(connection, { address, launch_id: null, builtin: null }),
  acceptTelemetry: () => () => deaf,
});
const listener = listenRaw({
  hostname: "127.0.0.1",
  port: 0,
  maxMessageBytes: MESSAGE_BYTES_MAX,
  maxQueuedBytes: INFLIGHT_BYTES_MAX,
}, gate);
console.log(`listening on ${listener.port}`);
