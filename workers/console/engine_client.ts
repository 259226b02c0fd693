/**
 * How the console calls the engine.
 *
 * While the engine is unreachable calls fail at once: the SDK would queue them, and the person in
 * front of a page would wait half a minute for what the page knows already.
 *
 * Each call has a trace context. Calls that a person makes are recorded, and the page links to
 * their traces. Calls that the console repeats by itself are marked as not sampled: they would fill
 * the list of traces, and each refresh of that list would cause the next.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { CallRequest } from "../../sdk/typescript/options.ts";
import { describeThrown, EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { ErrorBody, Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";

/** The part of a worker that the console uses. */
export type ConsoleWorker = Pick<
  Worker,
  "trigger" | "connectionState" | "onConnectionState" | "registerFunction"
>;

/** Calls the engine and tracks whether it is reachable. */
export class EngineClient {
  readonly #worker: ConsoleWorker;
  readonly #clock: Clock;
  readonly #listeners = new Set<(connected: boolean) => void>();
  readonly #stopListening: () => void;
  #connected: boolean;
  #sinceMs: number;

  constructor(worker: ConsoleWorker, clock: Clock) {
    this.#worker = worker;
    this.#clock = clock;
    this.#connected = worker.connectionState === "connected";
    this.#sinceMs = clock.wall();
    this.#stopListening = worker.onConnectionState((state) => this.#update(state === "connected"));
  }

  /** Whether the engine is reachable now. */
  get isConnected(): boolean {
    return this.#connected;
  }

  /** Since when {@linkcode isConnected} has its value, in milliseconds since 1970. */
  get sinceMs(): number {
    return this.#sinceMs;
  }

  /** Calls `listener` whenever {@linkcode isConnected} changes, until the result is called. */
  onChange(listener: (connected: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Makes a call.
   *
   * @throws {EngineError} `engine_unreachable` at once without a connection; else as
   * `Worker.trigger()`.
   */
  async call(request: CallRequest<Json>): Promise<Json | undefined> {
    if (!this.#connected) {
      const message = `The engine cannot be reached now, and ${request.function_id} was not called`;
      throw new EngineError("engine_unreachable", message);
    }
    return await this.#worker.trigger<Json, Json | undefined>(request);
  }

  /** Lets others have a turn. */
  turn(): Promise<void> {
    return new Promise((resolve) => this.#clock.after(0, resolve));
  }

  /** Removes all listeners. */
  stop(): void {
    this.#stopListening();
    this.#listeners.clear();
  }

  #update(connected: boolean): void {
    if (connected === this.#connected) return;
    this.#connected = connected;
    this.#sinceMs = this.#clock.wall();
    for (const listener of [...this.#listeners]) listener(connected);
  }
}

/** A W3C `traceparent`, and the trace it names. */
export interface TraceContext {
  readonly traceparent: string;
  /** 32 hexadecimal digits; `null` when the trace is not recorded. */
  readonly trace_id: string | null;
}

/** Begins a trace; `recorded` sets its sampled flag. */
export function beginTrace(recorded: boolean): TraceContext {
  const id = randomHex(16);
  const traceparent = `00-${id}-${randomHex(8)}-${recorded ? "01" : "00"}`;
  return { traceparent, trace_id: recorded ? id : null };
}

/** The trace id in a `traceparent`; `null` for anything else. */
export function traceIdOf(traceparent: string | null): string | null {
  return /^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/.exec(traceparent ?? "")?.[1] ?? null;
}

/** An error as a page gets it, with the callee's stack if it sent one, never the console's. */
export function errorBodyOf(thrown: unknown): ErrorBody {
  const { code, message, details, retryable } = describeThrown(thrown);
  const remote = (thrown as { stacktrace?: unknown } | null)?.stacktrace;
  return {
    code,
    message,
    ...typeof remote === "string" && { stacktrace: remote },
    ...details && { details },
    ...retryable && { retryable },
  };
}

/** JSON text of a value with object keys sorted, so that equal values have equal texts. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, part) => {
    if (part === null || typeof part !== "object" || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => a < b ? -1 : 1));
  });
}

/** The member of an object; `undefined` when there is none of that name or it is no object. */
export function memberOf(value: Json | undefined, name: string): Json | undefined {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

function randomHex(bytes: number): string {
  return crypto.getRandomValues(new Uint8Array(bytes)).toHex();
}
