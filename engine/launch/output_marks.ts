/**
 * Takes the marks of the SDKs out of what a program prints: which call a line belongs to, and
 * whether a logger printed it.
 *
 * A mark is `ESC ] engine ; <trace>-<span> [;logger] BEL`; outside of calls a logger's has no ids.
 * A program may print anything, so what has not that form stays in the line, and a mark says
 * nothing that would have to be true.
 *
 * @module
 */
import { OUTPUT_LINE_CHARS_MAX } from "../../sdk/typescript/limits.ts";
import type { OutputLine } from "../ports/launcher.ts";
import type { PrintedLine } from "../ports/telemetry.ts";

/** Asks the SDKs for marks. */
export const OUTPUT_MARKS_VARIABLE = "ENGINE_OUTPUT_MARKS";

/** The environment of what runs beside a program: nobody takes marks out of its output. */
export function withoutMarks(env: Readonly<Record<string, string>>): Record<string, string> {
  const { [OUTPUT_MARKS_VARIABLE]: _, ...rest } = env;
  return rest;
}

/** A line without its marks, and what they said. */
export interface UnmarkedLine extends OutputLine, Pick<PrintedLine, "trace" | "isLogger"> {}

/** Says quickly that there is none. */
const START = "\u001b]engine;";

// deno-lint-ignore no-control-regex
const MARK = /\u001b\]engine;(?:([0-9a-f]{32})-([0-9a-f]{16})(;logger)?|;logger)\u0007/g;

/** Reads the lines of one program, in order. */
export class OutputMarks {
  /** By stream: the last line, when it was cut because it was too long. */
  readonly #cut = new Map<OutputLine["stream"], UnmarkedLine>();

  /** Takes the marks out of a line; the rest of one that was cut belongs where its start does. */
  read({ stream, text }: OutputLine): UnmarkedLine {
    const before = this.#cut.get(stream);
    const found = text.includes(START) ? text.matchAll(MARK).next().value : undefined;
    const line = found
      ? {
        stream,
        text: text.replaceAll(MARK, ""),
        trace: found[1] ? { trace_id: found[1], span_id: found[2]! } : null,
        isLogger: found[1] === undefined || found[3] !== undefined,
      }
      : { stream, text, trace: before?.trace ?? null, isLogger: before?.isLogger ?? false };
    if (text.length === OUTPUT_LINE_CHARS_MAX) this.#cut.set(stream, line);
    else if (before) this.#cut.delete(stream);
    return line;
  }
}
