/**
 * Results of jobs, kept for those who asked for that when they enqueued them.
 *
 * | key in the store | value |
 * | --- | --- |
 * | `queue_results`, id | what became of a job |
 * | `queue_results_expiry`, time, id | when to remove it |
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { KeyChange, Store } from "../../engine/ports/store.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** Results that one write removes. */
const REMOVED_MAX = 100;
const TIME_DIGITS = 15;

/** The results of one store. */
export class JobResults {
  readonly #store: Store;
  readonly #clock: Pick<Clock, "wall">;

  constructor(store: Store, clock: Pick<Clock, "wall">) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Keeps the result of a job for a time. */
  async keep(id: string, result: Json, ms: number): Promise<void> {
    const now = this.#clock.wall();
    const expires_at_ms = now + ms;
    const record = { result, done_at_ms: now, expires_at_ms };
    await this.#store.write([
      [["queue_results", id], () => record],
      [["queue_results_expiry", timeText(expires_at_ms), id], () => true],
    ]);
  }

  /** The result of a job; `undefined`: there is none, or no more. */
  async get(id: string): Promise<JsonObject | undefined> {
    const found = (await this.#store.get(["queue_results", id]))?.value as JsonObject | undefined;
    return found && found.expires_at_ms as number > this.#clock.wall() ? found : undefined;
  }

  /** Removes the results whose time is over. */
  async sweep(): Promise<void> {
    const now = this.#clock.wall();
    for (;;) {
      const found = await this.#store.list(["queue_results_expiry"], REMOVED_MAX);
      const due = found.filter(({ key }) => Number(key[1]) <= now);
      if (due.length === 0) return;
      await this.#store.write(due.flatMap(({ key }): KeyChange[] => [
        [key, () => undefined],
        [["queue_results", key[2]!], (old) => {
          const until = (old?.value as JsonObject | undefined)?.expires_at_ms;
          return typeof until === "number" && until > now ? old : undefined;
        }],
      ]));
    }
  }
}

function timeText(ms: number): string {
  return String(ms).padStart(TIME_DIGITS, "0");
}
