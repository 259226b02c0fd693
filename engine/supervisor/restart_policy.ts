/**
 * When a worker that ended unasked starts again, and when it is given up.
 *
 * Pure: it is told of ends and answers with what to do. Ends are counted over the time in which the
 * worker could have run: the waits between them do not count, or a long back-off alone would keep a
 * worker that never runs from being given up.
 *
 * @module
 */
import { RESTART_MAX_MS, type RestartSettings } from "../install/manifest.ts";

/** Ready for so long: the next wait is the first again. */
const RESTART_RESET_MS = 60_000;

/** An end that nobody asked for. */
export interface UnaskedEnd {
  /** How long it had been ready, in milliseconds; 0: never. */
  readonly readyForMs: number;
  /** When it ended, by a clock that never goes back. */
  readonly atMs: number;
  /** It exited with code 0. */
  readonly clean: boolean;
}

/** What to do after an unasked end. */
export type AfterEnd =
  /** Start it again, so many milliseconds from now. */
  | { readonly type: "wait"; readonly ms: number }
  /** Leave it: it is done, or it `failed`. */
  | { readonly type: "stay"; readonly failed: boolean }
  /** Leave it: it ended so often in short order. */
  | { readonly type: "give_up"; readonly ends: number };

/** Counts the ends of one worker, or of one replica of it. */
export class RestartPolicy {
  readonly #settings: RestartSettings;
  /** Ends that are not too old to count, in milliseconds without the waits. */
  #ends: number[] = [];
  #waitedMs = 0;
  #nextMs: number;

  /** Has seen no end yet. */
  constructor(settings: RestartSettings) {
    this.#settings = settings;
    this.#nextMs = settings.backoff_ms;
  }

  /** Forgets all ends: somebody started the worker by hand or changed it. */
  reset(): void {
    this.#ends = [];
    this.#nextMs = this.#settings.backoff_ms;
  }

  /** The worker ended; says what to do. */
  ended({ readyForMs, atMs, clean }: UnaskedEnd): AfterEnd {
    const { policy, max, within_s, backoff_ms } = this.#settings;
    if (policy === "never" || (policy === "on-failure" && clean)) {
      return { type: "stay", failed: !clean };
    }

    const now = atMs - this.#waitedMs;
    this.#ends = [...this.#ends.filter((end) => now - end <= within_s * 1_000), now];
    if (this.#ends.length >= max) return { type: "give_up", ends: this.#ends.length };

    if (readyForMs >= RESTART_RESET_MS) this.#nextMs = backoff_ms;
    const ms = Math.min(this.#nextMs, RESTART_MAX_MS);
    this.#nextMs = ms * 2;
    this.#waitedMs += ms;
    return { type: "wait", ms };
  }
}
