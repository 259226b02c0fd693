/**
 * Time, as a worker sees it: everything that waits in the SDK waits on one of these.
 *
 * Only the WebSocket transports have timers of their own; they are adapters.
 *
 * @module
 */

/** A clock that tests can move by hand. */
export interface WorkerClock {
  /** Milliseconds since an unspecified start; never goes back. */
  now(): number;
  /** Runs `task` once, `ms` milliseconds from now; call the result to cancel. */
  after(ms: number, task: () => void): () => void;
  /** Milliseconds since 1970, with fractions. @default the platform's */
  wall?(): number;
}

/** The clock of the platform: Deno's, Node's or the browser's timers. */
export const platformClock: WorkerClock = {
  now: () => performance.now(),
  after(ms, task) {
    const timer = setTimeout(task, ms);
    return () => clearTimeout(timer);
  },
  wall: wallTime,
};

/** What `performance.now()` counts from, in milliseconds since 1970. */
let originMs = performance.timeOrigin;

/**
 * Milliseconds since 1970, finer than `Date` tells and right again soon after somebody has set the
 * machine's clock.
 */
export function wallTime(): number {
  const [now, date] = [performance.now(), Date.now()];
  if (Math.abs(date - originMs - now) > WALL_SLACK_MS) originMs = date - now;
  return originMs + now;
}

/** So much the two clocks of the platform may be apart before the finer one is set anew. */
const WALL_SLACK_MS = 5;
