/**
 * Measurements of many things over the same stretch of time, one sample after the other.
 *
 * A thing that a sample does not name was idle then, so it gets what idle means (0 calls, no
 * latency). A thing that was idle for the whole window is forgotten: memory is bounded by the
 * window and by how many things had something to do in it.
 *
 * @module
 */

/** What one thing measured in one sample; fields left out are as when idle. */
export type Measured<Field extends string> = Readonly<Partial<Record<Field, number | null>>>;

/** Samples of things by key. `Field` names what is measured of each. */
export class SampleWindow<Field extends string> {
  readonly #capacity: number;
  readonly #idle: Readonly<Record<Field, number | null>>;
  readonly #at: Float64Array;
  readonly #rows = new Map<string, Row<Field>>();
  /** Samples so far; the newest has the number below. */
  #count = 0;

  /** `capacity`: samples kept; `idle`: what a thing measures when nothing is said of it. */
  constructor(capacity: number, idle: Readonly<Record<Field, number | null>>) {
    this.#capacity = capacity;
    this.#idle = idle;
    this.#at = new Float64Array(capacity);
  }

  /** Times of the samples in milliseconds since 1970, the oldest first. */
  get at_ms(): number[] {
    return this.#read((slot) => this.#at[slot]!);
  }

  /** Keys of the things that were not idle all the time. */
  get keys(): string[] {
    return [...this.#rows.keys()];
  }

  /** One more sample; the oldest makes room. One that is not newer than the last is skipped. */
  add(at_ms: number, measured: Iterable<readonly [key: string, values: Measured<Field>]>): boolean {
    if (this.#count > 0 && at_ms <= this.#at[this.#slotOf(this.#count - 1)]!) return false;
    const number = this.#count++;
    const slot = this.#slotOf(number);
    this.#at[slot] = at_ms;
    for (const row of this.#rows.values()) this.#write(row, slot, {} as Measured<Field>);
    for (const [key, values] of measured) {
      let row = this.#rows.get(key);
      if (!row) this.#rows.set(key, row = this.#makeRow());
      row.seen = number;
      this.#write(row, slot, values);
    }
    for (const [key, { seen }] of this.#rows) {
      if (number - seen >= this.#capacity) this.#rows.delete(key);
    }
    return true;
  }

  /** What a thing measured over time, the oldest first; `null`: not measured. */
  series(key: string, field: Field, newest = this.#capacity): (number | null)[] {
    const column = this.#rows.get(key)?.columns[field];
    const idle = this.#idle[field];
    return this.#read((slot) => {
      if (!column) return idle;
      const value = column[slot]!;
      return Number.isNaN(value) ? null : value;
    }, newest);
  }

  /** What a thing measured last; `null`: not measured, or nothing is known. */
  latest(key: string, field: Field): number | null {
    if (this.#count === 0) return null;
    return this.series(key, field, 1)[0] ?? null;
  }

  /** What a thing measured when it last measured anything; `null`: not within the window. */
  last(key: string, field: Field): number | null {
    const column = this.#rows.get(key)?.columns[field];
    const oldest = Math.max(0, this.#count - this.#capacity);
    for (let number = this.#count - 1; column && number >= oldest; number--) {
      const value = column[this.#slotOf(number)]!;
      if (!Number.isNaN(value)) return value;
    }
    return null;
  }

  /** Whether a thing was not idle all the time. */
  has(key: string): boolean {
    return this.#rows.has(key);
  }

  /** Keys of the things with the largest sum of a measure, the largest first. */
  largest(field: Field, count: number): string[] {
    const sums = this.keys.map((key) => ({
      key,
      sum: this.series(key, field).reduce<number>((sum, value) => sum + (value ?? 0), 0),
    }));
    sums.sort((a, b) => b.sum - a.sum || (a.key < b.key ? -1 : 1));
    return sums.slice(0, count).map(({ key }) => key);
  }

  /** Forgets everything. */
  clear(): void {
    this.#rows.clear();
    this.#count = 0;
  }

  #slotOf(number: number): number {
    return number % this.#capacity;
  }

  #read<T>(at: (slot: number) => T, newest = this.#capacity): T[] {
    const length = Math.min(this.#count, this.#capacity, newest);
    const first = this.#count - length;
    return Array.from({ length }, (_, i) => at(this.#slotOf(first + i)));
  }

  #write(row: Row<Field>, slot: number, values: Measured<Field>): void {
    for (const field of Object.keys(this.#idle) as Field[]) {
      const value = values[field] === undefined ? this.#idle[field] : values[field];
      row.columns[field][slot] = value ?? NaN;
    }
  }

  #makeRow(): Row<Field> {
    const columns = {} as Record<Field, Float32Array>;
    for (const field of Object.keys(this.#idle) as Field[]) {
      columns[field] = new Float32Array(this.#capacity).fill(this.#idle[field] ?? NaN);
    }
    return { columns, seen: 0 };
  }
}

interface Row<Field extends string> {
  readonly columns: Readonly<Record<Field, Float32Array>>;
  /** Number of the sample that named it last. */
  seen: number;
}
