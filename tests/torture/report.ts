/**
 * What a scenario found: rows of a table, each with the bounds that were broken.
 *
 * @module
 */

/** What the canary measured since it was reset. */
export interface CanaryReport {
  /** Calls that ended. */
  readonly calls: number;
  /** Calls that have not ended; their waits so far are in the figures. */
  readonly waiting: number;
  readonly failed: number;
  /** How a connection of the canary ended, if one did. */
  readonly end: string | null;
  readonly seconds: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly max_ms: number;
  /** The same without the time that the machine gave to other programs. */
  readonly net_p99_ms: number;
  readonly net_max_ms: number;
  /** Largest resident memory of the engine, and the present one. */
  readonly peak_mib: number;
  readonly rss_mib: number;
}

/** One line of the table. */
export interface Row {
  readonly scenario: string;
  /** What was done, with counts. */
  readonly done: string;
  /** Bounds that were broken, each with its figure; none: the row passed. */
  readonly broken: readonly string[];
  /** Why it could not be done here. */
  readonly skipped?: string;
  readonly canary?: CanaryReport;
  readonly seconds: number;
}

/** A value of a sorted list below which this share of it lies; 0 of an empty one. */
export function quantile(sorted: Float64Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}

/** A row as a line of text. */
export function lineOf(row: Row): string {
  const { canary } = row;
  const wait = canary
    ? `${ms(canary.max_ms)} (net ${ms(canary.net_max_ms)}, p99 ${ms(canary.net_p99_ms)})`
    : "–";
  const memory = canary ? `${canary.peak_mib.toFixed(0)} MiB` : "–";
  const cells = [
    row.scenario.padEnd(34),
    resultOf(row).padEnd(7),
    wait.padEnd(40),
    memory.padStart(9),
    `${row.seconds.toFixed(1)} s`.padStart(8),
    ` ${row.done}`,
  ];
  const notes = row.skipped === undefined ? row.broken : [row.skipped];
  return [cells.join(" "), ...notes.map((note) => `    ${note}`)].join("\n");
}

/** The head of the table. */
export function headOf(): string {
  const wait = "worst canary wait".padEnd(40);
  return `${"scenario".padEnd(34)} result  ${wait} mem. peak     time  what was done`;
}

function resultOf({ broken, skipped }: Row): string {
  if (skipped !== undefined) return "skipped";
  return broken.length === 0 ? "ok" : "BROKEN";
}

function ms(value: number): string {
  return value < 10 ? `${value.toFixed(1)} ms` : `${value.toFixed(0)} ms`;
}

/** Slope of the straight line that fits these points best; 0 of fewer than two. */
export function slopeOf(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (pick: 0 | 1): number =>
    points.reduce((sum, point) => sum + point[pick], 0) / points.length;
  const [mx, my] = [mean(0), mean(1)];
  const spread = points.reduce((sum, [x]) => sum + (x - mx) ** 2, 0);
  return spread === 0 ? 0 : points.reduce((sum, [x, y]) => sum + (x - mx) * (y - my), 0) / spread;
}
