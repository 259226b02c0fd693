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
  readonly members: { has(owner: Peer): boolean; keys(): Iterable<Peer> };
  readonly isRefused: boolean;
}

/** The deliveries of equal triggers, in no particular order. */
export class EqualDeliveries<Delivery extends Shareable> {
  /** The only one; thousands of triggers are equal to no other. */
  #only: Delivery | undefined;
  /** All of them, once there were two. */
  #several: SeveralDeliveries<Delivery> | undefined;

  /** Number of deliveries. */
  get size(): number {
    if (this.#several !== undefined) return this.#several.size;
    return this.#only === undefined ? 0 : 1;
  }

  /** Adds a delivery without members; {@linkcode EqualDeliveries.joined} follows for each. */
  add(delivery: Delivery): void {
    if (this.#several === undefined) {
      if (this.#only === undefined) return void (this.#only = delivery);
      this.#several = new SeveralDeliveries(this.#only);
      this.#only = undefined;
    }
    this.#several.add(delivery);
  }

  /** Removes a delivery that has no members any more. */
  remove(delivery: Delivery): void {
    if (this.#only === delivery) this.#only = undefined;
    this.#several?.remove(delivery);
  }

  /** A worker has one more trigger among the members. */
  joined(owner: Peer): void {
    this.#several?.joined(owner);
  }

  /** A worker has one less. */
  left(owner: Peer): void {
    this.#several?.left(owner);
  }

  /** A delivery that a trigger of this worker may join. */
  find(owner: Peer): Delivery | undefined {
    if (this.#several !== undefined) return this.#several.find(owner);
    return this.#only !== undefined && mayJoin(this.#only, owner) ? this.#only : undefined;
  }
}

/** Two equal deliveries or more, or what is left of them. */
class SeveralDeliveries<Delivery extends Shareable> {
  readonly #deliveries: Delivery[];
  readonly #places: Map<Delivery, number>;
  /** In how many of them each worker has a trigger. */
  readonly #counts: Map<Peer, number>;

  constructor(first: Delivery) {
    this.#deliveries = [first];
    this.#places = new Map([[first, 0]]);
    this.#counts = new Map(Array.from(first.members.keys(), (owner) => [owner, 1]));
  }

  get size(): number {
    return this.#deliveries.length;
  }

  add(delivery: Delivery): void {
    this.#places.set(delivery, this.#deliveries.push(delivery) - 1);
  }

  remove(delivery: Delivery): void {
    const place = this.#places.get(delivery);
    if (place === undefined) return;
    this.#places.delete(delivery);
    const last = this.#deliveries.pop()!;
    if (last === delivery) return;
    this.#deliveries[place] = last;
    this.#places.set(last, place);
  }

  joined(owner: Peer): void {
    this.#counts.set(owner, (this.#counts.get(owner) ?? 0) + 1);
  }

  left(owner: Peer): void {
    const count = this.#counts.get(owner)! - 1;
    if (count > 0) this.#counts.set(owner, count);
    else this.#counts.delete(owner);
  }

  find(owner: Peer): Delivery | undefined {
    const { length } = this.#deliveries;
    const count = this.#counts.get(owner) ?? 0;
    if (count === length) return undefined;
    // Workers register in the same order, so the first ones are those that it has joined.
    for (let i = 0; i < length; i++) {
      const delivery = this.#deliveries[(count + i) % length]!;
      if (mayJoin(delivery, owner)) return delivery;
    }
    return undefined;
  }
}

function mayJoin({ isRefused, members }: Shareable, owner: Peer): boolean {
  return !isRefused && !members.has(owner);
}
