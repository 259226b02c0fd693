/**
 * Many deadlines on one timer.
 *
 * A binary heap ordered by due time in which every item knows its index, so that removing one needs
 * no search. The timer is moved when an earlier deadline is added and otherwise left alone: most
 * calls end long before their deadline, and a timer each would cost more than the call.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";

/** An item with a deadline. Both fields belong to {@linkcode Deadlines} while the item is in it. */
export interface Due {
  /** When it falls due, by the clock's now(). */
  due: number;
  /** Index in the heap; -1 outside of it. */
  place: number;
}

/** A set of items with deadlines. */
export class Deadlines<Item extends Due> {
  readonly #clock: Clock;
  readonly #onDue: (item: Item) => void;
  readonly #heap: Item[] = [];
  /** When the timer fires; `Infinity` without a timer. */
  #armedFor = Infinity;
  #disarm: () => void = () => {};

  /** `onDue` receives each due item once, after its removal. */
  constructor(clock: Clock, onDue: (item: Item) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** Number of pending deadlines. */
  get size(): number {
    return this.#heap.length;
  }

  /** Adds an item that falls due `ms` milliseconds after `now`. */
  add(item: Item, ms: number, now: number = this.#clock.now()): void {
    item.due = now + ms;
    this.#heap.push(item);
    this.#rise(this.#heap.length - 1, item);
    if (item.due < this.#armedFor) this.#arm(item.due);
  }

  /** Removes an item; does nothing when it is not in the heap. */
  remove(item: Item): void {
    const { place } = item;
    if (place < 0) return;
    item.place = -1;
    const last = this.#heap.pop()!;
    if (last === item) return;
    if (place > 0 && this.#heap[(place - 1) >> 1]!.due > last.due) this.#rise(place, last);
    else this.#sink(place, last);
  }

  /** Removes all items and cancels the timer. */
  clear(): void {
    for (const item of this.#heap) item.place = -1;
    this.#heap.length = 0;
    this.#disarm();
    this.#armedFor = Infinity;
  }

  #arm(due: number): void {
    this.#disarm();
    this.#armedFor = due;
    this.#disarm = this.#clock.after(due - this.#clock.now(), () => this.#run());
  }

  #run(): void {
    this.#armedFor = Infinity;
    const now = this.#clock.now();
    for (let first = this.#heap[0]; first && first.due <= now; first = this.#heap[0]) {
      this.remove(first);
      this.#onDue(first);
    }
    const next = this.#heap[0];
    if (next && next.due < this.#armedFor) this.#arm(next.due);
  }

  /** Puts an item at a free index or above it. */
  #rise(from: number, item: Item): void {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#heap[above]!;
      if (parent.due <= item.due) break;
      this.#heap[place] = parent;
      parent.place = place;
      place = above;
    }
    this.#heap[place] = item;
    item.place = place;
  }

  /** Puts an item at a free index or below it. */
  #sink(from: number, item: Item): void {
    const { length } = this.#heap;
    let place = from;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= length) break;
      if (below + 1 < length && this.#heap[below + 1]!.due < this.#heap[below]!.due) below++;
      const child = this.#heap[below]!;
      if (child.due >= item.due) break;
      this.#heap[place] = child;
      child.place = place;
      place = below;
    }
    this.#heap[place] = item;
    item.place = place;
  }
}
