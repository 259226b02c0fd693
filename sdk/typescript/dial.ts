/**
 * Opens connections to the engine: with the package `ws` in Deno and Node, with the platform's
 * `WebSocket` in browsers.
 *
 * @module
 */
import { BrowserSocket } from "./browser_socket.ts";
import type { WorkerOptions } from "./options.ts";
import { environment, processGlobal } from "./platform.ts";
import { wsDial } from "./ws_transport.ts";
import { ENGINE_URL_DEFAULT } from "./wire/limits.ts";
import { LAUNCH_ID_HEADER } from "./wire/protocol.ts";
import type { Dial } from "./wire/transport.ts";

/** Connects with the transport of this platform, which is detected with each call. */
export const dialPlatform: Dial = (url, events, options) => {
  const dial = processGlobal() ? wsDial : browserDial;
  return dial(url, events, options);
};

/** The headers of upgrades: those of the options, the token, and the id of the launch. */
export function headersOf(options: WorkerOptions): Record<string, string> {
  const headers: Record<string, string> = { ...options.headers };
  if (options.token) headers["Authorization"] = `Bearer ${options.token}`;
  const launchId = environment("ENGINE_LAUNCH_ID");
  if (launchId) headers[LAUNCH_ID_HEADER] = launchId;
  return headers;
}

/**
 * Connects with the global `WebSocket`.
 *
 * A browser sends no headers with an upgrade, so a bearer token is sent in the query. It sends no
 * pings; it responds to those of the engine. Batches are not offered, because a browser closes a
 * connection whose server selects none of the offered subprotocols.
 */
export const browserDial: Dial = (url, events, { headers = {} }) => {
  const socket = new BrowserSocket(withToken(url, headers), events);
  return {
    send: (message) => socket.send(message),
    get queuedBytes(): number {
      return socket.queuedBytes;
    },
    close: (code = 1000, reason = "") => socket.close(code, reason),
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

/**
 * Errors of Deno, Node and browsers that concern TLS, and what to do about each. The first match
 * counts.
 */
const TLS_HINTS: readonly (readonly [RegExp, string])[] = [
  [
    /wrong version number|InvalidContentType|EPROTO|packet length too long/i,
    "the engine there does not use TLS; dial ws:// instead of wss://",
  ],
  [
    /\b426\b|Expected HTTP\/|invalid HTTP version/i,
    "the engine there may use TLS; dial wss:// instead of ws://",
  ],
  [
    /altname|not valid for name|NotValidForName/i,
    "the certificate there is for another host name; dial a name that it lists",
  ],
  [/expired|NotValidYet|not yet valid/i, "the certificate there has expired, or is not valid yet"],
  [
    /verify the first certificate|self[- ]signed|local issuer|UnknownIssuer|unknown ca\b/i,
    "the certificate there is not trusted here; name the PEM file of its CA in " +
    "NODE_EXTRA_CA_CERTS (Node) or DENO_CERT (Deno)",
  ],
];

/** The reason why a connection failed; if it concerns TLS, with a hint what to do. */
export function withTlsHint(reason: string): string {
  const hint = TLS_HINTS.find(([pattern]) => pattern.test(reason))?.[1];
  return hint === undefined ? reason : `${reason}; ${hint}`;
}

/** What to do where nothing listens at the address that a worker dials without being given one. */
export function startHint(url: string, reason: string): string {
  if (url.replace(/\/$/, "") !== ENGINE_URL_DEFAULT || !/refused/i.test(reason)) return "";
  return "; start the engine, or set ENGINE_URL to its address";
}
