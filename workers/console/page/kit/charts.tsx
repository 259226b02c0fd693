/**
 * Charts over time and sparklines, as SVG in the page's colours.
 *
 * @module
 */
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import {
  axisWidth,
  type Counted,
  isWithin,
  type LinePaths,
  linePaths,
  nearestIndex,
  ticksTo,
  timeTicks,
} from "./chart_scale.ts";
import { useChartCursor } from "./context.tsx";
import { formatBytes, formatCount, formatTime, trimZeros } from "./format.tsx";
import type { Tone } from "./icons.tsx";

/** Points of a sparkline. */
export const SPARK_POINTS_MAX = 120;
/** Fewer points fill the right part of a sparkline: a slope over all of it would mislead. */
export const SPARK_POINTS_MIN = 20;
/** Space above the lines, and of the axis of time below them, in pixels. */
const ABOVE = 8;
const BELOW = 22;
/** Axes of values are as wide as this, so that charts below each other have the same times. */
const AXIS_MIN = 56;
/** At least so many pixels are between two ticks of each axis. */
const TICK_HEIGHT = 30;
const TICK_WIDTH = 84;
/** The axis of values ends a little above the largest one. */
const HEADROOM = 1.08;

/** One line of a chart, or its area. */
export interface Series {
  /** Empty when the label of the chart is enough. */
  readonly label: string;
  /** One per time; `null` is a gap. */
  readonly values: readonly (number | null)[];
  /** @default one of the six series colours */
  readonly tone?: Tone | `series-${1 | 2 | 3 | 4 | 5 | 6}` | undefined;
  /** Fills the area below. */
  readonly area?: boolean | undefined;
}

/** Properties of a {@linkcode Chart}. */
interface ChartProps {
  /** Shown above the chart and read by screen readers. */
  readonly label: string;
  /** Milliseconds since 1970, rising. */
  readonly at_ms: readonly number[];
  readonly series: readonly Series[];
  /** Formats a value on the axis and under the pointer. */
  readonly format?: ((value: number | null) => string) | undefined;
  /** In pixels, without the legend. */
  readonly height?: number | undefined;
  /** Charts with the same one share the time under the pointer. */
  readonly sync?: string | undefined;
  /** The axis ends at this value or higher. */
  readonly max?: number | undefined;
  /** The time range, up to the newest value; left out: all values. */
  readonly window_ms?: number | undefined;
}

/** Shows series over time. */
export function Chart(props: ChartProps): VNode {
  const { label, at_ms, series, format = formatCount, height = 160, sync } = props;
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watch = new ResizeObserver(() => setWidth(box.current?.clientWidth ?? 0));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  const cursor = useChartCursor(sync);
  const hoverMs = cursor.value;
  const hover = hoverMs === null ? -1 : nearestIndex(at_ms, hoverMs);
  const shown = hover < 0 ? at_ms.length - 1 : hover;
  const plan = planOf(props, width, height);
  const move = (event: PointerEvent) => {
    const x = event.clientX - box.current!.getBoundingClientRect().left;
    cursor.value = plan.msAt(x);
  };
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-label">{label}</span>
        <span class="chart-time num">{hover >= 0 && formatTime(at_ms[hover]!)}</span>
        <ul class="legend">
          {series.map((line, index) => (
            <li key={line.label}>
              {line.label !== "" && <i style={{ background: `var(--${toneOf(line, index)})` }} />}
              {line.label} <b class="num">{format(line.values[shown] ?? null)}</b>
            </li>
          ))}
        </ul>
      </figcaption>
      <div
        ref={box}
        class="chart-box"
        style={{ height: `${height}px` }}
        role="img"
        aria-label={label}
        onPointerMove={move}
        onPointerLeave={() => cursor.value = null}
      >
        {width > 0 && at_ms.length > 0 && (
          <svg width={width} height={height} aria-hidden="true">
            <Axes plan={plan} />
            <Lines plan={plan} />
            {hover >= 0 && <Pointer plan={plan} index={hover} />}
          </svg>
        )}
      </div>
    </figure>
  );
}

/** A chart at one size: where its values and times are, and what its axes say. */
interface ChartPlan {
  readonly props: ChartProps;
  /** The area of the lines, in pixels. */
  readonly left: number;
  readonly right: number;
  readonly bottom: number;
  readonly values: readonly { readonly y: number; readonly text: string }[];
  readonly times: readonly { readonly x: number; readonly text: string }[];
  readonly x: (ms: number) => number;
  readonly y: (value: number) => number;
  readonly msAt: (x: number) => number;
}

function planOf(props: ChartProps, width: number, height: number): ChartPlan {
  const { at_ms, series, format = formatCount, max = 0, window_ms } = props;
  const bottom = height - BELOW;
  const largest = series.reduce((most, { values }) => Math.max(most, largestOf(values)), 0);
  const top = Math.max(largest * HEADROOM, max) || 1;
  const y = (value: number) => bottom - (bottom - ABOVE) * value / top;
  const ticks = ticksTo(top, Math.floor((bottom - ABOVE) / TICK_HEIGHT), countedBy(format));
  const values = ticks.map((value) => ({ y: y(value), text: trimZeros(format(value)) }));
  const left = Math.max(AXIS_MIN, axisWidth(values.map(({ text }) => text)));
  const right = Math.max(left + 1, width - 4);
  const to = at_ms.at(-1) ?? 0;
  const from = window_ms === undefined ? at_ms[0] ?? 0 : to - window_ms;
  const span = Math.max(1, to - from);
  const x = (ms: number) => left + (right - left) * (ms - from) / span;
  const times = timeTicks(from, to, Math.floor((right - left) / TICK_WIDTH))
    .map((ms) => ({ x: x(ms), text: formatTime(ms) }))
    .filter((tick) => isWithin(tick.x, width, tick.text));
  const msAt = (at: number) => from + span * (at - left) / (right - left);
  return { props, left, right, bottom, values, times, x, y, msAt };
}

function countedBy(format: ChartProps["format"]): Counted {
  return format === formatBytes ? "bytes" : format === formatCount ? "whole" : "any";
}

function largestOf(values: readonly (number | null)[]): number {
  return values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
}

function Axes({ plan: { left, right, bottom, values, times } }: { plan: ChartPlan }): VNode {
  return (
    <g class="chart-axes">
      {values.map(({ y, text }) => (
        <g key={text}>
          <path d={`M${left} ${Math.round(y) + 0.5}H${right}`} />
          <text x={left - 6} y={y + 4} text-anchor="end">{text}</text>
        </g>
      ))}
      {times.map(({ x, text }) => (
        <text key={text} x={x} y={bottom + 16} text-anchor="middle">{text}</text>
      ))}
    </g>
  );
}

function Lines({ plan: { props, bottom, x, y, left } }: { plan: ChartPlan }): VNode {
  const { at_ms, series } = props;
  return (
    <>
      {series.map((line, index) => {
        const points = line.values.map((value, i) => {
          const at = x(at_ms[i] ?? 0);
          return value === null || at < left ? null : { x: at, y: y(value) };
        });
        const { stroke, area } = linePaths(points, bottom);
        const colour = `var(--${toneOf(line, index)})`;
        return (
          <g key={line.label}>
            {line.area && <path class="chart-area" d={area} style={{ fill: colour }} />}
            <path class="chart-line" d={stroke} style={{ stroke: colour }} />
          </g>
        );
      })}
    </>
  );
}

/** The time under the pointer, with a dot on each line. */
function Pointer({ plan, index }: { plan: ChartPlan; index: number }): VNode {
  const { props: { at_ms, series }, bottom, x, y } = plan;
  const at = x(at_ms[index]!);
  return (
    <g class="chart-pointer">
      <path d={`M${at} ${ABOVE}V${bottom}`} />
      {series.map((line, nr) => {
        const value = line.values[index] ?? null;
        if (value === null) return null;
        const fill = `var(--${toneOf(line, nr)})`;
        return <circle key={line.label} cx={at} cy={y(value)} r={3} style={{ fill }} />;
      })}
    </g>
  );
}

/** The CSS variable of a line's colour, without dashes. */
function toneOf({ tone }: Series, index: number): string {
  return tone ?? `series-${index % 6 + 1}`;
}

/** A small chart without axes; values from old to new, `null` is a gap. */
export function Sparkline(
  { values, label, max, tone = "accent", width = 88, height = 22, fill = true }: {
    values: readonly (number | null)[];
    /** Read by screen readers, such as `CPU of the last minute`. */
    label: string;
    /** The value at the top; left out: the largest one. */
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
    <svg
      class={`spark ${tone}`}
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <path class="spark-base" d={`M0 ${height - 0.5}H${width}`} />
      {fill && <path class="spark-fill" d={line.area} />}
      <path class="spark-line" d={line.stroke} />
    </svg>
  );
}

/** The newest values across the width, from the bottom (0) to the top (`max`). */
export function sparkPath(
  values: readonly (number | null)[],
  box: { readonly width: number; readonly height: number; readonly max?: number | undefined },
): LinePaths {
  const shown = values.slice(-SPARK_POINTS_MAX);
  const top = box.max ?? largestOf(shown);
  const step = box.width / (Math.max(SPARK_POINTS_MIN, shown.length) - 1);
  const start = box.width - step * (shown.length - 1);
  const room = box.height - 2;
  const points = shown.map((value, i) => {
    if (value === null || !Number.isFinite(value)) return null;
    const part = top > 0 ? Math.max(0, Math.min(1, value / top)) : 0;
    return { x: start + i * step, y: 1 + room * (1 - part) };
  });
  return linePaths(points, box.height);
}
