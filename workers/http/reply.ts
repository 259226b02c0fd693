/**
 * Answers: from what a handler returned, from an error, and the few the engine makes itself.
 *
 * A {@linkcode Reply} is data; only `toResponse` makes something that can be sent. A stack never
 * gets into one.
 *
 * @module
 */
import { type EngineError, isTimeout, meaningOf } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** A name in lower case and its value; names may repeat. */
export type HeaderPair = [name: string, value: string];

/** An answer that is not sent yet. */
export interface Reply {
  readonly status: number;
  readonly headers: readonly HeaderPair[];
  /** `null`: none at all. */
  readonly body: string | null;
}

/** Hears what is odd in an answer: a constant text and what it is about. */
export type Remark = (text: string, about: string) => void;

const JSON_TYPE: HeaderPair = ["content-type", "application/json"];
const ONLY_JSON: readonly HeaderPair[] = [JSON_TYPE];
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** They describe the line to the client, which is the engine's. */
const LINE_HEADERS = new Set([
  "connection",
  "content-length",
  "date",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The answer that a handler returned; `value` is neither `null` nor absent. */
export function replyFromValue(value: Json, remark: Remark): Reply {
  const fields = isObject(value) ? value : {};
  const status = readStatus(fields, remark);
  const headers = fields.headers === undefined || fields.headers === null
    ? ONLY_JSON
    : readHeaders(fields.headers, remark);
  const type = headers === ONLY_JSON ? undefined : contentType(headers);
  const body = fields.body === undefined ? {} : fields.body;
  if (isBodiless(status)) {
    return { status, headers: headers === ONLY_JSON ? [] : headers, body: null };
  }
  if (type === undefined) {
    const typed = headers === ONLY_JSON ? headers : [...headers, JSON_TYPE];
    return { status, headers: typed, body: JSON.stringify(body) };
  }
  if (typeof body === "string") return { status, headers, body };
  return { status, headers, body: body === null ? "" : JSON.stringify(body) };
}

/** An answer with JSON in it. */
export function jsonReply(status: number, body: JsonObject): Reply {
  return { status, headers: ONLY_JSON, body: JSON.stringify(body) };
}

/** An answer with nothing in it. */
export function emptyReply(status: number, headers: readonly HeaderPair[] = []): Reply {
  return { status, headers, body: null };
}

/**
 * The answer to an error: its code alone decides the status, a passed deadline has no body.
 * `error_id` is what the log calls it.
 */
export function replyFromError(error: EngineError, error_id: string): Reply {
  if (isTimeout(error)) return emptyReply(504);
  const status = meaningOf(error.code)?.status ?? 500;
  return errorReply(status, error.code, plainMessage(error), error_id);
}

/** The usual form of an error. */
export function errorReply(
  status: number,
  code: string,
  message: string,
  error_id: string,
): Reply {
  return jsonReply(status, { error: { code, message, error_id } });
}

/** The message without the code, which a failed call carries in front. */
export function plainMessage(error: EngineError): string {
  const prefix = `${error.code}: `;
  return error.message.startsWith(prefix) ? error.message.slice(prefix.length) : error.message;
}

/** Makes the answer ready to be sent; `isHead` leaves the body out and keeps its length. */
export function toResponse(
  reply: Reply,
  extra: readonly HeaderPair[],
  isHead: boolean,
): Response {
  const { status, body } = reply;
  if (extra.length === 0 && !isHead && isPlain(reply)) {
    const [[, type], trace] = reply.headers as [HeaderPair, HeaderPair?];
    // Deno makes an answer with nothing but its type for three quarters of what one with more
    // costs, and a header that comes later takes 10 % less than one that is there at once.
    const response = new Response(body, { status, headers: { "content-type": type } });
    if (trace) response.headers.append("traceparent", trace[1]);
    return response;
  }
  const headers: HeaderPair[] = [...reply.headers];
  for (const pair of extra) {
    // What an answer depends on adds up: without ours, a cache could show it to another origin.
    if (pair[0] === "vary" || !has(headers, pair[0])) headers.push(pair);
  }
  if (!isHead) return new Response(body, { status, headers });
  if (body !== null) headers.push(["content-length", `${new TextEncoder().encode(body).length}`]);
  return new Response(null, { status, headers });
}

/** Whether it says nothing but what type its body has, and perhaps which trace it belongs to. */
export function isPlain({ headers }: Reply): boolean {
  if (headers === ONLY_JSON) return true;
  if (headers.length === 0 || headers[0]![0] !== "content-type") return false;
  return headers.length === 1 || (headers.length === 2 && headers[1]![0] === "traceparent");
}

function readStatus(fields: JsonObject, remark: Remark): number {
  const status = fields.status_code ?? fields.statusCode;
  if (status === undefined || status === null) return 200;
  if (typeof status === "number" && isStatus(status)) return status;
  remark("status_code is not a status from 200 to 599, so 200 is sent", show(status));
  return 200;
}

function readHeaders(headers: Json, remark: Remark): HeaderPair[] {
  const pairs: HeaderPair[] = [];
  if (Array.isArray(headers)) {
    for (const line of headers) {
      const colon = typeof line === "string" ? line.indexOf(":") : -1;
      if (colon < 1) {
        remark('a header that is not text such as "name: value" is skipped', show(line));
      } else {addHeader(
          pairs,
          (line as string).slice(0, colon),
          (line as string).slice(colon + 1),
          remark,
        );}
    }
  } else if (isObject(headers)) {
    for (const [name, value] of Object.entries(headers)) {
      if (typeof value === "string") addHeader(pairs, name, value, remark);
      else remark("a header whose value is not text is skipped", show(name));
    }
  } else remark("headers are neither an object nor an array and are skipped", show(headers));
  return pairs;
}

function addHeader(pairs: HeaderPair[], name: string, value: string, remark: Remark): void {
  const key = name.trim().toLowerCase();
  const text = value.trim();
  if (!HEADER_NAME.test(key)) remark("a header with an impossible name is skipped", show(name));
  else if (!HEADER_VALUE.test(text)) remark("a header with an impossible value is skipped", key);
  else if (LINE_HEADERS.has(key)) remark("a header that the engine sets itself is skipped", key);
  else pairs.push([key, text]);
}

function contentType(headers: readonly HeaderPair[]): string | undefined {
  return headers.find(([name]) => name === "content-type")?.[1];
}

function has(headers: readonly HeaderPair[], name: string): boolean {
  return headers.some((pair) => pair[0] === name);
}

/** Whether it can end a request; those below 200 only announce another one. */
function isStatus(status: number): boolean {
  return Number.isInteger(status) && status >= 200 && status <= 599;
}

/** Statuses that never have a body. */
function isBodiless(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

function isObject(value: Json): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function show(value: Json): string {
  return (typeof value === "string" ? value : JSON.stringify(value)).slice(0, 80);
}
