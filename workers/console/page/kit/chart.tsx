/**
 * A chart over time, drawn by uPlot in the page's own colours.
 *
 * @module
 */
import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { chartOptions, type Series, toneOf } from "./chart_options.ts";
import { formatCount, formatTime } from "./format.ts";
import { useShell } from "./shell.ts";

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
