/**
 * Traces by time (`engine::traces::histogram`): bars, and ranges of bars that a person selects.
 *
 * @module
 */
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { numberOf, objectOf } from "../../kit/json.ts";

/** A bar is not divided further than this, in milliseconds. */
const BAR_MS_MIN = 1;

/** How many traces began in each part of a time range. */
export interface Histogram {
  /** Milliseconds since 1970. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Length of one part. */
  readonly barMs: number;
  readonly counts: readonly number[];
  /** Of those, the ones with a failed span. */
  readonly errors: readonly number[];
  readonly total: number;
}

/** Some bars, by their positions; `first` may be after `last` while it is selected. */
export interface BarRange {
  readonly first: number;
  readonly last: number;
}

/** A bar to draw; heights are parts of the whole height. */
export interface Bar {
  readonly height: number;
  readonly failed: number;
}

/** Reads an answer; missing members become empty. */
export function readHistogram(raw: Json): Histogram {
  const answer = objectOf(raw);
  const numbers = (list: Json | undefined): number[] =>
    Array.isArray(list) ? list.map((value) => numberOf(value)) : [];
  const counts = numbers(answer.counts);
  const errors = numbers(answer.errors);
  return {
    fromMs: numberOf(answer.since_ms),
    toMs: numberOf(answer.before_ms),
    barMs: numberOf(answer.bucket_ms),
    counts,
    errors: counts.map((_, i) => errors[i] ?? 0),
    total: numberOf(answer.total),
  };
}

/** The bars; one trace among many still shows, and so does one that failed. */
export function barsOf({ counts, errors }: Histogram, least = 0.05): Bar[] {
  const most = counts.reduce((most, count) => Math.max(most, count), 1);
  return counts.map((count, i) => {
    if (count === 0) return { height: 0, failed: 0 };
    const height = Math.max(least, count / most);
    const failed = errors[i]! === 0 ? 0 : Math.max(least, height * errors[i]! / count);
    return { height, failed };
  });
}

/** The bar at a place of the width, 0 to 1. */
export function barAt({ counts }: Histogram, place: number): number {
  return Math.max(0, Math.min(counts.length - 1, Math.floor(place * counts.length)));
}

/** The time range of some bars; `null` when they are too short to be shown by themselves. */
export function rangeOf(
  { fromMs, barMs }: Histogram,
  { first, last }: BarRange,
): { readonly from: number; readonly to: number } | null {
  if (!(barMs > BAR_MS_MIN)) return null;
  const [low, high] = [Math.min(first, last), Math.max(first, last)];
  return { from: Math.floor(fromMs + low * barMs), to: Math.ceil(fromMs + (high + 1) * barMs) };
}

/** Traces, and failed ones, of some bars. */
export function countsOf(
  { counts, errors }: Histogram,
  { first, last }: BarRange,
): { readonly count: number; readonly failed: number } {
  const [low, high] = [Math.min(first, last), Math.max(first, last)];
  const sum = (list: readonly number[]) => {
    return list.slice(low, high + 1).reduce((sum, value) => sum + value, 0);
  };
  return { count: sum(counts), failed: sum(errors) };
}
