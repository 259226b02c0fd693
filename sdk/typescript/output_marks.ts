/**
 * Marks what handlers print, so that the engine knows which call a line of output belongs to.
 *
 * A mark is `ESC ] engine ; <trace>-<span> [;logger] BEL` at the start of a line; terminals show
 * nothing of it, and whoever started this program with ENGINE_OUTPUT_MARKS=1 takes it out. Without
 * that variable the console stays as it is.
 *
 * @module
 */
import { runningTraceparent } from "./call_scope.ts";
import { attempt, builtinModule, environment } from "./platform.ts";
import { readTraceparent } from "./traceparent.ts";

/** The methods that print a line. */
const METHODS = ["log", "info", "warn", "error", "debug"] as const;

/** The part of a console that is marked. */
export type MarkedConsole = Record<typeof METHODS[number], (...values: unknown[]) => void>;

/** Set on a console that is marked, so that a second copy of the SDK leaves it alone. */
const MARKED = Symbol.for("engine-sdk.output-marks");

/** Whether what is printed now was sent to the engine's logs as well. */
let isLoggerPrinting = false;

/** Prints a line that was sent to the engine's logs as well: its mark says so. */
export function printAsLogger(print: () => void): void {
  isLoggerPrinting = true;
  try {
    print();
  } finally {
    isLoggerPrinting = false;
  }
}

/** From now on what handlers print is marked, if whoever started this program asked for it. */
export function markOutput(target: MarkedConsole = console): void {
  if (environment("ENGINE_OUTPUT_MARKS") !== "1" || MARKED in target) return;
  Object.defineProperty(target, MARKED, { value: true });
  for (const method of METHODS) {
    const original = target[method].bind(target);
    target[method] = (...values) => original(...attempt(() => marked(values)) ?? values);
  }
}

/** The mark of what is printed here and now; `undefined` when there is nothing to say. */
function currentMark(): string | undefined {
  const ids = readTraceparent(runningTraceparent());
  if (!ids && !isLoggerPrinting) return undefined;
  const trace = ids ? `${ids.trace_id}-${ids.span_id}` : "";
  return `\u001b]engine;${trace}${isLoggerPrinting ? ";logger" : ""}\u0007`;
}

/** The same values with a mark at the start of each line they become. */
function marked(values: unknown[]): unknown[] {
  const mark = currentMark();
  if (mark === undefined) return values;
  const lines = (text: string): string => text.replaceAll("\n", `\n${mark}`);
  const [first, ...rest] = values;
  if (typeof first === "string" && first.includes("%") && rest.length > 0) {
    const others = rest.map((value) => typeof value === "string" ? lines(value) : value);
    return [mark + lines(first), ...others]; // The console puts them into each other.
  }
  const texts = values.map((value) => typeof value === "string" ? value : inspect(value));
  return [mark + lines(texts.join(" "))];
}

/** A value as the console shows it. */
function inspect(value: unknown): string {
  const deno = (globalThis as { Deno?: { inspect?(value: unknown): string } }).Deno;
  if (deno?.inspect) return deno.inspect(value);
  const util = builtinModule<{ inspect(value: unknown): string }>("node:util");
  return util ? util.inspect(value) : String(value);
}
