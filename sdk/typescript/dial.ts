/**
 * Opens a line the way the platform does it best: `ws` in Deno and Node, else the platform's own
 * WebSocket.
 *
 * @module
 */
import type { WorkerOptions } from "./options.ts";
import { environment, processGlobal } from "./platform.ts";
import { OPEN_TIMEOUT_MS } from "./wire/limits.ts";
import { LAUNCH_ID_HEADER } from "./wire/protocol.ts";
import type { Dial } from "./wire/transport.ts";
import { wsDial } from "./ws_transport.ts";

/** The dialler of this platform, found when it dials. */
export const dialPlatform: Dial = (url, events, options) => {
  const dial = processGlobal() ? wsDial : browserDial;
  return dial(url, events, options);
};

/** The headers of every upgrade: the user's own, the token, which start of the engine's it is. */
export function headersOf(options: WorkerOptions): Record<string, string> {
  const headers: Record<string, string> = { ...options.headers };
  if (options.token) headers["Authorization"] = `Bearer ${options.token}`;
  const launchId = environment("ENGINE_LAUNCH_ID");
  if (launchId) headers[LAUNCH_ID_HEADER] = launchId;
  return headers;
}

/** What is said, and what it means. The first that fits. */
const HINTS: readonly (readonly [RegExp, string])[] = [
  [
    /wrong version number|InvalidContentType|EPROTO|packet length too long/i,
    "no TLS is spoken there; dial ws:// instead of wss://",
  ],
  [
    /\b426\b|Expected HTTP\/|invalid HTTP version/i,
    "TLS may be spoken there; dial wss:// instead of ws://",
  ],
  [
    /altname|not valid for name|NotValidForName/i,
    "the certificate there is for another name; dial one that it has",
  ],
  [/expired|NotValidYet|not yet valid/i, "the certificate there does not hold at this time"],
  [
    /verify the first certificate|self[- ]signed|local issuer|UnknownIssuer|unknown ca\b/i,
    "the certificate there is not trusted here; name the PEM file of its CA in " +
    "NODE_EXTRA_CA_CERTS (Node) or DENO_CERT (Deno)",
  ],
];

/** A failure, and behind it what to do if it has to do with TLS. */
export function withTlsHint(failure: string): string {
  const hint = HINTS.find(([pattern]) => pattern.test(failure))?.[1];
  return hint === undefined ? failure : `${failure}; ${hint}`;
}

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
