/**
 * What a handler gets and returns, and a response as bytes.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import type { RequestBody } from "./body.ts";
import type { Client } from "./clients.ts";
import type { HeadProblem, PlainHeaders } from "./head.ts";
import type { ByteStream } from "./input.ts";
import type { PartBuffer } from "./part_buffer.ts";

/** A name in lower case and its value; names may repeat. */
export type HeaderPair = readonly [name: string, value: string];

/** A request, when its head was read. */
export interface ServedRequest {
  readonly method: string;
  /** Path and query as they were sent, at most `TARGET_CHARS_MAX` characters. */
  readonly target: string;
  readonly headers: PlainHeaders;
  /** The same as JSON. */
  readonly headersJson: string;
  readonly body: RequestBody;
  readonly client: Client;
  /** Calls `gone` if the client leaves before it has its response. */
  watch(gone: () => void): void;
}

/** The body of a response that is sent while it comes. */
export interface ResponseStream {
  /**
   * The next part, valid until the next call; `undefined` at the end. Rejects when the rest cannot
   * come.
   */
  read(): Promise<PartBuffer | undefined>;
  /** Nothing has come for a while, and no part is being sent: memory can be given back. */
  rest(): void;
  /** Nothing more is read; has no effect at the end. */
  cancel(): void;
}

/** A response as data. Its length, date and connection are added when it is sent. */
export interface ServedResponse {
  readonly status: number;
  readonly headers: readonly HeaderPair[];
  /** `null`: none at all. */
  readonly body: string | Uint8Array | null;
  /** The body, if it is a stream; `body` is `null` then. */
  readonly stream?: ResponseStream;
  /** Nothing follows on this connection. */
  readonly isLast?: boolean;
  /** Takes the connection over instead of sending the response; `rest` was received already. */
  readonly upgrade?: (stream: ByteStream, rest: Uint8Array) => Promise<void>;
  /** Called instead of `upgrade` when the connection has ended before. */
  readonly lost?: () => void;
}

/** Pieces of a large body, so that it is not copied as a whole. */
const PIECE_CHARS = 128 * 1024;
/** Responses up to this length are bounded by the number of sockets, not by the budget. */
export const SMALL_RESPONSE_CHARS = 16 * 1024;
/** Size of {@linkcode WriteMemory}, and how much of it is kept. */
const WRITE_BYTES = 4 * 1024;
const FREE_MAX = 64;
/** Head and body up to this length are sent in one write. */
const ONE_WRITE_CHARS = 64 * 1024;

const NOT_ASCII = /[^\0-\x7f]/;
const ENCODER = new TextEncoder();

const PHRASES: Readonly<Record<number, string>> = {
  200: "OK",
  201: "Created",
  202: "Accepted",
  204: "No Content",
  206: "Partial Content",
  301: "Moved Permanently",
  302: "Found",
  303: "See Other",
  304: "Not Modified",
  307: "Temporary Redirect",
  308: "Permanent Redirect",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  409: "Conflict",
  413: "Content Too Large",
  414: "URI Too Long",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  426: "Upgrade Required",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
  505: "HTTP Version Not Supported",
};

/** Code of an error of the port itself, by status. */
const CODES: Readonly<Record<number, string>> = {
  403: "FORBIDDEN",
  408: "timeout",
  429: "overloaded",
  503: "overloaded",
};

/** The response to what is no request that can be served; the last one on its connection. */
export function problemResponse({ status, problem }: HeadProblem): ServedResponse {
  const code = CODES[status] ?? "bad_message";
  const error = { code, message: problem, error_id: crypto.randomUUID() };
  const headers: HeaderPair[] = [["content-type", "application/json"]];
  if (status === 429 || status === 503) headers.push(["retry-after", "1"]);
  return { status, headers, body: JSON.stringify({ error }), isLast: true };
}

/** How a response ends its connection, or not. */
export interface Ending {
  readonly isHead: boolean;
  /** For the header `date`. */
  readonly date: string;
  /** Value of the header `connection`; `undefined`: none. */
  readonly connection: string | undefined;
}

/** Bytes of the body of a response. */
export function bytesOfBody({ body }: ServedResponse): number {
  if (body === null) return 0;
  return typeof body === "string" ? Buffer.byteLength(body) : body.length;
}

/** The head of a response whose body is a stream, in chunks or up to the end of the connection. */
export function headOfStream(
  { status, headers }: ServedResponse,
  { date, connection }: Ending,
  isChunked: boolean,
): Uint8Array {
  let head = startOf(status, headers);
  if (isChunked) head += "transfer-encoding: chunked\r\n";
  if (connection !== undefined) head += `connection: ${connection}\r\n`;
  return latin1Bytes(`${head}date: ${date}\r\n\r\n`);
}

/** The end of a chunked body. */
export const LAST_CHUNK: Uint8Array = new TextEncoder().encode("0\r\n\r\n");

/**
 * Memory for responses that are being written. New memory for each would take 1.2 µs, ten times
 * what writing the text does, and a few of these are enough: most sockets take a response at once.
 */
export class WriteMemory {
  readonly #free: Uint8Array<ArrayBuffer>[] = [];

  /** Memory whose content nothing reads; give it back with {@linkcode release}. */
  take(): Uint8Array<ArrayBuffer> {
    return this.#free.pop() ?? new Uint8Array(WRITE_BYTES);
  }

  /** Takes back what nothing is written from any more. */
  release(memory: Uint8Array<ArrayBuffer>): void {
    if (this.#free.length < FREE_MAX) this.#free.push(memory);
  }
}

/**
 * A short response without bytes of its own as one piece, in `memory` if it fits; `undefined` for
 * any other.
 */
export function wholeOf(
  response: ServedResponse,
  ending: Ending,
  memory: Uint8Array,
): Uint8Array | undefined {
  const { body } = response;
  if (typeof body !== "string" || body.length > SMALL_RESPONSE_CHARS || ending.isHead) {
    return undefined;
  }
  // Nearly all are ASCII, of which the length is known.
  const text = headOf(response, ending, body.length) + body;
  if (text.length <= memory.length) {
    const { read, written } = ENCODER.encodeInto(text, memory);
    if (read === written && read === text.length) return memory.subarray(0, written);
  }
  const head = headOf(response, ending, bytesOfBody(response));
  return NOT_ASCII.test(head) ? undefined : ENCODER.encode(head + body);
}

/** The response as pieces to write one after another. */
export function* piecesOf(response: ServedResponse, ending: Ending): Generator<Uint8Array> {
  const { body } = response;
  const head = headOf(response, ending, bytesOfBody(response));
  const sent = ending.isHead ? null : body;
  if (typeof sent === "string" && sent.length <= ONE_WRITE_CHARS && !NOT_ASCII.test(head)) {
    yield ENCODER.encode(head + sent);
    return;
  }
  yield latin1Bytes(head);
  if (sent === null) return;
  if (typeof sent !== "string") return void (yield sent);
  for (let at = 0; at < sent.length;) {
    let end = Math.min(at + PIECE_CHARS, sent.length);
    if (end < sent.length && isHighSurrogate(sent.charCodeAt(end - 1))) end--;
    yield ENCODER.encode(sent.slice(at, end));
    at = end;
  }
}

function headOf(
  { status, headers, body }: ServedResponse,
  { date, connection }: Ending,
  bodyBytes: number,
): string {
  let head = startOf(status, headers);
  if (status !== 204 && status !== 304 || body !== null) {
    head += `content-length: ${bodyBytes}\r\n`;
  }
  if (connection !== undefined) head += `connection: ${connection}\r\n`;
  return `${head}date: ${date}\r\n\r\n`;
}

function startOf(status: number, headers: readonly HeaderPair[]): string {
  let head = `HTTP/1.1 ${status} ${PHRASES[status] ?? "Status"}\r\n`;
  for (const [name, value] of headers) head += `${name}: ${value}\r\n`;
  return head;
}

function latin1Bytes(text: string): Uint8Array {
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
