/**
 * A sample of the engine's metrics as lines of a table.
 *
 * @module
 */
import { count, renderBytes, renderTable } from "./render.ts";

/** What `engine::metrics::sample` answers, as far as it is shown. */
export interface TopSample {
  readonly engine: {
    readonly calls_per_s: number;
    readonly errors_per_s: number;
    readonly p50_ms: number | null;
    readonly p99_ms: number | null;
    readonly in_flight: number;
    readonly held: number;
    readonly lines: number;
    readonly queued_bytes: number;
    readonly event_loop_lag_ms: number;
    readonly memory_bytes: number;
    readonly cpu_percent: number | null;
  };
  readonly functions: readonly {
    readonly function_id: string;
    readonly namespace: string;
    readonly calls_per_s: number;
    readonly errors_per_s: number;
    readonly p50_ms: number | null;
    readonly p99_ms: number | null;
    readonly in_flight: number;
  }[];
  readonly workers: readonly {
    readonly worker_id: string;
    readonly name: string;
    readonly in_flight: number;
    readonly queued_bytes: number;
    readonly memory_bytes: number | null;
    readonly cpu_percent: number | null;
    readonly event_loop_lag_ms: number | null;
  }[];
}

/** Orders and the keys that choose them. */
export const SORT_KEYS = {
  calls: "c",
  errors: "e",
  p99: "p",
  running: "r",
  memory: "m",
  name: "n",
} as const;

/** What comes first: the most of something, or names by letter. */
export type SortKey = keyof typeof SORT_KEYS;

/** How a sample is shown. */
export interface TopOptions {
  readonly sort: SortKey;
  /** Lines there are room for; left out: all. */
  readonly rows?: number;
}

/** Lines that are neither functions nor workers: the engine, empty ones, heads. */
const OTHER_LINES = 5;

/** The whole picture: the engine, its workers, the functions that do something. */
export function topLines(sample: TopSample, { sort, rows = Infinity }: TopOptions): string[] {
  const room = Math.max(2, rows - OTHER_LINES);
  // Workers get a third, and what functions do not need.
  const workerRoom = Math.max(1, Math.floor(room / 3), room - sample.functions.length);
  const workers = shorten(workerRows(sample, sort), workerRoom);
  const functions = shorten(functionRows(sample, sort), Math.max(1, room - workers.length));
  return [
    engineLine(sample.engine),
    "",
    ...renderTable(["WORKER", "RUNNING", "QUEUED", "MEMORY", "CPU", "LAG"], workers),
    "",
    ...renderTable(["FUNCTION", "CALLS/S", "ERRORS/S", "P50", "P99", "RUNNING"], functions),
  ];
}

function engineLine(engine: TopSample["engine"]): string {
  const parts = [
    `${rate(engine.calls_per_s)} calls/s`,
    `${rate(engine.errors_per_s)} errors/s`,
    `p50 ${duration(engine.p50_ms)}`,
    `p99 ${duration(engine.p99_ms)}`,
    `${engine.in_flight} running`,
    ...engine.held > 0 ? [`${engine.held} held`] : [],
    count(engine.lines, "line"),
    ...engine.queued_bytes > 0 ? [`${renderBytes(engine.queued_bytes)} queued`] : [],
    `lag ${duration(engine.event_loop_lag_ms)}`,
    renderBytes(engine.memory_bytes),
    `cpu ${percent(engine.cpu_percent)}`,
  ];
  return parts.join("  ");
}

function workerRows({ workers }: TopSample, sort: SortKey): string[][] {
  const value = (worker: TopSample["workers"][number]): number =>
    sort === "memory" ? worker.memory_bytes ?? -1 : worker.in_flight;
  return workers.toSorted((a, b) =>
    (sort === "name" ? 0 : value(b) - value(a)) || byLetter(a.name, b.name)
  ).map((worker) => [
    worker.name,
    String(worker.in_flight),
    worker.queued_bytes === 0 ? "-" : renderBytes(worker.queued_bytes),
    worker.memory_bytes === null ? "-" : renderBytes(worker.memory_bytes),
    percent(worker.cpu_percent),
    duration(worker.event_loop_lag_ms),
  ]);
}

function functionRows({ functions }: TopSample, sort: SortKey): string[][] {
  const value = (each: TopSample["functions"][number]): number => {
    switch (sort) {
      case "errors":
        return each.errors_per_s;
      case "p99":
        return each.p99_ms ?? -1;
      case "running":
        return each.in_flight;
      default:
        return each.calls_per_s;
    }
  };
  return functions.toSorted((a, b) =>
    (sort === "name" ? 0 : value(b) - value(a)) || byLetter(a.function_id, b.function_id)
  ).map((each) => [
    each.namespace === "default" || each.namespace === ""
      ? each.function_id
      : `${each.function_id} (${each.namespace})`,
    rate(each.calls_per_s),
    rate(each.errors_per_s),
    duration(each.p50_ms),
    duration(each.p99_ms),
    String(each.in_flight),
  ]);
}

/** The first rows, and in the last one how many there are besides. */
function shorten(rows: readonly string[][], room: number): string[][] {
  if (rows.length <= room) return [...rows];
  const shown = rows.slice(0, Math.max(0, room - 1));
  return [...shown, [`… and ${rows.length - shown.length} more`]];
}

function byLetter(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function rate(value: number): string {
  return value === 0 || value >= 100 ? String(Math.round(value)) : value.toFixed(1);
}

function duration(ms: number | null): string {
  if (ms === null) return "-";
  if (ms >= 1_000) return `${(ms / 1_000).toFixed(1)} s`;
  return `${ms >= 100 ? Math.round(ms) : ms.toFixed(1)} ms`;
}

function percent(value: number | null): string {
  return value === null ? "-" : `${Math.round(value)}%`;
}
