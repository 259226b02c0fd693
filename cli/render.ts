/**
 * Values as text: JSON, tables, durations, sizes.
 *
 * The text depends on the value alone, never on the terminal, so that scripts can rely on it.
 *
 * @module
 */
import type { Json } from "../mod.ts";

/** JSON up to this width stays on one line. */
const LINE_CHARS_MAX = 80;
/** Characters that JSON does not escape and a terminal obeys: C1 and bidirectional controls. */
const UNSAFE = /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
/** Control characters of text; tabs and line breaks are kept. */
// deno-lint-ignore no-control-regex
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
/** Whole escape sequences, so that their letters are removed too. */
// deno-lint-ignore no-control-regex
const SEQUENCE = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g;

/**
 * JSON for people: on one line while it is short, `{ "c": 5 }`, else indented by two.
 *
 * It is valid JSON: control characters in strings are escaped.
 */
export function renderJson(value: Json): string {
  return renderWithin(value, "", LINE_CHARS_MAX);
}

/** JSON for programs: one line without spaces, with the same escapes. */
export function compactJson(value: Json): string {
  return escapeUnsafe(JSON.stringify(value));
}

function renderWithin(value: Json, indent: string, room: number): string {
  const line = onOneLine(value);
  if (line.length <= room || value === null || typeof value !== "object") return line;
  const inner = `${indent}  `;
  const parts = Array.isArray(value)
    ? value.map((item) => inner + renderWithin(item, inner, LINE_CHARS_MAX - inner.length - 1))
    : Object.entries(value).map(([key, item]) => {
      const name = `${inner}${quoted(key)}: `;
      return name + renderWithin(item, inner, LINE_CHARS_MAX - name.length - 1);
    });
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  return `${open}\n${parts.join(",\n")}\n${indent}${close}`;
}

function onOneLine(value: Json): string {
  if (typeof value === "string") return quoted(value);
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(onOneLine).join(", ")}]`;
  const parts = Object.entries(value).map(([key, item]) => `${quoted(key)}: ${onOneLine(item)}`);
  return parts.length === 0 ? "{}" : `{ ${parts.join(", ")} }`;
}

function quoted(text: string): string {
  return escapeUnsafe(JSON.stringify(text));
}

function escapeUnsafe(json: string): string {
  return json.replace(UNSAFE, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Text without escape sequences, control characters and bidirectional controls. */
export function printable(text: string): string {
  return text.replace(SEQUENCE, "").replace(CONTROL, "");
}

/** Lines of a stack trace that are shown: so many from its start, and from its end. */
const STACK_HEAD_LINES = 15;
const STACK_TAIL_LINES = 25;

/** Frames of the SDK, which ran the handler, and of the runtime below it. */
const OUTER_FRAMES = [
  /^\s+at .*(?:[/\\]engine_sdk\.js:|\(?(?:ext|node):)/,
  /^\s+File ".*[/\\]engine_sdk[/\\]_\w+\.py", line/,
];
/** The line of source below a frame of Python, and the marks below that. */
const PYTHON_SOURCE = /^ {4}/;

/**
 * The stack trace of a handler as lines, without the frames of the SDK that ran it; what failed is
 * at one of its ends.
 */
export function renderStack(stacktrace: string, what: string): string[] {
  const all = handlerFrames(stacktrace.trimEnd().split("\n")).map((line) =>
    `    ${printable(line)}`
  );
  const left = all.length - STACK_HEAD_LINES - STACK_TAIL_LINES;
  const lines = left <= 0 ? all : [
    ...all.slice(0, STACK_HEAD_LINES),
    `    … ${left} lines …`,
    ...all.slice(-STACK_TAIL_LINES),
  ];
  return [`  Stack trace of ${printable(what)}:`, ...lines];
}

function handlerFrames(lines: readonly string[]): string[] {
  let isPythonFrame = false;
  return lines.filter((line) => {
    if (isPythonFrame && PYTHON_SOURCE.test(line)) return false;
    const isOuter = OUTER_FRAMES.some((frame) => frame.test(line));
    isPythonFrame = isOuter && line.includes('.py", line');
    return !isOuter;
  });
}

/**
 * Lines of a table: columns as wide as their widest cell, two spaces between them.
 *
 * The last column is not padded. Control characters are removed, line breaks become spaces.
 */
export function renderTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
): string[] {
  const cells = [head, ...rows].map((row) =>
    row.map((cell) => printable(cell).replaceAll(/[\t\n]/g, " "))
  );
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells.map((row) => row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join("  ").trimEnd());
}

/** A duration for people: `85 ms`, `2.8 s`, `4 min 12 s`, `3 h 5 min`, `2 d 4 h`. */
export function renderDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 1_440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  const hours = Math.round(minutes / 60);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** A duration in a narrow column, to one unit: `0s`, `59s`, `4m`, `23h`, `12d`. */
export function renderShortDuration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

/** An amount of memory for people: `612 KiB`, `47 MiB`, `1.5 GiB`, `24 GiB`. */
export function renderBytes(bytes: number): string {
  const mib = bytes / 1024 / 1024;
  if (mib < 1) return `${Math.round(bytes / 1024)} KiB`;
  if (mib < 1_000) return `${Math.round(mib)} MiB`;
  const [amount, unit] = mib < 1_000 * 1024 ? [mib / 1024, "GiB"] : [mib / 1024 / 1024, "TiB"];
  return `${amount < 9.95 ? amount.toFixed(1) : Math.round(amount)} ${unit}`;
}

/** A number with its noun: `1 function`, `3 functions`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
