/**
 * How much telemetry of strangers is read in a second: so many bytes, and so much of the engine's
 * only thread. What takes long to read is paid for in the seconds after it.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import { TELEMETRY_INTAKE_BYTES_PER_SECOND, TELEMETRY_INTAKE_MS_PER_SECOND } from "../limits.ts";

const SECOND_MS = 1_000;

/** See the top of this file. */
export class ReadingShare {
  readonly #clock: Clock;
  #bytes = 0;
  #spentMs = 0;
  #since: number;

  /** Nothing was read yet. */
  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock.now();
  }

  /** Reads so many bytes, unless that would be too much: then nothing is done and it is `false`. */
  read(bytes: number, task: () => void): boolean {
    const began = this.#clock.now();
    if (began - this.#since >= SECOND_MS) this.#nextSecond(began);
    this.#bytes += bytes;
    if (this.#bytes > TELEMETRY_INTAKE_BYTES_PER_SECOND) return false;
    if (this.#spentMs >= TELEMETRY_INTAKE_MS_PER_SECOND) return false;
    try {
      task();
    } finally {
      this.#spentMs += this.#clock.now() - began;
    }
    return true;
  }

  #nextSecond(now: number): void {
    const seconds = Math.floor((now - this.#since) / SECOND_MS);
    this.#spentMs = Math.max(0, this.#spentMs - seconds * TELEMETRY_INTAKE_MS_PER_SECOND);
    this.#bytes = 0;
    this.#since += seconds * SECOND_MS;
  }
}
