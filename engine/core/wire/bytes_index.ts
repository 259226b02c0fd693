/**
 * Hash tables keyed by bytes of a frame: `SlotIndex` for calls, `BytesIndex` for functions.
 *
 * `SlotIndex` uses open addressing: a `Map` whose entries come and go with every call took an
 * eighth of the core's time per call. It grows with its content and shrinks after a peak.
 *
 * @module
 */
import { bytesEqual, hashOf, passingBytesOf, Pieces, viewOf } from "./bytes.ts";

/** Places of the first table; a table always has twice as many places as entries. */
const PLACES_FIRST = 8;
/** A table of at most this size does not shrink, which avoids resizing back and forth. */
const PLACES_KEPT = 1_024;
/** Shared by all empty indexes, and never written to. */
const NOTHING = new Int32Array(2);

/** Non-negative integers by hashes of 30 bits; several entries may have the same hash. */
export class SlotIndex {
  /** For each place a hash and the number plus one; zero marks a free place. */
  #entries = NOTHING;
  #mask = 0;
  #size = 0;

  /** Number of entries. */
  get size(): number {
    return this.#size;
  }

  /** Adds a number under a hash, beside others with the same hash. */
  add(hash: number, slot: number): void {
    if (this.#size * 2 >= this.#mask) this.#resize(Math.max(PLACES_FIRST, 2 * this.#mask + 2));
    this.#put(hash, slot + 1);
    this.#size++;
  }

  /** Place of the first entry with this hash; -1 when there is none. */
  first(hash: number): number {
    return this.#from(hash & this.#mask, hash);
  }

  /** Place of the next entry with the same hash; -1 when there is none. */
  next(place: number, hash: number): number {
    return this.#from(place + 1 & this.#mask, hash);
  }

  /** The number at a place. */
  at(place: number): number {
    return this.#entries[2 * place + 1]! - 1;
  }

  /** Removes one entry; does nothing when there is none. */
  remove(hash: number, slot: number): void {
    let place = this.first(hash);
    while (place >= 0 && this.at(place) !== slot) place = this.next(place, hash);
    if (place < 0) return;
    this.#close(place);
    this.#size--;
    if (this.#mask >= PLACES_KEPT && this.#size * 16 < this.#mask) {
      this.#resize((this.#mask + 1) / 2);
    }
  }

  /** All numbers, in no particular order. */
  all(): number[] {
    return [...this.#entries.filter((entry, i) => i % 2 === 1 && entry !== 0)].map((n) => n - 1);
  }

  #from(first: number, hash: number): number {
    const entries = this.#entries;
    for (let place = first; entries[2 * place + 1] !== 0; place = place + 1 & this.#mask) {
      if (entries[2 * place] === hash) return place;
    }
    return -1;
  }

  #put(hash: number, entry: number): void {
    const entries = this.#entries;
    let place = hash & this.#mask;
    while (entries[2 * place + 1] !== 0) place = place + 1 & this.#mask;
    entries[2 * place] = hash;
    entries[2 * place + 1] = entry;
  }

  /** Frees a place and moves up the entries that were displaced by it. */
  #close(place: number): void {
    const [entries, mask] = [this.#entries, this.#mask];
    let free = place;
    for (let at = place + 1 & mask; entries[2 * at + 1] !== 0; at = at + 1 & mask) {
      const home = entries[2 * at]! & mask;
      if ((at - home & mask) < (at - free & mask)) continue;
      entries[2 * free] = entries[2 * at]!;
      entries[2 * free + 1] = entries[2 * at + 1]!;
      free = at;
    }
    entries[2 * free + 1] = 0;
  }

  #resize(places: number): void {
    const before = this.#entries;
    this.#entries = new Int32Array(2 * places);
    this.#mask = places - 1;
    for (let i = 0; i < before.length; i += 2) {
      if (before[i + 1] !== 0) this.#put(before[i]!, before[i + 1]!);
    }
  }
}

/** Ids share memory of this size: an array for each was a third of what a function takes. */
const PIECE_BYTES = 1_024;
/** A longer id has memory of its own. */
const SHARED_CHARS_MAX = 128;
/** A `Map` of V8 that grows moves all its entries at once, so there are so many, by the hash. */
const PARTS = 64;

/** An item and its encoded id. */
interface Entry<Item> {
  readonly item: Item;
  /** Memory of ids, of which this one has `bytes` bytes from `at` on. */
  readonly view: DataView;
  readonly at: number;
  readonly bytes: number;
  /** Next item whose id has the same hash. */
  next: Entry<Item> | undefined;
}

/** Items by id, looked up by the UTF-8 bytes of the id without creating a string. */
export class BytesIndex<Item extends { readonly id: string }> {
  readonly #parts = Array.from({ length: PARTS }, () => new Map<number, Entry<Item>>());
  readonly #pieces = new Pieces(PIECE_BYTES, SHARED_CHARS_MAX);
  /** Of the last piece. */
  #view: DataView = new DataView(new ArrayBuffer(0));

  /** Adds an item; it must not be in the index yet. */
  add(item: Item): void {
    const { buffer, byteOffset: at, length: bytes } = this.#pieces.encode(item.id);
    if (this.#view.buffer !== buffer) this.#view = new DataView(buffer);
    const view = this.#view;
    const hash = hashOf(view, at, at + bytes);
    const part = this.#partOf(hash);
    part.set(hash, { item, view, at, bytes, next: part.get(hash) });
  }

  /** Removes an item; does nothing when it is not in the index. */
  remove(item: Item): void {
    const id = viewOf(passingBytesOf(item.id));
    const hash = hashOf(id, 0, id.byteLength);
    const part = this.#partOf(hash);
    let entry = part.get(hash);
    let before: Entry<Item> | undefined;
    while (entry && entry.item !== item) {
      before = entry;
      entry = entry.next;
    }
    if (!entry) return;
    if (before) before.next = entry.next;
    else if (entry.next) part.set(hash, entry.next);
    else part.delete(hash);
  }

  /** The item whose id is in `view` from `start` to `end`. */
  find(view: DataView, start: number, end: number): Item | undefined {
    const hash = hashOf(view, start, end);
    const bytes = end - start;
    let entry = this.#partOf(hash).get(hash);
    while (entry) {
      if (entry.bytes === bytes && bytesEqual(view, start, entry.view, entry.at, bytes)) {
        return entry.item;
      }
      entry = entry.next;
    }
    return undefined;
  }

  #partOf(hash: number): Map<number, Entry<Item>> {
    return this.#parts[hash & PARTS - 1]!;
  }
}
