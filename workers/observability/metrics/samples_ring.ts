/**
 * The last minutes of numbers, second by second, in memory of a fixed size.
 *
 * All tracks share one ring of times, so that their values line up. A track holds a few named
 * columns; what nobody wrote in a second is unknown, not nothing.
 *
 * @module
 */
import { METRICS_SAMPLES_MAX } from "../../limits.ts";
import { round } from "./samples_quantile.ts";

/** Values by name; `null` is unknown. */
export type Values = Readonly<Record<string, number | null>>;

/** Values by name over time, the oldest first. */
export type Series = Record<string, (number | null)[]>;

/** The times. */
export class SampleTimes {
  readonly #at = new Float64Array(METRICS_SAMPLES_MAX);
  #count = 0;

  /** Samples that were ever begun. */
  get count(): number {
    return this.#count;
  }

  /** Begins a sample: what is written from now on belongs to it. */
  begin(at_ms: number): void {
    this.#at[this.#count++ % METRICS_SAMPLES_MAX] = at_ms;
  }

  /** Numbers of the last samples, the oldest first. */
  last(samples: number): number[] {
    const length = Math.min(samples, this.#count, METRICS_SAMPLES_MAX);
    return Array.from({ length }, (_, i) => this.#count - length + i);
  }

  /** When a sample that is still there was taken. */
  at(sample: number): number {
    return this.#at[sample % METRICS_SAMPLES_MAX]!;
  }
}

/** Columns of one thing, such as a function. */
export class Track<Name extends string> {
  readonly #columns: ReadonlyMap<Name, Float32Array>;
  /** Sample in which each slot was written; -1: never. */
  readonly #written = new Int32Array(METRICS_SAMPLES_MAX).fill(-1);

  /** Knows nothing yet. */
  constructor(names: readonly Name[]) {
    this.#columns = new Map(names.map((name) => [name, new Float32Array(METRICS_SAMPLES_MAX)]));
  }

  /** Writes all columns of a sample. */
  write(sample: number, values: Readonly<Record<Name, number | null>>): void {
    const slot = sample % METRICS_SAMPLES_MAX;
    this.#written[slot] = sample;
    for (const [name, column] of this.#columns) column[slot] = values[name] ?? NaN;
  }

  /** All columns for some samples. */
  read(samples: readonly number[]): Record<Name, (number | null)[]> {
    const columns = [...this.#columns].map(([name, column]) => {
      const values = samples.map((sample) => {
        const slot = sample % METRICS_SAMPLES_MAX;
        const value = this.#written[slot] === sample ? column[slot]! : NaN;
        return Number.isNaN(value) ? null : round(value);
      });
      return [name, values] as const;
    });
    return Object.fromEntries(columns) as Record<Name, (number | null)[]>;
  }

  /** All that is known of a column in some samples, added up. */
  sum(name: Name, samples: readonly number[]): number {
    const column = this.#columns.get(name)!;
    let sum = 0;
    for (const sample of samples) {
      const slot = sample % METRICS_SAMPLES_MAX;
      if (this.#written[slot] === sample) sum += column[slot]! || 0;
    }
    return sum;
  }
}

/** A bounded number of tracks; the one that was busy longest ago makes room. */
export class Tracks<Name extends string, Of> {
  readonly #names: readonly Name[];
  readonly #most: number;
  readonly #tracks = new Map<string, { of: Of; busyAt: number; readonly track: Track<Name> }>();

  /** Holds `most` at most. */
  constructor(names: readonly Name[], most: number) {
    this.#names = names;
    this.#most = most;
  }

  /**
   * Writes a sample of all tracks: of those that are given what is given, of the others `quiet`,
   * or nothing when that is left out. Those that were not busy for as long as samples are kept go.
   */
  write(
    sample: number,
    given: ReadonlyMap<string, { of: Of; values: Readonly<Record<Name, number | null>> }>,
    quiet?: Readonly<Record<Name, number | null>>,
  ): void {
    for (const [key, entry] of this.#tracks) {
      const found = given.get(key);
      if (found) {
        entry.of = found.of;
        entry.busyAt = sample;
        entry.track.write(sample, found.values);
      } else if (sample - entry.busyAt >= METRICS_SAMPLES_MAX) this.#tracks.delete(key);
      else if (quiet) entry.track.write(sample, quiet);
    }
    for (const [key, { of, values }] of given) {
      if (this.#tracks.has(key)) continue;
      // All are busy, so there is none for the rest either: of 10,000 workers, searching for each
      // took a tenth of a core.
      if (!this.#makeRoom(sample)) break;
      const track = new Track(this.#names);
      track.write(sample, values);
      this.#tracks.set(key, { of, busyAt: sample, track });
    }
  }

  /** Every track and what it is of, those that were busy last first. */
  all(): { readonly key: string; readonly of: Of; readonly track: Track<Name> }[] {
    return [...this.#tracks].map(([key, entry]) => ({ key, ...entry }))
      .sort((a, b) => b.busyAt - a.busyAt);
  }

  /** `false` when all are busy now. */
  #makeRoom(sample: number): boolean {
    if (this.#tracks.size < this.#most) return true;
    let oldest: string | undefined;
    let oldestAt = sample;
    for (const [key, { busyAt }] of this.#tracks) {
      if (busyAt < oldestAt) [oldest, oldestAt] = [key, busyAt];
    }
    return oldest !== undefined && this.#tracks.delete(oldest);
  }
}
