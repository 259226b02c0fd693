/**
 * A chart over time, drawn by uPlot in the page's own colours.
 *
 * @module
 */
import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import type { Tone } from "./icons.tsx";
import { formatBytes, formatCount, formatTime } from "./format.tsx";
import { useShell } from "./context.tsx";

/** Shows series over time. All charts with the same `sync` show the same moment under the mouse. */
export function Chart(
  { label, at_ms, series, format = formatCount, height = 160, sync, max, window_ms }: {
    /** Said by screen readers and above the chart. */
    label: string;
    /** Milliseconds since 1970, rising. */
    at_ms: readonly number[];
    series: readonly Series[];
    /** Writes a value, on the axis and under the mouse. */
    format?: ((value: number | null) => string) | undefined;
    /** In pixels, without the legend. */
    height?: number | undefined;
    sync?: string | undefined;
    /** The axis reaches at least this. */
    max?: number | undefined;
    /** How much time is shown, up to the newest; left out: from the oldest on. */
    window_ms?: number | undefined;
  },
): VNode {
  const { preferences } = useShell();
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [hover, setHover] = useState<number | null>(null);
  const theme = useThemeMark(preferences.theme.value);
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

/** Changes when the colours do: by choice, or with the system. */
function useThemeMark(theme: string): string {
  const [dark, setDark] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const media = matchMedia("(prefers-color-scheme: dark)");
    const heard = () => setDark(media.matches);
    media.addEventListener("change", heard);
    return () => media.removeEventListener("change", heard);
  }, []);
  return theme === "system" ? (dark ? "dark" : "light") : theme;
}

/** One line of a chart. */
export interface Series {
  /** Empty when the chart's own name says it. */
  readonly label: string;
  /** As many as there are times; `null` is a gap. */
  readonly values: readonly (number | null)[];
  /** @default the colours of the chart in turn */
  readonly tone?: Tone | `series-${1 | 2 | 3 | 4 | 5 | 6}` | undefined;
  /** Fills the area below. */
  readonly area?: boolean | undefined;
}

/** What a chart is to look like. */
export interface ChartShape {
  readonly box: HTMLElement;
  readonly series: readonly Series[];
  readonly format: (value: number | null) => string;
  readonly height: number;
  readonly sync?: string | undefined;
  readonly max?: number | undefined;
  readonly window_ms?: number | undefined;
  readonly setHover: (index: number | null) => void;
}

/** Steps of an axis that counts bytes, from one byte to a tebibyte. */
const BYTE_STEPS = Array.from({ length: 41 }, (_, power) => 2 ** power);

/** Steps of an axis that counts whole things. */
const COUNT_STEPS = Array.from({ length: 40 }, (_, step) => {
  return [1, 2, 5][step % 3]! * 10 ** Math.floor(step / 3);
});

/** Steps of the axis of time, in seconds. */
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600];

/** See the module. */
export function chartOptions(shape: ChartShape): uPlot.Options {
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

/** Name of the colour of a line, without the dashes. */
export function toneOf({ tone }: Series, index: number): string {
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
      values: (_plot, times) => times.map((s) => formatTime(s * 1_000)),
    },
    {
      ...axis,
      size: 60,
      space: 30,
      values: (_plot, values) => values.map(format),
      ...format === formatBytes && { incrs: BYTE_STEPS },
      ...format === formatCount && { incrs: COUNT_STEPS },
    },
  ];
}

type ColourReader = (name: string, opacity?: number) => string;

/** Reads colours as the browser resolved them; a canvas knows no variables. */
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
