/**
 * Values as the path of a small line.
 *
 * @module
 */

/** Points of a sparkline. */
export const SPARK_POINTS_MAX = 120;

/** Paths of SVG: the line, and the area under it. */
export interface SparkPaths {
  readonly stroke: string;
  readonly area: string;
}

/** The newest values spread over the width, from the bottom (0) to the top (`max`). */
export function sparkPath(
  values: readonly (number | null)[],
  box: { readonly width: number; readonly height: number; readonly max?: number | undefined },
): SparkPaths {
  const shown = values.slice(-SPARK_POINTS_MAX);
  const top = box.max ?? shown.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
  const step = box.width / Math.max(1, shown.length - 1);
  const room = box.height - 2;
  let stroke = "", area = "", start: number | undefined;
  shown.forEach((value, at) => {
    if (value === null || !Number.isFinite(value)) {
      if (start !== undefined) area += close(at - 1);
      start = undefined;
      return;
    }
    const part = top > 0 ? Math.max(0, Math.min(1, value / top)) : 0;
    const point = `${round(at * step)} ${round(1 + room * (1 - part))}`;
    stroke += `${start === undefined ? "M" : "L"}${point}`;
    area += start === undefined ? `M${round(at * step)} ${box.height}L${point}` : `L${point}`;
    start ??= at;
  });
  if (start !== undefined) area += close(shown.length - 1);
  return { stroke, area };

  function close(last: number): string {
    return `L${round(last * step)} ${box.height}Z`;
  }
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
