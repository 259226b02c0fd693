/**
 * Traces by time above their list. Dragging over bars, or arrows and Enter, select a time range.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import {
  Button,
  formatCount,
  formatDateTime,
  formatLimit,
  formatTime,
  useQuery,
  useShell,
} from "../../kit/mod.ts";
import {
  barAt,
  type BarRange,
  barsOf,
  countsOf,
  type Histogram,
  rangeOf,
  readHistogram,
} from "./histogram.ts";
import { histogramPayload, TRACE_BATCH_MS, type TraceFilter } from "./trace_summary.ts";

/** Bars change so often at most. */
const REDRAW_MS = 4 * TRACE_BATCH_MS;
/** Height of the bars in the units of the drawing. */
const HEIGHT = 100;
const NOTHING: Histogram = {
  fromMs: 0,
  toMs: 0,
  barMs: 0,
  counts: [],
  errors: [],
  total: 0,
};

/** The histogram of the traces that match a filter. */
export function TraceHistogram({ filter }: { filter: TraceFilter }): VNode | null {
  const { router } = useShell();
  const asked = useQuery(
    { function_id: "engine::traces::histogram", payload: histogramPayload(filter) },
    [{ type: "trace", config: { batch_ms: REDRAW_MS } }],
  );
  // While another range is asked for, the bars stay.
  const held = useRef(NOTHING);
  if (asked.status === "ready") held.current = readHistogram(asked.value);
  const histogram = held.current;
  const isZoomed = filter.from !== "" || filter.to !== "";
  const show = (range: { from: number; to: number } | null) => {
    if (range === null) return;
    router.setQuery({ from: String(range.from), to: String(range.to) }, { replace: false });
  };
  const showAll = () => router.setQuery({ from: null, to: null }, { replace: false });
  // An engine of an earlier version has no such function; the list needs none.
  if (asked.status === "failed" && histogram === NOTHING) return null;
  return (
    <section class="histogram" aria-label="Traces by time">
      <div class="histogram-facts">
        <Facts histogram={histogram} isZoomed={isZoomed} />
        {isZoomed && <Button small icon="close" onPress={showAll}>All times</Button>}
      </div>
      <Bars
        histogram={histogram}
        onSelect={(range) => show(rangeOf(histogram, range))}
        onReset={showAll}
      />
      <div class="histogram-axis num" aria-hidden="true">
        <span>{timeOf(histogram, 0)}</span>
        <span>{timeOf(histogram, 0.5)}</span>
        <span>{timeOf(histogram, 1)}</span>
      </div>
    </section>
  );
}

function Facts({ histogram, isZoomed }: { histogram: Histogram; isZoomed: boolean }): VNode {
  const { fromMs, toMs, total, counts } = histogram;
  const { failed } = countsOf(histogram, { first: 0, last: counts.length - 1 });
  const span = isZoomed
    ? `from ${formatDateTime(fromMs)} to ${formatTime(toMs)}`
    : `in the last ${formatLimit(toMs - fromMs)}`;
  return (
    <p class="num">
      <b>{formatCount(total)}</b> {total === 1 ? "trace" : "traces"}
      <span class="quiet">{counts.length > 0 && ` ${span}`}</span>
      {failed > 0 && <span class="bad-text">{`, ${formatCount(failed)} failed`}</span>}
    </p>
  );
}

/** The bars, of which a range can be selected. */
function Bars({ histogram, onSelect, onReset }: {
  histogram: Histogram;
  onSelect: (range: BarRange) => void;
  onReset: () => void;
}): VNode {
  const box = useRef<HTMLDivElement>(null);
  const [selected, select] = useState<BarRange | null>(null);
  const isDragging = useRef(false);
  const bars = useMemo(() => barsOf(histogram), [histogram]);
  const last = Math.max(0, bars.length - 1);
  const at = Math.min(last, selected?.last ?? last);
  const placeOf = (event: PointerEvent) => {
    const { left, width } = box.current!.getBoundingClientRect();
    return barAt(histogram, (event.clientX - left) / Math.max(1, width));
  };
  const finish = (range: BarRange | null) => {
    isDragging.current = false;
    select(null);
    if (range !== null && bars.length > 0) onSelect(range);
  };
  const keyDown = (event: KeyboardEvent) => {
    const by = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    const to = Math.max(0, Math.min(last, at + (selected === null ? 0 : by)));
    if (by !== 0) select({ first: event.shiftKey ? selected?.first ?? to : to, last: to });
    else if (event.key === "Enter") finish(selected ?? { first: at, last: at });
    else if (event.key === "Escape") selected === null ? onReset() : finish(null);
    else return;
    event.preventDefault();
  };
  return (
    <div
      ref={box}
      class="histogram-bars"
      role="slider"
      tabIndex={0}
      aria-label="Time: arrows move, with Shift they select, Enter shows only that time"
      aria-valuemin={0}
      aria-valuemax={last}
      aria-valuenow={at}
      aria-valuetext={wordsOf(histogram, selected ?? { first: at, last: at })}
      title="Drag over a range to show only its traces"
      onKeyDown={keyDown}
      onBlur={() => select(null)}
      onPointerDown={(event) => {
        box.current!.setPointerCapture(event.pointerId);
        isDragging.current = true;
        select({ first: placeOf(event), last: placeOf(event) });
      }}
      onPointerMove={(event) => {
        if (isDragging.current) select((was) => was && { ...was, last: placeOf(event) });
      }}
      onPointerUp={() => isDragging.current && finish(selected)}
      onPointerCancel={() => finish(null)}
    >
      <svg viewBox={`0 0 ${Math.max(1, bars.length)} ${HEIGHT}`} preserveAspectRatio="none">
        {selected && <Selection range={selected} />}
        {bars.map(({ height, failed }, i) => (
          <g key={i}>
            <Column at={i} from={failed} to={height} />
            <Column at={i} from={0} to={failed} isBad />
          </g>
        ))}
      </svg>
    </div>
  );
}

function Column(
  { at, from, to, isBad = false }: { at: number; from: number; to: number; isBad?: boolean },
): VNode | null {
  if (to <= from) return null;
  return (
    <rect
      class={isBad ? "bad" : ""}
      x={at + 0.12}
      width={0.76}
      y={HEIGHT * (1 - to)}
      height={HEIGHT * (to - from)}
    />
  );
}

function Selection({ range: { first, last } }: { range: BarRange }): VNode {
  const low = Math.min(first, last);
  return <rect class="selected" x={low} width={Math.abs(last - first) + 1} y={0} height={HEIGHT} />;
}

function timeOf({ fromMs, toMs, counts }: Histogram, place: number): string {
  return counts.length === 0 ? "" : formatTime(fromMs + place * (toMs - fromMs));
}

/** A range for screen readers: `14:03:15 to 14:04:00, 20 traces, 1 failed`. */
function wordsOf(histogram: Histogram, range: BarRange): string {
  const { count, failed } = countsOf(histogram, range);
  const { fromMs, barMs } = histogram;
  const from = formatTime(fromMs + Math.min(range.first, range.last) * barMs);
  const to = formatTime(fromMs + (Math.max(range.first, range.last) + 1) * barMs);
  return `${from} to ${to}, ${count} traces, ${failed} failed`;
}
