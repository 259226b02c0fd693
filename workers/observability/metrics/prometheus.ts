/**
 * Metrics as the text that Prometheus reads (version 0.0.4).
 *
 * Texts that come from workers stand in labels only, escaped. Names with an underscore behind
 * `engine` are ours; `process_*` are those every Prometheus client has.
 *
 * @module
 */

/** The type that goes with the text. */
export const PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Labels of one line. */
export type Labels = Readonly<Record<string, string>>;

/** Writes families, one after another. */
export class PrometheusText {
  readonly #parts: string[] = [];

  /** A family of plain values; those that are `null` are left out, an empty family too. */
  add(
    name: string,
    kind: "counter" | "gauge",
    help: string,
    samples: Iterable<readonly [labels: Labels, value: number | null]>,
  ): void {
    let isFirst = true;
    for (const [labels, value] of samples) {
      if (value === null) continue;
      if (isFirst) this.#head(name, kind, help);
      isFirst = false;
      this.#parts.push(`${name}${labelText(labels)} ${numberText(value)}\n`);
    }
  }

  /** A family of histograms; counts are per bucket, one per bound and one beyond. */
  addHistograms(name: string, help: string, histograms: Iterable<Histogram>): void {
    let isFirst = true;
    for (const { labels, bounds, counts, sum } of histograms) {
      if (isFirst) this.#head(name, "histogram", help);
      isFirst = false;
      const inner = labelText(labels).slice(1, -1);
      const prefix = `${name}_bucket{${inner === "" ? "" : `${inner},`}le="`;
      let below = 0;
      for (const [i, bound] of bounds.entries()) {
        below += counts[i]!;
        this.#parts.push(`${prefix}${numberText(bound)}"} ${below}\n`);
      }
      below += counts[bounds.length]!;
      this.#parts.push(`${prefix}+Inf"} ${below}\n`);
      this.#parts.push(`${name}_sum${labelText(labels)} ${numberText(sum)}\n`);
      this.#parts.push(`${name}_count${labelText(labels)} ${below}\n`);
    }
  }

  /** All of it. */
  get text(): string {
    return this.#parts.join("");
  }

  #head(name: string, kind: string, help: string): void {
    const line = help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
    this.#parts.push(`# HELP ${name} ${line}\n# TYPE ${name} ${kind}\n`);
  }
}

/** One histogram. */
export interface Histogram {
  readonly labels: Labels;
  /** Upper bounds in the unit of the family, rising. */
  readonly bounds: readonly number[];
  readonly counts: ArrayLike<number>;
  readonly sum: number;
}

/**
 * Fewer buckets: of bounds only those that are at least twice the one before, and what was counted
 * up to each. Nothing is guessed, since only whole buckets are put together.
 */
export class CoarseBuckets {
  /** Kept bounds, in seconds. */
  readonly bounds: readonly number[];
  /** Of each original bucket, which one it is in. */
  readonly #to: readonly number[];

  /** From bounds in milliseconds. */
  constructor(bounds_ms: readonly number[]) {
    const kept: number[] = [];
    // From above, so that the last bound stays and nothing below it is beyond.
    for (const bound of [...bounds_ms].reverse()) {
      const above = kept.at(-1);
      if (above === undefined || bound * 1.99 <= above) kept.push(bound);
    }
    kept.reverse();
    this.bounds = kept.map((bound) => Number((bound / 1_000).toPrecision(6)));
    this.#to = [...bounds_ms, Infinity].map((bound) => {
      const at = kept.findIndex((keptBound) => bound <= keptBound);
      return at < 0 ? kept.length : at;
    });
  }

  /** Counts for {@linkcode CoarseBuckets.bounds} and beyond. */
  countsOf(counts: ArrayLike<number>): Float64Array {
    const coarse = new Float64Array(this.bounds.length + 1);
    for (let i = 0; i < counts.length; i++) coarse[this.#to[i]!]! += counts[i]!;
    return coarse;
  }
}

function labelText(labels: Labels): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}

/** As the format wants it; characters that are no text become a mark. */
function escaped(value: string): string {
  return value.toWellFormed().replaceAll("\\", "\\\\").replaceAll('"', '\\"')
    .replaceAll("\n", "\\n");
}

function numberText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  return String(value);
}
