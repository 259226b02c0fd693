/**
 * Ends unfinished messages that hold memory which other connections wait for.
 *
 * Connections wait for memory: those whose unfinished messages hold it have to make progress. Where
 * none of them can, since all wait, the largest is cut, so that the others can go on; and so it is
 * where the wait takes long. Each owner of connections calls {@linkcode UnfinishedMessages.check}
 * regularly.
 *
 * @module
 */
import type { RawConnection } from "./raw_connection.ts";

/** For how long connections wait for memory before unfinished messages that hold it are cut. */
export const STARVED_MS = 5_000;
/** Bytes that an unfinished message has to grow by in that time while others wait. */
export const PROGRESS_BYTES_MIN = 1024 * 1024;
/** After so many times of {@linkcode STARVED_MS} the largest is cut, though it grows. */
const STARVED_TIMES_MAX = 6;

/** What is looked at of a connection. */
export type MessageHolder = Pick<
  RawConnection,
  "isStarved" | "heldBytes" | "takeProgress" | "cutUnfinished"
>;

/** The connections of one owner. */
export class UnfinishedMessages {
  /** Since when connections wait for memory; `Infinity`: none does. */
  #starvedAt = Infinity;
  #starvedTimes = 0;

  /** Cuts what has to be cut now; `now` is that of `performance`. */
  check(connections: readonly MessageHolder[], now: number): void {
    if (!connections.some(({ isStarved }) => isStarved)) {
      this.#starvedAt = Infinity;
      return;
    }
    const isFirst = this.#starvedAt === Infinity;
    if (isFirst) this.#starvedTimes = 0;
    if (!isFirst && now - this.#starvedAt < STARVED_MS) return;
    this.#starvedAt = now;
    const holders = connections.filter(({ heldBytes }) => heldBytes > 0);
    const slow = holders.filter((one) => {
      return one.takeProgress() < PROGRESS_BYTES_MIN && !one.isStarved;
    });
    if (isFirst) return;
    for (const one of slow) one.cutUnfinished("does not grow, and engine.memory_mb is used up");
    const isBlocked = holders.every(({ isStarved }) => isStarved);
    if (slow.length > 0 || (!isBlocked && ++this.#starvedTimes < STARVED_TIMES_MAX)) return;
    this.#starvedTimes = 0;
    const [largest] = holders.toSorted((one, other) => other.heldBytes - one.heldBytes);
    largest?.cutUnfinished("is the largest, and engine.memory_mb is used up");
  }
}
