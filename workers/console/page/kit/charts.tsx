/**
 * Charts over time, drawn by uPlot in the page's colours, and sparklines.
 *
 * @module
 */
import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import type { Tone } from "./icons.tsx";
import { formatBytes, formatCount, formatTime, trimZeros } from "./format.tsx";
import { useShownTheme } from "./context.tsx";

/** Points of a sparkline. */
export const SPARK_POINTS_MAX = 120;
/** Steps of an axis that counts bytes, from one byte to a tebibyte. */
const BYTE_STEPS = Array.from({ length: 41 }, (_, power) => 2 ** power);
/** Steps of an axis that counts whole things. */
const COUNT_STEPS = Array.from({ length: 40 }, (_, step) => {
  return [1, 2, 5][step % 3]! * 10 ** Math.floor(step / 3);
});
/** Width of a character on an axis, and of the space beside its labels, in pixels. */
const AXIS_CHAR = 6.4;
const AXIS_SPACE = 14;
/** A label of the time axis is `14:03:27`, with its middle at the tick. */
const TIME_LABEL = 8 * AXIS_CHAR;
/** Steps of the axis of time, in seconds. */
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600];

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

/** Shows series over time. Charts with the same `sync` share the position of the cursor. */
export function Chart(
  { label, at_ms, series, format = formatCount, height = 160, sync, max, window_ms }: {
    /** Shown above the chart and read by screen readers. */
    label: string;
    /** Milliseconds since 1970, rising. */
    at_ms: readonly number[];
    series: readonly Series[];
    /** Formats a value on the axis and under the cursor. */
    format?: ((value: number | null) => string) | undefined;
    /** In pixels, without the legend. */
    height?: number | undefined;
    sync?: string | undefined;
    /** The axis ends at this value or higher. */
    max?: number | undefined;
    /** The time range, up to the newest value; left out: all values. */
    window_ms?: number | undefined;
  },
): VNode {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [hover, setHover] = useState<number | null>(null);
  const theme = useShownTheme();
  const data = useMemo(
    () =>
      [at_ms.map((ms) => ms / 1_000), ...series.map(({ values }) => values)] as uPlot.AlignedData,
    [at_ms, series],
  );
  const shape = JSON.stringify([
    series.map(({ label, tone, area }) => [label, tone, area]),
    max,
    window_ms,
  ]);
  useEffect(() => {
    const options = chartOptions({
      box: box.current!,
      series,
      format,
      height,
      sync,
      max,
      window_ms,
      setHover,
    });
    const made = new uPlot(options, data, box.current!);
    plot.current = made;
    const fit = () => {
      made.setSize({ width: box.current?.clientWidth ?? 0, height });
    };
    const watch = new ResizeObserver(fit);
    watch.observe(box.current!);
    return () => {
      watch.disconnect();
      made.destroy();
    };
  }, [shape, height, sync, theme]);
  useEffect(() => plot.current?.setData(data), [data]);
  const shown = hover ?? at_ms.length - 1;
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-label">{label}</span>
        <span class="chart-time num">{hover !== null && formatTime(at_ms[hover] ?? 0)}</span>
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
      />
    </figure>
  );
}

/** What {@linkcode chartOptions} is made from. */
interface ChartShape {
  readonly box: HTMLElement;
  readonly series: readonly Series[];
  readonly format: (value: number | null) => string;
  readonly height: number;
  readonly sync?: string | undefined;
  readonly max?: number | undefined;
  readonly window_ms?: number | undefined;
  readonly setHover: (index: number | null) => void;
}

/** Options of uPlot: few lines, axes in the page's colours, the newest value at the right. */
function chartOptions(shape: ChartShape): uPlot.Options {
  const { box, series, height, sync, max, window_ms, setHover } = shape;
  const colour = colourReader(box);
  return {
    width: Math.max(1, box.clientWidth),
    height,
    padding: [8, 4, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { size: 6 },
      drag: { x: false, y: false },
      ...sync && { sync: { key: sync } },
    },
    scales: {
      x: {
        time: true,
        range: (_plot, low, high) => window_ms ? [high - window_ms / 1_000, high] : [low, high],
      },
      y: { range: (_plot, _low, high) => [0, Math.max(high * 1.08, max ?? 0) || 1] },
    },
    axes: axesOf(shape, colour),
    series: [
      {},
      ...series.map((line, index) => ({
        label: line.label,
        stroke: colour(toneOf(line, index)),
        width: 1.5,
        points: { show: false },
        ...line.area && { fill: colour(toneOf(line, index), 0.12) },
      })),
    ],
    hooks: { setCursor: [(plot) => setHover(plot.cursor.idx ?? null)] },
  };
}

/** The CSS variable of a line's colour, without dashes. */
function toneOf({ tone }: Series, index: number): string {
  return tone ?? `series-${index % 6 + 1}`;
}

function axesOf({ box, format }: ChartShape, colour: ColourReader): uPlot.Axis[] {
  const axis = {
    stroke: colour("text-3"),
    grid: { stroke: colour("line-soft"), width: 1 },
    ticks: { show: false },
    font: `11px ${getComputedStyle(box).fontFamily}`,
  };
  return [
    {
      ...axis,
      grid: { show: false },
      size: 24,
      space: 80,
      incrs: TIME_STEPS,
      values: (plot, times) => times.map((s) => fitsAxis(plot, s) ? formatTime(s * 1_000) : ""),
    },
    {
      ...axis,
      size: (_plot, labels) => axisWidth(labels ?? []),
      space: 30,
      values: (_plot, values) => values.map((value) => trimZeros(format(value))),
      ...format === formatBytes && { incrs: BYTE_STEPS },
      ...format === formatCount && { incrs: COUNT_STEPS },
    },
  ];
}

/** The width of an axis that has space for its longest label. */
export function axisWidth(labels: readonly string[]): number {
  const longest = labels.reduce((most, label) => Math.max(most, label.length), 0);
  return Math.ceil(longest * AXIS_CHAR + AXIS_SPACE);
}

/** Whether the label of a time is not cut at the end of the axis. */
function fitsAxis({ width, scales: { x } }: uPlot, s: number): boolean {
  const [min, max] = [x?.min ?? 0, x?.max ?? 1];
  return isWithin({ at: (s - min) / (max - min), width, label: TIME_LABEL });
}

/** Whether a label around a place of an axis (0 to 1) ends before the axis does. */
export function isWithin(
  { at, width, label }: { readonly at: number; readonly width: number; readonly label: number },
): boolean {
  return (1 - at) * width >= label / 2;
}

type ColourReader = (name: string, opacity?: number) => string;

/** Reads CSS variables as resolved colours, because a canvas does not know variables. */
function colourReader(box: HTMLElement): ColourReader {
  return (name, opacity = 1) => {
    const probe = document.createElement("i");
    probe.style.color = `var(--${name})`;
    box.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return opacity === 1 ? color : color.replace(/^rgb\((.*)\)$/, `rgba($1, ${opacity})`);
  };
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
    <svg class={`spark ${tone}`} width={width} height={height} role="img" aria-label={label}>
      <path class="spark-base" d={`M0 ${height - 0.5}H${width}`} />
      {fill && <path class="spark-fill" d={line.area} />}
      <path class="spark-line" d={line.stroke} />
    </svg>
  );
}

/** SVG paths of a sparkline: its line, and the area below it. */
interface SparkPaths {
  readonly stroke: string;
  readonly area: string;
}

/** The newest values across the width, from the bottom (0) to the top (`max`). */
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
