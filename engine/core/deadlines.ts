/**
 * Many deadlines on one task of the clock.
 *
 * A heap ordered by due time in which every item knows its place, so that taking one out costs no
 * search. The task is moved forward when an earlier deadline comes and otherwise left where it
 * is: most calls end long before their deadline, and a timer for each would cost more than the
 * call.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";

/** Something with a deadline. Both fields belong to {@linkcode Deadlines} while it is in there. */
export interface Due {
  /** When it falls due, on the clock's now(). */
  due: number;
  /** Its place in the heap; -1 when it is in none. */
  place: number;
}

/** A set of things that fall due. */
export class Deadlines<Item extends Due> {
  readonly #clock: Clock;
  readonly #onDue: (item: Item) => void;
  readonly #heap: Item[] = [];
  /** When the task on the clock runs; `Infinity` when there is none. */
  #armedFor = Infinity;
  #disarm: () => void = () => {};

  /** Makes an empty one; `onDue` gets each item once, after it was taken out. */
  constructor(clock: Clock, onDue: (item: Item) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** Deadlines that have not passed. */
  get size(): number {
    return this.#heap.length;
  }

  /** Puts an item in, due in `ms` from `now`, which is the clock's. */
  add(item: Item, ms: number, now: number = this.#clock.now()): void {
    item.due = now + ms;
    this.#heap.push(item);
    this.#rise(this.#heap.length - 1, item);
    if (item.due < this.#armedFor) this.#arm(item.due);
  }

  /** Takes an item out; nothing happens when it is not in. */
  remove(item: Item): void {
    const { place } = item;
    if (place < 0) return;
    item.place = -1;
    const last = this.#heap.pop()!;
    if (last === item) return;
    if (place > 0 && this.#heap[(place - 1) >> 1]!.due > last.due) this.#rise(place, last);
    else this.#sink(place, last);
  }

  /** Forgets everything and leaves nothing on the clock. */
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

  /** Puts an item at a free place or above it. */
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

  /** Puts an item at a free place or below it. */
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
