/**
 * A map for tables of thousands of maps that have one entry each: a `Map` with one entry takes 240
 * bytes and two objects, which every collection of garbage has to copy and to mark.
 *
 * @module
 */

/** A `Map` whose only entry is kept beside it; a table is made for the second one. */
export class SmallMap<Key extends NonNullable<unknown>, Value extends NonNullable<unknown>> {
  #key: Key | undefined;
  #value: Value | undefined;
  /** All entries, once there were two. */
  #table: Map<Key, Value> | undefined;

  /** Number of entries. */
  get size(): number {
    if (this.#table !== undefined) return this.#table.size;
    return this.#key === undefined ? 0 : 1;
  }

  /** The value of a key; `undefined`: it has none. */
  get(key: Key): Value | undefined {
    if (this.#table !== undefined) return this.#table.get(key);
    return this.#key === key ? this.#value : undefined;
  }

  /** Whether the key has an entry. */
  has(key: Key): boolean {
    return this.#table !== undefined ? this.#table.has(key) : this.#key === key;
  }

  /** Adds an entry, or changes that of the key. */
  set(key: Key, value: Value): this {
    if (this.#table === undefined) {
      if (this.#key === undefined || this.#key === key) {
        this.#key = key;
        this.#value = value;
        return this;
      }
      this.#table = new Map([[this.#key, this.#value!]]);
      this.#key = this.#value = undefined;
    }
    this.#table.set(key, value);
    return this;
  }

  /** Ends an entry; `false` when the key has none. */
  delete(key: Key): boolean {
    if (this.#table !== undefined) {
      const isDeleted = this.#table.delete(key);
      if (this.#table.size === 0) this.#table = undefined;
      return isDeleted;
    }
    if (this.#key !== key) return false;
    this.#key = this.#value = undefined;
    return true;
  }

  /** In the order in which they were added. */
  keys(): Iterable<Key> {
    if (this.#table !== undefined) return this.#table.keys();
    return this.#key === undefined ? [] : [this.#key];
  }

  /** In the order in which they were added. */
  values(): Iterable<Value> {
    if (this.#table !== undefined) return this.#table.values();
    return this.#key === undefined ? [] : [this.#value!];
  }
}
