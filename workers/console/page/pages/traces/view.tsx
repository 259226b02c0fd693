/**
 * What the views of a trace share: their properties, the time axis, colours, and payloads.
 *
 * @module
 */
import type { VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { formatCount, formatDuration, JsonView, trimZeros } from "../../kit/mod.ts";
import type { RecordedPayload } from "./call_path.ts";
import type { SpanTree } from "./span_tree.ts";
import { ticksOf, type TimeWindow, WINDOW_MS_MIN } from "./waterfall.ts";

/** Space of a tick, in pixels. */
const TICK_WIDTH = 44;
/** A shorter drag is a click, in pixels. */
const DRAG_PIXELS_MIN = 5;

/** Properties of all views of a trace. */
export interface TraceViewProps {
  readonly tree: SpanTree;
  /** The number of each service's colour, from 1. */
  readonly colours: ReadonlyMap<string, number>;
  readonly nowMs: number;
  readonly window: TimeWindow;
  /** `null`: the whole trace. */
  readonly setWindow: (window: TimeWindow | null) => void;
  /** Id of the selected span; empty: none. */
  readonly chosen: string;
  readonly choose: (span_id: string) => void;
}

/** The CSS colour of a service. */
export function colourOf(colours: ReadonlyMap<string, number>, service: string): string {
  return `var(--series-${colours.get(service) ?? 1})`;
}

/** A recorded payload, or why there is none. */
export function PayloadView(
  { payload, label, chars }: { payload: RecordedPayload; label: string; chars?: number },
): VNode {
  if (payload.type === "json") return <JsonView value={payload.value} label={label} depth={3} />;
  if (payload.type === "text") return <pre class="raw-text" tabIndex={0}>{payload.text}</pre>;
  return (
    <p class="quiet">
      {chars
        ? `${formatCount(chars)} characters, which were not kept (see traces.payload_chars)`
        : "Nothing was kept"}
    </p>
  );
}

/** The time axis above a view; dragging over it zooms into the range. */
export function TraceAxis(
  { tree, window, setWindow, onWidth }: {
    tree: SpanTree;
    window: TimeWindow;
    setWindow: (window: TimeWindow | null) => void;
    /** Called with the width of the time column, in pixels. */
    onWidth?: (width: number) => void;
  },
): VNode {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(([entry]) => {
      const { width } = entry!.contentRect;
      setWidth(width);
      onWidth?.(width);
    });
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  const { drag, ...pointer } = useDragRange(box, ({ from, to }) => {
    const length = window.endMs - window.startMs;
    if ((to - from) * width < DRAG_PIXELS_MIN || (to - from) * length < WINDOW_MS_MIN) return;
    setWindow({ startMs: window.startMs + from * length, endMs: window.startMs + to * length });
  });
  const all = ticksOf(window, tree.startMs, Math.max(1, Math.floor(width / TICK_WIDTH)));
  // A tick at the edge has no space for its label.
  const ticks = all.filter(({ at }) => (1 - at) * width > TICK_WIDTH / 2);
  return (
    <div class="axis">
      <span class="axis-title">Span</span>
      <div
        ref={box}
        class="axis-time"
        title="Drag over a range to zoom in"
        {...pointer}
        onDblClick={() => setWindow(null)}
      >
        {ticks.map(({ at, ms }) => (
          <span
            key={ms}
            class="axis-tick num"
            style={{ left: `${at * 100}%` }}
          >
            {trimZeros(formatDuration(ms))}
          </span>
        ))}
        {drag && (
          <i
            class="axis-drag"
            style={{ left: `${drag.from * 100}%`, width: `${(drag.to - drag.from) * 100}%` }}
          />
        )}
      </div>
    </div>
  );
}

/** A range of the width, 0 to 1. */
interface DragRange {
  readonly from: number;
  readonly to: number;
}

/** The range that the pointer is dragged over, as `drag`; `done` is called when it is released. */
function useDragRange(
  box: { readonly current: HTMLDivElement | null },
  done: (range: DragRange) => void,
) {
  const [drag, setDrag] = useState<DragRange | null>(null);
  const placeOf = (event: PointerEvent) => {
    const { left, width } = box.current!.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - left) / Math.max(1, width)));
  };
  const inOrder = ({ from, to }: DragRange): DragRange => ({
    from: Math.min(from, to),
    to: Math.max(from, to),
  });
  return {
    drag: drag && inOrder(drag),
    onPointerDown: (event: PointerEvent) => {
      box.current!.setPointerCapture(event.pointerId);
      setDrag({ from: placeOf(event), to: placeOf(event) });
    },
    onPointerMove: (event: PointerEvent) => {
      const to = placeOf(event);
      setDrag((was) => was && { ...was, to });
    },
    onPointerUp: () => {
      setDrag(null);
      if (drag !== null) done(inOrder(drag));
    },
    onPointerCancel: () => setDrag(null),
  };
}
