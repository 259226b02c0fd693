/**
 * The HTTP that a raw port speaks: the head of one request in, one answer out.
 *
 * No body, no second request, no I/O. A head is taken to be one by the book or it is refused;
 * what it asks for is judged as the other listener does it.
 *
 * @module
 */
import defer * as nodeCrypto from "node:crypto";
import { UPGRADE_HEAD_BYTES_MAX } from "../../sdk/typescript/wire/limits.ts";
import { BATCH_PROTOCOL } from "../../sdk/typescript/wire/protocol.ts";
import type { Upgrade } from "../ports/connection.ts";
import { type Answer, bodyOf, NO_PAGE, OTHER_VERSION, wantsUpgrade } from "./answers.ts";

/** The head of a request. */
export interface RequestHead {
  readonly method: string;
  /** As it was asked for, such as `/otel?token=x`. */
  readonly target: string;
  readonly version: string;
  readonly headers: Headers;
  /** Bytes it took; what follows are frames. */
  readonly bytes: number;
}

/** What the bytes of a request are so far. */
export type HeadState =
  | { readonly state: "partial" }
  | { readonly state: "refused"; readonly answer: Answer }
  | { readonly state: "whole"; readonly head: RequestHead };

/** What is answered to a request that becomes a line. */
export interface Acceptance {
  readonly accepted: Uint8Array;
  /** Whether several messages may share a frame: the peer has offered it. */
  readonly isBatching: boolean;
}

/** A request that may become a line. */
export interface WantedUpgrade extends Acceptance {
  readonly upgrade: Upgrade;
}

/** The head did not come in time. */
export const TOO_SLOW: Answer = { status: 408, message: "The head of the request took too long" };

const TOO_LONG: Answer = {
  status: 431,
  message: `The head of a request may have ${UPGRADE_HEAD_BYTES_MAX} bytes`,
};
const NO_HTTP = badRequest("This is not HTTP/1.1");
const PHRASES: Readonly<Record<number, string>> = {
  200: "OK",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  408: "Request Timeout",
  426: "Upgrade Required",
  431: "Request Header Fields Too Large",
  503: "Service Unavailable",
};
const REQUEST_LINE = /^([A-Z]{1,20}) ([\x21-\x7e]+) (HTTP\/1\.[01])$/;
const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/;
/** Sixteen bytes in base64. */
const KEY = /^[A-Za-z0-9+/]{21}[AQgw]==$/;
const KEY_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const LATIN_1 = new TextDecoder("latin1");

/** Reads the head at the start of these bytes. */
export function readHead(bytes: Uint8Array): HeadState {
  const text = LATIN_1.decode(bytes.subarray(0, UPGRADE_HEAD_BYTES_MAX));
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) {
    if (bytes.length >= UPGRADE_HEAD_BYTES_MAX) return { state: "refused", answer: TOO_LONG };
    // Whatever speaks first in another way, TLS for one, need not be waited for.
    const isHttp = /^[A-Z]{0,20}($| )/.test(text);
    return isHttp ? { state: "partial" } : { state: "refused", answer: NO_HTTP };
  }
  const [first = "", ...lines] = text.slice(0, end).split("\r\n");
  const [, method, target, version] = REQUEST_LINE.exec(first) ?? [];
  if (!method || !target || !version) return { state: "refused", answer: NO_HTTP };
  const headers = readHeaders(lines);
  if (!headers) return { state: "refused", answer: badRequest("A header is not well formed") };
  return { state: "whole", head: { method, target, version, headers, bytes: end + 4 } };
}

/**
 * What a request asks for, or the answer to one that can have no line. `mayBatch`: whether a frame
 * may hold several messages if the peer offers it.
 */
export function judgeHead(
  head: RequestHead,
  address: string,
  mayBatch = true,
): WantedUpgrade | Answer {
  const { method, version, headers } = head;
  if (!wantsUpgrade(headers)) return NO_PAGE;
  if (method !== "GET" || version !== "HTTP/1.1") return badUpgrade("it has to be a GET");
  if (!headers.has("host")) return badUpgrade("the header Host is missing");
  if (!listed(headers.get("connection"), "upgrade")) {
    return badUpgrade("the header Connection has to say Upgrade");
  }
  if (headers.has("transfer-encoding") || (headers.get("content-length") ?? "0") !== "0") {
    return badUpgrade("it may have no body");
  }
  if (headers.get("sec-websocket-version") !== "13") return OTHER_VERSION;
  const key = headers.get("sec-websocket-key") ?? "";
  if (!KEY.test(key)) {
    return badUpgrade("the header Sec-WebSocket-Key has to be 16 bytes in base64");
  }
  const url = urlOf(head.target);
  if (!url) return badRequest("The target of the request is no path");
  const upgrade = { path: url.pathname, query: url.searchParams, headers, address };
  const isBatching = mayBatch && url.pathname === "/" &&
    listed(headers.get("sec-websocket-protocol"), BATCH_PROTOCOL);
  return { upgrade, accepted: accepted(key, isBatching), isBatching };
}

/** Which page a request asks for; `undefined` when its target is no path. */
export function askedPage({ target, headers }: RequestHead, address: string): Upgrade | undefined {
  const url = urlOf(target);
  return url ? { path: url.pathname, query: url.searchParams, headers, address } : undefined;
}

/** The bytes of an answer; nothing follows it on its connection. `HEAD` gets no body. */
export function answerBytes(answer: Answer, method = "GET"): Uint8Array<ArrayBuffer> {
  const { status, headers } = answer;
  const whole = bodyOf(answer);
  const all = {
    "content-type": "text/plain; charset=utf-8",
    ...headers,
    "content-length": String(new TextEncoder().encode(whole).length),
    "connection": "close",
  };
  const body = method === "HEAD" ? "" : whole;
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const phrase = PHRASES[status] ?? "Refused";
  return new TextEncoder().encode(`HTTP/1.1 ${status} ${phrase}\r\n${lines}\r\n${body}`);
}

function accepted(key: string, isBatching: boolean): Uint8Array {
  const accept = nodeCrypto.createHash("sha1").update(key + KEY_SUFFIX).digest("base64");
  return new TextEncoder().encode(
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
      `Sec-WebSocket-Accept: ${accept}\r\n` +
      (isBatching ? `Sec-WebSocket-Protocol: ${BATCH_PROTOCOL}\r\n\r\n` : "\r\n"),
  );
}

function readHeaders(lines: readonly string[]): Headers | undefined {
  const headers = new Headers();
  for (const line of lines) {
    const [, name, value] = HEADER_LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) return undefined;
    try {
      headers.append(name, value);
    } catch {
      return undefined; // A value with characters that HTTP does not know.
    }
  }
  return headers;
}

function listed(value: string | null, word: string): boolean {
  return value?.toLowerCase().split(",").some((part) => part.trim() === word) ?? false;
}

function urlOf(target: string): URL | null {
  // In front of a path, so that one with two slashes names no host.
  return URL.parse(target.startsWith("/") ? `http://localhost${target}` : target);
}

function badRequest(message: string): Answer {
  return { status: 400, message };
}

function badUpgrade(why: string): Answer {
  return badRequest(`Not a WebSocket upgrade: ${why}`);
}
