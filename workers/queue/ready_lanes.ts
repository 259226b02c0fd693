/**
 * The lanes that may begin a job, the one whose next job is first in order at the top.
 *
 * A lane may be here several times, since its next job changes: an entry counts only while its
 * order is that of the lane's next job. The heap holds lanes, never all jobs.
 *
 * @module
 */
import type { Lane } from "./lane.ts";

interface Entry {
  readonly order: string;
  readonly lane: Lane;
}

/** A heap of lanes by the order of their next job. */
export class ReadyLanes {
  readonly #heap: Entry[] = [];

  /** Entries, those that no longer count among them. */
  get size(): number {
    return this.#heap.length;
  }

  /** Adds a lane that has a job. */
  push(lane: Lane): void {
    const order = lane.head?.order;
    if (order === undefined) return;
    const heap = this.#heap;
    let at = heap.push({ order, lane }) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent]!.order <= heap[at]!.order) break;
      this.#swap(at, parent);
      at = parent;
    }
  }

  /** Takes out the lane whose next job is first; `undefined`: none is left. */
  pop(): Lane | undefined {
    for (let entry = this.#popEntry(); entry; entry = this.#popEntry()) {
      if (entry.lane.head?.order === entry.order) return entry.lane;
    }
    return undefined;
  }

  /** When the first job was enqueued, without taking its lane out. */
  get oldestAtMs(): number | null {
    let oldest: number | null = null;
    for (const { lane } of this.#heap) {
      const at = lane.head?.job.enqueued_at_ms;
      if (at !== undefined && (oldest === null || at < oldest)) oldest = at;
    }
    return oldest;
  }

  #popEntry(): Entry | undefined {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (heap.length === 0 || last === undefined) return top;
    heap[0] = last;
    for (let at = 0;;) {
      const left = 2 * at + 1;
      if (left >= heap.length) return top;
      const right = left + 1;
      const isRight = right < heap.length && heap[right]!.order < heap[left]!.order;
      const child = isRight ? right : left;
      if (heap[at]!.order <= heap[child]!.order) return top;
      this.#swap(at, child);
      at = child;
    }
  }

  #swap(a: number, b: number): void {
    const kept = this.#heap[a]!;
    this.#heap[a] = this.#heap[b]!;
    this.#heap[b] = kept;
  }
}
