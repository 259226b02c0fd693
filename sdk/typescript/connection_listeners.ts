/**
 * Who wants to hear how the line of a worker fares.
 *
 * @module
 */
import { checkCallable } from "./arguments.ts";
import { EngineError, thrownText } from "./wire/errors.ts";
import type { ConnectionState } from "./options.ts";

/** The listeners of one worker. */
export class ConnectionListeners {
  readonly #listeners = new Set<(state: ConnectionState) => void>();
  readonly #report: (error: EngineError) => void;

  /** `report` hears of listeners that fail. */
  constructor(report: (error: EngineError) => void) {
    this.#report = report;
  }

  /**
   * Adds one; call the result to take it out. One that is added twice hears twice.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS` when it cannot be called.
   */
  add(listener: (state: ConnectionState) => void): () => void {
    checkCallable("The listener", listener);
    const own = (state: ConnectionState): void => listener(state);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Tells all; one that fails keeps nobody else from hearing. */
  tell(state: ConnectionState): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(state);
      } catch (cause) {
        const message = `A listener for the connection state failed: ${thrownText(cause)}`;
        this.#report(new EngineError("invocation_failed", message, { cause }));
      }
    }
  }
}
