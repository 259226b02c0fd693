/**
 * A map that never stops the thread to grow.
 *
 * A `Map` of V8 doubles by moving all its entries at once: with 131,072 of them, 10 to 20 ms in
 * which no connection is served, and tables that hold an entry for each registration grow in the
 * same moment. This one is a list of maps of at most {@linkcode PART_MAX} entries. A map of up to
 * that size is one `Map` behind one comparison.
 *
 * @module
 */

/** Entries of one part; moving that many takes about a millisecond. */
export const PART_MAX = 8_192;

/**
 * A `Map` whose entries are in parts; iterates in the order in which entries were added. A value is
 * never `undefined`.
 */
export class LargeMap<Key, Value extends NonNullable<unknown>> {
  #parts: Map<Key, Value>[] = [new Map()];
  #size = 0;

  /** Number of entries. */
  get size(): number {
    return this.#size;
  }

  /** Number of maps behind it. */
  get parts(): number {
    return this.#parts.length;
  }

  /** The value of a key; `undefined`: it has none. */
  get(key: Key): Value | undefined {
    const parts = this.#parts;
    for (let i = parts.length; i-- > 0;) {
      const value = parts[i]!.get(key);
      if (value !== undefined) return value;
    }
    return undefined;
  }

  /** Whether the key has an entry. */
  has(key: Key): boolean {
    return this.#partOf(key) !== undefined;
  }

  /** Adds an entry, or changes that of the key, which keeps its place. */
  set(key: Key, value: Value): this {
    const parts = this.#parts;
    const part = this.#partOf(key);
    if (part) part.set(key, value);
    else {
      if (parts.at(-1)!.size >= PART_MAX) this.#extend();
      parts.at(-1)!.set(key, value);
      this.#size++;
    }
    return this;
  }

  /** Ends an entry; `false` when the key has none. */
  delete(key: Key): boolean {
    const part = this.#partOf(key);
    if (!part) return false;
    part.delete(key);
    this.#size--;
    const parts = this.#parts;
    if (part.size === 0 && part !== parts.at(-1)) parts.splice(parts.indexOf(part), 1);
    return true;
  }

  /** Ends all entries. */
  clear(): void {
    this.#parts = [new Map()];
    this.#size = 0;
  }

  *keys(): Generator<Key, undefined> {
    for (const part of [...this.#parts]) yield* part.keys();
    return undefined;
  }

  *values(): Generator<Value, undefined> {
    for (const part of [...this.#parts]) yield* part.values();
    return undefined;
  }

  *[Symbol.iterator](): Generator<[Key, Value], undefined> {
    for (const part of [...this.#parts]) yield* part;
    return undefined;
  }

  #partOf(key: Key): Map<Key, Value> | undefined {
    const parts = this.#parts;
    for (let i = parts.length; i-- > 0;) if (parts[i]!.has(key)) return parts[i];
    return undefined;
  }

  /**
   * Adds a part. Two neighbours that together are at most half full become one, one pair each time:
   * so parts in which little is left cannot become more and more.
   */
  #extend(): void {
    const parts = this.#parts;
    const fits = (part: Map<Key, Value>, i: number): boolean =>
      i + 1 < parts.length && part.size + parts[i + 1]!.size <= PART_MAX / 2;
    const at = parts.findIndex(fits);
    if (at >= 0) {
      for (const [key, value] of parts[at + 1]!) parts[at]!.set(key, value);
      parts.splice(at + 1, 1);
    }
    parts.push(new Map());
  }
}

/** A `Set` made in the same way. */
export class LargeSet<Item> {
  readonly #items = new LargeMap<Item, true>();

  /** Number of items. */
  get size(): number {
    return this.#items.size;
  }

  /** Whether the item is in it. */
  has(item: Item): boolean {
    return this.#items.has(item);
  }

  /** Adds an item. */
  add(item: Item): this {
    this.#items.set(item, true);
    return this;
  }

  /** Ends an item; `false` when it is not in it. */
  delete(item: Item): boolean {
    return this.#items.delete(item);
  }

  [Symbol.iterator](): Generator<Item, undefined> {
    return this.#items.keys();
  }
}
