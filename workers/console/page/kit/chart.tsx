/**
 * A chart over time, drawn by uPlot in the page's own colours.
 *
 * @module
 */
import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import type { Tone } from "./badge.tsx";
import { formatCount, formatTime } from "./format.ts";
import { useShell } from "./shell.ts";

/** One line of a chart. */
export interface Series {
  readonly label: string;
  /** As many as there are times; `null` is a gap. */
  readonly values: readonly (number | null)[];
  /** @default the colours of the chart in turn */
  readonly tone?:
    | Tone
    | "series-1"
    | "series-2"
    | "series-3"
    | "series-4"
    | "series-5"
    | "series-6";
  /** Fills the area below. */
  readonly area?: boolean | undefined;
}

/** Shows series over time. All charts with the same `sync` show the same moment under the mouse. */
export function Chart(
  { label, at_ms, series, format = formatCount, height = 160, sync, max }: {
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
  const shape = JSON.stringify([series.map(({ label, tone, area }) => [label, tone, area]), max]);
  useEffect(() => {
    const options = chartOptions({
      box: box.current!,
      series,
      format,
      height,
      sync,
      max,
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
              <i style={{ background: `var(--${toneOf(line, index)})` }} />
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

interface ChartShape {
  readonly box: HTMLElement;
  readonly series: readonly Series[];
  readonly format: (value: number | null) => string;
  readonly height: number;
  readonly sync?: string | undefined;
  readonly max?: number | undefined;
  readonly setHover: (index: number | null) => void;
}

function chartOptions(
  { box, series, format, height, sync, max, setHover }: ChartShape,
): uPlot.Options {
  const style = getComputedStyle(box);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const axis = {
    stroke: colour("text-3"),
    grid: { stroke: colour("line-soft"), width: 1 },
    ticks: { show: false },
    font: `11px ${style.fontFamily}`,
  };
  return {
    width: Math.max(1, box.clientWidth),
    height,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { size: 6 },
      drag: { x: false, y: false },
      ...sync && { sync: { key: sync } },
    },
    scales: {
      x: { time: true },
      y: { range: (_plot, _low, high) => [0, Math.max(high * 1.08, max ?? 0) || 1] },
    },
    axes: [
      {
        ...axis,
        size: 24,
        values: (_plot, times) => times.map((s) => formatTime(s * 1_000)),
        space: 90,
      },
      { ...axis, size: 58, values: (_plot, values) => values.map(format), space: 32 },
    ],
    series: [
      {},
      ...series.map((line, index) => ({
        label: line.label,
        stroke: colour(toneOf(line, index)),
        width: 1.5,
        points: { show: false },
        ...line.area && { fill: `${colour(toneOf(line, index))}22` },
      })),
    ],
    hooks: { setCursor: [(plot) => setHover(plot.cursor.idx ?? null)] },
  };
}

function toneOf({ tone }: Series, index: number): string {
  return tone ?? `series-${index % 6 + 1}`;
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
