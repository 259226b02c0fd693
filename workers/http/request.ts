/**
 * From a request to the payload of its handler: path, query, headers and body, and the limits of a
 * running request.
 *
 * A request costs neither a timer nor a listener. One clock task visits all running requests every
 * `WATCH_MS`: it stops those past their deadline, and starts to listen for the client's departure,
 * which most requests end too early to need. A request whose body is still arriving takes no place
 * among the running ones, so slow clients keep no other out. Channels do not exist yet, so the
 * payload has no `request_body` and no `response`.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { isTooDeep, JSON_DEPTH_MAX } from "../../sdk/typescript/wire/json_depth.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { HeldMemory } from "../kit/held_memory.ts";
import { BodyError, type RequestBody } from "../kit/http/body.ts";
import type { Client } from "../kit/http/clients.ts";
import { CHUNKED } from "../kit/http/head.ts";
import type { ServedRequest } from "../kit/http/response.ts";
import type { Match } from "./routes.ts";

const UTF_8 = new TextDecoder();
const JSON_TYPE = /^application\/json[ \t]*(;|$)/i;
/** How often running requests are visited for clients that left and deadlines that passed. */
export const WATCH_MS = 50;
/** Most query parameters of a request. */
export const QUERY_PARAMS_MAX = 1_000;
/** Bodies up to this size are bounded by the number of sockets instead of the memory budget. */
const SMALL_BODY_BYTES = 16 * 1024;
/** One client runs all requests but this share, which is for the others. */
const SHARE_OF_OTHERS = 1 / 8;

/** Path and query of a request, not decoded. */
export interface RawTarget {
  /** As in the request line; starts with a slash, or is empty. */
  readonly path: string;
  /** Without the question mark; empty when there is none. */
  readonly query: string;
}

/** Cuts path and query out of a target, without checking it. */
export function cutTarget(target: string): RawTarget {
  const hash = target.indexOf("#");
  const end = hash < 0 ? target.length : hash;
  const mark = target.indexOf("?");
  if (mark < 0 || mark >= end) return { path: target.slice(0, end), query: "" };
  return { path: target.slice(0, mark), query: target.slice(mark + 1, end) };
}

/** Whether there are more than {@linkcode QUERY_PARAMS_MAX}. */
export function hasTooManyParams(query: string): boolean {
  return query.length > QUERY_PARAMS_MAX && query.split("&").length > QUERY_PARAMS_MAX;
}

/** Decoded; of a repeated key the last value wins. */
export function readQuery(query: string): Record<string, string> {
  if (query === "") return {};
  // URLSearchParams would drop a leading question mark, which here is part of the first key.
  return Object.fromEntries(new URLSearchParams(query[0] === "?" ? `?${query}` : query));
}

/**
 * Whether the content type says JSON. Only the type counts: a page of another origin may send
 * `text/plain; x=application/json` without asking first.
 */
export function isJson(headers: Readonly<Record<string, string>>): boolean {
  const type = headers["content-type"];
  if (type === undefined) return false;
  return type === "application/json" || JSON_TYPE.test(type);
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

/** Whose body is read: it holds the memory, and what cancels a body that is still arriving. */
export interface BodyOwner {
  readonly held: HeldMemory;
  cancelBody: (() => void) | undefined;
}

/**
 * Reads the value in a JSON body; `null` for an empty body and for any other content type, whose
 * body is skipped. At once if the body was received with its head.
 *
 * With `isLenient`, malformed JSON is `null`. A body that breaks off throws the platform's error.
 *
 * @throws {EngineError} `body_too_large`, before the whole body has arrived; `invalid_json`;
 * `overloaded` when the memory of the engine has no room for it.
 */
export function readBody(
  { body, headers }: Pick<ServedRequest, "body" | "headers">,
  bytesMax: number,
  isLenient: boolean,
  owner: BodyOwner,
): Json | Promise<Json> {
  const { declaredBytes } = body;
  if (declaredBytes > bytesMax) throw bodyTooLarge(bytesMax);
  const isWanted = isJson(headers);
  if (declaredBytes === 0 || (!isWanted && declaredBytes !== CHUNKED)) return null;
  const received = declaredBytes <= SMALL_BODY_BYTES ? body.takeReceived() : undefined;
  if (received) return parseJson(UTF_8.decode(received), isLenient);
  owner.cancelBody = () => body.cancel();
  if (!isWanted) return skip(body, bytesMax);
  return collect(body, bytesMax, owner.held).then((bytes) => {
    return parseJson(UTF_8.decode(bytes), isLenient);
  });
}

/** Counts the bytes of a body and drops them. */
async function skip(body: RequestBody, bytesMax: number): Promise<null> {
  const dropped = new Uint8Array(SMALL_BODY_BYTES);
  for (let total = 0;;) {
    const count = await readSome(body, dropped);
    if (count === 0) return null;
    total += count;
    if (total > bytesMax) throw bodyTooLarge(bytesMax);
  }
}

/**
 * Reads a body to its end. Its memory is taken as the bytes arrive, and once more at the end for
 * the value that is made of them; it is returned with the request.
 */
async function collect(
  body: RequestBody,
  bytesMax: number,
  held: HeldMemory,
): Promise<Uint8Array> {
  const { declaredBytes } = body;
  const expected = declaredBytes === CHUNKED ? bytesMax + 1 : declaredBytes;
  let bytes = new Uint8Array(Math.min(expected, SMALL_BODY_BYTES));
  for (let end = 0;;) {
    if (end === bytes.length) {
      if (declaredBytes !== CHUNKED && end >= declaredBytes) break;
      if (end > bytesMax) throw bodyTooLarge(bytesMax);
      bytes = await enlarge(bytes, Math.min(expected, bytes.length * 4), held);
    }
    const count = await readSome(body, bytes.subarray(end));
    if (count === 0) {
      bytes = bytes.subarray(0, end);
      break;
    }
    end += count;
    if (end > bytesMax) throw bodyTooLarge(bytesMax);
  }
  if (bytes.length > SMALL_BODY_BYTES && !await held.takeSoon(bytes.length)) throw noMemory();
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

/** @throws {EngineError} `invalid_json` for chunks that are not well formed. */
async function readSome(body: RequestBody, into: Uint8Array): Promise<number> {
  try {
    return await body.read(into);
  } catch (error) {
    if (!(error instanceof BodyError)) throw error;
    throw new EngineError("invalid_json", `Request body is not JSON: ${error.message}`);
  }
}

function noMemory(): EngineError {
  const message = "The memory of the engine has no room for the request body now; try again";
  return new EngineError("overloaded", message);
}

function parseJson(received: string, isLenient: boolean): Json {
  // The platform takes a byte order mark away from some bodies and not from others.
  const text = received.charCodeAt(0) === 0xfeff ? received.slice(1) : received;
  if (text === "") return null;
  try {
    if (isTooDeep(text)) {
      throw new SyntaxError(`it is nested more deeply than ${JSON_DEPTH_MAX} levels`);
    }
    return JSON.parse(text) as Json;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    if (isLenient) return null;
    const message = `Request body is not JSON: ${error.message}`;
    throw new EngineError("invalid_json", message, { cause: error });
  }
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
  readonly request: ServedRequest;
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
  /** Its index among the requests; -1 when it has ended. */
  index = -1;
  /** Whether it has one of the places of running requests. */
  hasPlace = false;
  readonly held: HeldMemory;
  cancelBody: (() => void) | undefined;
  #reject: ((error: Error) => void) | undefined;

  constructor(request: ServedRequest, startedAt: number, deadline: number, held: HeldMemory) {
    this.request = request;
    this.held = held;
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

/** What {@linkcode RunningRequests} works with. */
export interface RunningRequestsOptions {
  readonly clock: Clock;
  /** Time for each request. */
  readonly timeoutMs: number;
  /** How many may run at once, apart from those whose body is still arriving. */
  readonly max: number;
  /** For the bodies of requests. */
  readonly memory: MemoryBudget;
}

/** All requests that have no response yet. */
export class RunningRequests {
  readonly #options: RunningRequestsOptions;
  /** In any order. Not a `Set`: see `TurnoverMap`. */
  readonly #requests: RunningRequest[] = [];
  /** How many may run for one client. */
  readonly #shareMax: number;
  #running = 0;
  #cancelSweep: (() => void) | undefined;
  #whenEmpty: (() => void)[] = [];

  constructor(options: RunningRequestsOptions) {
    this.#options = options;
    this.#shareMax = options.max - Math.floor(options.max * SHARE_OF_OTHERS);
  }

  /** How many there are. */
  get size(): number {
    return this.#requests.length;
  }

  /** How many run, their body received. */
  get running(): number {
    return this.#running;
  }

  /** Resolves when there is none. */
  empty(): Promise<void> {
    if (this.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenEmpty.push(resolve));
  }

  /** Adds a request; `undefined` when as many run already as may, or as may for its client. */
  add(request: ServedRequest): RunningRequest | undefined {
    if (!this.#hasPlace(request.client)) return undefined;
    const { clock, timeoutMs, memory } = this.#options;
    const now = clock.now();
    const held = new HeldMemory(memory, clock);
    const running = new RunningRequest(request, now, now + timeoutMs, held);
    running.index = this.#requests.push(running) - 1;
    this.#take(running);
    this.#cancelSweep ??= clock.after(WATCH_MS, () => this.#sweep());
    return running;
  }

  /** The request waits for its client and leaves its place to others until {@linkcode resume}. */
  pause(running: RunningRequest): void {
    if (!running.hasPlace) return;
    running.hasPlace = false;
    this.#running--;
    running.request.client.running--;
  }

  /** Its body is there; `false` when there is no place for it now. */
  resume(running: RunningRequest): boolean {
    if (!this.#hasPlace(running.request.client)) return false;
    this.#take(running);
    return true;
  }

  /** Removes a request that has its response; a second time has no effect. */
  remove(running: RunningRequest): void {
    const { index } = running;
    if (index < 0) return;
    running.index = -1;
    running.held.release();
    this.pause(running);
    const last = this.#requests.pop()!;
    if (last !== running) {
      this.#requests[index] = last;
      last.index = index;
    }
    if (this.size > 0 || this.#whenEmpty.length === 0) return;
    for (const tell of this.#whenEmpty.splice(0)) tell();
  }

  #hasPlace(client: Client): boolean {
    return this.#running < this.#options.max && client.running < this.#shareMax;
  }

  #take(running: RunningRequest): void {
    running.hasPlace = true;
    this.#running++;
    running.request.client.running++;
  }

  /** Whole milliseconds until the deadline of a request, at least 1. */
  remainingMs(running: RunningRequest): number {
    return Math.max(1, Math.ceil(running.deadline - this.#options.clock.now()));
  }

  /** Stops all requests, because the worker stops. */
  stop(): void {
    for (const running of [...this.#requests]) running.stop("stopped");
    this.#cancelSweep?.();
    this.#cancelSweep = undefined;
  }

  #sweep(): void {
    const { clock } = this.#options;
    this.#cancelSweep = undefined;
    const now = clock.now();
    for (const running of [...this.#requests]) {
      if (now >= running.deadline) running.stop("timeout");
      else if (!running.isWatched) this.#watch(running, now);
    }
    if (this.size > 0) this.#cancelSweep = clock.after(WATCH_MS, () => this.#sweep());
  }

  #watch(running: RunningRequest, now: number): void {
    if (now - running.startedAt < WATCH_MS) return; // Most end before the next sweep.
    if (running.isReading) return; // The body breaks off by itself.
    running.isWatched = true;
    running.request.watch(() => {
      if (running.index >= 0) running.stop("client gone");
    });
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
