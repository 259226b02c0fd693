/**
 * What both sections of trios do: measure several ways in turn, and say which process is busiest.
 *
 * @module
 */
import type { Bench } from "../bench.ts";
import { count, duration, median, size, table } from "../figures.ts";
import type { LoadOrder } from "../sdk_peer.ts";
import type { Trio, TrioFigures } from "../trio.ts";

/** How much is asked at once. */
export type Load = Omit<LoadOrder, "seconds">;

/** The way a load is written in tables and names. */
export function nameOf({ bytes, window }: Load): string {
  return `${size(bytes)}, ${window.toLocaleString("en-US")} in flight`;
}

/** Measures all of them with one load, in turn. */
export function measureTrios<Name extends string>(
  bench: Bench,
  load: Load,
  trios: Readonly<Record<Name, Trio>>,
): Promise<Record<Name, TrioFigures[]>> {
  const { seconds } = bench.options;
  const tasks = Object.entries<Trio>(trios)
    .map(([name, trio]) => [name, () => trio.measure({ ...load, seconds })]);
  return bench.inTurn(nameOf(load), Object.fromEntries(tasks));
}

/** A table of rows that {@linkcode trioRows} made. */
export function trioTable(what: string, rows: readonly (readonly string[])[]): string {
  const cpu = "CPU µs per call: requester / broker / responder";
  return table([what, "calls/s", "p50", "p99", cpu, "of all", "busiest process"], rows);
}

/** A row for each way. */
export function trioRows(
  load: Load,
  found: Readonly<Record<string, readonly TrioFigures[]>>,
): string[][] {
  return Object.entries(found).map(([name, rounds]) => {
    const of = (figure: keyof TrioFigures) => median(rounds.map((round) => round[figure]));
    const cpu = { requester: of("requester_us"), broker: of("broker_us") };
    const all = { ...cpu, responder: of("responder_us") };
    return [
      `${nameOf(load)}, ${name}`,
      count(of("rate")),
      duration(of("p50_us")),
      duration(of("p99_us")),
      Object.values(all).map((us) => us === 0 ? "–" : us.toFixed(1)).join(" / "),
      of("total_us").toFixed(0),
      busiest(all, of("rate")),
    ];
  });
}

/** Who used most, and how much of one core. */
function busiest(cpu: Readonly<Record<string, number>>, rate: number): string {
  const [name, us] = Object.entries(cpu).toSorted(([, a], [, b]) => b - a)[0]!;
  return `${name} ${Math.round(us * rate / 1e4)} %`;
}
