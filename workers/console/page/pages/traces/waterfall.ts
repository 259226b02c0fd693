/**
 * Where the bars of a waterfall stand, and the marks of its time axis.
 *
 * Places are parts of the width, 0 to 1; the page makes pixels of them. A call's bar has three
 * parts: before it went to the worker, at the worker, and in the handler as far as that is known.
 *
 * @module
 */
import { attributeNumber, type SpanRow, type SpanTree } from "./span_tree.ts";

/** The part of a trace that is shown, in milliseconds since 1970. */
export interface TimeWindow {
  readonly startMs: number;
  readonly endMs: number;
}

/** A stretch of the width. */
export interface Stretch {
  /** 0 is the left edge. */
  readonly left: number;
  readonly width: number;
}

/** The bar of a row; `null` parts are not known or empty. */
export interface Bar extends Stretch {
  /** Waited for a worker; from the bar's left edge on. */
  readonly queued: Stretch | null;
  readonly handler: Stretch | null;
  /** Still runs: the bar has no right end. */
  readonly isOpen: boolean;
}

/** A mark of the axis. */
export interface Tick {
  /** Place, 0 to 1. */
  readonly at: number;
  /** Milliseconds since the trace began. */
  readonly ms: number;
}

/** Shortest window one can zoom into, in milliseconds. */
export const WINDOW_MS_MIN = 0.01;

/** The whole trace; running spans reach to `nowMs`. */
export function wholeWindow(tree: SpanTree, nowMs: number): TimeWindow {
  const endMs = tree.isPending ? Math.max(tree.endMs, nowMs) : tree.endMs;
  return { startMs: tree.startMs, endMs: Math.max(endMs, tree.startMs + WINDOW_MS_MIN) };
}

/** The bar of a row, cut at the window's edges; `null` when it lies outside. */
export function barOf(row: SpanRow, window: TimeWindow, nowMs: number): Bar | null {
  const { span, handler } = row;
  const endMs = span.endMs ?? Math.max(nowMs, span.startMs);
  const whole = stretch(span.startMs, endMs, window);
  if (whole === null) return null;
  const queuedMs = Math.min(attributeNumber(span, "engine.queued_ms"), endMs - span.startMs);
  return {
    ...whole,
    queued: queuedMs <= 0 ? null : stretch(span.startMs, span.startMs + queuedMs, window),
    handler: handler === null
      ? null
      // Its clock may be another: what sticks out is cut off.
      : stretch(
        Math.max(handler.startMs, span.startMs),
        Math.min(handler.endMs ?? endMs, endMs),
        window,
      ),
    isOpen: span.endMs === null,
  };
}

/** Round marks at most `count` in a window, counted from the trace's start. */
export function ticksOf(window: TimeWindow, traceStartMs: number, count: number): Tick[] {
  const span = window.endMs - window.startMs;
  if (!(span > 0) || count < 1) return [];
  const step = roundUp(span / count);
  const offset = window.startMs - traceStartMs;
  const ticks: Tick[] = [];
  for (let i = Math.ceil(offset / step - 1e-9); ticks.length <= count; i++) {
    const ms = i * step || 0; // Never -0.
    const at = (ms - offset) / span;
    if (at > 1 + 1e-9) break;
    ticks.push({ at, ms });
  }
  return ticks;
}

/** A window that is `factor` times as long, with the point at `at` (0 to 1) where it was. */
export function zoomed(
  window: TimeWindow,
  whole: TimeWindow,
  at: number,
  factor: number,
): TimeWindow {
  const length = window.endMs - window.startMs;
  const wanted = Math.max(length * factor, WINDOW_MS_MIN);
  const startMs = window.startMs + at * (length - wanted);
  return within({ startMs, endMs: startMs + wanted }, whole);
}

/** The window moved by so many of its widths, at most to the edges of the whole. */
export function panned(window: TimeWindow, whole: TimeWindow, by: number): TimeWindow {
  const ms = (window.endMs - window.startMs) * by;
  return within({ startMs: window.startMs + ms, endMs: window.endMs + ms }, whole);
}

function within(window: TimeWindow, whole: TimeWindow): TimeWindow {
  const length = window.endMs - window.startMs;
  if (length >= whole.endMs - whole.startMs) return whole;
  const startMs = Math.min(Math.max(window.startMs, whole.startMs), whole.endMs - length);
  return { startMs, endMs: startMs + length };
}

function stretch(startMs: number, endMs: number, window: TimeWindow): Stretch | null {
  const length = window.endMs - window.startMs;
  if (endMs < window.startMs || startMs > window.endMs || endMs < startMs) return null;
  const left = Math.max(0, (startMs - window.startMs) / length);
  const right = Math.min(1, (endMs - window.startMs) / length);
  return { left, width: right - left };
}

/** The next of 1, 2, 5 times a power of ten. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 5, 10].find((factor) => factor * power >= value * (1 - 1e-9)) ?? 10;
  return factor * power;
}
