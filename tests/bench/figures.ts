/**
 * Figures of several rounds, put together and written down.
 *
 * @module
 */
import type { Figures } from "./load.ts";

/** The middle of some numbers. */
export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Each figure's own median. */
export function medians(rounds: readonly Figures[]): Figures {
  const of = (name: keyof Figures) => median(rounds.map((round) => round[name]));
  const [rate, p50_us, p99_us] = [of("rate"), of("p50_us"), of("p99_us")];
  return { rate, p50_us, p99_us, cpu_s: of("cpu_s"), rss_mb: of("rss_mb") };
}

/** The median of what each round says by itself: what disturbs both sides alike falls out. */
export function ratio<Name extends string>(
  over: readonly Readonly<Record<Name, number>>[],
  under: readonly Readonly<Record<Name, number>>[],
  of: Name,
): number {
  return median(over.map((figures, round) => figures[of] / under[round]![of]));
}

/** A table in Markdown; numbers stand at the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, column) => column === 0 ? "---" : "---:");
  return [line(head), line(rule), ...rows.map(line)].join("\n");
}

/** A rate as people read it, such as `45,300`. */
export function count(rate: number): string {
  const digits = rate >= 1_000 ? Math.round(rate / 100) * 100 : Math.round(rate);
  return digits.toLocaleString("en-US");
}

/** Microseconds as people read them, such as `850 µs` or `1.2 ms`. */
export function duration(us: number): string {
  return us >= 1_000 ? `${(us / 1_000).toFixed(1)} ms` : `${Math.round(us)} µs`;
}

/** A ratio as a share, such as `83 %`. */
export function percent(value: number): string {
  return `${Math.round(value * 100)} %`;
}

/** A size as people read it, such as `100 B`, `10 KiB` or `1 MiB`. */
export function size(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`;
  return bytes < 2 ** 20 ? `${bytes / 1_024} KiB` : `${bytes / 2 ** 20} MiB`;
}
