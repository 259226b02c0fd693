/**
 * Numbers and times for people, in texts of similar width, so that updates do not move the layout.
 *
 * @module
 */
import type { VNode } from "preact";
import { useNow } from "./context.tsx";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
const SECOND = 1_000, MINUTE = 60_000, HOUR = 3_600_000, DAY = 86_400_000;

/** Shown in place of a missing value. */
export const NONE = "–";

/** `0.42 ms`, `18.3 ms`, `1.20 s`, `4 m 12 s`, `2 h 5 m`, `3 d 4 h`. */
export function formatDuration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return NONE;
  if (ms < 0) return `-${formatDuration(-ms)}`;
  if (ms < SECOND) return `${digits(ms)} ms`;
  if (ms < MINUTE) return `${digits(ms / SECOND)} s`;
  if (ms < HOUR) return pair(ms, MINUTE, "m", SECOND, "s");
  return ms < DAY ? pair(ms, HOUR, "h", MINUTE, "m") : pair(ms, DAY, "d", HOUR, "h");
}

/** A duration in its largest unit: `12 s`, `4 m`, `3 h`, `2 d`. */
export function formatSpan(ms: number): string {
  if (ms < MINUTE) return `${Math.max(0, Math.floor(ms / SECOND))} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} m`;
  return ms < DAY ? `${Math.floor(ms / HOUR)} h` : `${Math.floor(ms / DAY)} d`;
}

/** `512 B`, `1.50 KiB`, `48.2 MiB`. */
export function formatBytes(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined || !Number.isFinite(bytes)) return NONE;
  let value = bytes, unit = 0;
  while (value >= 1_024 && unit < UNITS.length - 1) {
    value /= 1_024;
    unit++;
  }
  return `${unit === 0 ? Math.round(value) : digits(value)} ${UNITS[unit]}`;
}

/** A time limit as people say it: `10 min`, `20 s`, `1.5 s`, `250 ms`. */
export function formatLimit(ms: number): string {
  if (ms === 0 || !Number.isFinite(ms)) return `${ms} ms`;
  const units = [[DAY, "d"], [HOUR, "h"], [MINUTE, "min"], [SECOND, "s"]] as const;
  // Only what two digits after the point can say is exact.
  const fit = units.find(([unit]) => ms >= unit && Number.isInteger(ms * 100 / unit));
  return fit === undefined ? `${ms} ms` : `${ms / fit[0]} ${fit[1]}`;
}

/** A text without zeros that say nothing, for axes and settings: `64.0 MiB` is `64 MiB`. */
export function trimZeros(text: string): string {
  return text.replace(/(\d)\.(\d*?)0+(?!\d)/, (_all, whole: string, rest: string) => {
    return rest === "" ? whole : `${whole}.${rest}`;
  });
}

/** Things per second: `0/s`, `0.20/s`, `12.5/s`, `1,204/s`, `18.3k/s`. */
export function formatRate(perSecond: number | null | undefined): string {
  if (perSecond === null || perSecond === undefined || !Number.isFinite(perSecond)) return NONE;
  if (perSecond === 0) return "0/s";
  if (perSecond < 10_000) return `${digits(perSecond)}/s`;
  return `${formatCount(perSecond)}/s`;
}

/** `0`, `1,204`, `18.3k`, `2.41M`. */
export function formatCount(count: number | null | undefined): string {
  if (count === null || count === undefined || !Number.isFinite(count)) return NONE;
  if (count < 10_000) return Math.round(count).toLocaleString("en-US");
  return count < 1_000_000 ? `${digits(count / 1_000)}k` : `${digits(count / 1_000_000)}M`;
}

/** A percentage: `0.4 %`, `12 %`. */
export function formatPercent(percent: number | null | undefined): string {
  if (percent === null || percent === undefined || !Number.isFinite(percent)) return NONE;
  return `${percent < 9.95 ? percent.toFixed(1) : Math.round(percent)} %`;
}

/** Local time of day: `14:03:27`; `fine`: `14:03:27.081`. */
export function formatTime(ms: number, fine = false): string {
  const at = new Date(ms);
  const [hours, minutes, seconds] = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two);
  const time = `${hours}:${minutes}:${seconds}`;
  return fine ? `${time}.${String(at.getMilliseconds()).padStart(3, "0")}` : time;
}

/** Local day and time: `2026-03-01 14:03:27`. */
export function formatDateTime(ms: number, fine = false): string {
  const at = new Date(ms);
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${formatTime(ms, fine)}`;
}

/** A time in the past: `now`, `12 s ago`, `3 h ago`. */
export function formatAgo(ms: number, now: number): string {
  return now - ms < SECOND ? "now" : `${formatSpan(now - ms)} ago`;
}

/** Three significant digits. */
function digits(value: number): string {
  if (value >= 999.5) return Math.round(value).toLocaleString("en-US");
  // What is rounded up has a digit more before the point.
  if (value >= 99.95) return value.toFixed(0);
  if (value >= 9.995) return value.toFixed(1);
  return value === 0 ? "0" : value.toFixed(2);
}

function pair(ms: number, large: number, largeName: string, small: number, name: string): string {
  const whole = Math.floor(ms / large);
  return `${whole} ${largeName} ${Math.floor((ms - whole * large) / small)} ${name}`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

/** `12 s ago`, updated every second. */
export function Ago({ ms }: { ms: number }): VNode {
  return <Stamp ms={ms} text={formatAgo(ms, useNow())} />;
}

/** The time since then, such as `3 h`, updated every second. */
export function Since({ ms }: { ms: number }): VNode {
  return <Stamp ms={ms} text={formatSpan(useNow() - ms)} />;
}

/** The time of day; `fine`: with milliseconds. */
export function Time({ ms, fine = false }: { ms: number; fine?: boolean }): VNode {
  return <Stamp ms={ms} text={formatTime(ms, fine)} />;
}

function Stamp({ ms, text }: { ms: number; text: string }): VNode {
  const at = Number.isFinite(ms) ? new Date(ms).toISOString() : "";
  return <time class="num" dateTime={at} title={formatDateTime(ms, true)}>{text}</time>;
}
