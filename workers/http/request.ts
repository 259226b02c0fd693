/**
 * What a handler is told about an HTTP request, and how its body is read.
 *
 * The raw URL is cut, not parsed: `new URL()` would be a tenth of a request. Channels do not exist
 * yet, so the payload has no `request_body` and no `response`.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/protocol.ts";
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
  return query === "" ? {} : Object.fromEntries(new URLSearchParams(query));
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

/**
 * The value in a JSON body, else `null`, also for an empty one; what nobody looks at is not read.
 *
 * `isLenient`: JSON that is none becomes `null`. A body that breaks off throws what the platform
 * throws.
 *
 * @throws {EngineError} `body_too_large`, before the whole body has arrived; `invalid_json`.
 */
export async function readBody(
  request: Request,
  headers: Readonly<Record<string, string>>,
  bytesMax: number,
  isLenient: boolean,
): Promise<Json> {
  const declared = headers["content-length"];
  try {
    if (declared !== undefined) {
      if (Number(declared) > bytesMax) throw tooLarge(bytesMax);
      return declared !== "0" && isJson(headers) ? await request.json() : null;
    }
    if (request.body === null) return null;
    const bytes = await collect(request.body, bytesMax, isJson(headers));
    return bytes.length === 0 ? null : JSON.parse(new TextDecoder().decode(bytes));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    if (isLenient) return null;
    const message = `Request body is not JSON: ${error.message}`;
    throw new EngineError("invalid_json", message, { cause: error });
  }
}

/** Reads a body of unknown length to its end; what is not wanted is counted and let go. */
async function collect(
  body: ReadableStream<Uint8Array>,
  bytesMax: number,
  isWanted: boolean,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let total = 0;
  for await (const chunk of body) {
    total += chunk.length;
    if (total > bytesMax) throw tooLarge(bytesMax); // Leaving the loop cancels the rest.
    if (isWanted) chunks.push(chunk);
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

function tooLarge(bytesMax: number): EngineError {
  return new EngineError(
    "body_too_large",
    `Request body has more than ${bytesMax} bytes; send less or raise body_bytes_max`,
    { details: { body_bytes_max: bytesMax } },
  );
}
