/**
 * The entries that were used last, as many as fit into a number of bytes.
 *
 * It also remembers that a key has no entry, which saves as much time as an entry does. It is told
 * only what is on disk, so dropping something is always safe.
 *
 * The order of use is a ring of links. Taking a key out of a map and putting it back would keep the
 * order too, but a map keeps the places of removed keys for a while, and a key that is used again
 * and again would have to pass all of its own.
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

/** A key in the order of use. */
interface Link {
  readonly id: string;
  known: Known;
  older: Link;
  newer: Link;
}

/** Least recently used goes first. */
export class Cache {
  readonly #links = new Map<string, Link>();
  /** Closes the ring: its `newer` is the oldest, its `older` the newest. */
  readonly #ring: Link = makeRing();
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
    const link = this.#links.get(id);
    if (!link) return undefined;
    if (this.#ring.older !== link) {
      unlink(link);
      this.#addNewest(link);
    }
    return link.known;
  }

  /** The same without counting as a use, for those who read everything once. */
  peek(id: string): Known | undefined {
    return this.#links.get(id)?.known;
  }

  /** Remembers what is at a key; not at all if that alone is too large. */
  set(id: string, known: Known): void {
    const cost = costOf(id, known);
    const link = this.#links.get(id);
    if (cost > this.#bytesMax) {
      if (link) this.#drop(link);
      return;
    }
    if (link) {
      this.#bytes += cost - costOf(id, link.known);
      link.known = known;
      this.get(id);
    } else {
      const made: Link = { id, known, older: this.#ring, newer: this.#ring };
      this.#links.set(id, made);
      this.#addNewest(made);
      this.#bytes += cost;
    }
    while (this.#bytes > this.#bytesMax) this.#drop(this.#ring.newer);
  }

  /** Forgets a key. */
  delete(id: string): void {
    const link = this.#links.get(id);
    if (link) this.#drop(link);
  }

  #addNewest(link: Link): void {
    const ring = this.#ring;
    link.newer = ring;
    link.older = ring.older;
    ring.older.newer = link;
    ring.older = link;
  }

  #drop(link: Link): void {
    unlink(link);
    this.#links.delete(link.id);
    this.#bytes -= costOf(link.id, link.known);
  }
}

function makeRing(): Link {
  const ring = { id: "", known: null } as Link;
  ring.older = ring;
  ring.newer = ring;
  return ring;
}

function unlink(link: Link): void {
  link.older.newer = link.newer;
  link.newer.older = link.older;
}

function costOf(id: string, known: Known): number {
  return OVERHEAD_BYTES + PARSED_FACTOR * (id.length + (known ? known.bytes : 0));
}
