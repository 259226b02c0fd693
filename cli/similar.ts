/**
 * Which known word was probably meant.
 *
 * @module
 */

/** The known word nearest to `word`, if it is near enough to be a slip of the finger. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const most = Math.max(1, Math.floor(word.length * 0.4));
  const ranked = known.map((candidate) => ({ candidate, edits: editsBetween(word, candidate) }))
    .filter(({ edits }) => edits <= most)
    .sort((a, b) => a.edits - b.edits);
  return ranked[0]?.candidate;
}

/** Letters to add, remove, change or swap to get from one word to the other. */
export function editsBetween(from: string, to: string): number {
  let before: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, j) => j);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1];
      let edits = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (same ? 0 : 1));
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      if (swapped) edits = Math.min(edits, before[j - 2]! + 1);
      next.push(edits);
    }
    before = row;
    row = next;
  }
  return row[to.length]!;
}
