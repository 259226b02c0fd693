/**
 * How many jobs one area of a queue holds.
 *
 * After a start the jobs that are there are counted page by page, while others come and go. The
 * count stands at a position: what comes or goes before it changes the number, what does so behind
 * it is seen, or not, when the count gets there. Reading a page takes time; what came and went
 * behind the position meanwhile is set against the page.
 *
 * @module
 */
import { type Area, positionOf, type StoredJob } from "./job_store.ts";

/** Positions that one page of a count has. */
export const COUNTED_MAX = 500;

/** The number of jobs in one area. */
export class AreaCount {
  #count = 0;
  /** Counted up to here; `undefined`: all. */
  #position: string | undefined = "";
  /** Changes behind the position while a page is read: `true` came, `false` went. */
  #changes: Map<string, boolean> | undefined;

  /** The number, too small while {@linkcode isCounting}. */
  get value(): number {
    return Math.max(0, this.#count);
  }

  /** Some jobs are not counted yet. */
  get isCounting(): boolean {
    return this.#position !== undefined;
  }

  /** A job was added; to be called when it is on disk. */
  added(position: string): void {
    if (this.#isCounted(position)) this.#count++;
    else this.#changes?.set(position, true);
  }

  /** A job was removed; to be called when it is gone from the disk. */
  removed(position: string): void {
    if (this.#isCounted(position)) this.#count--;
    else this.#changes?.set(position, false);
  }

  /** Counts one page; `read` gets the positions behind one, at most {@linkcode COUNTED_MAX}. */
  async countPage(
    read: (limit: number, after: string) => Promise<readonly string[]>,
  ): Promise<void> {
    if (this.#position === undefined) return;
    this.#changes = new Map();
    try {
      const page = await read(COUNTED_MAX, this.#position);
      const end = page.length < COUNTED_MAX ? undefined : page.at(-1)!;
      const there = new Set(page);
      for (const [position, isThere] of this.#changes) {
        if (end !== undefined && position > end) continue;
        if (isThere) there.add(position);
        else there.delete(position);
      }
      this.#count += there.size;
      this.#position = end;
    } finally {
      this.#changes = undefined;
    }
  }

  #isCounted(position: string): boolean {
    return this.#position === undefined || position <= this.#position;
  }
}

/** The numbers of jobs in all areas of a queue. */
export class AreaCounts {
  readonly of: Readonly<Record<Area, AreaCount>> = {
    queue_ready: new AreaCount(),
    queue_later: new AreaCount(),
    queue_dead: new AreaCount(),
  };

  /** A job is on disk in an area. Its position matters to a count that is under way alone. */
  came(area: Area, stored: StoredJob): void {
    const count = this.of[area];
    count.added(count.isCounting ? positionOf(area, stored) : "");
  }

  /** A job is gone from an area, on disk. */
  went(area: Area, stored: StoredJob): void {
    const count = this.of[area];
    count.removed(count.isCounting ? positionOf(area, stored) : "");
  }
}
