/**
 * What a histogram says: counts of durations by bucket, in, milliseconds out.
 *
 * A duration inside a bucket is unknown; it is taken to lie evenly between the bounds, so an answer
 * is off by the width of a bucket at most.
 *
 * @module
 */

/**
 * The duration that a part of all did not exceed, such as 0.99; `null` when there were none.
 *
 * @param bounds Upper bounds of the buckets, rising.
 * @param counts One per bound and one beyond; what lies beyond counts as the last bound.
 */
export function quantile(
  bounds: readonly number[],
  counts: ArrayLike<number>,
  part: number,
): number | null {
  const total = totalOf(counts);
  if (total === 0) return null;
  const rank = Math.max(part * total, Number.MIN_VALUE);
  let below = 0;
  for (const [i, upper] of bounds.entries()) {
    const inside = counts[i] ?? 0;
    if (below + inside >= rank) {
      const lower = i === 0 ? 0 : bounds[i - 1]!;
      return round(lower + (upper - lower) * (rank - below) / inside);
    }
    below += inside;
  }
  return round(bounds.at(-1) ?? 0);
}

/** How many durations were counted. */
export function totalOf(counts: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < counts.length; i++) total += counts[i]!;
  return total;
}

/** Bounds between which all durations lie; `null` when there were none. */
export function extremes(
  bounds: readonly number[],
  counts: ArrayLike<number>,
): { readonly min_ms: number; readonly max_ms: number } | null {
  let first = 0;
  while (first < counts.length && !counts[first]) first++;
  if (first >= counts.length) return null;
  let last = counts.length - 1;
  while (!counts[last]) last--;
  const highest = bounds.at(-1) ?? 0;
  return {
    min_ms: round(first === 0 ? 0 : bounds[first - 1] ?? highest),
    max_ms: round(bounds[last] ?? highest),
  };
}

/** Adds counts to others, bucket by bucket. */
export function addCounts(sum: Float64Array, counts: ArrayLike<number>): void {
  for (let i = 0; i < sum.length; i++) sum[i] = sum[i]! + (counts[i] ?? 0);
}

/** To a thousandth: more would only look exact. */
export function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
