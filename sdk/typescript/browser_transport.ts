/**
 * Dial on the platform's own WebSocket, for browsers.
 *
 * A browser sends no headers with an upgrade, so a bearer token travels in the query. It pings
 * nobody either: the engine's pings keep the line alive, and the browser answers them by itself.
 * And it gives a line up whose server selects none of the subprotocols it is offered, so batches
 * are not offered: they would shut it out of engines that take none.
 *
 * @module
 */
import { OPEN_TIMEOUT_MS } from "./wire/limits.ts";
import type { Dial } from "./wire/transport.ts";

/** Opens lines with the global WebSocket. */
export const browserDial: Dial = (url, events, { headers = {} }) => {
  const socket = new WebSocket(withToken(url, headers));
  socket.binaryType = "arraybuffer";
  let isOver = false;
  // Why a line did not open, browsers do not tell; Deno does.
  let problem = "no connection";
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
    problem = "";
    if (!isOver) events.opened();
  };
  socket.onmessage = ({ data }) => {
    if (isOver) return;
    if (typeof data === "string") events.text(data);
    else events.binary(new Uint8Array(data as ArrayBuffer));
  };
  socket.onerror = (event) => problem = (event as { message?: string }).message || problem;
  socket.onclose = ({ code, reason }) => end(code || 1006, reason || problem);
  return {
    send(message): void {
      if (!isOver && socket.readyState === WebSocket.OPEN) {
        socket.send(message as string | Uint8Array<ArrayBuffer>);
      }
    },
    get queuedBytes(): number {
      return socket.bufferedAmount;
    },
    close(code = 1000, reason = ""): void {
      if (!isOver) socket.close(code, reason);
    },
  };
};

/** The address with the token of an Authorization header as a query parameter. */
function withToken(url: string, headers: Readonly<Record<string, string>>): string {
  const name = Object.keys(headers).find((key) => key.toLowerCase() === "authorization");
  const token = /^Bearer (.+)$/.exec(name ? headers[name] ?? "" : "")?.[1];
  if (!token) return url;
  const address = new URL(url);
  address.searchParams.set("token", token);
  return address.href;
}
