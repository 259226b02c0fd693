/**
 * Which times of a job are due, and which of them are to fire.
 *
 * A time that is at most {@linkcode LATE_MS} over is on time: the engine may have been busy, or
 * just restarted. Older ones were missed, because the engine did not run, the computer slept, the
 * clock jumped or no worker had the trigger; `catch_up` decides about them.
 *
 * @module
 */
import type { Expression } from "./expression.ts";

/** A time that is over by more was missed. */
export const LATE_MS = 10_000;
/** Missed times that `catch_up: all` fires at most: the newest. */
export const CATCH_UP_MAX = 1_000;
/** Due times that are found one by one; more are found from their end. */
const STEPS_MAX = 16;

/** What happens with missed times. */
export type CatchUp = "none" | "last" | "all";

/** Times that are due, the oldest first. */
export interface DueSlots {
  /** To fire now, whatever runs. */
  readonly missed: readonly number[];
  /** To fire by the rule for overlaps. */
  readonly fresh: readonly number[];
  /** Missed times that do not fire. `isMore`: at least so many. */
  readonly passedOver: number;
  readonly isMore: boolean;
  /** The last of all due times. */
  readonly last: number;
  /** The first time that is to come. */
  readonly next: number | undefined;
}

/**
 * The times of an expression from `first`, which is due, up to `now`. Takes a bounded number of
 * steps, however long ago `first` was.
 */
export function dueSlots(
  expression: Expression,
  first: number,
  now: number,
  catchUp: CatchUp,
): DueSlots {
  const { slots, isMore, next } = slotsUpTo(expression, first, now);
  const fresh = slots.filter((slot) => now - slot <= LATE_MS);
  const old = slots.slice(0, slots.length - fresh.length);
  const missed = catchUp === "all"
    ? old
    : catchUp === "last" && fresh.length === 0
    ? old.slice(-1)
    : [];
  const passedOver = old.length - missed.length;
  return { missed, fresh, passedOver, isMore, last: slots.at(-1) ?? first, next };
}

function slotsUpTo(
  expression: Expression,
  first: number,
  now: number,
): { slots: number[]; isMore: boolean; next: number | undefined } {
  const slots: number[] = [];
  let next: number | undefined = first;
  while (next !== undefined && next <= now && slots.length < STEPS_MAX) {
    slots.push(next);
    next = expression.next(next);
  }
  if (next === undefined || next > now) return { slots, isMore: false, next };
  const newest = expression.lastTimes(now, CATCH_UP_MAX + 1).filter((slot) => slot >= first);
  const isMore = newest.length > CATCH_UP_MAX;
  return { slots: newest.slice(-CATCH_UP_MAX), isMore, next: expression.next(now) };
}
