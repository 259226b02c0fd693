/**
 * Draws the part of a flame graph that is seen.
 *
 * @module
 */
import { boxesToDraw, type Flame, type FlameBox } from "./flame.ts";
import { SERVICE_COLOURS } from "./service_colours.ts";
import type { TimeWindow } from "./waterfall.ts";

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
