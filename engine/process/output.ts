/**
 * The output of a worker: from bytes to lines, to the calls that printed them, to the log file.
 *
 * A program may print anything. {@linkcode LineSplitter} cuts lines that are too long and replaces
 * bytes that are not UTF-8. {@linkcode OutputMarks} takes out the marks with which the SDKs tie a
 * line to a call, `ESC ] engine ; <trace>-<span> [;logger] BEL`; a logger outside of calls prints
 * one without ids. Text without exactly that form stays in the line, and a mark can be forged, so
 * nothing may rely on it. {@linkcode OutputLog} never delays the worker or the engine: it drops
 * lines that the disk cannot take in time and writes how many.
 *
 * @module
 */
import type { OutputLine } from "../ports/launcher.ts";
import type { PrintedLine } from "../ports/telemetry.ts";

/** Last lines of output that are kept in memory and shown with a failure. */
export const TAIL_LINES_MAX = 200;

/** Longest line of a worker's output; a longer one is cut into several. */
export const OUTPUT_LINE_CHARS_MAX = 16_384;
/** Size at which a log file is rotated. */
const LOG_FILE_BYTES_MAX = 10 * 1024 * 1024;
/** Output that may wait to be written to a log; further lines are dropped. */
const OUTPUT_PENDING_CHARS_MAX = 1024 * 1024;

/** Splits bytes into lines, without line ends. */
export class LineSplitter {
  readonly #decoder = new TextDecoder();
  readonly #line: (text: string) => void;
  #rest = "";

  /** `line` is called for every complete line, in order. */
  constructor(line: (text: string) => void) {
    this.#line = line;
  }

  add(bytes: Uint8Array): void {
    this.#take(this.#decoder.decode(bytes, { stream: true }));
  }

  /** Passes on what follows the last line end. */
  end(): void {
    this.#take(this.#decoder.decode());
    if (this.#rest !== "") this.#line(this.#rest);
    this.#rest = "";
  }

  #take(text: string): void {
    const lines = text.split("\n");
    lines[0] = this.#rest + lines[0]!;
    this.#rest = lines.pop()!;
    for (const line of lines) this.#cut(line.endsWith("\r") ? line.slice(0, -1) : line, true);
    this.#rest = this.#cut(this.#rest, false);
  }

  /** Passes on full pieces of a line; the last piece too if the line has ended. */
  #cut(line: string, hasEnded: boolean): string {
    let rest = line;
    while (rest.length > OUTPUT_LINE_CHARS_MAX) {
      this.#line(rest.slice(0, OUTPUT_LINE_CHARS_MAX));
      rest = rest.slice(OUTPUT_LINE_CHARS_MAX);
    }
    if (hasEnded) this.#line(rest);
    return rest;
  }
}

/** The environment variable that makes the SDKs print marks. */
export const OUTPUT_MARKS_VARIABLE = "ENGINE_OUTPUT_MARKS";

/** An environment for programs whose output is passed on as it is, marks included. */
export function withoutMarks(env: Readonly<Record<string, string>>): Record<string, string> {
  const { [OUTPUT_MARKS_VARIABLE]: _, ...rest } = env;
  return rest;
}

/** A line without its marks, and what the marks say. */
export interface UnmarkedLine extends OutputLine, Pick<PrintedLine, "trace" | "isLogger"> {}

/** A cheap test for most lines, which have no mark. */
const START = "\u001b]engine;";

// deno-lint-ignore no-control-regex
const MARK = /\u001b\]engine;(?:([0-9a-f]{32})-([0-9a-f]{16})(;logger)?|;logger)\u0007/g;

/** Reads the marks in the lines of one program, which come in order. */
export class OutputMarks {
  /** By stream: the last line, if it was cut because it was too long. */
  readonly #cut = new Map<OutputLine["stream"], UnmarkedLine>();

  /** Takes the marks out of a line; the rest of a cut line belongs to the call of its start. */
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
 * What the first mark of a line says; the SDK's own mark comes before any text. A mark behind text
 * may come from a payload that the program prints. Such a mark is not believed when it says that a
 * logger has already sent the line, which would hide it, and not at all in the rest of a cut line.
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

/** Bytes read first from the end of a log file. */
const TAIL_CHUNK_BYTES = 64 * 1024;
/** Bytes read at most from the end of a log file, however many lines are asked for. */
const TAIL_BYTES_MAX = 4 * 1024 * 1024;

/** The log of one worker: `<name>.log`, and `<name>.log.1` with older lines. */
export class OutputLog {
  /** Absolute path of the newer file. */
  readonly path: string;
  readonly #wall: () => number;
  readonly #maxBytes: number;
  readonly #last: string[] = [];
  #pending: string[] = [];
  #pendingChars = 0;
  #dropped = 0;
  /** Whether only the engine's user may read the files. */
  #isOwn = false;
  #timeMs: number | undefined;
  #timeText = "";
  #writing: Promise<void> | undefined;

  /** `wall` gives milliseconds since 1970. */
  constructor(path: string, wall: () => number, maxBytes: number = LOG_FILE_BYTES_MAX) {
    this.path = path;
    this.#wall = wall;
    this.#maxBytes = maxBytes;
  }

  write({ stream, text }: OutputLine): void {
    const line = `${this.#time()} ${stream === "stdout" ? "out" : "err"} ${text}`;
    this.#last.push(line);
    if (this.#last.length > TAIL_LINES_MAX) this.#last.shift();
    if (this.#pendingChars + line.length > OUTPUT_PENDING_CHARS_MAX) {
      this.#dropped++;
      return;
    }
    this.#pending.push(line);
    this.#pendingChars += line.length;
    this.#writing ??= this.#writeAll();
  }

  /** Formatted once per millisecond: a program may print a hundred thousand lines per second. */
  #time(): string {
    const now = this.#wall();
    if (now !== this.#timeMs) [this.#timeMs, this.#timeText] = [now, new Date(now).toISOString()];
    return this.#timeText;
  }

  /** The last lines with their times, also from the older file. */
  async tail(limit: number): Promise<string[]> {
    await this.#writing;
    if (limit <= this.#last.length) return limit <= 0 ? [] : this.#last.slice(-limit);
    const newer = await lastLines(this.path, limit);
    if (newer.lines.length >= limit || !newer.isWhole) return newer.lines;
    const older = await lastLines(`${this.path}.1`, limit - newer.lines.length);
    const all = [...older.lines, ...newer.lines];
    return all.length >= this.#last.length ? all : [...this.#last]; // They could not be written.
  }

  /** Waits until everything is written. */
  async close(): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    try {
      const folder = this.path.slice(0, this.path.lastIndexOf("/"));
      await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
      if (!this.#isOwn) { // Earlier versions wrote for every user to read.
        for (const path of [this.path, `${this.path}.1`]) {
          await Deno.chmod(path, 0o600).catch(() => {});
        }
        await Deno.chmod(folder, 0o700);
        this.#isOwn = true;
      }
      while (this.#pending.length > 0) {
        const lines = this.#pending;
        if (this.#dropped > 0) lines.push(`… ${this.#dropped} lines were dropped here`);
        this.#pending = [];
        this.#pendingChars = 0;
        this.#dropped = 0;
        await this.#append(`${lines.join("\n")}\n`);
      }
    } catch {
      // A full disk must not end the worker; the last lines are still in memory.
      this.#pending = [];
      this.#pendingChars = 0;
    } finally {
      this.#writing = undefined;
    }
  }

  async #append(text: string): Promise<void> {
    const size = await Deno.stat(this.path).then((info) => info.size, () => 0);
    if (size > 0 && size + text.length > this.#maxBytes) {
      await Deno.rename(this.path, `${this.path}.1`);
    }
    await Deno.writeTextFile(this.path, text, { append: true, mode: 0o600 });
  }
}

/** The last lines of a file, read from its end; `isWhole`: as many as there are or were asked. */
async function lastLines(
  path: string,
  limit: number,
): Promise<{ lines: string[]; isWhole: boolean }> {
  let file: Deno.FsFile;
  try {
    file = await Deno.open(path);
  } catch {
    return { lines: [], isWhole: true }; // Nothing was printed yet.
  }
  using _closed = file;
  const { size } = await file.stat();
  for (let bytes = TAIL_CHUNK_BYTES;; bytes = Math.min(bytes * 4, TAIL_BYTES_MAX)) {
    const start = Math.max(0, size - bytes);
    await file.seek(start, Deno.SeekMode.Start);
    const lines = new TextDecoder().decode(await readUpTo(file, size - start)).split("\n");
    if (lines.at(-1) === "") lines.pop();
    if (start > 0) lines.shift(); // It may have been cut.
    const isWhole = lines.length >= limit || start === 0;
    if (isWhole || bytes === TAIL_BYTES_MAX) return { lines: lines.slice(-limit), isWhole };
  }
}

async function readUpTo(file: Deno.FsFile, size: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(size);
  let filled = 0;
  while (filled < size) {
    const read = await file.read(bytes.subarray(filled));
    if (read === null) break;
    filled += read;
  }
  return bytes.subarray(0, filled);
}
