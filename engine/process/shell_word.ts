/**
 * Puts texts into shell commands, whatever is in them.
 *
 * @module
 */

/** A text as one word of a shell command. It may hold anything but a zero byte. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
