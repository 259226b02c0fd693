/**
 * Opens the WebSocket of an end of a channel: with the package `ws` in Deno and Node, with the
 * platform's `WebSocket` in browsers.
 *
 * @module
 */
import { processGlobal } from "../platform.ts";
import { OPEN_TIMEOUT_MS } from "../wire/limits.ts";
import { type OpenChannelSocket, shortReason, UNSENT_BYTES_MAX } from "./socket.ts";
import { openWsSocket } from "./ws_socket.ts";

/** Interval at which a browser is asked whether it has sent enough. */
const POLL_MS = 10;

/** Opens with the transport of this platform. */
export const openSocket: OpenChannelSocket = (url, events) => {
  return processGlobal() ? openWsSocket(url, events) : openBrowserSocket(url, events);
};

/** Opens with the global `WebSocket`, which cannot stop reading and cannot end at once. */
export const openBrowserSocket: OpenChannelSocket = (url, events) => {
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  let isOver = false;
  const end = (code: number, reason: string): void => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    events.closed(code, reason);
  };
  const timer = setTimeout(() => {
    socket.close();
    end(1006, `no answer within ${OPEN_TIMEOUT_MS} ms`);
  }, OPEN_TIMEOUT_MS);
  socket.onopen = () => {
    clearTimeout(timer);
    if (!isOver) events.opened();
  };
  socket.onmessage = ({ data }) => {
    if (isOver) return;
    events.message(typeof data === "string" ? data : new Uint8Array(data as ArrayBuffer));
  };
  socket.onclose = ({ code, reason }) => end(code || 1006, reason || "no connection");
  const drained = async (): Promise<void> => {
    while (!isOver && socket.bufferedAmount > UNSENT_BYTES_MAX) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  };
  return {
    send(data) {
      if (isOver || socket.readyState !== WebSocket.OPEN) return undefined;
      socket.send(data as string | Uint8Array<ArrayBuffer>);
      return socket.bufferedAmount > UNSENT_BYTES_MAX ? drained() : undefined;
    },
    pause() {},
    resume() {},
    finish: (code, reason) => socket.close(code, shortReason(reason)),
    terminate() {
      socket.close();
      end(1006, "ended");
    },
  };
};
