/**
 * A small line of what happened lately, without axes.
 *
 * @module
 */
import type { VNode } from "preact";
import type { Tone } from "./badge.tsx";
import { sparkPath } from "./spark_path.ts";

/** Draws the values from old to new; `null` is a gap. */
export function Sparkline(
  { values, label, max, tone = "accent", width = 88, height = 22, fill = true }: {
    values: readonly (number | null)[];
    /** Said by screen readers, such as `CPU of the last minute`. */
    label: string;
    /** What reaches the top; left out: the largest value. */
    max?: number | undefined;
    tone?: Tone | undefined;
    /** In pixels. */
    width?: number | undefined;
    height?: number | undefined;
    fill?: boolean | undefined;
  },
): VNode {
  const line = sparkPath(values, { width, height, max });
  return (
    <svg class={`spark ${tone}`} width={width} height={height} role="img" aria-label={label}>
      <path class="spark-base" d={`M0 ${height - 0.5}H${width}`} />
      {fill && <path class="spark-fill" d={line.area} />}
      <path class="spark-line" d={line.stroke} />
    </svg>
  );
}
