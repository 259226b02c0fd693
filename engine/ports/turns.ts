/**
 * Turns on the engine's thread, for work that a built-in worker does in parts.
 *
 * Messages of connections have their turns there as well, and between turns the platform looks at
 * its sockets. Work that goes on by timers of its own does not leave that time: while other work is
 * due in each tick, the platform polls its sockets only every 61 ticks, however long those take.
 *
 * @module
 */

/** Something that is done in parts. */
export interface Work {
  /**
   * Does a part, at most until {@linkcode Turns.isSpent}; `true` when it has to continue later.
   * Never throws.
   */
  work(): boolean;
}

/** The turns of one thread. */
export interface Turns {
  /** Lets work continue when it is its turn. The caller knows whether it waits already. */
  queue(work: Work): void;
  /** Whether the current turn is over; it reads the clock. */
  isSpent(): boolean;
}
