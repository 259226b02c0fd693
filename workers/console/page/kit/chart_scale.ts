/**
 * The scales of a chart: ticks of its axes, paths of its lines, and the sample under the pointer.
 *
 * @module
 */

/** Width of a character on an axis, and of the space beside its labels, in pixels. */
const AXIS_CHAR = 6.4;
const AXIS_SPACE = 12;
/** Steps of the axis of time, in milliseconds. */
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600]
  .map((seconds) => seconds * 1_000);

/** What an axis counts: anything, whole things, or bytes, whose steps are powers of two. */
export type Counted = "any" | "whole" | "bytes";

/**
 * The ticks from 0 to `max`, at most `count` steps of 1, 2, 2.5 or 5, for bytes of a power of two.
 */
export function ticksTo(max: number, count: number, counted: Counted = "any"): number[] {
  if (!(max > 0) || !Number.isFinite(max)) return [0];
  const step = stepOf(max / Math.max(1, count), counted);
  return Array.from({ length: Math.floor(max / step * (1 + 1e-9)) + 1 }, (_, i) => {
    return Number((i * step).toPrecision(12));
  });
}

/** The smallest step that is at least `least`. */
function stepOf(least: number, counted: Counted): number {
  if (counted === "bytes") return 2 ** Math.max(0, Math.ceil(Math.log2(least)));
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 2.5, 5, 10].map((digit) => digit * power)
    .find((step) => step >= least * (1 - 1e-9) && (counted !== "whole" || Number.isInteger(step)));
  return step ?? Math.max(1, 10 * power);
}

/** Times at whole steps within a range, at most `count`. */
export function timeTicks(fromMs: number, toMs: number, count: number): number[] {
  const span = toMs - fromMs;
  if (!(span > 0) || count < 1) return [];
  const step = TIME_STEPS.find((step) => span / step <= count) ?? Math.ceil(span / count);
  const first = Math.ceil(fromMs / step) * step;
  return Array.from({ length: Math.floor((toMs - first) / step) + 1 }, (_, i) => first + i * step);
}

/** The width of an axis that has space for its longest label. */
export function axisWidth(labels: readonly string[]): number {
  const longest = labels.reduce((most, label) => Math.max(most, label.length), 0);
  return Math.ceil(longest * AXIS_CHAR + AXIS_SPACE);
}

/** Whether a label around a place of an axis, in pixels, is not cut at either end. */
export function isWithin(at: number, width: number, label: string): boolean {
  const half = label.length * AXIS_CHAR / 2;
  return at >= half && at <= width - half;
}

/** The index of the time that is nearest; -1: there are none. The times rise. */
export function nearestIndex(at_ms: readonly number[], ms: number): number {
  let low = 0, high = at_ms.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at_ms[middle]! < ms) low = middle + 1;
    else high = middle;
  }
  const before = at_ms[low - 1];
  return before !== undefined && ms - before <= at_ms[low]! - ms ? low - 1 : Math.min(low, high);
}

/** SVG paths of a line, and of the area below it. */
export interface LinePaths {
  readonly stroke: string;
  readonly area: string;
}

/** The paths through some points; `null` is a gap. `base`: where the area ends below. */
export function linePaths(
  points: readonly ({ readonly x: number; readonly y: number } | null)[],
  base: number,
): LinePaths {
  let stroke = "", area = "";
  let last: { x: number; y: number } | null = null;
  for (const point of points) {
    if (point !== null) {
      const [x, y] = [round(point.x), round(point.y)];
      stroke += `${last === null ? "M" : "L"}${x} ${y}`;
      area += last === null ? `M${x} ${base}L${x} ${y}` : `L${x} ${y}`;
    } else if (last !== null) area += `L${round(last.x)} ${base}Z`;
    last = point;
  }
  if (last !== null) area += `L${round(last.x)} ${base}Z`;
  return { stroke, area };
}

/** A tenth of a pixel is enough. */
function round(value: number): number {
  return Math.round(value * 10) / 10;
}
