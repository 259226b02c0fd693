/**
 * Bytes of text, where making strings of them would cost more than what is done with them.
 *
 * @module
 */

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** No bytes. */
export const NO_BYTES: Uint8Array = new Uint8Array();

/** A text as UTF-8, in memory of its own. */
export function bytesOf(text: string): Uint8Array {
  return encoder.encode(text);
}

/** The text that the bytes from `start` to `end` say. */
export function textOf(memory: Uint8Array, start: number, end: number): string {
  return decoder.decode(memory.subarray(start, end));
}

/** Whether `text` stands at `at`, wholly before `end`. */
export function standsAt(memory: Uint8Array, at: number, end: number, text: Uint8Array): boolean {
  const { length } = text;
  if (at + length > end) return false;
  for (let i = 0; i < length; i++) if (memory[at + i] !== text[i]) return false;
  return true;
}

/** Writes the first so many bytes of `from` at a place. */
export function copyTo(memory: Uint8Array, at: number, from: Uint8Array, bytes: number): void {
  for (let i = 0; i < bytes; i++) memory[at + i] = from[i]!;
}

/** By which a text, the bytes from `start` to `end`, is found in a table. */
export function hashOf(memory: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ memory[at]!, 0x01000193);
  // Thirty bits: a larger number is an object of its own to the runtime.
  return (hash ^ hash >>> 15) & 0x3fffffff;
}
