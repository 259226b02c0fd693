/**
 * The lines that the Logs page holds: the newest of a live tail, and older ones as one scrolls up.
 *
 * Bounded: new lines push out the oldest. Lines come from three sides (what was there, what is
 * fired, what is older) and are joined by their number, so the order of arrival does not matter and
 * none shows twice.
 *
 * @module
 */
import type { LogLine } from "./log_record.ts";

/** Lines that a page holds; new ones push out the oldest. */
const LOG_LINES_MAX = 20_000;

/** See the module. Ordered by number, the oldest first. */
export class LogTail {
  readonly #max: number;
  #lines: LogLine[] = [];
  #dropped = 0;

  /** `max`: lines that are held. */
  constructor(max: number = LOG_LINES_MAX) {
    this.#max = max;
  }

  /** The lines, the oldest first. A fresh array after every change, so one may compare it. */
  get lines(): readonly LogLine[] {
    return this.#lines;
  }

  /** Lines that were pushed out to make room, or never came. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Adds new lines; says how many of them were not known. */
  add(lines: readonly LogLine[]): number {
    const fresh = this.#unknown(lines);
    if (fresh.length === 0) return 0;
    const joined = this.#joined(fresh);
    const over = joined.length - this.#max;
    if (over > 0) this.#dropped += over;
    this.#lines = over > 0 ? joined.slice(over) : joined;
    return fresh.length;
  }

  /** Adds lines from before the oldest, as far as there is room; says whether any were added. */
  addOlder(lines: readonly LogLine[]): boolean {
    const room = this.#max - this.#lines.length;
    if (room <= 0) return false;
    const fresh = this.#unknown(lines).slice(-room);
    if (fresh.length === 0) return false;
    this.#lines = this.#joined(fresh);
    return true;
  }

  /** Whether there is room for older lines. */
  get hasRoom(): boolean {
    return this.#lines.length < this.#max;
  }

  /** Counts lines that somebody else left out. */
  miss(count: number): void {
    this.#dropped += count;
  }

  /** Forgets all lines. */
  clear(): void {
    this.#lines = [];
    this.#dropped = 0;
  }

  #unknown(lines: readonly LogLine[]): LogLine[] {
    const last = this.#lines.at(-1)?.seq ?? -Infinity;
    const sorted = [...lines].sort((a, b) => a.seq - b.seq);
    const distinct = sorted.filter((line, i) => line.seq !== sorted[i - 1]?.seq);
    // The usual case: all of them are newer than what is held.
    if ((distinct[0]?.seq ?? 0) > last) return distinct;
    return distinct.filter(({ seq }) => !this.#has(seq));
  }

  #has(seq: number): boolean {
    let low = 0;
    let high = this.#lines.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const found = this.#lines[middle]!.seq;
      if (found === seq) return true;
      if (found < seq) low = middle + 1;
      else high = middle - 1;
    }
    return false;
  }

  #joined(fresh: readonly LogLine[]): LogLine[] {
    const held = this.#lines;
    if (held.length === 0 || fresh[0]!.seq > held.at(-1)!.seq) return [...held, ...fresh];
    return [...held, ...fresh].sort((a, b) => a.seq - b.seq);
  }
}

/** How many lines stand behind the one with a number, or behind where it stood. */
export function newerThan(lines: readonly LogLine[], seq: number): number {
  let count = 0;
  while (count < lines.length && lines[lines.length - 1 - count]!.seq > seq) count++;
  return count;
}
