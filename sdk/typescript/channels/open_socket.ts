/**
 * Opens the WebSocket of an end of a channel: on a TCP connection of its own in Deno with an engine
 * on the same machine, else with the package `ws` in Deno and Node, with the platform's `WebSocket`
 * in browsers.
 *
 * @module
 */
import { BrowserSocket } from "../browser_socket.ts";
import { processGlobal } from "../platform.ts";
import { isForDeno, openDenoSocket } from "./deno_socket.ts";
import { type OpenChannelSocket, shortReason, UNSENT_BYTES_MAX } from "./socket.ts";
import { openWsSocket } from "./ws_socket.ts";

/** Interval at which a browser is asked whether it has sent enough. */
const POLL_MS = 10;

/** Opens with the transport of this platform. */
export const openSocket: OpenChannelSocket = (url, events) => {
  if (isForDeno(url)) return openDenoSocket(url, events);
  return processGlobal() ? openWsSocket(url, events) : openBrowserSocket(url, events);
};

/** Opens with the global `WebSocket`, which cannot stop reading and cannot end at once. */
export const openBrowserSocket: OpenChannelSocket = (url, { opened, message, closed }) => {
  const socket = new BrowserSocket(url, { opened, text: message, binary: message, closed });
  const drained = async (): Promise<void> => {
    while (socket.isOpen && socket.queuedBytes > UNSENT_BYTES_MAX) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  };
  return {
    send(data) {
      socket.send(data);
      return socket.queuedBytes > UNSENT_BYTES_MAX ? drained() : undefined;
    },
    pause() {},
    resume() {},
    finish: (code, reason) => socket.close(code, shortReason(reason)),
    terminate: () => socket.end("ended"),
  };
};
