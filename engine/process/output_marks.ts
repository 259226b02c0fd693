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
import { OUTPUT_LINE_CHARS_MAX } from "../supervisor/limits.ts";
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
    const said = text.includes(START) ? readMark(text, before !== undefined) : undefined;
    const line = {
      stream,
      text: text.includes(START) ? text.replaceAll(MARK, "") : text,
      trace: said ? said.trace : before?.trace ?? null,
      isLogger: (said ?? before)?.isLogger ?? false,
    };
    if (text.length === OUTPUT_LINE_CHARS_MAX) this.#cut.set(stream, line);
    else if (before) this.#cut.delete(stream);
    return line;
  }
}

/**
 * What the first mark of a line says, which is the SDK's own wherever there is one. Behind other
 * text it may be from a payload that is shown: then it never says that the line is known already,
 * which would hide it, and nothing at all in the rest of a line that was cut.
 */
function readMark(
  text: string,
  isRest: boolean,
): Omit<UnmarkedLine, "stream" | "text"> | undefined {
  const found = text.matchAll(MARK).next().value;
  const isFirst = found !== undefined && text.slice(0, found.index).trim() === "";
  if (!found || (isRest && !isFirst)) return undefined;
  const [, trace_id, span_id, logger] = found;
  return {
    trace: trace_id !== undefined && span_id !== undefined ? { trace_id, span_id } : null,
    isLogger: isFirst && (trace_id === undefined || logger !== undefined),
  };
}
