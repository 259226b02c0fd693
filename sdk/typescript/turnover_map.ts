/**
 * A map for what comes and goes by the thousand a second, such as running calls.
 *
 * It forgets what is deleted, which V8's `Map` and `Set` do not: once one of their tables has
 * outlived a full garbage collection, it leads to the next table, and that to the one after, so
 * that every entry there ever was is kept until the next full collection. For HTTP requests that
 * was 3.5 KB each and a fifth of their CPU. Here an entry that was deleted leads to nothing.
 *
 * Keys may come from strangers, as ids of traces do: so each map spreads texts in its own way, and
 * nobody can choose many that share a bucket.
 *
 * @module
 */

interface Entry<Key, Value> {
  readonly key: Key;
  readonly hash: number;
  /** Grows with every entry. */
  readonly seq: number;
  value: Value;
  /** Another one in the same bucket. */
  next: Entry<Key, Value> | undefined;
}

/** Buckets of an empty map; a power of two. */
const BUCKETS_MIN = 16;

/** As much of a `Map` as its users need. It never shrinks below what it once held. */
export class TurnoverMap<Key extends string | number, Value> {
  #buckets: (Entry<Key, Value> | undefined)[] = emptyBuckets(BUCKETS_MIN);
  #size = 0;
  #seq = 0;
  readonly #seed = crypto.getRandomValues(new Int32Array(1))[0]!;

  /** How many there are. */
  get size(): number {
    return this.#size;
  }

  /** The value of a key; `undefined` when there is none. */
  get(key: Key): Value | undefined {
    return this.#find(key, hashOf(key, this.#seed))?.value;
  }

  /** Puts a value in, in the place of the one before. */
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

  /** Takes a value out and returns it; `undefined` when there is none. */
  take(key: Key): Value | undefined {
    const at = hashOf(key, this.#seed) & (this.#buckets.length - 1);
    let before: Entry<Key, Value> | undefined;
    for (let entry = this.#buckets[at]; entry; before = entry, entry = entry.next) {
      if (entry.key !== key) continue;
      if (before) before.next = entry.next;
      else this.#buckets[at] = entry.next;
      entry.next = undefined; // Else it would keep others, and they yet others: see above.
      this.#size--;
      return entry.value;
    }
    return undefined;
  }

  /** All values, in the order in which their keys were first put in. */
  values(): Value[] {
    return this.#entries().sort((a, b) => a.seq - b.seq).map(({ value }) => value);
  }

  /** Forgets all. */
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
      before[i] = undefined; // The old table leads to nothing either.
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
 * Keys that count up are in buckets of their own. Texts are mixed as in FNV-1a, with the high bits
 * brought down at each step: without that, the low bits would hang on few of the seed's.
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
