/**
 * Finds a function by its id as it stands in a frame, without making a string of it.
 *
 * A plain table of the functions of the default namespace, which `FunctionTable` keeps up to date.
 *
 * @module
 */
import { bytesOf, hashOf, isSame, viewOf } from "./text_bytes.ts";

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
