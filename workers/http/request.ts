/**
 * What a handler is told about an HTTP request, and how its body is read.
 *
 * The raw URL is cut, not parsed: `new URL()` would be a tenth of a request. Channels do not exist
 * yet, so the payload has no `request_body` and no `response`.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { HTTP_JSON_DEPTH_MAX } from "../limits.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Match } from "./routes.ts";

/** A URL, cut but not decoded. */
export interface Target {
  /** As in the request line; starts with a slash, or is empty. */
  readonly path: string;
  /** Without the question mark; empty when there is none. */
  readonly query: string;
}

/** Cuts path and query out of an absolute URL, without checking it. */
export function cutUrl(url: string): Target {
  const hash = url.indexOf("#");
  const end = hash < 0 ? url.length : hash;
  const start = url.indexOf("/", url.indexOf("://") + 3);
  if (start < 0 || start >= end) return { path: "", query: "" };
  const mark = url.indexOf("?", start);
  if (mark < 0 || mark >= end) return { path: url.slice(start, end), query: "" };
  return { path: url.slice(start, mark), query: url.slice(mark + 1, end) };
}

/** Names are lower case; a repeated header is one value, joined with commas. */
export function readHeaders(headers: Headers): Record<string, string> {
  const plain: Record<string, string> = {};
  headers.forEach((value, name) => {
    plain[name] = value;
  });
  return plain;
}

/** Decoded; of a repeated key the last value wins. */
export function readQuery(query: string): Record<string, string> {
  if (query === "") return {};
  // A question mark at the start would be taken for the one that is cut off already.
  return Object.fromEntries(new URLSearchParams(query[0] === "?" ? `?${query}` : query));
}

/** Whether the body is to be parsed. */
export function isJson(headers: Readonly<Record<string, string>>): boolean {
  const type = headers["content-type"];
  if (type === undefined) return false;
  return type === "application/json" || type.toLowerCase().includes("application/json");
}

/** The payload of the handler and of its condition. */
export function makePayload<T>(
  method: string,
  match: Match<T>,
  query: string,
  headers: Record<string, string>,
  body: Json,
): JsonObject {
  const { path, method: routeMethod } = match.route;
  return {
    path,
    method,
    path_params: match.params,
    query_params: readQuery(query),
    headers,
    body,
    trigger: { type: "http", path, method: routeMethod },
  };
}

/** Who reads a body. */
export interface BodyReader {
  /** Lets go of one that is still arriving. */
  giveUpBody: (() => void) | undefined;
}

/** A declared body up to here is read in one piece, which is quicker but cannot be given up. */
const SMALL_BYTES = 64 * 1024;

/**
 * The value in a JSON body, else `null`, also for an empty one; what nobody looks at is not read.
 *
 * `isLenient`: JSON that is none becomes `null`. A body that breaks off throws what the platform
 * throws. `reader` is handed what lets go of a large body that is still arriving.
 *
 * @throws {EngineError} `body_too_large`, before the whole body has arrived; `invalid_json`.
 */
export function readBody(
  request: Request,
  headers: Readonly<Record<string, string>>,
  bytesMax: number,
  isLenient: boolean,
  reader: BodyReader = { giveUpBody: undefined },
): Promise<Json> {
  const declared = headers["content-length"];
  const isWanted = isJson(headers);
  if (declared !== undefined) {
    if (Number(declared) > bytesMax) return Promise.reject(tooLarge(bytesMax));
    if (declared === "0" || !isWanted) return Promise.resolve(null);
    if (Number(declared) <= SMALL_BYTES) {
      return request.text().then((text) => parseJson(text, isLenient));
    }
  }
  return readStream(request.body, bytesMax, isWanted, isLenient, reader);
}

async function readStream(
  body: Request["body"],
  bytesMax: number,
  isWanted: boolean,
  isLenient: boolean,
  reader: BodyReader,
): Promise<Json> {
  if (body === null) return null;
  const chunks = body.getReader();
  // It may have broken off by itself meanwhile.
  reader.giveUpBody = () => void chunks.cancel().catch(() => {});
  const bytes = await collect(chunks, bytesMax, isWanted);
  return isWanted ? parseJson(new TextDecoder().decode(bytes), isLenient) : null;
}

/** Reads a body in pieces to its end; what is not wanted is counted and let go. */
async function collect(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  bytesMax: number,
  isWanted: boolean,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let total = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    total += read.value.length;
    if (total > bytesMax) {
      await reader.cancel();
      throw tooLarge(bytesMax);
    }
    if (isWanted) chunks.push(read.value);
  }
  if (chunks.length === 1) return chunks[0]!;
  const whole = new Uint8Array(isWanted ? total : 0);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

function parseJson(received: string, isLenient: boolean): Json {
  // The platform takes a byte order mark away from some bodies and not from others.
  const text = received.charCodeAt(0) === 0xfeff ? received.slice(1) : received;
  if (text === "") return null;
  try {
    if (isTooDeep(text)) {
      throw new SyntaxError(`it is nested deeper than ${HTTP_JSON_DEPTH_MAX} levels`);
    }
    return JSON.parse(text) as Json;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    if (isLenient) return null;
    const message = `Request body is not JSON: ${error.message}`;
    throw new EngineError("invalid_json", message, { cause: error });
  }
}

/**
 * Whether reading and writing it would take far longer than its length says: a few megabytes of
 * brackets would hold up everybody for many seconds.
 */
function isTooDeep(json: string): boolean {
  if (json.length <= HTTP_JSON_DEPTH_MAX) return false;
  let depth = 0;
  for (let i = 0; i < json.length; i++) {
    switch (json.charCodeAt(i)) {
      case 0x22: // "
        i = endOfText(json, i);
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > HTTP_JSON_DEPTH_MAX) return true;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth--;
        break;
    }
  }
  return false;
}

/** Where the text that starts with the quote at `start` has its closing one. */
function endOfText(json: string, start: number): number {
  let end = start;
  let isEscaped: boolean;
  do {
    end = json.indexOf('"', end + 1);
    if (end < 0) return json.length;
    let backslashes = 0;
    while (json[end - 1 - backslashes] === "\\") backslashes++;
    isEscaped = backslashes % 2 === 1;
  } while (isEscaped);
  return end;
}

function tooLarge(bytesMax: number): EngineError {
  return new EngineError(
    "body_too_large",
    `Request body has more than ${bytesMax} bytes; send less or raise body_bytes_max`,
    { details: { body_bytes_max: bytesMax } },
  );
}
