/**
 * What a built-in provider holds of equal triggers: which delivery a further one joins.
 *
 * Usually there is one delivery, which all workers with an equal trigger share. A worker that
 * registers equal triggers several times gets a delivery for each; with thousands of them nothing
 * here may search all.
 *
 * @module
 */
import type { Peer } from "./peer.ts";

/** A delivery, as its equals see it. */
export interface Shareable {
  readonly members: ReadonlyMap<Peer, unknown>;
  readonly isRefused: boolean;
}

/** The deliveries of equal triggers, in no particular order. */
export class EqualDeliveries<Delivery extends Shareable> {
  readonly #deliveries: Delivery[] = [];
  readonly #places = new Map<Delivery, number>();
  /** In how many of them each worker has a trigger. */
  readonly #counts = new Map<Peer, number>();

  /** Number of deliveries. */
  get size(): number {
    return this.#deliveries.length;
  }

  /** Adds a delivery without members; {@linkcode EqualDeliveries.joined} follows for each. */
  add(delivery: Delivery): void {
    this.#places.set(delivery, this.#deliveries.push(delivery) - 1);
  }

  /** Removes a delivery that has no members any more. */
  remove(delivery: Delivery): void {
    const place = this.#places.get(delivery);
    if (place === undefined) return;
    this.#places.delete(delivery);
    const last = this.#deliveries.pop()!;
    if (last === delivery) return;
    this.#deliveries[place] = last;
    this.#places.set(last, place);
  }

  /** A worker has one more trigger among the members. */
  joined(owner: Peer): void {
    this.#counts.set(owner, (this.#counts.get(owner) ?? 0) + 1);
  }

  /** A worker has one less. */
  left(owner: Peer): void {
    const count = this.#counts.get(owner)! - 1;
    if (count > 0) this.#counts.set(owner, count);
    else this.#counts.delete(owner);
  }

  /** A delivery that a trigger of this worker may join. */
  find(owner: Peer): Delivery | undefined {
    const { length } = this.#deliveries;
    const count = this.#counts.get(owner) ?? 0;
    if (count === length) return undefined;
    // Workers register in the same order, so the first ones are those that it has joined.
    for (let i = 0; i < length; i++) {
      const delivery = this.#deliveries[(count + i) % length]!;
      if (!delivery.isRefused && !delivery.members.has(owner)) return delivery;
    }
    return undefined;
  }
}
