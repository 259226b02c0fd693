/**
 * HTTP on the worker port: the head of one request in, one response out, without I/O.
 *
 * A request has no body and no second one follows it. A head that is not well formed is refused.
 * Both listeners send the same responses, so that a client cannot tell them apart.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { BATCH_PROTOCOL } from "../../sdk/typescript/wire/protocol.ts";
import type { ListenSettings } from "../ports/listen.ts";
import type { PageAnswer, Refusal, Upgrade } from "../ports/connection.ts";

/** Longest head of an upgrade. */
export const UPGRADE_HEAD_BYTES_MAX = 16 * 1024;

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

/** A request that becomes a connection. */
export interface Acceptance {
  readonly accepted: Uint8Array;
  /** Whether several messages may share a frame: the peer has offered it. */
  readonly isBatching: boolean;
}

/** A request that the gate decides on. */
export interface UpgradeRequest extends Acceptance {
  readonly upgrade: Upgrade;
}

/** Reason of close code 1001, when the port closes. */
export const GOING_AWAY_REASON = "engine is stopping";
/** The head did not arrive in time. */
export const TOO_SLOW: Answer = { status: 408, message: "The head of the request took too long" };

const TOO_LONG: Answer = {
  status: 431,
  message: `The head of a request may have at most ${UPGRADE_HEAD_BYTES_MAX} bytes`,
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
    // Refuses other protocols, such as TLS, at their first bytes.
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
 * Checks a request for an upgrade; the response when it is none. `mayBatch`: whether to accept
 * several messages per frame if the peer offers it.
 */
export function checkUpgrade(
  head: RequestHead,
  address: string,
  mayBatch = true,
): UpgradeRequest | Answer {
  const problem = upgradeProblem(head);
  if (problem) return problem;
  const { headers } = head;
  const url = urlOf(head.target);
  if (!url) return badRequest("The target of the request is not a path");
  const upgrade = { path: url.pathname, query: url.searchParams, headers, address };
  const isBatching = mayBatch && url.pathname === "/" &&
    listed(headers.get("sec-websocket-protocol"), BATCH_PROTOCOL);
  return { upgrade, ...acceptanceOf(headers, isBatching ? BATCH_PROTOCOL : undefined), isBatching };
}

/** Why a request is no upgrade that RFC 6455 allows; `undefined`: it is one. */
export function upgradeProblem(
  { method, version, headers }: Pick<RequestHead, "method" | "version" | "headers">,
): Answer | undefined {
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
  if (KEY.test(headers.get("sec-websocket-key") ?? "")) return undefined;
  return badUpgrade("the header Sec-WebSocket-Key has to be 16 bytes in base64");
}

/** The request for a page; `undefined` when its target is not a path. */
export function pageRequestOf(
  { target, headers }: RequestHead,
  address: string,
): Upgrade | undefined {
  const url = urlOf(target);
  return url ? { path: url.pathname, query: url.searchParams, headers, address } : undefined;
}

/** Encodes a response, the last on its connection. `HEAD` gets no body. */
export function responseBytes(answer: Answer, method = "GET"): Uint8Array<ArrayBuffer> {
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

/**
 * The response that accepts an upgrade without a problem; `protocol`: the subprotocol that was
 * selected, a token.
 */
export function acceptanceOf(headers: Headers, protocol: string | undefined): Acceptance {
  const key = headers.get("sec-websocket-key")!;
  const accept = createHash("sha1").update(key + KEY_SUFFIX).digest("base64");
  const accepted = new TextEncoder().encode(
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
      `Sec-WebSocket-Accept: ${accept}\r\n` +
      (protocol === undefined ? "\r\n" : `Sec-WebSocket-Protocol: ${protocol}\r\n\r\n`),
  );
  return { accepted, isBatching: false };
}

function readHeaders(lines: readonly string[]): Headers | undefined {
  const headers = new Headers();
  for (const line of lines) {
    const [, name, value] = HEADER_LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) return undefined;
    try {
      headers.append(name, value);
    } catch {
      return undefined; // The value has characters that HTTP does not allow.
    }
  }
  return headers;
}

function listed(value: string | null, word: string): boolean {
  return value?.toLowerCase().split(",").some((part) => part.trim() === word) ?? false;
}

function urlOf(target: string): URL | null {
  // With a host in front, so that a path that starts with two slashes is not read as one.
  return URL.parse(target.startsWith("/") ? `http://localhost${target}` : target);
}

function badRequest(message: string): Answer {
  return { status: 400, message };
}

function badUpgrade(why: string): Answer {
  return badRequest(`Not a WebSocket upgrade: ${why}`);
}

/** An HTTP response: `body` with its own content type, or `message` as plain text. */
export interface Answer extends Refusal {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** For a request without an upgrade, such as of a browser. */
export const NO_PAGE: Answer = {
  status: 426,
  message: "This port speaks WebSocket with workers; there is no page here",
  headers: { upgrade: "websocket" },
};
/** For another version than that of RFC 6455. */
export const OTHER_VERSION: Answer = {
  status: 426,
  message: "This port supports only WebSocket version 13",
  headers: { "sec-websocket-version": "13" },
};
/** For plain HTTP on a port with TLS; the status is that of RFC 2817. */
export const TLS_HERE: Answer = {
  status: 426,
  message: "This port speaks TLS; connect to it with wss:// or https://",
  headers: { upgrade: "TLS/1.2, HTTP/1.1" },
};
/** While the port closes. */
export const STOPPING: Answer = { status: 503, message: "The engine is stopping" };
/** When the limit of the port is reached. */
export const TOO_MANY: Answer = { status: 503, message: "Too many connections" };

/** The response to an upgrade that the gate refuses. */
export function refusalResponse(refusal: Refusal): Answer {
  if (refusal.status !== 401) return refusal;
  return { ...refusal, headers: { "www-authenticate": "Bearer" } };
}

/** The response with a page, or with the reason why there is none. */
export function pageAnswer(page: PageAnswer | Refusal): Answer {
  if (!("body" in page)) return refusalResponse(page);
  const { status, contentType, body } = page;
  return { status, message: "", body, headers: { "content-type": contentType } };
}

/** The body of a response. */
export function bodyOf({ body, message }: Answer): string {
  return body ?? `${message}\n`;
}

/** Whether a method requests a page. */
export function isPageRequest(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

/** Whether a request asks for a WebSocket. */
export function wantsUpgrade(headers: Headers): boolean {
  return headers.get("upgrade")?.toLowerCase().includes("websocket") ?? false;
}

/** Names of the settings of the worker port in errors. */
export const PORT_SETTINGS: ListenSettings = {
  port: "engine.port in config.yaml",
  address: "engine.host and engine.port in config.yaml",
};
