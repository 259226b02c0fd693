/**
 * From the bytes of a body to its value, by content type: JSON, text, forms; and the bytes as they
 * came, where a route asks for them.
 *
 * No content becomes `null` in silence. What has no form here, or is too large for one, is left to
 * the stream `request_body` of the payload ({@linkcode BodyOwner.keepsBytes}); without one it is
 * refused, unless the route says `lenient_body` (then it is `null`) or `raw_body` (then its bytes
 * are in the payload).
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import { JsonText } from "../../sdk/typescript/json_text.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { isTooDeep } from "../../sdk/typescript/wire/json_depth.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { HeldMemory } from "../kit/held_memory.ts";
import { BodyError, type RequestBody } from "../kit/http/body.ts";
import { CHUNKED } from "../kit/http/head.ts";
import type { ServedRequest } from "../kit/http/response.ts";
import { BODY_DEPTH_MAX, JsonCheck } from "./json_check.ts";
import { readMultipart, readUrlencoded } from "./form.ts";

const UTF_8 = new TextDecoder();
const STRICT_UTF_8 = new TextDecoder("utf-8", { fatal: true });
const CHARSET = /;[ \t]*charset="?([^\s;"]{1,40})/i;
/** The first byte of a byte order mark, which decoding drops. */
const BOM_BYTE = 0xef;
/** What decoding puts in place of bytes that are not UTF-8. */
const REPLACEMENT = "\ufffd";
/** Bodies up to this size are bounded by the number of sockets instead of the memory budget. */
const SMALL_BODY_BYTES = 16 * 1024;
/** Larger bodies are handled in turns; their JSON is only checked, and goes on as it came. */
const LARGE_BODY_BYTES = 1024 * 1024;
/** Bytes of JSON that are checked at once: about 2 ms. */
const CHECKED_BYTES = 512 * 1024;
/** Longest pause between two large bodies. */
const PAUSE_MS_MAX = 200;
/** What a value made of a body takes, in bodies: its parts, and the message that carries it. */
const VALUE_SHARE = 1;
/** The same for the bytes as base64. */
const RAW_SHARE = 2;

/** How a body is read. */
export type BodyKind = "json" | "text" | "urlencoded" | "multipart" | "other";

/** What the configuration says about bodies. */
export interface BodyLimits {
  /** Of any body. */
  readonly body_bytes_max: number;
  /** Of one that is neither JSON nor wanted as bytes. */
  readonly buffered_body_bytes_max: number;
  /** Of one that the function reads as a stream. */
  readonly streamed_body_bytes_max: number;
}

/** What a route says about bodies. */
export interface BodyRules {
  /** What cannot be read is `null`. */
  readonly lenient_body: boolean;
  /** The bytes go into the payload, too. */
  readonly raw_body: boolean;
}

/** Whose body is read: it holds the memory, and what cancels a body that is still arriving. */
export interface BodyOwner {
  readonly held: HeldMemory;
  cancelBody: (() => void) | undefined;
  /** The body as base64, where the route asks for it. */
  rawBody: string | undefined;
  /** Whether the function can read the bytes themselves, as a stream. */
  readonly keepsBytes: boolean;
  /** What was read of the body, for that stream, which goes on with the rest; text is UTF-8. */
  received: Uint8Array | string | undefined;
  /** Set when the value of the body is not wanted any more. */
  readonly stopReason: string | undefined;
  readonly turns: BodyTurns;
}

/** A body as the payload has it; JSON goes on as it came. */
export type BodyValue = Json | JsonText;

/**
 * Large bodies are handled one after another and in parts. What waits in the engine has its turn
 * between two parts, and as much time as a body took behind it; V8 collects its text meanwhile.
 */
export class BodyTurns {
  readonly #clock: Pick<Clock, "now" | "after">;
  #last: Promise<void> = Promise.resolve();
  /** Tasks that run or wait. */
  #tasks = 0;
  /** When the last one began. */
  #startedAt = 0;

  constructor(clock: Pick<Clock, "now" | "after">) {
    this.#clock = clock;
  }

  /** Runs the parts of a task when it is its turn; throws what they throw. */
  async run<T>(parts: Generator<void, T>): Promise<T> {
    const turn = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    const isFirst = this.#tasks++ === 0;
    await turn;
    if (!isFirst) await this.#pause();
    this.#startedAt = this.#clock.now();
    try {
      for (;;) {
        const { done, value } = parts.next();
        if (done) return value;
        await this.#later(0);
      }
    } finally {
      this.#tasks--;
      resolve();
    }
  }

  /** As much time as the task before took, with what its end set off. */
  async #pause(): Promise<void> {
    await this.#later(0);
    await this.#later(Math.min(this.#clock.now() - this.#startedAt, PAUSE_MS_MAX));
  }

  #later(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#clock.after(ms, resolve));
  }
}

/**
 * How a content type is read. Only the type counts, not its parameters: a page of another origin
 * may send `text/plain; x=application/json` without asking first.
 */
export function kindOf(contentType: string | undefined): BodyKind {
  if (contentType === undefined) return "other";
  if (contentType === "application/json") return "json";
  const end = contentType.indexOf(";");
  const type = (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
  if (type === "application/json" || type.endsWith("+json")) return "json";
  if (type === "application/x-www-form-urlencoded") return "urlencoded";
  if (type === "multipart/form-data") return "multipart";
  return type.startsWith("text/") || type === "application/xml" ? "text" : "other";
}

/**
 * Reads the value of a body; at once if it was received with its head. A body that breaks off
 * throws the platform's error.
 *
 * @throws {EngineError} `body_too_large`, before the whole body has arrived; `invalid_json`,
 * `invalid_body`; `unsupported_media_type`; `overloaded` when the memory of the engine has no room.
 */
export function readBody(
  { body, headers }: Pick<ServedRequest, "body" | "headers">,
  limits: BodyLimits,
  rules: BodyRules,
  owner: BodyOwner,
): BodyValue | Promise<BodyValue> {
  const type = headers["content-type"];
  const kind = kindOf(type);
  const reading = { kind, type, limits, rules, owner };
  const { declaredBytes } = body;
  const bytesMax = bytesMaxOf(kind, limits, rules);
  const maySkip = owner.keepsBytes && kind !== "json" && !rules.raw_body;
  if (maySkip && (kind === "other" || declaredBytes > bytesMax)) {
    if (declaredBytes <= limits.streamed_body_bytes_max) return null;
    throw bodyTooLarge("streamed_body_bytes_max", limits);
  }
  if (declaredBytes > limits.body_bytes_max) throw bodyTooLarge("body_bytes_max", limits);
  if (declaredBytes > bytesMax && kind !== "other") {
    throw bodyTooLarge("buffered_body_bytes_max", limits);
  }
  if (kind === "other" && !rules.raw_body) {
    if (declaredBytes === CHUNKED) {
      owner.cancelBody = () => body.cancel();
      return skip(body, reading);
    }
    return declaredBytes === 0 ? null : unread(reading);
  }
  const received = declaredBytes <= SMALL_BODY_BYTES ? body.takeReceived() : undefined;
  if (received) return decode(received, reading);
  owner.cancelBody = () => body.cancel();
  return collect(body, bytesMax, reading, maySkip).then((bytes) => {
    if (bytes.length <= bytesMax) return decodeCollected(bytes, reading);
    owner.received = bytes;
    return null;
  });
}

/** One body that is being read. */
interface Reading {
  readonly kind: BodyKind;
  /** The content type. */
  readonly type: string | undefined;
  readonly limits: BodyLimits;
  readonly rules: BodyRules;
  readonly owner: BodyOwner;
}

function bytesMaxOf(kind: BodyKind, limits: BodyLimits, { raw_body }: BodyRules): number {
  if (kind === "json" || raw_body) return limits.body_bytes_max;
  return Math.min(limits.buffered_body_bytes_max, limits.body_bytes_max);
}

/** What becomes of content that is not read. */
function unread({ type, rules }: Reading): null {
  if (rules.lenient_body) return null;
  const said = type === undefined ? "without a content-type" : `of type ${show(type)}`;
  const message =
    `A body ${said} is not supported; send JSON, text or a form, or set raw_body: true ` +
    "in the route's config to get its bytes";
  throw new EngineError("unsupported_media_type", message);
}

/** Large bodies in turns. */
async function decodeCollected(bytes: Uint8Array, reading: Reading): Promise<BodyValue> {
  const parts = decodeParts(bytes, reading);
  const isLarge = bytes.length > LARGE_BODY_BYTES;
  return isLarge ? await reading.owner.turns.run(parts) : parts.next().value!;
}

/** JSON above {@linkcode LARGE_BODY_BYTES} in parts, all else at once. */
function* decodeParts(bytes: Uint8Array, reading: Reading): Generator<void, BodyValue> {
  const { kind, rules, owner } = reading;
  if (owner.stopReason !== undefined) throw new Error(owner.stopReason);
  if (kind !== "json" || bytes.length <= LARGE_BODY_BYTES) return decode(bytes, reading);
  keepBytes(bytes, reading);
  const check = new JsonCheck(bytes);
  try {
    while (!check.advance(CHECKED_BYTES)) {
      yield;
      if (owner.stopReason !== undefined) throw new Error(owner.stopReason);
    }
  } catch (error) {
    return notJson(error, rules.lenient_body);
  }
  yield;
  const text = UTF_8.decode(bytes);
  yield; // Sending it takes as long again.
  return new JsonText(text);
}

/** Where the route or the function wants the bytes themselves. */
function keepBytes(bytes: Uint8Array, { rules, owner }: Reading, text?: string): void {
  if (rules.raw_body) owner.rawBody = bytes.toBase64();
  if (owner.keepsBytes) owner.received = kept(bytes, text);
}

function decode(bytes: Uint8Array, reading: Reading): BodyValue {
  const { kind, type, rules, limits } = reading;
  const text = kind === "json" ? UTF_8.decode(bytes) : undefined;
  keepBytes(bytes, reading, text);
  if (text !== undefined) return checkedJson(text, rules.lenient_body);
  // Its bytes are in the payload.
  if (kind === "other" || bytes.length > limits.buffered_body_bytes_max) return null;
  try {
    if (kind === "text") return readText(bytes, type!);
    return kind === "urlencoded" ? readUrlencoded(bytes) : readMultipart(bytes, type!);
  } catch (error) {
    if (rules.lenient_body && error instanceof EngineError) return null;
    throw error;
  }
}

/**
 * The bytes of a body for the time after it was read. What was received with the head is
 * overwritten by the next read, and few functions want it: its text is no copy and costs nothing.
 */
function kept(bytes: Uint8Array, text: string | undefined): Uint8Array | string {
  if (bytes.length > SMALL_BODY_BYTES) return bytes;
  const isExact = text !== undefined && bytes[0] !== BOM_BYTE && !text.includes(REPLACEMENT);
  return isExact ? text : bytes.slice();
}

/** JSON that was checked: writing its value anew would lose digits, and take 0.3 µs and more. */
function checkedJson(text: string, isLenient: boolean): JsonText | null {
  if (text === "") return null;
  try {
    if (isTooDeep(text, BODY_DEPTH_MAX)) {
      throw new SyntaxError(`it is nested more deeply than ${BODY_DEPTH_MAX} levels`);
    }
    JSON.parse(text);
    return new JsonText(text);
  } catch (error) {
    return notJson(error, isLenient);
  }
}

/** What becomes of a body that is not JSON. */
function notJson(error: unknown, isLenient: boolean): null {
  if (!(error instanceof SyntaxError)) throw error;
  if (isLenient) return null;
  const message = `Request body is not JSON: ${error.message}`;
  throw new EngineError("invalid_json", message, { cause: error });
}

function readText(bytes: Uint8Array, type: string): string {
  const charset = CHARSET.exec(type)?.[1] ?? "utf-8";
  try {
    return decoderFor(charset).decode(bytes);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const message = `Request body is not ${charset} text; name its charset in content-type, or ` +
      "set raw_body: true in the route's config";
    throw new EngineError("invalid_body", message);
  }
}

function decoderFor(charset: string): TextDecoder {
  if (charset.toLowerCase() === "utf-8") return STRICT_UTF_8;
  try {
    return new TextDecoder(charset, { fatal: true });
  } catch {
    const message = `The charset ${show(charset)} is not supported; send utf-8`;
    throw new EngineError("unsupported_media_type", message);
  }
}

/** Counts the bytes of a body that is not read and drops them. */
async function skip(body: RequestBody, reading: Reading): Promise<null> {
  const dropped = new Uint8Array(SMALL_BODY_BYTES);
  for (let total = 0;;) {
    const count = await readSome(body, dropped, reading.kind);
    if (count === 0) return null;
    unread(reading);
    total += count;
    if (total > reading.limits.body_bytes_max) throw bodyTooLarge("body_bytes_max", reading.limits);
  }
}

/**
 * Reads a body to its end; `maySkip`: or until it has more than `bytesMax`. Its memory is taken as
 * the bytes arrive, and once more at the end for the value that is made of them; it is returned
 * with the request.
 */
async function collect(
  body: RequestBody,
  bytesMax: number,
  { kind, limits, rules, owner: { held } }: Reading,
  maySkip: boolean,
): Promise<Uint8Array> {
  const { declaredBytes } = body;
  const setting = bytesMax === limits.body_bytes_max ? "body_bytes_max" : "buffered_body_bytes_max";
  const expected = declaredBytes === CHUNKED ? bytesMax + 1 : declaredBytes;
  let bytes = new Uint8Array(Math.min(expected, SMALL_BODY_BYTES));
  for (let end = 0;;) {
    if (end === bytes.length) {
      if (declaredBytes !== CHUNKED && end >= declaredBytes) break;
      if (end > bytesMax) throw bodyTooLarge(setting, limits);
      bytes = await enlarge(bytes, Math.min(expected, bytes.length * 4), held);
    }
    const count = await readSome(body, bytes.subarray(end), kind);
    if (count === 0) {
      bytes = bytes.subarray(0, end);
      break;
    }
    end += count;
    if (end <= bytesMax) continue;
    if (!maySkip) throw bodyTooLarge(setting, limits);
    if (end > limits.streamed_body_bytes_max) {
      throw bodyTooLarge("streamed_body_bytes_max", limits);
    }
    return bytes.subarray(0, end);
  }
  const shares = rules.raw_body ? VALUE_SHARE + RAW_SHARE : VALUE_SHARE;
  const isSmall = bytes.length <= SMALL_BODY_BYTES;
  if (!isSmall && !await held.takeSoon(bytes.length * shares)) throw noMemory();
  return bytes;
}

async function enlarge(
  bytes: Uint8Array,
  size: number,
  held: HeldMemory,
): Promise<Uint8Array<ArrayBuffer>> {
  const isFirst = bytes.length <= SMALL_BODY_BYTES;
  if (!await held.takeSoon(isFirst ? size : size - bytes.length)) throw noMemory();
  const larger = new Uint8Array(size);
  larger.set(bytes);
  return larger;
}

/** @throws {EngineError} `invalid_json` or `invalid_body` for chunks that are not well formed. */
async function readSome(body: RequestBody, into: Uint8Array, kind: BodyKind): Promise<number> {
  try {
    return await body.read(into);
  } catch (error) {
    if (!(error instanceof BodyError)) throw error;
    if (kind === "json") {
      throw new EngineError("invalid_json", `Request body is not JSON: ${error.message}`);
    }
    throw new EngineError("invalid_body", `Request body cannot be read: ${error.message}`);
  }
}

function noMemory(): EngineError {
  const message = "The memory of the engine has no room for the request body now; try again";
  return new EngineError("overloaded", message);
}

/** The error of a body above the limit of that name. */
export function bodyTooLarge(setting: keyof BodyLimits, limits: BodyLimits): EngineError {
  const bytesMax = limits[setting];
  const what = setting === "buffered_body_bytes_max"
    ? "Request body that is not JSON"
    : "Request body";
  return new EngineError(
    "body_too_large",
    `${what} has more than ${bytesMax} bytes; send less or raise ${setting}`,
    { details: { [setting]: bytesMax } },
  );
}

function show(text: string): string {
  return JSON.stringify(text.slice(0, 80));
}
