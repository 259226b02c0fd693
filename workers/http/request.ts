/**
 * From a `Request` to the payload of its handler: path, query, headers and body, and the limits of
 * a running request.
 *
 * A request costs neither a timer nor a listener. One clock task visits all running requests every
 * `WATCH_MS`: it stops those past their deadline, and starts to listen for the client's departure,
 * which most requests end too early to need. The raw URL is cut, not parsed, because `new URL()`
 * would be a tenth of a request. Channels do not exist yet, so the payload has no `request_body`
 * and no `response`.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Match } from "./routes.ts";

/** Most levels of nesting in a JSON body. */
export const JSON_DEPTH_MAX = 10_000;
/** How often running requests are visited for clients that left and deadlines that passed. */
export const WATCH_MS = 50;
/** A body whose declared length is at most this is read in one piece: faster, not cancellable. */
const SMALL_BODY_BYTES = 64 * 1024;

/** Path and query of a URL, not decoded. */
export interface RawTarget {
  /** As in the request line; starts with a slash, or is empty. */
  readonly path: string;
  /** Without the question mark; empty when there is none. */
  readonly query: string;
}

/** Cuts path and query out of an absolute URL, without checking it. */
export function cutUrl(url: string): RawTarget {
  const hash = url.indexOf("#");
  const end = hash < 0 ? url.length : hash;
  const start = url.indexOf("/", url.indexOf("://") + 3);
  if (start < 0 || start >= end) return { path: "", query: "" };
  const mark = url.indexOf("?", start);
  if (mark < 0 || mark >= end) return { path: url.slice(start, end), query: "" };
  return { path: url.slice(start, mark), query: url.slice(mark + 1, end) };
}

/** Headers by their names in lower case. */
export type PlainHeaders = Record<string, string>;

/** A repeated header becomes one value, joined with commas. */
export function readHeaders(headers: Headers): PlainHeaders {
  const plain: PlainHeaders = {};
  headers.forEach((value, name) => {
    plain[name] = value;
  });
  return plain;
}

/** Decoded; of a repeated key the last value wins. */
export function readQuery(query: string): Record<string, string> {
  if (query === "") return {};
  // URLSearchParams would drop a leading question mark, which here is part of the first key.
  return Object.fromEntries(new URLSearchParams(query[0] === "?" ? `?${query}` : query));
}

/** Whether the content type says JSON. */
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

/** Holds what cancels a body that is still arriving. */
export interface BodyOwner {
  cancelBody: (() => void) | undefined;
}

/**
 * Reads the value in a JSON body; `null` for an empty body and for any other content type, whose
 * body is skipped.
 *
 * With `isLenient`, malformed JSON is `null`. A body that breaks off throws the platform's error.
 * `owner` receives what cancels a large body that is still arriving.
 *
 * @throws {EngineError} `body_too_large`, before the whole body has arrived; `invalid_json`.
 */
export function readBody(
  request: Request,
  headers: Readonly<Record<string, string>>,
  bytesMax: number,
  isLenient: boolean,
  owner: BodyOwner = { cancelBody: undefined },
): Promise<Json> {
  const declared = headers["content-length"];
  const isWanted = isJson(headers);
  if (declared !== undefined) {
    if (Number(declared) > bytesMax) return Promise.reject(bodyTooLarge(bytesMax));
    if (declared === "0" || !isWanted) return Promise.resolve(null);
    if (Number(declared) <= SMALL_BODY_BYTES) {
      return request.text().then((text) => parseJson(text, isLenient));
    }
  }
  return readStream(request.body, bytesMax, isWanted, isLenient, owner);
}

async function readStream(
  body: Request["body"],
  bytesMax: number,
  isWanted: boolean,
  isLenient: boolean,
  owner: BodyOwner,
): Promise<Json> {
  if (body === null) return null;
  const chunks = body.getReader();
  // The body may break off by itself before.
  owner.cancelBody = () => void chunks.cancel().catch(() => {});
  const bytes = await collect(chunks, bytesMax, isWanted);
  return isWanted ? parseJson(new TextDecoder().decode(bytes), isLenient) : null;
}

/** Reads a body in pieces to its end; bytes that are not wanted are counted and dropped. */
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
      throw bodyTooLarge(bytesMax);
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
      throw new SyntaxError(`it is nested deeper than ${JSON_DEPTH_MAX} levels`);
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
 * Whether the JSON nests deeper than `JSON_DEPTH_MAX`: parsing a few megabytes of brackets would
 * block the thread for many seconds.
 */
function isTooDeep(json: string): boolean {
  if (json.length <= JSON_DEPTH_MAX) return false;
  let depth = 0;
  for (let i = 0; i < json.length; i++) {
    switch (json.charCodeAt(i)) {
      case 0x22: // "
        i = endOfString(json, i);
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > JSON_DEPTH_MAX) return true;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth--;
        break;
    }
  }
  return false;
}

/** Index of the closing quote of the string whose opening quote is at `start`. */
function endOfString(json: string, start: number): number {
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

/** The error of a body above the limit. */
export function bodyTooLarge(bytesMax: number): EngineError {
  return new EngineError(
    "body_too_large",
    `Request body has more than ${bytesMax} bytes; send less or raise body_bytes_max`,
    { details: { body_bytes_max: bytesMax } },
  );
}

/** Why a request was stopped before its handler finished. */
export type StopReason = "client gone" | "timeout" | "stopped";

/** One running request. */
export class RunningRequest implements BodyOwner {
  readonly request: Request;
  /** When it came, on the clock. */
  readonly startedAt: number;
  /** On the clock; no part of the request may take longer. */
  readonly deadline: number;
  /** Why it was stopped; `undefined` while it was not. */
  stopReason: StopReason | undefined;
  /** Whether the client's departure is listened for. */
  isWatched = false;
  /** Whether its body is still arriving. */
  isReading = false;
  /** For calls: aborted when the client is gone or the worker stops. */
  readonly signal: CallSignal = new CallSignal();
  /** Its index among the running requests; -1 when it has ended. */
  index = -1;
  cancelBody: (() => void) | undefined;
  #reject: ((error: Error) => void) | undefined;

  constructor(request: Request, startedAt: number, deadline: number) {
    this.request = request;
    this.startedAt = startedAt;
    this.deadline = deadline;
  }

  /**
   * Waits for a task that has no deadline of its own.
   *
   * @throws {Error} When the request is stopped first; `stopReason` says why.
   */
  race<T>(task: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#reject = reject;
      task.then(resolve, reject);
      if (this.stopReason) reject(new Error(this.stopReason));
    });
  }

  /** Waits for the body; {@linkcode isReading} stays `true` when that fails. */
  read<T>(body: Promise<T>): Promise<T> {
    this.isReading = true;
    return this.race(body.then((value) => {
      if (!this.stopReason) this.isReading = false;
      return value;
    }));
  }

  /** Stops the request; later calls have no effect. */
  stop(reason: StopReason): void {
    if (this.stopReason) return;
    this.stopReason = reason;
    this.#reject?.(new Error(reason));
    if (this.isReading) this.cancelBody?.();
    // The engine ends calls at their deadline by itself and tells the callee.
    if (reason !== "timeout") this.signal.abort(new Error(reason));
  }
}

/** All running requests. */
export class RunningRequests {
  readonly #clock: Clock;
  /** In any order. Not a `Set`: see `TurnoverMap`. */
  readonly #running: RunningRequest[] = [];
  readonly #timeoutMs: number;
  readonly #max: number;
  #cancelSweep: (() => void) | undefined;

  /** `timeoutMs`: of each request; `max`: how many may run at once. */
  constructor(clock: Clock, timeoutMs: number, max: number) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#max = max;
  }

  /** How many run. */
  get size(): number {
    return this.#running.length;
  }

  /** Adds a request; `undefined` when `max` run already. */
  add(request: Request): RunningRequest | undefined {
    if (this.#running.length >= this.#max) return undefined;
    const now = this.#clock.now();
    const running = new RunningRequest(request, now, now + this.#timeoutMs);
    running.index = this.#running.push(running) - 1;
    this.#cancelSweep ??= this.#clock.after(WATCH_MS, () => this.#sweep());
    return running;
  }

  /** Removes a request that has its response; a second time has no effect. */
  remove(running: RunningRequest): void {
    const { index } = running;
    if (index < 0) return;
    running.index = -1;
    const last = this.#running.pop()!;
    if (last === running) return;
    this.#running[index] = last;
    last.index = index;
  }

  /** Whole milliseconds until the deadline of a request, at least 1. */
  remainingMs(running: RunningRequest): number {
    return Math.max(1, Math.ceil(running.deadline - this.#clock.now()));
  }

  /** Stops all requests, because the worker stops. */
  stop(): void {
    for (const running of [...this.#running]) running.stop("stopped");
    this.#cancelSweep?.();
    this.#cancelSweep = undefined;
  }

  #sweep(): void {
    this.#cancelSweep = undefined;
    const now = this.#clock.now();
    for (const running of [...this.#running]) {
      if (now >= running.deadline) running.stop("timeout");
      else if (!running.isWatched) this.#watch(running, now);
    }
    if (this.#running.length > 0) {
      this.#cancelSweep = this.#clock.after(WATCH_MS, () => this.#sweep());
    }
  }

  #watch(running: RunningRequest, now: number): void {
    if (now - running.startedAt < WATCH_MS) return; // Most end before the next sweep.
    running.isWatched = true;
    const { signal } = running.request;
    if (signal.aborted) running.stop("client gone");
    // Deno also aborts when the response was sent; the request has ended by then.
    else signal.addEventListener("abort", () => this.#stopAbandoned(running), { once: true });
  }

  #stopAbandoned(running: RunningRequest): void {
    if (running.index >= 0) running.stop("client gone");
  }
}

/**
 * Cancels the calls of one request: the part of `AbortSignal` that a call uses.
 *
 * A real one with its controller, and adding and removing a listener, took 7 % of a request without
 * middleware. Listeners run once, in the order in which they were added.
 */
export class CallSignal {
  /** Whether it was aborted. */
  aborted = false;
  /** The reason given to {@linkcode abort}. */
  reason: unknown = undefined;
  #listeners: (() => void)[] = [];

  /** Adds a listener; has no effect after the abort. */
  addEventListener(_type: "abort", listener: () => void): void {
    if (!this.aborted) this.#listeners.push(listener);
  }

  /** Removes a listener. */
  removeEventListener(_type: "abort", listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at >= 0) this.#listeners.splice(at, 1);
  }

  /** Runs the listeners; later calls have no effect. */
  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    const listeners = this.#listeners;
    this.#listeners = []; // Each listener removes itself while it runs.
    for (const listener of listeners) listener();
  }
}
