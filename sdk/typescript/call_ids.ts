/**
 * Ids of the calls of one worker: random at the start, so that nobody else's are alike, and
 * counting at the end.
 *
 * A random id for each call would cost more than the rest of it, and a call is found by its count
 * without its id being hashed.
 *
 * @module
 */
import { newId } from "./platform.ts";

/** Length of the part of a UUID that counts. */
const COUNT_CHARS = 12;

/** Makes ids in the shape of a UUID and reads them again. */
export class CallIds {
  /** What all ids of this worker start with. */
  readonly start: string = newId().slice(0, -COUNT_CHARS);

  /** The id of a call, by its count from 1 on. */
  text(count: number): string {
    return this.start + count.toString(16).padStart(COUNT_CHARS, "0");
  }

  /** The count in an id; `undefined` for an id that this worker did not make. */
  count(id: string): number | undefined {
    if (id.length !== this.start.length + COUNT_CHARS || !id.startsWith(this.start)) {
      return undefined;
    }
    return countAt(id, this.start.length);
  }
}

/** The count whose digits stand at `at`; `undefined` when something else does. */
export function countAt(text: string, at: number): number | undefined {
  let count = 0;
  for (let i = at; i < at + COUNT_CHARS; i++) {
    const code = text.charCodeAt(i);
    const isDigit = code >= 0x30 && code <= 0x39;
    if (!isDigit && !(code >= 0x61 && code <= 0x66)) return undefined;
    count = count * 16 + code - (isDigit ? 0x30 : 0x57);
  }
  return count;
}

/** Where the digits that start at `at` end. */
export function countEnd(at: number): number {
  return at + COUNT_CHARS;
}
