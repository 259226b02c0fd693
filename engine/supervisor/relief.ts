/**
 * Relieves a replica of its calls before its program is stopped.
 *
 * The core sends the lines of a relieved replica nothing new. Whoever comes back is waited for: the
 * handovers stay open until {@linkcode Relief.end}.
 *
 * @module
 */
import { WORKER_DRAIN_MS } from "../../sdk/typescript/wire/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Handover, Traffic } from "../ports/traffic.ts";
import { pause } from "./wanted.ts";

/** How often running calls are counted. */
const POLL_MS = 20;

/** The handovers of one replica that are not over. */
export class Relief {
  readonly #clock: Clock;
  readonly #traffic: Traffic;
  readonly #open = new Set<Handover>();
  /** Lines that were relieved last, and whether somebody comes back for them. */
  #lines: readonly string[] = [];
  #isExpected = false;

  /** Relieves nothing yet. */
  constructor({ clock, traffic }: { readonly clock: Clock; readonly traffic: Traffic }) {
    this.#clock = clock;
    this.#traffic = traffic;
  }

  /**
   * Takes new calls away from these lines and waits until they run none any more, for
   * `WORKER_DRAIN_MS` at most and not after `enough` has been aborted.
   */
  async drain(
    lines: readonly string[],
    isComingBack: boolean,
    enough: AbortSignal,
  ): Promise<void> {
    this.#lines = lines;
    this.#isExpected = isComingBack;
    if (lines.length === 0) return;
    const handover = this.#traffic.drain(lines, { isComingBack });
    this.#open.add(handover);
    const end = this.#clock.now() + WORKER_DRAIN_MS;
    while (handover.runningCalls > 0 && this.#clock.now() < end && !enough.aborted) {
      await pause(this.#clock, POLL_MS, enough);
    }
  }

  /** Somebody comes back after all, for the lines that were relieved last. */
  expect(): void {
    if (this.#lines.length === 0 || this.#isExpected) return;
    this.#isExpected = true;
    this.#open.add(this.#traffic.drain(this.#lines, { isComingBack: true }));
  }

  /** It is over: somebody has taken over, or nobody will. */
  end(): void {
    this.#lines = [];
    for (const handover of this.#open) handover.end();
    this.#open.clear();
  }
}
