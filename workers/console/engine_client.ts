/**
 * The console's line to the engine, as feeds and browsers use it.
 *
 * While there is no line calls fail at once: the SDK would queue them, and somebody in front of a
 * page would wait for half a minute to learn what the page knows already.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { CallRequest } from "../../sdk/typescript/options.ts";
import { describeThrown, EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { ErrorBody, Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";

/** What of a worker the console needs. */
export type ConsoleWorker = Pick<
  Worker,
  "trigger" | "connectionState" | "onConnectionState" | "registerFunction"
>;

/** Calls the engine, and knows whether it is there. */
export class EngineLink {
  readonly #worker: ConsoleWorker;
  readonly #clock: Clock;
  readonly #listeners = new Set<(connected: boolean) => void>();
  readonly #stopListening: () => void;
  #connected: boolean;
  #sinceMs: number;

  /** Listens from now on. */
  constructor(worker: ConsoleWorker, clock: Clock) {
    this.#worker = worker;
    this.#clock = clock;
    this.#connected = worker.connectionState === "connected";
    this.#sinceMs = clock.wall();
    this.#stopListening = worker.onConnectionState((state) => this.#heard(state === "connected"));
  }

  /** Whether the engine can be reached now. */
  get isConnected(): boolean {
    return this.#connected;
  }

  /** Since when that is so, in milliseconds since 1970. */
  get sinceMs(): number {
    return this.#sinceMs;
  }

  /** Hears whenever it changes; call the result to stop. */
  listen(listener: (connected: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Makes a call.
   *
   * @throws {EngineError} `engine_unreachable` at once when there is no line; else as
   * `Worker.trigger()`.
   */
  async call(request: CallRequest<Json>): Promise<Json | undefined> {
    if (!this.#connected) {
      const message = `The engine cannot be reached now, and ${request.function_id} was not called`;
      throw new EngineError("engine_unreachable", message);
    }
    return await this.#worker.trigger<Json, Json | undefined>(request);
  }

  /** Hears nothing any more. */
  stop(): void {
    this.#stopListening();
    this.#listeners.clear();
  }

  #heard(connected: boolean): void {
    if (connected === this.#connected) return;
    this.#connected = connected;
    this.#sinceMs = this.#clock.wall();
    for (const listener of [...this.#listeners]) listener(connected);
  }
}

/** A W3C `traceparent`, and the trace it names. */
export interface TraceContext {
  readonly traceparent: string;
  /** 32 hexadecimal digits; `null` when nothing is recorded under it. */
  readonly trace_id: string | null;
}

/** Begins a trace; `recorded` says whether anybody shall find it. */
export function beginTrace(recorded: boolean): TraceContext {
  const id = randomHex(16);
  const traceparent = `00-${id}-${randomHex(8)}-${recorded ? "01" : "00"}`;
  return { traceparent, trace_id: recorded ? id : null };
}

/** The trace that a `traceparent` names; `null` for anything else. */
export function traceIdOf(traceparent: string | null): string | null {
  return /^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/.exec(traceparent ?? "")?.[1] ?? null;
}

/** So many bytes of chance, in hexadecimal digits. */
export function randomHex(bytes: number): string {
  return [...crypto.getRandomValues(new Uint8Array(bytes))]
    .map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Text of a value that is the same whatever order its keys have. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part) => {
    if (part === null || typeof part !== "object" || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => a < b ? -1 : 1));
  });
}

/** A failure as a page gets it. The stack is the callee's own, if there is one, never ours. */
export function failureOf(thrown: unknown): ErrorBody {
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

/** The member of a value; `undefined` when it is no object or has none of that name. */
export function memberOf(value: Json | undefined, name: string): Json | undefined {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, name) ? value[name] : undefined;
}
