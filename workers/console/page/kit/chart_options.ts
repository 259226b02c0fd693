/**
 * How uPlot is to draw a chart: the page's colours, few lines, the newest at the right edge.
 *
 * @module
 */
import type uPlot from "uplot";
import type { Tone } from "./badge.tsx";
import { formatBytes, formatCount, formatTime } from "./format.ts";

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
