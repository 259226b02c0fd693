/**
 * Responses: from the value that a handler returned, from an error, and those of the engine itself.
 *
 * A {@linkcode Reply} is data that the port sends. It never has a stack.
 *
 * @module
 */
import type { Log } from "../../engine/ports/log.ts";
import { EngineError, isTimeout, meaningOf, thrownText } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { HEAD_BYTES_MAX, HEADERS_MAX } from "../kit/http/head.ts";
import type { HeaderPair, ResponseStream, ServedResponse } from "../kit/http/response.ts";

/** A response as data. */
export interface Reply extends ServedResponse {
  /** `null`: none at all. */
  readonly body: string | Uint8Array | null;
}

/** Warns about a returned value: a constant text, and the part of the value that it concerns. */
export type Warn = (text: string, about: string) => void;

/** Most different warnings about returned values that are logged. */
export const WARNINGS_MAX = 1_000;

const JSON_TYPE: HeaderPair = ["content-type", "application/json"];
const ONLY_JSON: readonly HeaderPair[] = [JSON_TYPE];
const ONLY_TEXT: readonly HeaderPair[] = [["content-type", "text/plain; charset=utf-8"]];
const BYTES_TYPE: HeaderPair = ["content-type", "application/octet-stream"];
/** A value with one of these members describes a response; any other value is the body. */
const ENVELOPE = ["status_code", "statusCode", "headers", "body", "body_base64"];
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** They describe the connection to the client, which the engine manages. */
const CONNECTION_HEADERS = new Set([
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

/**
 * The response to a value that a handler returned; `value` is neither `null` nor absent.
 *
 * @throws {EngineError} `invocation_failed` for what cannot be sent.
 */
export function replyFromValue(value: Json, warn: Warn): Reply {
  if (typeof value === "string") return { status: 200, headers: ONLY_TEXT, body: value };
  if (!isObject(value) || !ENVELOPE.some((name) => Object.hasOwn(value, name))) {
    return { status: 200, headers: ONLY_JSON, body: JSON.stringify(value) };
  }
  const status = readStatus(value, warn);
  const headers = value.headers === undefined || value.headers === null
    ? ONLY_JSON
    : readHeaders(value.headers, warn);
  const type = headers === ONLY_JSON ? undefined : contentType(headers);
  if (isBodiless(status)) {
    return { status, headers: headers === ONLY_JSON ? [] : headers, body: null };
  }
  if (value.body_base64 !== undefined && value.body_base64 !== null) {
    if (value.body !== undefined) warn("body is skipped, since there is body_base64", "body");
    const typed = type === undefined ? withType(headers, BYTES_TYPE) : headers;
    return { status, headers: typed, body: readBytes(value.body_base64) };
  }
  const body = value.body === undefined ? {} : value.body;
  if (type === undefined) {
    return { status, headers: withType(headers, JSON_TYPE), body: JSON.stringify(body) };
  }
  if (typeof body === "string") return { status, headers, body };
  return { status, headers, body: body === null ? "" : JSON.stringify(body) };
}

/**
 * The response that a function writes itself.
 *
 * @throws {EngineError} `invocation_failed` for what cannot be sent.
 */
export function replyFromStream(
  status: number | undefined,
  headers: Json | undefined,
  stream: ResponseStream,
  warn: Warn,
): Reply {
  const pairs = headers === undefined || headers === null ? [] : readHeaders(headers, warn);
  const typed = contentType(pairs) === undefined && !isBodiless(status ?? 200)
    ? withType(pairs, BYTES_TYPE)
    : pairs;
  const sent = status === undefined ? 200 : readStatus({ status_code: status }, warn);
  return { status: sent, headers: typed, body: null, stream };
}

/** A response with a JSON body. */
export function jsonReply(status: number, body: JsonObject): Reply {
  return { status, headers: ONLY_JSON, body: JSON.stringify(body) };
}

/** A response without a body. */
export function emptyReply(status: number, headers: readonly HeaderPair[] = []): Reply {
  return { status, headers, body: null };
}

/**
 * The response to an error: `details.status_code` or `status`, else its code, decides the status. A
 * passed deadline has no body. `error_id` identifies the error in the log.
 */
export function replyFromError(
  error: EngineError,
  error_id: string,
  warn: Warn,
  status?: number,
): Reply {
  const { details } = error;
  const own = details === undefined ? undefined : errorStatus(details.status_code);
  if (own === undefined && status === undefined && isTimeout(error)) return emptyReply(504);
  const final = own ?? status ?? meaningOf(error.code)?.status ?? 500;
  const reply = errorReply(final, error.code, plainMessage(error), error_id);
  if (own === undefined || details!.headers === undefined || details!.headers === null) {
    return reply;
  }
  return { ...reply, headers: [...reply.headers, ...errorHeaders(details!.headers, warn)] };
}

/** The status that an error's details ask for; `undefined` if it is none of a failure. */
function errorStatus(status: Json | undefined): number | undefined {
  const isOne = typeof status === "number" && Number.isInteger(status) && status >= 400 &&
    status <= 599;
  return isOne ? status : undefined;
}

/** An error must have its response, so what is wrong with its headers only costs these. */
function errorHeaders(headers: Json, warn: Warn): readonly HeaderPair[] {
  try {
    return readHeaders(headers, warn).filter(([name]) => name !== "content-type");
  } catch (error) {
    warn("headers of an error are skipped", thrownText(error));
    return [];
  }
}

/** An error in the form of PROTOCOL 6.5. */
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

/**
 * The reply with `extra` headers: they are added where it has headers of the function's own and not
 * this one.
 */
export function withExtra(reply: Reply, extra: readonly HeaderPair[]): Reply {
  if (extra.length === 0 || isPlain(reply)) return reply;
  const headers: HeaderPair[] = [...reply.headers];
  for (const pair of extra) {
    // What a response depends on adds up: a cache could otherwise show it to another origin.
    if (pair[0] === "vary" || !has(headers, pair[0])) headers.push(pair);
  }
  return { ...reply, headers };
}

/** Whether its only headers are the content type and perhaps the trace. */
function isPlain({ headers }: Reply): boolean {
  if (headers === ONLY_JSON) return true;
  if (headers.length === 0 || headers[0]![0] !== "content-type") return false;
  return headers.length === 1 || (headers.length === 2 && headers[1]![0] === "traceparent");
}

function readStatus(fields: JsonObject, warn: Warn): number {
  const status = fields.status_code ?? fields.statusCode;
  if (status === undefined || status === null) return 200;
  if (typeof status === "number" && isStatus(status)) return status;
  warn("status_code is not a status from 200 to 599, so 200 is sent", show(status));
  return 200;
}

/** @throws {EngineError} `invocation_failed` for more headers than a response may have. */
function readHeaders(headers: Json, warn: Warn): HeaderPair[] {
  const pairs: HeaderPair[] = [];
  if (headers !== null && typeof headers === "object") checkCount(headers);
  if (Array.isArray(headers)) {
    for (const line of headers) {
      const colon = typeof line === "string" ? line.indexOf(":") : -1;
      if (colon < 1) {
        warn('a header that is not text such as "name: value" is skipped', show(line));
      } else {
        const text = line as string;
        addHeader(pairs, text.slice(0, colon), text.slice(colon + 1), warn);
      }
    }
  } else if (isObject(headers)) {
    for (const [name, given] of Object.entries(headers)) {
      for (const value of Array.isArray(given) ? given : [given]) {
        if (typeof value === "string") addHeader(pairs, name, value, warn);
        else warn("a header whose value is not text is skipped", show(name));
      }
    }
  } else warn("headers are neither an object nor an array and are skipped", show(headers));
  const bytes = pairs.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
  if (bytes <= HEAD_BYTES_MAX) return pairs;
  throw tooMuch(`${bytes} bytes of headers; at most ${HEAD_BYTES_MAX} are sent`);
}

function checkCount(headers: JsonObject | Json[]): void {
  let count = 0;
  for (const value of Object.values(headers)) count += Array.isArray(value) ? value.length : 1;
  if (count > HEADERS_MAX) throw tooMuch(`${count} headers; at most ${HEADERS_MAX} are sent`);
}

function withType(headers: readonly HeaderPair[], type: HeaderPair): readonly HeaderPair[] {
  if (headers === ONLY_JSON) return type === JSON_TYPE ? headers : [type];
  return [...headers, type];
}

/** @throws {EngineError} `invocation_failed` */
function readBytes(base64: Json): Uint8Array {
  try {
    if (typeof base64 === "string") return Uint8Array.fromBase64(base64);
  } catch {
    // Not base64.
  }
  throw new EngineError(
    "invocation_failed",
    "The function returned a body_base64 that is not base64",
  );
}

function tooMuch(what: string): EngineError {
  return new EngineError("invocation_failed", `The function returned ${what}`);
}

function addHeader(pairs: HeaderPair[], name: string, value: string, warn: Warn): void {
  const key = name.trim().toLowerCase();
  const text = value.trim();
  if (!HEADER_NAME.test(key)) warn("a header with an invalid name is skipped", show(name));
  else if (!HEADER_VALUE.test(text)) warn("a header with an invalid value is skipped", key);
  else if (CONNECTION_HEADERS.has(key)) {
    warn("a header that the engine sets itself is skipped", key);
  } else pairs.push([key, text]);
}

function contentType(headers: readonly HeaderPair[]): string | undefined {
  return headers.find(([name]) => name === "content-type")?.[1];
}

function has(headers: readonly HeaderPair[], name: string): boolean {
  return headers.some((pair) => pair[0] === name);
}

/** Whether it is a final status; those below 200 only announce another one. */
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

/** The value of a response to a request that became a job of a queue: 202 with the receipt. */
export async function accepted(receipt: Promise<Json | undefined>): Promise<Json> {
  return { status_code: 202, body: await receipt ?? null };
}

/** The engine, or one client, has too many requests running. */
export function overloaded(max: number): Reply {
  return retryLater(errorReply(429, "overloaded", tooManyRun(max), crypto.randomUUID()));
}

/** The query has too many parameters. */
export function tooManyParams(max: number): Reply {
  const message = `A request may have at most ${max} query parameters`;
  return errorReply(400, "bad_message", message, crypto.randomUUID());
}

/** Why a request is refused while so many run. */
export function tooManyRun(max: number): string {
  return `Too many requests are running (at most ${max}, fewer for one client); try again`;
}

/** The engine stops; the connection ends with this reply. */
export function draining(): Reply {
  const message = "The engine is stopping; try again";
  const reply = errorReply(503, "invocation_stopped", message, crypto.randomUUID());
  return { ...retryLater(reply), isLast: true };
}

/** A reply with `retry-after`, unless it has one. */
export function retryLater(reply: Reply): Reply {
  if (reply.headers.some(([name]) => name === "retry-after")) return reply;
  return { ...reply, headers: [...reply.headers, ["retry-after", "1"]] };
}

/** Logs each warning about a function's results once, not once per request. */
export class ResultWarnings {
  readonly #log: Log;
  readonly #logged = new Set<string>();
  #last: { readonly function_id: string; readonly warn: Warn } | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Warns for one function; the same one for routes of it that come one after another. */
  of(function_id: string): Warn {
    if (this.#last?.function_id !== function_id) {
      const warn: Warn = (text, about) => this.warn(text, function_id, about);
      this.#last = { function_id, warn };
    }
    return this.#last.warn;
  }

  /** Warns with a constant text, once per function and subject. */
  warn(text: string, function_id: string, about: string): void {
    const key = `${text}\n${function_id}\n${about}`;
    if (this.#logged.has(key) || this.#logged.size >= WARNINGS_MAX) return;
    this.#logged.add(key);
    this.#log.warn(text, { function_id, about });
  }
}
