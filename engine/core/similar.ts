/**
 * Ids that look like one that was not found.
 *
 * Looks through a bounded number of candidates; how often it may be asked is for the caller to
 * bound.
 *
 * @module
 */
import { SIMILAR_IDS_MAX, SIMILAR_SCAN_MAX } from "../../sdk/typescript/wire/limits.ts";

const LENGTH_MAX = 128;

/** The closest of some ids, best first; none that is too far off to be meant. */
export function similarIds(wanted: string, candidates: Iterable<string>): string[] {
  if (wanted.length > LENGTH_MAX) return [];
  const farthest = Math.max(2, Math.floor(wanted.length / 3));
  const found: { id: string; distance: number }[] = [];
  let looked = 0;
  for (const id of candidates) {
    if (++looked > SIMILAR_SCAN_MAX) break;
    const distance = distanceOf(wanted, id, farthest);
    if (distance <= farthest) found.push({ id, distance });
  }
  found.sort((a, b) => a.distance - b.distance || (a.id < b.id ? -1 : 1));
  return found.slice(0, SIMILAR_IDS_MAX).map(({ id }) => id);
}

/** Letters to add, drop or change to make one of the other; case does not count. */
function distanceOf(a: string, b: string, farthest: number): number {
  if (Math.abs(a.length - b.length) > farthest || b.length > LENGTH_MAX) return Infinity;
  const from = a.toLowerCase();
  const to = b.toLowerCase();
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    let least = i;
    for (let j = 1; j <= to.length; j++) {
      const changed = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      const value = Math.min(changed, row[j]! + 1, next[j - 1]! + 1);
      next.push(value);
      if (value < least) least = value;
    }
    if (least > farthest) return Infinity;
    row = next;
  }
  return row[to.length]!;
}
