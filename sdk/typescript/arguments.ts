/**
 * Checks of the arguments that user code passes to the SDK.
 *
 * All of them throw {@linkcode EngineError} `INVALID_ARGUMENTS` with the expected and the received
 * value; {@linkcode checkSize} throws `serialization_error`.
 *
 * @module
 */
import type { ReconnectOptions, WorkerOptions } from "./options.ts";
import { ENQUEUE_OPTIONS } from "./wire/codec.ts";
import { EngineError } from "./wire/errors.ts";
import { ID_CHARS_MAX, TIMEOUT_MS_MAX } from "./wire/limits.ts";
import type { Action } from "./wire/protocol.ts";

/** An action that puts a call into a queue. */
type EnqueueAction = Extract<Action, { type: "enqueue" }>;

/** Largest message that the SDK sends: what an engine accepts by default. */
export const MESSAGE_BYTES_MAX = 64 * 1024 * 1024;
/** Size of the parts in which a long text is counted. */
const SCRATCH_BYTES = 64 * 1024;
/** Most bytes of UTF-8 for a character of a string. */
const CHAR_BYTES_MAX = 3;

/**
 * The address of an engine as a WebSocket address; accepts `http:` and `https:`.
 *
 * @throws {EngineError} `INVALID_ARGUMENTS`
 */
export function readUrl(url: unknown): string {
  if (typeof url !== "string" || !URL.canParse(url)) {
    throw invalid(`Engine address ${showUrl(url)} is not a URL; try ws://127.0.0.1:49134`);
  }
  const parsed = new URL(url);
  if (parsed.protocol === "http:") parsed.protocol = "ws:";
  if (parsed.protocol === "https:") parsed.protocol = "wss:";
  if (parsed.protocol !== "ws:" && parsed.protocol !== "wss:") {
    throw invalid(`Engine address ${showUrl(url)} must start with ws:// or wss://`);
  }
  parsed.hash = ""; // Not allowed in a WebSocket address.
  return parsed.href;
}

/** An address without user, password and query, which may contain secrets. */
export function withoutSecrets(url: string): string {
  return url.replace(/[?#].*/s, "").replace(/\/\/[^/]*@/, "//");
}

/**
 * Checks that an id is a string, not empty and not too long. `what` and `example` are used in the
 * message.
 *
 * @throws {EngineError} `INVALID_ARGUMENTS`
 */
export function checkId(what: string, id: unknown, example: string): asserts id is string {
  if (typeof id !== "string" || id === "") {
    throw invalid(`${what} must be a string such as ${example}, got ${show(id)}`);
  }
  if (id.length > ID_CHARS_MAX) {
    throw invalid(`${what} has ${id.length} characters; at most ${ID_CHARS_MAX} are allowed`);
  }
}

/**
 * Checks the queue of an enqueue action, and that it has no other options than there are: the
 * engine ignores unknown ones, and without its delay a job would run at once.
 *
 * @throws {EngineError} `INVALID_ARGUMENTS`
 */
export function checkEnqueue({ type: _type, queue, ...options }: EnqueueAction): void {
  checkId("queue", queue, '"mail"');
  const known: readonly string[] = ENQUEUE_OPTIONS;
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw invalid(
    `${show(unknown)} is not an option of an enqueued call; the options are ${known.join(", ")}`,
  );
}

/** @throws {EngineError} `INVALID_ARGUMENTS` for anything but `undefined` and a string. */
export function checkNamespace(namespace: unknown): asserts namespace is string | undefined {
  if (namespace === undefined || (typeof namespace === "string" && namespace !== "")) return;
  throw invalid(`A namespace must be a string, got ${show(namespace)}; leave it out for default`);
}

/** @throws {EngineError} `INVALID_ARGUMENTS` for anything but a function. */
export function checkCallable(what: string, callable: unknown): void {
  if (typeof callable !== "function") {
    throw invalid(`${what} must be a function, got ${show(callable)}`);
  }
}

/** @throws {EngineError} `INVALID_ARGUMENTS` for anything but whole milliseconds in range. */
export function checkTimeout(what: string, timeout: unknown): asserts timeout is number {
  const isValid = Number.isInteger(timeout) && timeout as number > 0 &&
    timeout as number <= TIMEOUT_MS_MAX;
  if (isValid) return;
  const range = `whole milliseconds from 1 to ${TIMEOUT_MS_MAX}`;
  throw invalid(`${what} must be ${range}, got ${show(timeout)}`);
}

/** @throws {EngineError} `INVALID_ARGUMENTS` for options of a worker that do not fit. */
export function checkOptions(options: WorkerOptions): void {
  checkTimeout("timeoutMs", options.timeoutMs ?? TIMEOUT_MS_MAX);
  checkWhenDisconnected(options.whenDisconnected);
  checkReconnect(options.reconnect ?? {});
  if (options.onError) checkCallable("onError", options.onError);
}

/** @throws {EngineError} `INVALID_ARGUMENTS` for numbers that are not positive. */
export function checkReconnect({ firstMs, maxMs, maxAttempts }: ReconnectOptions): void {
  for (const [name, value] of Object.entries({ firstMs, maxMs, maxAttempts })) {
    if (value === undefined || value > 0) continue;
    throw invalid(`reconnect.${name} must be a number above 0, got ${show(value)}`);
  }
}

/** @throws {EngineError} `INVALID_ARGUMENTS` for anything but `wait` and `fail`. */
export function checkWhenDisconnected(given: unknown): void {
  if (given === undefined || given === "wait" || given === "fail") return;
  throw invalid(`whenDisconnected must be "wait" or "fail", got ${show(given)}`);
}

/**
 * Checks that a frame is one that the engine accepts: otherwise it would close the connection.
 *
 * @throws {EngineError} `serialization_error`
 */
export function checkSize(
  what: string,
  frame: string,
  limit_bytes: number = MESSAGE_BYTES_MAX,
): void {
  if (frame.length * CHAR_BYTES_MAX <= limit_bytes) return;
  const bytes = frame.length > limit_bytes ? frame.length : utf8Bytes(frame);
  if (bytes <= limit_bytes) return;
  const message = `${what} takes ${bytes} bytes; at most ${limit_bytes} are allowed`;
  throw new EngineError("serialization_error", message, { details: { bytes, limit_bytes } });
}

/** Bytes of a text as UTF-8, counted part by part: a frame may have many megabytes. */
function utf8Bytes(text: string): number {
  const encoder = new TextEncoder();
  const scratch = new Uint8Array(SCRATCH_BYTES);
  let bytes = 0;
  for (let at = 0; at < text.length;) {
    // The parts are views, and a pair that is cut by the end of one is left to the next.
    const part = text.slice(at, at + SCRATCH_BYTES);
    const { read, written } = encoder.encodeInto(part, scratch);
    at += read;
    bytes += written;
  }
  return bytes;
}

/** An error about arguments. */
export function invalid(message: string): EngineError {
  return new EngineError("INVALID_ARGUMENTS", message);
}

function showUrl(url: unknown): string {
  return show(typeof url === "string" ? withoutSecrets(url) : url);
}

/** A short description of a value for the message of an error. */
export function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 100));
  if (typeof value === "function") return "a function";
  if (typeof value === "object" && value !== null) {
    return Array.isArray(value) ? "a list" : "an object";
  }
  return String(value);
}
