/**
 * The known names that an unknown one was probably meant to be, for errors that suggest them.
 *
 * @module
 */

/** Names that are suggested. */
export const SIMILAR_NAMES_MAX = 3;
/** Names that are compared in one search. */
export const NAMES_COMPARED_MAX = 2_000;
/** Longer names are neither searched for nor suggested, in UTF-16 code units. */
const LENGTH_MAX = 128;

/**
 * The most similar of some names, best first; names that differ too much are left out. Looks at a
 * limited number of candidates; the caller limits how often it is used.
 */
export function similarNames(wanted: string, candidates: Iterable<string>): string[] {
  if (wanted.length > LENGTH_MAX) return [];
  const farthest = Math.max(2, Math.floor(wanted.length / 3));
  const found: { name: string; distance: number }[] = [];
  let looked = 0;
  for (const name of candidates) {
    if (++looked > NAMES_COMPARED_MAX) break;
    const distance = distanceOf(wanted, name, farthest);
    if (distance <= farthest) found.push({ name, distance });
  }
  found.sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1));
  return found.slice(0, SIMILAR_NAMES_MAX).map(({ name }) => name);
}

/** Case-insensitive edit distance; `Infinity` when it exceeds `farthest`. */
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
