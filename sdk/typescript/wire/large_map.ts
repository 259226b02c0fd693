/**
 * A map that never stops the thread to grow.
 *
 * A `Map` of V8 doubles by moving all its entries at once: with 131,072 of them, 10 to 20 ms in
 * which no connection is served, and tables that hold an entry for each registration grow in the
 * same moment. This one is a single `Map` of up to {@linkcode PART_MAX} entries; beyond that size
 * it is divided into {@linkcode PARTS} by a hash of the key, once, and each part grows for itself.
 *
 * @module
 */

/** Entries of an undivided map; moving that many takes about a millisecond. */
export const PART_MAX = 8_192;
/** Maps behind a divided one. */
export const PARTS = 64;
/** Characters at each end of a key that the hash takes. */
const HASH_CHARS = 32;

/**
 * A `Map` with strings as keys, whose values are never `undefined`. It iterates in the order in
 * which entries were added, until it is divided; then in an order that means nothing. Entries may
 * end while it is read, and none may be added.
 */
export class LargeMap<Value extends NonNullable<unknown>> {
  #single: Map<string, Value> | undefined = new Map();
  #parts: readonly Map<string, Value>[] = [];
  #size = 0;

  /** Number of entries. */
  get size(): number {
    return this.#size;
  }

  /** Entries of the largest map behind it. */
  get largestPart(): number {
    return Math.max(...this.#all().map(({ size }) => size));
  }

  /** The value of a key; `undefined`: it has none. */
  get(key: string): Value | undefined {
    return (this.#single ?? this.#parts[partOf(key)]!).get(key);
  }

  /** Whether the key has an entry. */
  has(key: string): boolean {
    return (this.#single ?? this.#parts[partOf(key)]!).has(key);
  }

  /** Adds an entry, or changes that of the key. */
  set(key: string, value: Value): this {
    if (this.#single !== undefined && this.#single.size >= PART_MAX) this.#divide(this.#single);
    const part = this.#single ?? this.#parts[partOf(key)]!;
    const before = part.size;
    part.set(key, value);
    this.#size += part.size - before;
    return this;
  }

  /** Ends an entry; `false` when the key has none. */
  delete(key: string): boolean {
    const isDeleted = (this.#single ?? this.#parts[partOf(key)]!).delete(key);
    if (isDeleted && --this.#size === 0) this.clear();
    return isDeleted;
  }

  /** Ends all entries. */
  clear(): void {
    this.#single = new Map();
    this.#parts = [];
    this.#size = 0;
  }

  *keys(): Generator<string, undefined> {
    for (const part of this.#all()) yield* part.keys();
    return undefined;
  }

  *values(): Generator<Value, undefined> {
    for (const part of this.#all()) yield* part.values();
    return undefined;
  }

  *[Symbol.iterator](): Generator<[string, Value], undefined> {
    for (const part of this.#all()) yield* part;
    return undefined;
  }

  #all(): readonly Map<string, Value>[] {
    return this.#single === undefined ? this.#parts : [this.#single];
  }

  #divide(single: Map<string, Value>): void {
    const parts = Array.from({ length: PARTS }, () => new Map<string, Value>());
    for (const [key, value] of single) parts[partOf(key)]!.set(key, value);
    [this.#parts, this.#single] = [parts, undefined];
  }
}

/** FNV-1a of both ends of a key, folded to a part. */
function partOf(key: string): number {
  const { length } = key;
  let hash = 0x811c9dc5 ^ length;
  const headEnd = Math.min(length, HASH_CHARS);
  for (let i = 0; i < headEnd; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  for (let i = Math.max(headEnd, length - HASH_CHARS); i < length; i++) {
    hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  }
  return (hash ^ hash >>> 15) & (PARTS - 1);
}
