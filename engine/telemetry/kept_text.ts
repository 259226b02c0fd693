/**
 * Texts that are kept for a while: copies, cut, and what they cost.
 *
 * @module
 */

/** Around the characters of a text in memory. */
const TEXT_BYTES = 32;
// deno-lint-ignore no-control-regex
const WIDE = /[^\x00-\xff]/;

/** A copy, of at most `max` characters: a mere view keeps alive what it was cut from. */
export function kept(text: string, max: number = Infinity): string {
  const whole = text.length > max ? ` ${text.slice(0, max - 1)}…` : ` ${text}`;
  return whole.slice(1); // Which writes the pieces into one text first.
}

/** Bytes of a text in memory, at most. */
export function costOf(text: string): number {
  return TEXT_BYTES + (WIDE.test(text) ? 2 : 1) * (text.length + 1);
}
