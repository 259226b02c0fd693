/**
 * From a request to the payload of its handler, and the limits of a running request. Its body is
 * read in `body.ts`.
 *
 * A request costs neither a timer nor a listener. One clock task visits all running requests every
 * `WATCH_MS`: it stops those past their deadline, and starts to listen for the client's departure,
 * which most requests end too early to need. A request whose body is still arriving takes no place
 * among the running ones, so slow clients keep no other out; nor does one whose response is a
 * stream, which may go on for days. The channels `request_body` and `response` of the payload are
 * those of `exchange.ts`.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import { JsonText, toJson } from "../../sdk/typescript/json_text.ts";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { HeldMemory } from "../kit/held_memory.ts";
import type { Client } from "../kit/http/clients.ts";
import type { ServedRequest } from "../kit/http/response.ts";
import { type BodyOwner, BodyTurns, type BodyValue } from "./body.ts";
import type { Match } from "./routes.ts";

/** How often running requests are visited for clients that left and deadlines that passed. */
export const WATCH_MS = 50;
/** Most query parameters of a request. */
export const QUERY_PARAMS_MAX = 1_000;
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

/** The parameters of a query, decoded. */
export interface QueryParams {
  /** Of a repeated key the last value. */
  readonly last: Record<string, string>;
  /** Every value of every key; only if one repeats. */
  readonly all: Record<string, string[]> | undefined;
}

const NO_PARAMS: QueryParams = { last: {}, all: undefined };

/** Decodes a query. */
export function readQuery(query: string): QueryParams {
  if (query === "") return NO_PARAMS;
  // URLSearchParams would drop a leading question mark, which here is part of the first key.
  const params = new URLSearchParams(query[0] === "?" ? `?${query}` : query);
  const last = Object.fromEntries(params);
  if (Object.keys(last).length === params.size) return { last, all: undefined };
  const all = new Map<string, string[]>();
  for (const [key, value] of params) {
    const values = all.get(key);
    if (values) values.push(value);
    else all.set(key, [value]);
  }
  return { last, all: Object.fromEntries(all) };
}

/** What the payload of a request is made of. */
export interface PayloadParts {
  readonly method: string;
  readonly match: Match<unknown>;
  readonly query: string;
  /** As JSON. */
  readonly headers: string;
  readonly body: BodyValue;
  /** The body as base64, for a route that asks for it. */
  readonly rawBody: string | undefined;
}

/**
 * The payload of the handler and of its condition, as JSON text without its end, for
 * {@linkcode endPayload}. In parts, since most of them are text already: an object would take 1 µs
 * more to create and to write.
 */
export function startPayload(
  { method, match, query, headers, body, rawBody }: PayloadParts,
): string {
  const { method: routeMethod } = match.route;
  const path = JSON.stringify(match.route.path);
  const quoted = JSON.stringify(method);
  const routeQuoted = routeMethod === method ? quoted : JSON.stringify(routeMethod);
  let text = `{"path":${path},"method":${quoted},"path_params":${JSON.stringify(match.params)}`;
  if (query === "") text += ',"query_params":{},"query_string":""';
  else {
    const { last, all } = readQuery(query);
    text += `,"query_params":${JSON.stringify(last)},"query_string":${JSON.stringify(query)}`;
    if (all) text += `,"query_params_all":${JSON.stringify(all)}`;
  }
  text += `,"headers":${headers},"trigger":{"type":"http","path":${path},"method":${routeQuoted}}`;
  if (rawBody !== undefined) text += `,"raw_body_base64":"${rawBody}"`;
  return `${text},"body":${body instanceof JsonText ? body.text : JSON.stringify(body)}`;
}

/**
 * A whole payload: `start` is of {@linkcode startPayload}, `more` are members behind it.
 *
 * All of it is JSON, of which nothing is lost, so that only the depth of the context is left to
 * check; a body was checked when it was read.
 *
 * @throws {EngineError} `serialization_error` for a context that is nested too deeply.
 */
export function endPayload(start: string, context: JsonObject | undefined, more: string): JsonText {
  if (context === undefined) return new JsonText(`${start}${more}}`);
  const text = toJson("The payload", { context })!;
  return new JsonText(`${start},${text.slice(1, -1)}${more}}`);
}

/** Why a request was stopped before its handler finished. */
export type StopReason = "client gone" | "timeout" | "stopped";

/** What a {@linkcode RunningRequest} starts with. */
type OfRequest = Pick<
  RunningRequest,
  "startedAt" | "deadline" | "held" | "keepsBytes" | "turns"
>;

/** One running request. */
export class RunningRequest implements BodyOwner {
  readonly request: ServedRequest;
  /** When it came, on the clock. */
  readonly startedAt: number;
  /** On the clock; no part of the request may take longer, but for the body of a response. */
  deadline: number;
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
  rawBody: string | undefined;
  readonly keepsBytes: boolean;
  received: BodyOwner["received"];
  readonly turns: BodyTurns;
  /** Called when the request is stopped. */
  onStop: (() => void) | undefined;
  #reject: ((error: Error) => void) | undefined;

  constructor(request: ServedRequest, own: OfRequest) {
    this.request = request;
    this.held = own.held;
    this.keepsBytes = own.keepsBytes;
    this.turns = own.turns;
    this.startedAt = own.startedAt;
    this.deadline = own.deadline;
  }

  /**
   * Waits for a task that has no deadline of its own.
   *
   * @throws {Error} When the request is stopped first; `stopReason` says why.
   */
  race<T>(task: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#reject = reject;
      task.then(resolve, reject).finally(() => {
        // It would keep the value of the task, such as a body.
        if (this.#reject === reject) this.#reject = undefined;
      });
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
    this.onStop?.();
    if (this.isReading) this.cancelBody?.();
    // The engine ends calls at their deadline by itself and tells the callee.
    if (reason !== "timeout") this.signal.abort(new Error(reason));
  }
}

/** What {@linkcode RunningRequests} works with. */
export interface RunningRequestsOptions {
  readonly clock: Clock;
  /** Time for each request that has none of its own. */
  readonly timeoutMs: number;
  /** How many may run at once, apart from those whose body is still arriving. */
  readonly max: number;
  /** For the bodies of requests. */
  readonly memory: MemoryBudget;
  /** Whether functions can read bodies as streams. Default: they cannot. */
  readonly keepsBytes?: boolean;
}

/** All requests that have no response yet. */
export class RunningRequests {
  readonly #options: RunningRequestsOptions;
  /** In any order. Not a `Set`: see `TurnoverMap`. */
  readonly #requests: RunningRequest[] = [];
  readonly #turns: BodyTurns;
  /** How many may run for one client. */
  readonly #shareMax: number;
  #running = 0;
  #cancelSweep: (() => void) | undefined;
  #whenEmpty: (() => void)[] = [];

  constructor(options: RunningRequestsOptions) {
    this.#options = options;
    this.#turns = new BodyTurns(options.clock);
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

  /** The time on the clock. */
  now(): number {
    return this.#options.clock.now();
  }

  /**
   * Adds a request; `undefined` when as many run already as may, or as may for its client.
   *
   * @param timeoutMs Default: that of all requests.
   */
  add(
    request: ServedRequest,
    timeoutMs: number = this.#options.timeoutMs,
  ): RunningRequest | undefined {
    if (!this.#hasPlace(request.client)) return undefined;
    const { clock, memory, keepsBytes = false } = this.#options;
    const now = clock.now();
    const running = new RunningRequest(request, {
      startedAt: now,
      deadline: now + timeoutMs,
      held: new HeldMemory(memory, clock),
      keepsBytes,
      turns: this.#turns,
    });
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

  /** Its response is a stream from now on, which has no deadline and takes no place. */
  stream(running: RunningRequest): void {
    running.deadline = Infinity;
    this.pause(running);
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
    // A body that is being read breaks off by itself; one that is not may hide the end.
    if (running.isReading || !running.request.body.isDone) return;
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
  /** Nearly always the only one: the call of the function. */
  #first: (() => void) | undefined;
  #others: (() => void)[] | undefined;

  /** Adds a listener; has no effect after the abort. */
  addEventListener(_type: "abort", listener: () => void): void {
    if (this.aborted) return;
    if (this.#first === undefined && this.#others === undefined) this.#first = listener;
    else (this.#others ??= []).push(listener);
  }

  /** Removes a listener. */
  removeEventListener(_type: "abort", listener: () => void): void {
    if (this.#first === listener) {
      this.#first = undefined;
      return;
    }
    const at = this.#others?.indexOf(listener) ?? -1;
    if (at >= 0) this.#others!.splice(at, 1);
  }

  /** Runs the listeners; later calls have no effect. */
  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    const listeners = [this.#first, ...this.#others ?? []];
    this.#first = this.#others = undefined; // Each listener removes itself while it runs.
    for (const listener of listeners) listener?.();
  }
}
