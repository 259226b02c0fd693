/**
 * A map for entries that are added and removed at a high rate, such as running calls.
 *
 * V8's `Map` and `Set` keep removed entries alive: once one of their tables has survived a full
 * garbage collection, it references the next table, and that one the next, until the next full
 * collection. For HTTP requests this cost 3.5 KB each and a fifth of their CPU. A removed entry of
 * this map references nothing.
 *
 * Keys may come from untrusted peers, as ids of traces do. Each map therefore has a random seed, so
 * that a peer cannot choose keys that share a bucket.
 *
 * @module
 */

interface Entry<Key, Value> {
  readonly key: Key;
  readonly hash: number;
  /** Increases with each entry. */
  readonly seq: number;
  value: Value;
  /** The next entry in the same bucket. */
  next: Entry<Key, Value> | undefined;
}

/** Number of buckets of an empty map; a power of two. */
const BUCKETS_MIN = 16;

/** A map of strings or numbers. Its table does not shrink, except by `clear()`. */
export class TurnoverMap<Key extends string | number, Value> {
  #buckets: (Entry<Key, Value> | undefined)[] = emptyBuckets(BUCKETS_MIN);
  #size = 0;
  #seq = 0;
  readonly #seed = crypto.getRandomValues(new Int32Array(1))[0]!;

  get size(): number {
    return this.#size;
  }

  /** The value of a key; `undefined` if it is missing. */
  get(key: Key): Value | undefined {
    return this.#find(key, hashOf(key, this.#seed))?.value;
  }

  /** Sets the value of a key. */
  set(key: Key, value: Value): void {
    const hash = hashOf(key, this.#seed);
    const known = this.#find(key, hash);
    if (known) {
      known.value = value;
      return;
    }
    if (this.#size === this.#buckets.length) this.#grow();
    const at = hash & (this.#buckets.length - 1);
    this.#buckets[at] = { key, hash, seq: this.#seq++, value, next: this.#buckets[at] };
    this.#size++;
  }

  /** Removes a key and returns its value; `undefined` if it is missing. */
  take(key: Key): Value | undefined {
    const at = hashOf(key, this.#seed) & (this.#buckets.length - 1);
    let before: Entry<Key, Value> | undefined;
    for (let entry = this.#buckets[at]; entry; before = entry, entry = entry.next) {
      if (entry.key !== key) continue;
      if (before) before.next = entry.next;
      else this.#buckets[at] = entry.next;
      entry.next = undefined; // Otherwise it would keep others alive: see above.
      this.#size--;
      return entry.value;
    }
    return undefined;
  }

  /** All values, in the order in which their keys were added. */
  values(): Value[] {
    return this.#entries().sort((a, b) => a.seq - b.seq).map(({ value }) => value);
  }

  /** Removes all entries. */
  clear(): void {
    this.#buckets = emptyBuckets(BUCKETS_MIN);
    this.#size = 0;
  }

  #find(key: Key, hash: number): Entry<Key, Value> | undefined {
    let entry = this.#buckets[hash & (this.#buckets.length - 1)];
    while (entry && entry.key !== key) entry = entry.next;
    return entry;
  }

  #entries(): Entry<Key, Value>[] {
    const entries: Entry<Key, Value>[] = [];
    for (const first of this.#buckets) {
      for (let entry = first; entry; entry = entry.next) entries.push(entry);
    }
    return entries;
  }

  #grow(): void {
    const before = this.#buckets;
    this.#buckets = emptyBuckets(before.length * 2);
    for (let i = 0; i < before.length; i++) {
      let entry = before[i];
      before[i] = undefined; // The old table must not keep entries alive either.
      while (entry) {
        const { next }: Entry<Key, Value> = entry;
        const at = entry.hash & (this.#buckets.length - 1);
        entry.next = this.#buckets[at];
        this.#buckets[at] = entry;
        entry = next;
      }
    }
  }
}

function emptyBuckets<Key, Value>(count: number): (Entry<Key, Value> | undefined)[] {
  return new Array<undefined>(count).fill(undefined);
}

/**
 * The hash of a key. Numbers map to themselves, so that counters use separate buckets. Strings are
 * hashed as in FNV-1a with an additional shift per character: without it, the low bits would depend
 * on few bits of the seed.
 */
export function hashOf(key: string | number, seed: number): number {
  if (typeof key === "number") return key | 0;
  let hash = seed;
  for (let i = 0; i < key.length; i++) {
    hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
    hash ^= hash >>> 15;
  }
  return hash;
}
