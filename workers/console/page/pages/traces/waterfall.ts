/**
 * The bars of a waterfall and the ticks of its time axis.
 *
 * Positions are fractions of the width, 0 to 1. The bar of a call has up to three parts: before a
 * worker took it, at the worker, and in the handler.
 *
 * @module
 */
import { attributeNumber, type SpanRow, type SpanTree } from "./span_tree.ts";

/** The shortest window that can be zoomWindow into. */
export const WINDOW_MS_MIN = 0.01;

/** The visible time range, in milliseconds since 1970. */
export interface TimeWindow {
  readonly startMs: number;
  readonly endMs: number;
}

/** A range of the width. */
interface BarRange {
  /** 0 is the left edge. */
  readonly left: number;
  readonly width: number;
}

/** The bar of a row; parts are `null` when unknown or empty. */
export interface Bar extends BarRange {
  /** The time before a worker took the call, from the left edge. */
  readonly queued: BarRange | null;
  readonly handler: BarRange | null;
  /** Whether the span is running, so that the bar has no right end. */
  readonly isOpen: boolean;
}

/** A tick of the time axis. */
interface Tick {
  /** Position, 0 to 1. */
  readonly at: number;
  /** Milliseconds since the trace began. */
  readonly ms: number;
}

/** The window of the whole trace; running spans end at `nowMs`. */
export function wholeWindow(tree: SpanTree, nowMs: number): TimeWindow {
  const endMs = tree.isPending ? Math.max(tree.endMs, nowMs) : tree.endMs;
  return { startMs: tree.startMs, endMs: Math.max(endMs, tree.startMs + WINDOW_MS_MIN) };
}

/** The bar of a row, cut at the edges of the window; `null` outside of it. */
export function barOf(row: SpanRow, window: TimeWindow, nowMs: number): Bar | null {
  const { span, handler } = row;
  const endMs = span.endMs ?? Math.max(nowMs, span.startMs);
  const whole = rangeOf(span.startMs, endMs, window);
  if (whole === null) return null;
  const queuedMs = Math.min(attributeNumber(span, "engine.queued_ms"), endMs - span.startMs);
  return {
    ...whole,
    queued: queuedMs <= 0 ? null : rangeOf(span.startMs, span.startMs + queuedMs, window),
    handler: handler === null
      ? null
      // The clock of the worker may differ: the handler is cut to its call.
      : rangeOf(
        Math.max(handler.startMs, span.startMs),
        Math.min(handler.endMs ?? endMs, endMs),
        window,
      ),
    isOpen: span.endMs === null,
  };
}

/** At most `count` ticks at round times since the start of the trace. */
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

/** A window `factor` times as long, in which the point `at` (0 to 1) keeps its position. */
export function zoomWindow(
  window: TimeWindow,
  whole: TimeWindow,
  at: number,
  factor: number,
): TimeWindow {
  const length = window.endMs - window.startMs;
  const wanted = Math.max(length * factor, WINDOW_MS_MIN);
  const startMs = window.startMs + at * (length - wanted);
  return clampWindow({ startMs, endMs: startMs + wanted }, whole);
}

/** The window moved by a multiple of its width, within the whole. */
export function panWindow(window: TimeWindow, whole: TimeWindow, by: number): TimeWindow {
  const ms = (window.endMs - window.startMs) * by;
  return clampWindow({ startMs: window.startMs + ms, endMs: window.endMs + ms }, whole);
}

function clampWindow(window: TimeWindow, whole: TimeWindow): TimeWindow {
  const length = window.endMs - window.startMs;
  if (length >= whole.endMs - whole.startMs) return whole;
  const startMs = Math.min(Math.max(window.startMs, whole.startMs), whole.endMs - length);
  return { startMs, endMs: startMs + length };
}

function rangeOf(startMs: number, endMs: number, window: TimeWindow): BarRange | null {
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
