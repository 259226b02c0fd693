/**
 * Where a drawing stands in its window: moved and magnified.
 *
 * @module
 */

/** Smallest scale of a drawing. */
export const ZOOM_MIN = 0.1;
/** Largest scale of a drawing. */
export const ZOOM_MAX = 4;

/** A point of the drawing stands at `scale * point + (x, y)` of the window. */
export interface Viewport {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

/** A rectangle. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Magnified by `factor` so that what is at a point of the window stays there. */
export function zoomed(view: Viewport, factor: number, x: number, y: number): Viewport {
  const scale = Math.max(ZOOM_MIN, Math.min(ZOOM_MAX, view.scale * factor));
  const by = scale / view.scale;
  return { scale, x: x - (x - view.x) * by, y: y - (y - view.y) * by };
}

/**
 * All of a drawing in the middle of the window; never larger than it is. `least`: where it would
 * have to be smaller than this, its upper part is in the window instead, at this scale.
 */
export function fitted(
  drawing: Box,
  window: { width: number; height: number },
  least = ZOOM_MIN,
): Viewport {
  const margin = 24;
  const room = { width: window.width - 2 * margin, height: window.height - 2 * margin };
  const fit = Math.min(1, room.width / drawing.width, room.height / drawing.height);
  const scale = Math.max(least, Number.isFinite(fit) && fit > 0 ? fit : 1);
  const isTall = drawing.height * scale > room.height + 1;
  return {
    scale,
    x: window.width / 2 - scale * (drawing.x + drawing.width / 2),
    y: isTall
      ? margin - scale * drawing.y
      : window.height / 2 - scale * (drawing.y + drawing.height / 2),
  };
}

/** What holds all boxes. */
export function boundsOf(boxes: readonly Box[]): Box {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const { x, y, width, height } of boxes) { // There may be more than a call takes arguments.
    left = Math.min(left, x);
    top = Math.min(top, y);
    right = Math.max(right, x + width);
    bottom = Math.max(bottom, y + height);
  }
  if (boxes.length === 0) return { x: 0, y: 0, width: 1, height: 1 };
  return { x: left, y: top, width: right - left, height: bottom - top };
}
