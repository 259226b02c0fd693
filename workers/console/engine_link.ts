/**
 * The console's line to the engine, as feeds and browsers use it.
 *
 * While there is no line calls fail at once: the SDK would queue them, and somebody in front of a
 * page would wait for half a minute to learn what the page knows already.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { CallRequest } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
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
