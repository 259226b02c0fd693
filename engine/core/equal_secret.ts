/**
 * Comparing secrets.
 *
 * @module
 */

/** Compares in a time that does not tell how much was right. */
export function isEqualSecret(known: string, said: string): boolean {
  let difference = known.length ^ said.length;
  for (let at = 0; at < known.length; at++) {
    difference |= known.charCodeAt(at) ^ said.charCodeAt(at % said.length);
  }
  return difference === 0;
}
