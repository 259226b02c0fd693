/**
 * A trace as a flame graph, in time or merged by function. Its visible part is drawn on a canvas.
 *
 * The waterfall has the same content as text, and screen readers are pointed there.
 *
 * @module
 */
import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import {
  Button,
  Empty,
  formatCount,
  formatDuration,
  Segments,
  useQueryMember,
  useShownTheme,
} from "../../kit/mod.ts";
import {
  boxAt,
  boxesToDraw,
  type Flame,
  type FlameBox,
  flameInTime,
  flameMerged,
} from "./flame.ts";
import { SERVICE_COLOURS } from "./span_tree.ts";
import { TraceAxis, type TraceViewProps } from "./view.tsx";
import { panWindow, type TimeWindow, wholeWindow, zoomWindow } from "./waterfall.ts";

/** Height of a lane, in pixels. */
const LANE_HEIGHT = 22;
const GAP = 1;
/** Narrower boxes have no label. */
const TEXT_WIDTH_MIN = 28;
const PADDING = 6;

const LABEL = "Flame graph: arrows move, plus and minus zoom; " +
  "the waterfall has the same in words";
const KINDS = [
  { value: "", label: "In time" },
  { value: "merged", label: "Merged by function" },
];

/** The whole width. A merged graph has no times, only fractions of the width. */
const WHOLE: TimeWindow = { startMs: 0, endMs: 1 };

/** The flame graph of a trace. */
export function FlameView(props: TraceViewProps): VNode {
  const { tree, nowMs, window, setWindow } = props;
  const [kind, setKind] = useQueryMember("flame");
  const isMerged = kind === "merged";
  const whole = useMemo(() => wholeWindow(tree, nowMs), [tree, nowMs]);
  const flame = useMemo(
    () => isMerged ? flameMerged(tree, nowMs) : flameInTime(tree, whole),
    [tree, isMerged, nowMs, whole],
  );
  const [mergedView, setMergedView] = useState<TimeWindow>(WHOLE);
  // The window in time as fractions of the whole, and back.
  const length = whole.endMs - whole.startMs;
  const view = isMerged ? mergedView : {
    startMs: (window.startMs - whole.startMs) / length,
    endMs: (window.endMs - whole.startMs) / length,
  };
  const setView = (next: TimeWindow | null) => {
    if (isMerged) setMergedView(next ?? WHOLE);
    else if (next === null) setWindow(null);
    else {
      setWindow({
        startMs: whole.startMs + next.startMs * length,
        endMs: whole.startMs + next.endMs * length,
      });
    }
  };
  return (
    <div class="flame">
      <div class="view-tools">
        <Segments label="Kind" value={kind} choices={KINDS} onChange={setKind} />
        <Button small icon="fit" onPress={() => setView(null)}>Whole width</Button>
        <span class="quiet tools-hint">
          {isMerged
            ? "Width: time spent, over all calls. Double-click zooms into a box"
            : "Double-click zooms into a box, Ctrl and the wheel zoom"}
        </span>
      </div>
      {!isMerged && <TraceAxis tree={tree} window={window} setWindow={setWindow} />}
      <FlameCanvas {...props} flame={flame} view={view} setView={setView} />
    </div>
  );
}

interface FlameCanvasProps extends TraceViewProps {
  readonly flame: Flame;
  /** Fractions of the width, 0 to 1. */
  readonly view: TimeWindow;
  readonly setView: (view: TimeWindow | null) => void;
}

function FlameCanvas(props: FlameCanvasProps): VNode {
  const { flame, view, setView, tree, choose } = props;
  const box = useRef<HTMLDivElement>(null);
  const [hovered, setHovered] = useState<HoveredBox | null>(null);
  const { canvas, size, measure } = useDrawing(props, box, hovered?.box ?? null);
  useZoomWheel(box, view, setView);
  const boxOf = (event: MouseEvent) => {
    const { left, top } = canvas.current!.getBoundingClientRect();
    const at = view.startMs + (event.clientX - left) / size.width * (view.endMs - view.startMs);
    return boxAt(flame, Math.floor((event.clientY - top + size.top) / LANE_HEIGHT), at);
  };
  const hover = (event: MouseEvent) => {
    const found = boxOf(event);
    setHovered(found && { box: found, x: event.clientX, y: event.clientY });
  };
  const zoomToBox = (event: MouseEvent) => {
    const found = boxOf(event);
    if (found && found.width > 0) {
      setView({ startMs: found.left, endMs: found.left + found.width });
    }
  };
  if (flame.lanes.length === 0) return <Empty icon="traces" title="Nothing to draw" />;
  return (
    <div
      ref={box}
      class="flame-box"
      role="application"
      aria-label={LABEL}
      tabIndex={0}
      onScroll={measure}
      onKeyDown={(event) => {
        const next = viewAfter(event.key, view);
        if (next === undefined) return;
        setView(next);
        event.preventDefault();
      }}
      onMouseMove={hover}
      onMouseLeave={() => setHovered(null)}
      onClick={(event) => {
        const found = boxOf(event);
        choose(found ? tree.rows[found.row]!.span.id : "");
      }}
      onDblClick={zoomToBox}
    >
      <div class="flame-all" style={{ height: `${flame.lanes.length * LANE_HEIGHT}px` }}>
        <canvas ref={canvas} class="flame-canvas" />
      </div>
      {hovered && <FlameTooltip hovered={hovered} totalMs={flame.totalMs} />}
    </div>
  );
}

/** The view after a key; `null`: the whole graph, `undefined`: a key that does nothing. */
function viewAfter(key: string, view: TimeWindow): TimeWindow | null | undefined {
  switch (key) {
    case "ArrowLeft":
      return panWindow(view, WHOLE, -0.2);
    case "ArrowRight":
      return panWindow(view, WHOLE, 0.2);
    case "+":
    case "=":
      return zoomWindow(view, WHOLE, 0.5, 0.7);
    case "-":
      return zoomWindow(view, WHOLE, 0.5, 1.4);
    case "0":
      return null;
    default:
      return undefined;
  }
}

/** Draws the canvas whenever its content changes. */
function useDrawing(
  { flame, view, tree, chosen, colours }: FlameCanvasProps,
  box: { readonly current: HTMLDivElement | null },
  hovered: FlameBox | null,
) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const style = useRef<FlameStyle | null>(null);
  const [size, setSize] = useState({ width: 0, height: 0, top: 0 });
  const measure = () => {
    const { clientWidth: width, clientHeight: height, scrollTop: top } = box.current!;
    setSize({ width, height, top });
  };
  useLayoutEffect(() => {
    if (box.current === null) return; // An empty graph has no box.
    const watch = new ResizeObserver(measure);
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const chosenRow = useMemo(
    () => tree.rows.findIndex(({ span }) => span.id === chosen),
    [tree, chosen],
  );
  const theme = useShownTheme();
  useLayoutEffect(() => {
    style.current = null;
  }, [theme]);
  useLayoutEffect(() => {
    if (canvas.current === null) return;
    style.current ??= readStyle(canvas.current);
    const drawing = { flame, view, size, colours, chosenRow, hovered, style: style.current };
    drawFlame(canvas.current, drawing);
  }, [flame, view, size, colours, chosenRow, hovered, theme]);
  return { canvas, size, measure };
}

interface HoveredBox {
  readonly box: FlameBox;
  readonly x: number;
  readonly y: number;
}

function FlameTooltip(
  { hovered: { box, x, y }, totalMs }: { hovered: HoveredBox; totalMs: number },
): VNode {
  const isRight = x > innerWidth - 300;
  const style = {
    top: `${Math.min(y + 16, innerHeight - 90)}px`,
    ...isRight ? { right: `${innerWidth - x + 8}px` } : { left: `${x + 12}px` },
  };
  return (
    <div class="flame-hint" style={style} role="presentation">
      <b>{box.label}</b>
      <span class="quiet">{box.service}</span>
      <span class="num">
        {box.count > 1 && `${formatCount(box.count)} calls · `}
        {formatDuration(box.ms)} · itself {formatDuration(box.selfMs)}
        {totalMs > 0 && ` · ${(box.width * 100).toFixed(1)} %`}
      </span>
    </div>
  );
}

function useZoomWheel(
  box: { readonly current: HTMLElement | null },
  view: TimeWindow,
  setView: (view: TimeWindow) => void,
): void {
  const now = useRef({ view, setView });
  now.current = { view, setView };
  useEffect(() => {
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && Math.abs(event.deltaX) < Math.abs(event.deltaY)) return;
      event.preventDefault();
      const { view, setView } = now.current;
      const { left, width } = box.current!.getBoundingClientRect();
      const next = event.ctrlKey
        ? zoomWindow(view, WHOLE, (event.clientX - left) / width, Math.exp(event.deltaY * 0.003))
        : panWindow(view, WHOLE, event.deltaX / width);
      setView(next);
    };
    const element = box.current;
    element?.addEventListener("wheel", wheel, { passive: false });
    return () => element?.removeEventListener("wheel", wheel);
  }, []);
}

/** Colours and font for a canvas. */
interface FlameStyle {
  readonly text: string;
  readonly bad: string;
  /** Of the services in their order. */
  readonly services: readonly string[];
  readonly font: string;
}

/** Reads the colours of an element's style, which depend on the theme. */
function readStyle(element: HTMLElement): FlameStyle {
  // Only a real property has a resolved colour, a CSS variable does not.
  const before = element.style.color;
  const colour = (name: string): string => {
    element.style.color = `var(--${name})`;
    return getComputedStyle(element).color;
  };
  const services = Array.from({ length: SERVICE_COLOURS }, (_, at) => colour(`series-${at + 1}`));
  const style = { text: colour("text"), bad: colour("bad"), services };
  element.style.color = before;
  return { ...style, font: getComputedStyle(element).fontFamily };
}

/** What {@linkcode drawFlame} draws. */
interface FlameDrawing {
  readonly flame: Flame;
  /** Fractions of the width, 0 to 1. */
  readonly view: TimeWindow;
  /** Of the box in pixels; `top` is its scroll position. */
  readonly size: { readonly width: number; readonly height: number; readonly top: number };
  /** The number of each service's colour. */
  readonly colours: ReadonlyMap<string, number>;
  readonly chosenRow: number;
  readonly hovered: FlameBox | null;
  readonly style: FlameStyle;
}

/** Draws the visible part of a flame graph. */
function drawFlame(canvas: HTMLCanvasElement, drawing: FlameDrawing): void {
  const { flame, view, size, colours, chosenRow, hovered, style } = drawing;
  const context = canvas.getContext("2d");
  if (context === null || size.width === 0) return;
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(size.width * ratio);
  canvas.height = Math.round(size.height * ratio);
  canvas.style.width = `${size.width}px`;
  canvas.style.height = `${size.height}px`;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, size.width, size.height);
  context.font = `12px ${style.font}`;
  context.textBaseline = "middle";
  const scale = size.width / (view.endMs - view.startMs);
  const first = Math.floor(size.top / LANE_HEIGHT);
  const last = Math.min(flame.lanes.length, Math.ceil((size.top + size.height) / LANE_HEIGHT));
  for (let lane = first; lane < last; lane++) {
    const boxes = boxesToDraw(flame.lanes[lane]!, view.startMs, view.endMs, 1 / scale);
    const y = lane * LANE_HEIGHT - size.top;
    for (const box of boxes) {
      const x = Math.max(-2, (box.left - view.startMs) * scale);
      const right = Math.min(size.width + 2, (box.left + box.width - view.startMs) * scale);
      const place = { x, y, width: Math.max(1, right - x - GAP), height: LANE_HEIGHT - GAP };
      const fill = style.services[(colours.get(box.service) ?? 1) - 1] ?? style.text;
      drawBox(context, box, place, fill, style);
      if (box.row === chosenRow) strokeBox(context, place, style.text, 2);
      else if (box === hovered) strokeBox(context, place, style.text, 1);
    }
  }
}

interface Place {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

function drawBox(
  context: CanvasRenderingContext2D,
  box: FlameBox,
  { x, y, width, height }: Place,
  fill: string,
  style: { readonly text: string; readonly bad: string },
): void {
  context.globalAlpha = width < 3 ? 0.75 : 0.3;
  context.fillStyle = box.failed ? style.bad : fill;
  context.fillRect(x, y, width, height);
  context.globalAlpha = 1;
  if (width < 3) return;
  context.fillRect(x, y, 2, height);
  if (width < TEXT_WIDTH_MIN) return;
  const text = box.count > 1 ? `${box.label} × ${box.count}` : box.label;
  context.fillStyle = style.text;
  const shown = fitText(context, text, width - 2 * PADDING);
  context.fillText(shown, Math.max(x, 0) + PADDING, y + height / 2 + 0.5);
}

function strokeBox(
  context: CanvasRenderingContext2D,
  place: Place,
  colour: string,
  width: number,
): void {
  context.strokeStyle = colour;
  context.lineWidth = width;
  const inset = width / 2;
  const { x, y, width: long, height } = place;
  context.strokeRect(x + inset, y + inset, Math.max(1, long - width), height - width);
}

/** The text cut to a width by the mean width of its letters, which is cheap to measure. */
function fitText(context: CanvasRenderingContext2D, text: string, width: number): string {
  const whole = context.measureText(text).width;
  if (whole <= width) return text;
  const letters = Math.floor(text.length * width / whole) - 1;
  return letters < 2 ? "" : `${text.slice(0, letters)}…`;
}
