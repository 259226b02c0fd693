/**
 * The {@linkcode Keeping} of a single engine: it has every role, always.
 *
 * @module
 */
import { thrownText } from "../../sdk/typescript/wire/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Keeping } from "../ports/keeping.ts";
import type { Log } from "../ports/log.ts";

/** Time until work that failed runs again. */
export const KEEP_AGAIN_MS = 5_000;

/** What {@linkcode LocalKeeping} uses. */
export interface LocalKeepingSetup {
  readonly clock: Pick<Clock, "after">;
  readonly log: Log;
}

/** Runs everything here. */
export class LocalKeeping implements Keeping {
  readonly #setup: LocalKeepingSetup;

  constructor(setup: LocalKeepingSetup) {
    this.#setup = setup;
  }

  keep(role: string, run: (signal: AbortSignal) => Promise<void>): AsyncDisposable {
    const ending = new AbortController();
    const kept = this.#keep(role, run, ending.signal);
    return {
      async [Symbol.asyncDispose]() {
        ending.abort();
        await kept;
      },
    };
  }

  /** Never rejects. */
  async #keep(
    role: string,
    run: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    while (!signal.aborted) {
      try {
        return await run(signal);
      } catch (thrown) {
        const reason = thrownText(thrown);
        this.#setup.log.warn(
          "a task that only one engine of the cluster runs failed; it is started again",
          { role, reason },
        );
        await this.#pause(signal);
      }
    }
  }

  #pause(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#setup.clock.after(KEEP_AGAIN_MS, resolve);
      signal.addEventListener("abort", () => {
        cancel();
        resolve();
      }, { once: true });
    });
  }
}
