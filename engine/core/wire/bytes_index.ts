/**
 * Small numbers by hash, several of one hash included.
 *
 * A table of its own, with open addressing: a `Map` whose entries come and go with every call took
 * an eighth of the time that the core spends on one. It grows with what is in it, and what a rush
 * left is let go of again.
 *
 * @module
 */
import { bytesOf, hashOf, isSame, viewOf } from "./bytes.ts";

/** Places of the first table; there are always twice as many as numbers in it. */
const PLACES_FIRST = 8;
/** A table of at most this size is not made smaller: that would be done and undone all the time. */
const PLACES_KEPT = 1_024;
/** What has nothing in it shares this one, which is never written to. */
const NOTHING = new Int32Array(2);

/** Numbers from zero on, by hashes of 30 bits. */
export class SlotIndex {
  /** At each place a hash and the number behind it, plus one; zero: nothing is there. */
  #entries = NOTHING;
  #mask = 0;
  #size = 0;

  /** How many are in it. */
  get size(): number {
    return this.#size;
  }

  /** Puts one in; it may have the hash of others. */
  add(hash: number, slot: number): void {
    if (this.#size * 2 >= this.#mask) this.#resize(Math.max(PLACES_FIRST, 2 * this.#mask + 2));
    this.#put(hash, slot + 1);
    this.#size++;
  }

  /** Where the first one of this hash is; -1 when there is none. */
  first(hash: number): number {
    return this.#from(hash & this.#mask, hash);
  }

  /** Where the next one of the hash is behind such a place. */
  next(place: number, hash: number): number {
    return this.#from(place + 1 & this.#mask, hash);
  }

  /** The number at such a place. */
  at(place: number): number {
    return this.#entries[2 * place + 1]! - 1;
  }

  /** Takes one out; nothing happens when it is not in. */
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

  /** All of them, in no order. */
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

  /** Empties a place, and moves up what only stands behind it because it was taken. */
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

/** A function's entry. */
interface Entry<Offer> {
  readonly offer: Offer;
  readonly id: DataView;
  /** Another one whose id has the same hash. */
  next: Entry<Offer> | undefined;
}

/** Functions by the bytes of their ids. */
export class OffersByBytes<Offer extends { readonly id: string }> {
  readonly #entries = new Map<number, Entry<Offer>>();

  /** Adds one that is not in it. */
  add(offer: Offer): void {
    const id = viewOf(bytesOf(offer.id));
    const hash = hashOf(id, 0, id.byteLength);
    this.#entries.set(hash, { offer, id, next: this.#entries.get(hash) });
  }

  /** Takes one out that is in it. */
  remove(offer: Offer): void {
    const id = viewOf(bytesOf(offer.id));
    const hash = hashOf(id, 0, id.byteLength);
    let entry = this.#entries.get(hash);
    let before: Entry<Offer> | undefined;
    while (entry && entry.offer !== offer) {
      before = entry;
      entry = entry.next;
    }
    if (!entry) return;
    if (before) before.next = entry.next;
    else if (entry.next) this.#entries.set(hash, entry.next);
    else this.#entries.delete(hash);
  }

  /** The one whose id stands in `view` from `start` to `end`. */
  find(view: DataView, start: number, end: number): Offer | undefined {
    let entry = this.#entries.get(hashOf(view, start, end));
    const bytes = end - start;
    while (entry) {
      if (entry.id.byteLength === bytes && isSame(view, start, entry.id, 0, bytes)) {
        return entry.offer;
      }
      entry = entry.next;
    }
    return undefined;
  }
}
