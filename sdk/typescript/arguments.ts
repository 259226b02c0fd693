/**
 * Checks of the arguments that user code passes to the SDK.
 *
 * All of them throw {@linkcode EngineError} `INVALID_ARGUMENTS` with the expected and the received
 * value; {@linkcode toJson} throws `serialization_error`.
 *
 * @module
 */
import type { ReconnectOptions } from "./options.ts";
import { EngineError, thrownText } from "./wire/errors.ts";
import { ID_CHARS_MAX, TIMEOUT_MS_MAX } from "./wire/limits.ts";

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
    throw invalid(`${what} must be text such as ${example}, got ${show(id)}`);
  }
  if (id.length > ID_CHARS_MAX) {
    throw invalid(`${what} has ${id.length} characters; at most ${ID_CHARS_MAX} are allowed`);
  }
}

/** @throws {EngineError} `INVALID_ARGUMENTS` for anything but `undefined` and a string. */
export function checkNamespace(namespace: unknown): asserts namespace is string | undefined {
  if (namespace === undefined || (typeof namespace === "string" && namespace !== "")) return;
  throw invalid(`A namespace must be text, got ${show(namespace)}; leave it out for default`);
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

/** @throws {EngineError} `INVALID_ARGUMENTS` for numbers that are not positive. */
export function checkReconnect({ firstMs, maxMs, maxAttempts }: ReconnectOptions): void {
  for (const [name, value] of Object.entries({ firstMs, maxMs, maxAttempts })) {
    if (value === undefined || value > 0) continue;
    throw invalid(`reconnect.${name} must be a number above 0, got ${show(value)}`);
  }
}

/**
 * The JSON text of a value; `undefined` for `undefined`.
 *
 * @throws {EngineError} `serialization_error` for what JSON cannot represent: a BigInt, a cycle, a
 * function, a symbol.
 */
export function toJson(what: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    const reason = thrownText(cause).split("\n")[0];
    throw new EngineError("serialization_error", `${what} cannot be written as JSON: ${reason}`, {
      cause,
    });
  }
  if (text !== undefined) return text;
  const reason = `a ${typeof value} is no JSON value`;
  throw new EngineError("serialization_error", `${what} cannot be written as JSON: ${reason}`);
}

function invalid(message: string): EngineError {
  return new EngineError("INVALID_ARGUMENTS", message);
}

function showUrl(url: unknown): string {
  return show(typeof url === "string" ? withoutSecrets(url) : url);
}

/** A short description of a value for the message of an error. */
function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 100));
  if (typeof value === "function") return "a function";
  if (typeof value === "object" && value !== null) {
    return Array.isArray(value) ? "a list" : "an object";
  }
  return String(value);
}
