/**
 * Names of members that `JSON.parse` would meet for the first time.
 *
 * V8 keeps each name of a member once, in a table of its own. A name that it knows costs 30 ns, a
 * new one a microsecond or more: 900,000 members with names of their own take 0.8 to 1.8 s, 810,000
 * of equal records 0.03 s. So names are counted before a value is parsed, by a hash each: a table
 * remembers which hashes were met last.
 *
 * @module
 */

/** Hashes that are remembered: more than the different names of an ordinary value. */
const REMEMBERED = 1 << 16;
/** Bytes of a name that count; of longer ones a message has too few to matter. */
const NAME_BYTES_MAX = 1_024;
const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;
/** Spreads consecutive numbers over all bits. */
const GOLDEN_RATIO = 0x9e3779b1;

/** Names that were met last, of all messages that are read; what they were is not kept. */
export class MemberNames {
  readonly #hashes = new Uint32Array(REMEMBERED);
  #messages = 0;

  /** Where the hashes of a message begin, so that its names are its own. */
  begin(): number {
    return FNV_OFFSET ^ Math.imul(++this.#messages, GOLDEN_RATIO);
  }

  /** Whether a name with this hash is new in its message; from now on it is not. */
  isNew(hash: number): boolean {
    const mixed = (hash ^ hash >>> 15) >>> 0;
    const slot = mixed & (REMEMBERED - 1);
    if (this.#hashes[slot] === mixed) return false;
    this.#hashes[slot] = mixed;
    return true;
  }
}

/** A name, or any string, whose bytes may come in parts. */
export class NameHash {
  readonly #first: number;
  #hash: number;
  #bytes = 0;

  constructor(first: number) {
    this.#first = this.#hash = first;
  }

  /** Forgets the string before. */
  restart(): void {
    this.#hash = this.#first;
    this.#bytes = 0;
  }

  /** Adds bytes of the string. */
  add(memory: Uint8Array, start: number, end: number): void {
    const last = Math.min(end, start + NAME_BYTES_MAX - this.#bytes);
    let hash = this.#hash;
    for (let at = start; at < last; at++) hash = Math.imul(hash ^ memory[at]!, FNV_PRIME);
    this.#hash = hash;
    this.#bytes += Math.max(0, last - start);
  }

  get value(): number {
    return this.#hash;
  }
}
