/**
 * The ceiling of a transport: sends every message back and does nothing else. The argument says
 * which one, as `engine.transport` does. Prints its port.
 *
 * @module
 */
import { listenRaw } from "../../engine/transport/raw_listener.ts";
import { listenServe } from "../../engine/transport/serve_listener.ts";
import { type Accept, MESSAGE_BYTES_MAX } from "../../engine/ports/connection.ts";
import { INFLIGHT_BYTES_MAX } from "../../engine/config/config.ts";

const NOTHING = new Uint8Array();

const echo: Accept = (connection) => ({
  text: (text) => connection.send(text),
  textBytes: (memory, start, end) => connection.forward(NOTHING, 0, memory, start, end),
  binary: (bytes) => connection.sendBinary(bytes),
  drained() {},
  suspected() {},
  closed() {},
});

const listen = Deno.args[0] === "raw" ? listenRaw : listenServe;
const listener = listen({
  hostname: "127.0.0.1",
  port: 0,
  maxMessageBytes: MESSAGE_BYTES_MAX,
  maxQueuedBytes: INFLIGHT_BYTES_MAX,
}, () => echo);
console.log(`listening on ${listener.port}`);
