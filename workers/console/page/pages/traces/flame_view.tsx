/**
 * A trace as a flame graph, in time or merged by function; drawn on a canvas of what is seen.
 *
 * What it shows stands in the waterfall too, so a screen reader is sent there.
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
  useShell,
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
import { panned, type TimeWindow, wholeWindow, zoomed } from "./waterfall.ts";

const WORDS = "Flame graph: arrows move, plus and minus zoom; " +
  "the waterfall has the same in words";
const WAYS = [
  { value: "", label: "In time" },
  { value: "merged", label: "Merged by function" },
];

/** The whole width, or a part of it; a merged graph has no times, only shares. */
const WHOLE: TimeWindow = { startMs: 0, endMs: 1 };

/** See the module. */
export function FlameView(props: TraceViewProps): VNode {
  const { tree, nowMs, window, setWindow } = props;
  const [way, setWay] = useQueryMember("flame");
  const isMerged = way === "merged";
  const whole = useMemo(() => wholeWindow(tree, nowMs), [tree, nowMs]);
  const flame = useMemo(
    () => isMerged ? flameMerged(tree, nowMs) : flameInTime(tree, whole),
    [tree, isMerged, nowMs, whole],
  );
  const [share, setShare] = useState<TimeWindow>(WHOLE);
  // A window in time, as shares of the whole, and back.
  const length = whole.endMs - whole.startMs;
  const view = isMerged ? share : {
    startMs: (window.startMs - whole.startMs) / length,
    endMs: (window.endMs - whole.startMs) / length,
  };
  const setView = (next: TimeWindow | null) => {
    if (isMerged) setShare(next ?? WHOLE);
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
        <Segments label="Kind" value={way} choices={WAYS} onChange={setWay} />
        <Button small icon="fit" onPress={() => setView(null)}>Whole width</Button>
        <span class="quiet tools-hint">
          {isMerged
            ? "Width: time spent, over all calls. Double-click magnifies a box"
            : "Double-click magnifies a box, Ctrl and the wheel zoom"}
        </span>
      </div>
      {!isMerged && <TraceAxis tree={tree} window={window} setWindow={setWindow} />}
      <FlameCanvas {...props} flame={flame} view={view} setView={setView} />
    </div>
  );
}

interface FlameCanvasProps extends TraceViewProps {
  readonly flame: Flame;
  /** Shares of the width, 0 to 1. */
  readonly view: TimeWindow;
  readonly setView: (view: TimeWindow | null) => void;
}

function FlameCanvas(props: FlameCanvasProps): VNode {
  const { flame, view, setView, tree, choose } = props;
  const box = useRef<HTMLDivElement>(null);
  const [under, setUnder] = useState<Pointed | null>(null);
  const { canvas, size, measure } = useDrawing(props, box, under?.box ?? null);
  useZoomWheel(box, view, setView);
  const boxOf = (event: MouseEvent) => {
    const { left, top } = canvas.current!.getBoundingClientRect();
    const at = view.startMs + (event.clientX - left) / size.width * (view.endMs - view.startMs);
    return boxAt(flame, Math.floor((event.clientY - top + size.top) / LANE_HEIGHT), at);
  };
  const point = (event: MouseEvent) => {
    const found = boxOf(event);
    setUnder(found && { box: found, x: event.clientX, y: event.clientY });
  };
  const magnify = (event: MouseEvent) => {
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
      aria-label={WORDS}
      tabIndex={0}
      onScroll={measure}
      onKeyDown={(event) => {
        const next = viewAfter(event.key, view);
        if (next === undefined) return;
        setView(next);
        event.preventDefault();
      }}
      onMouseMove={point}
      onMouseLeave={() => setUnder(null)}
      onClick={(event) => {
        const found = boxOf(event);
        choose(found ? tree.rows[found.row]!.span.id : "");
      }}
      onDblClick={magnify}
    >
      <div class="flame-all" style={{ height: `${flame.lanes.length * LANE_HEIGHT}px` }}>
        <canvas ref={canvas} class="flame-canvas" />
      </div>
      {under && <FlameHint pointed={under} totalMs={flame.totalMs} />}
    </div>
  );
}

/** What a key makes of the view; `null` shows all, `undefined`: not a key of ours. */
function viewAfter(key: string, view: TimeWindow): TimeWindow | null | undefined {
  switch (key) {
    case "ArrowLeft":
      return panned(view, WHOLE, -0.2);
    case "ArrowRight":
      return panned(view, WHOLE, 0.2);
    case "+":
    case "=":
      return zoomed(view, WHOLE, 0.5, 0.7);
    case "-":
      return zoomed(view, WHOLE, 0.5, 1.4);
    case "0":
      return null;
    default:
      return undefined;
  }
}

/** Draws on the canvas whenever something of it is another. */
function useDrawing(
  { flame, view, tree, chosen, colours }: FlameCanvasProps,
  box: { readonly current: HTMLDivElement | null },
  under: FlameBox | null,
) {
  const { preferences } = useShell();
  const canvas = useRef<HTMLCanvasElement>(null);
  const inks = useRef<FlameInks | null>(null);
  const [size, setSize] = useState({ width: 0, height: 0, top: 0 });
  const measure = () => {
    const { clientWidth: width, clientHeight: height, scrollTop: top } = box.current!;
    setSize({ width, height, top });
  };
  useLayoutEffect(() => {
    if (box.current === null) return; // There is nothing to draw.
    const watch = new ResizeObserver(measure);
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const chosenRow = useMemo(
    () => tree.rows.findIndex(({ span }) => span.id === chosen),
    [tree, chosen],
  );
  const theme = useSystemTheme() + preferences.theme.value;
  useLayoutEffect(() => {
    inks.current = null;
  }, [theme]);
  useLayoutEffect(() => {
    if (canvas.current === null) return;
    inks.current ??= readInks(canvas.current);
    const drawing = { flame, view, size, colours, chosenRow, under, inks: inks.current };
    drawFlame(canvas.current, drawing);
  }, [flame, view, size, colours, chosenRow, under, theme]);
  return { canvas, size, measure };
}

interface Pointed {
  readonly box: FlameBox;
  readonly x: number;
  readonly y: number;
}

function FlameHint(
  { pointed: { box, x, y }, totalMs }: { pointed: Pointed; totalMs: number },
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
        ? zoomed(view, WHOLE, (event.clientX - left) / width, Math.exp(event.deltaY * 0.003))
        : panned(view, WHOLE, event.deltaX / width);
      setView(next);
    };
    const element = box.current;
    element?.addEventListener("wheel", wheel, { passive: false });
    return () => element?.removeEventListener("wheel", wheel);
  }, []);
}

/** Draws anew when the system changes between dark and light. */
function useSystemTheme(): string {
  const [isDark, setDark] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const media = matchMedia("(prefers-color-scheme: dark)");
    const heard = () => setDark(media.matches);
    media.addEventListener("change", heard);
    return () => media.removeEventListener("change", heard);
  }, []);
  return isDark ? "dark" : "light";
}

/** Height of a lane, in pixels. */
export const LANE_HEIGHT = 22;

const GAP = 1;
/** Narrower boxes have no text. */
const TEXT_WIDTH_MIN = 28;
const PADDING = 6;

/** Colours and the face of letters, as a canvas takes them. */
export interface FlameInks {
  readonly text: string;
  readonly bad: string;
  /** Of the services, the first one's at 0. */
  readonly services: readonly string[];
  readonly face: string;
}

/** Reads the colours that an element's style has; they change with the theme. */
export function readInks(element: HTMLElement): FlameInks {
  // A variable is read as it is written; only a real property is worked out.
  const before = element.style.color;
  const colour = (name: string): string => {
    element.style.color = `var(--${name})`;
    return getComputedStyle(element).color;
  };
  const services = Array.from({ length: SERVICE_COLOURS }, (_, at) => colour(`series-${at + 1}`));
  const inks = { text: colour("text"), bad: colour("bad"), services };
  element.style.color = before;
  return { ...inks, face: getComputedStyle(element).fontFamily };
}

/** What to draw. */
export interface FlameDrawing {
  readonly flame: Flame;
  /** Shares of the width, 0 to 1. */
  readonly view: TimeWindow;
  /** Of the window, in pixels; `top` is how far it is scrolled. */
  readonly size: { readonly width: number; readonly height: number; readonly top: number };
  /** Service to the number of its colour. */
  readonly colours: ReadonlyMap<string, number>;
  readonly chosenRow: number;
  readonly under: FlameBox | null;
  readonly inks: FlameInks;
}

/** Draws it. */
export function drawFlame(canvas: HTMLCanvasElement, drawing: FlameDrawing): void {
  const { flame, view, size, colours, chosenRow, under, inks } = drawing;
  const context = canvas.getContext("2d");
  if (context === null || size.width === 0) return;
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(size.width * ratio);
  canvas.height = Math.round(size.height * ratio);
  canvas.style.width = `${size.width}px`;
  canvas.style.height = `${size.height}px`;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, size.width, size.height);
  context.font = `12px ${inks.face}`;
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
      const fill = inks.services[(colours.get(box.service) ?? 1) - 1] ?? inks.text;
      drawBox(context, box, place, fill, inks);
      if (box.row === chosenRow) frame(context, place, inks.text, 2);
      else if (box === under) frame(context, place, inks.text, 1);
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
  inks: { readonly text: string; readonly bad: string },
): void {
  context.globalAlpha = width < 3 ? 0.75 : 0.3;
  context.fillStyle = box.failed ? inks.bad : fill;
  context.fillRect(x, y, width, height);
  context.globalAlpha = 1;
  if (width < 3) return;
  context.fillRect(x, y, 2, height);
  if (width < TEXT_WIDTH_MIN) return;
  const text = box.count > 1 ? `${box.label} × ${box.count}` : box.label;
  context.fillStyle = inks.text;
  const shown = fitted(context, text, width - 2 * PADDING);
  context.fillText(shown, Math.max(x, 0) + PADDING, y + height / 2 + 0.5);
}

function frame(
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

/** The text, cut to a width by its letters' mean, which needs no measuring of every part. */
function fitted(context: CanvasRenderingContext2D, text: string, width: number): string {
  const whole = context.measureText(text).width;
  if (whole <= width) return text;
  const letters = Math.floor(text.length * width / whole) - 1;
  return letters < 2 ? "" : `${text.slice(0, letters)}…`;
}
