/**
 * The entries that were used last, as many as fit into a number of bytes.
 *
 * It also remembers that a key has no entry, which saves as much time as an entry does. It is told
 * only what is on disk, so dropping something is always safe.
 *
 * @module
 */
import type { Entry } from "../ports/store.ts";

/** What is at a key: an entry, or `null` for none. */
export type Known = Entry | null;

/** What is charged for the objects around a value. */
const OVERHEAD_BYTES = 256;
/** A parsed value takes more room than its JSON; twice as much is right for most. */
const PARSED_FACTOR = 2;

/** Least recently used goes first. */
export class Cache {
  /** In the order of their last use. */
  readonly #known = new Map<string, Known>();
  readonly #bytesMax: number;
  #bytes = 0;

  /** Makes an empty one. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes it is charged for now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** What is at a key; `undefined` when it is not known here. Counts as a use. */
  get(id: string): Known | undefined {
    const known = this.#known.get(id);
    if (known === undefined) return undefined;
    this.#known.delete(id);
    this.#known.set(id, known);
    return known;
  }

  /** The same without counting as a use, for those who read everything once. */
  peek(id: string): Known | undefined {
    return this.#known.get(id);
  }

  /** Remembers what is at a key; not at all if that alone is too large. */
  set(id: string, known: Known): void {
    this.delete(id);
    const cost = costOf(id, known);
    if (cost > this.#bytesMax) return;
    this.#known.set(id, known);
    this.#bytes += cost;
    for (const [oldest, value] of this.#known) {
      if (this.#bytes <= this.#bytesMax) break;
      this.#known.delete(oldest);
      this.#bytes -= costOf(oldest, value);
    }
  }

  /** Forgets a key. */
  delete(id: string): void {
    const known = this.#known.get(id);
    if (known === undefined) return;
    this.#known.delete(id);
    this.#bytes -= costOf(id, known);
  }
}

function costOf(id: string, known: Known): number {
  return OVERHEAD_BYTES + PARSED_FACTOR * (id.length + (known ? known.bytes : 0));
}
