/**
 * How well a text fits what somebody typed: the letters in order, the closer together the better.
 *
 * @module
 */

/** How well it fits, the higher the better; `null`: not at all. Blank fits everything with 0. */
export function fitOf(text: string, typed: string): number | null {
  const wanted = typed.trim().toLowerCase();
  if (wanted === "") return 0;
  const lower = text.toLowerCase();
  const whole = lower.indexOf(wanted);
  if (whole >= 0) {
    const starts = whole === 0 ? 400 : isStart(lower, whole) ? 200 : 0;
    return 1_000 + starts - Math.min(300, text.length - wanted.length);
  }
  return scattered(lower, wanted);
}

/** The best of a list, the best first, at most `limit`. */
export function bestFits<T>(
  items: readonly T[],
  typed: string,
  textOf: (item: T) => string,
  limit: number,
): T[] {
  const fits: { item: T; fit: number; at: number }[] = [];
  items.forEach((item, at) => {
    const fit = fitOf(textOf(item), typed);
    if (fit !== null) fits.push({ item, fit, at });
  });
  fits.sort((a, b) => b.fit - a.fit || a.at - b.at);
  return fits.slice(0, limit).map(({ item }) => item);
}

function scattered(text: string, wanted: string): number | null {
  let at = -1, score = 0;
  for (const letter of wanted.replaceAll(/\s+/g, "")) {
    const found = text.indexOf(letter, at + 1);
    if (found < 0) return null;
    score += found === at + 1 ? 8 : isStart(text, found) ? 6 : -Math.min(6, found - at);
    at = found;
  }
  return score;
}

/** Whether a word starts there. */
function isStart(text: string, at: number): boolean {
  return at === 0 || /[^a-z0-9]/.test(text[at - 1]!);
}
