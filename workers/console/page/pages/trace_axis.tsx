/**
 * The time axis above a trace: dragging over it magnifies what was dragged over.
 *
 * @module
 */
import type { VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { formatDuration } from "../kit/mod.ts";
import type { SpanTree } from "../model/span_tree.ts";
import { ticksOf, type TimeWindow, WINDOW_MS_MIN } from "../model/waterfall.ts";

/** Room that a mark needs, in pixels. */
const TICK_WIDTH = 84;
/** A shorter drag is a click. */
const DRAG_PIXELS_MIN = 5;

/** See the module. */
export function TraceAxis(
  { tree, window, setWindow, onWidth }: {
    tree: SpanTree;
    window: TimeWindow;
    setWindow: (window: TimeWindow | null) => void;
    /** Hears how wide the time's column is, in pixels. */
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
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const placeOf = (event: PointerEvent) => {
    const { left, width } = box.current!.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - left) / Math.max(1, width)));
  };
  const down = (event: PointerEvent) => {
    box.current!.setPointerCapture(event.pointerId);
    setDrag({ from: placeOf(event), to: placeOf(event) });
  };
  const move = (event: PointerEvent) => {
    const to = placeOf(event);
    setDrag((was) => was && { ...was, to });
  };
  const up = () => {
    setDrag(null);
    if (drag === null) return;
    const [from, to] = [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)];
    const length = window.endMs - window.startMs;
    if ((to - from) * box.current!.clientWidth < DRAG_PIXELS_MIN) return;
    if ((to - from) * length < WINDOW_MS_MIN) return;
    setWindow({ startMs: window.startMs + from * length, endMs: window.startMs + to * length });
  };
  const all = ticksOf(window, tree.startMs, Math.max(1, Math.floor(width / TICK_WIDTH)));
  // One at the edge has no room for its words.
  const ticks = all.filter(({ at }) => (1 - at) * width > TICK_WIDTH / 2);
  return (
    <div class="axis">
      <span class="axis-title">Span</span>
      <div
        ref={box}
        class="axis-time"
        title="Drag over a stretch to magnify it"
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={up}
        onPointerCancel={() => setDrag(null)}
        onDblClick={() => setWindow(null)}
      >
        {ticks.map(({ at, ms }) => (
          <span
            key={ms}
            class="axis-tick num"
            style={{ left: `${at * 100}%` }}
          >
            {formatDuration(ms)}
          </span>
        ))}
        {drag && (
          <i
            class="axis-drag"
            style={{
              left: `${Math.min(drag.from, drag.to) * 100}%`,
              width: `${Math.abs(drag.to - drag.from) * 100}%`,
            }}
          />
        )}
      </div>
    </div>
  );
}
