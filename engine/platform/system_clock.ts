/**
 * The {@linkcode Clock} of a running engine, on the platform's timers.
 *
 * Nothing else reads the time of the machine for a decision; tests pass a clock of their own. Code
 * that measures its own work uses {@linkcode systemClock}, since {@linkcode tickClock} stands still
 * within a tick of the event loop.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";

/** The longest wait one platform timer can hold. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** The machine's time. Its tasks keep the process alive until they have run or are cancelled. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  after(ms, task) {
    let timer: ReturnType<typeof setTimeout>;
    const arm = (left: number): void => {
      const wait = Math.min(left, TIMER_MS_MAX);
      timer = setTimeout(() => wait < left ? arm(left - wait) : task(), wait);
    };
    arm(Math.max(0, ms));
    return () => clearTimeout(timer);
  },
};

/** The reading of this tick; `undefined`: not read yet. */
let reading: number | undefined;
const forget = (): void => {
  reading = undefined;
};

/**
 * The same, but its now() stands still within a tick: for the router, which handles hundreds of
 * frames in one, where reading the time would be a tenth of what a call costs.
 */
export const tickClock: Clock = {
  ...systemClock,
  now() {
    if (reading === undefined) {
      reading = performance.now();
      queueMicrotask(forget);
    }
    return reading;
  },
};
