/**
 * Samples made readable: parts of some seconds instead of single ones, and a few series instead of
 * many. A chart of a hundred functions with a value per second shows nothing.
 *
 * @module
 */
import { meanOf } from "./samples.ts";

/** A value per part of a time range. */
export interface Bucketed {
  /** Starts of the parts, in milliseconds since 1970. */
  readonly at_ms: readonly number[];
  readonly values: readonly (number | null)[];
}

/** One line of a chart. */
export interface NamedSeries {
  readonly key: string;
  readonly values: readonly (number | null)[];
}

/** The key of the series that stands for all that are not shown. */
export const OTHER = "";

/** How several samples become one: their mean, or the largest of them. */
export type Combine = "mean" | "max";

/**
 * Samples in parts that begin at multiples of `partMs`, so that they stay where they are while time
 * passes. Parts without samples are left out, and so is the last one until half of it has passed:
 * a mean of one or two samples jumps.
 */
export function bucketed(
  at_ms: readonly number[],
  values: readonly (number | null)[],
  partMs: number,
  combine: Combine,
): Bucketed {
  const parts = new Map<number, (number | null)[]>();
  at_ms.forEach((ms, i) => {
    const start = Math.floor(ms / partMs) * partMs;
    const part = parts.get(start);
    if (part) part.push(values[i] ?? null);
    else parts.set(start, [values[i] ?? null]);
  });
  const newest = at_ms.at(-1) ?? 0;
  const last = Math.floor(newest / partMs) * partMs;
  if (parts.size > 1 && newest - last < partMs / 2) parts.delete(last);
  return {
    at_ms: [...parts.keys()],
    values: [...parts.values()].map(combine === "mean" ? (part) => meanOf(part) : largestOf),
  };
}

/**
 * The series with the largest sums, at most `most`, then one for all others: their sum, or the
 * largest of them. A single other one is shown itself.
 */
export function topAndOther(
  series: readonly NamedSeries[],
  most: number,
  others: "sum" | "max",
): readonly NamedSeries[] {
  const ranked = series.map((one) => ({ one, sum: sumOf(one.values) ?? 0 }))
    .sort((a, b) => b.sum - a.sum || (a.one.key < b.one.key ? -1 : 1))
    .map(({ one }) => one);
  if (ranked.length <= most + 1) return ranked;
  const rest = ranked.slice(most);
  const combine = others === "sum" ? sumOf : largestOf;
  const values = rest[0]!.values.map((_, i) => combine(rest.map((one) => one.values[i] ?? null)));
  return [...ranked.slice(0, most), { key: OTHER, values }];
}

function sumOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
}

function largestOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : Math.max(...known);
}
