/**
 * Keeps what a worker prints: a file with times, rotated, and the last lines in memory.
 *
 * Writing never makes the worker or the engine wait; what a disk cannot take in time is dropped
 * and the log says how much.
 *
 * @module
 */
import { LOG_FILE_BYTES_MAX, OUTPUT_PENDING_CHARS_MAX } from "../supervisor/limits.ts";
import { TAIL_LINES_MAX } from "../../sdk/typescript/wire/limits.ts";
import type { OutputLine } from "../ports/launcher.ts";

/** Bytes read at once from the end of a file. */
const TAIL_CHUNK_BYTES = 64 * 1024;

/** The log of one worker: `<name>.log`, and `<name>.log.1` with what came before. */
export class OutputLog {
  /** Absolute path of the newer file. */
  readonly path: string;
  readonly #wall: () => number;
  readonly #maxBytes: number;
  readonly #last: string[] = [];
  #pending: string[] = [];
  #pendingChars = 0;
  #dropped = 0;
  #timeMs: number | undefined;
  #timeText = "";
  #writing: Promise<void> | undefined;

  /** Opens nothing yet. `wall` gives milliseconds since 1970. */
  constructor(path: string, wall: () => number, maxBytes: number = LOG_FILE_BYTES_MAX) {
    this.path = path;
    this.#wall = wall;
    this.#maxBytes = maxBytes;
  }

  /** Takes a line. */
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

  /** Written once a millisecond: a program may print a hundred thousand lines in a second. */
  #time(): string {
    const now = this.#wall();
    if (now !== this.#timeMs) [this.#timeMs, this.#timeText] = [now, new Date(now).toISOString()];
    return this.#timeText;
  }

  /** The last lines with their times, older file included. */
  async tail(limit: number): Promise<string[]> {
    await this.#writing;
    if (limit <= this.#last.length) return limit <= 0 ? [] : this.#last.slice(-limit);
    const newer = await lastLines(this.path, limit);
    if (newer.length >= limit) return newer;
    const all = [...await lastLines(`${this.path}.1`, limit - newer.length), ...newer];
    return all.length >= this.#last.length ? all : [...this.#last]; // They could not be written.
  }

  /** Waits until everything is written. */
  async close(): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    try {
      await Deno.mkdir(this.path.slice(0, this.path.lastIndexOf("/")), { recursive: true });
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
    await Deno.writeTextFile(this.path, text, { append: true });
  }
}

/** The last lines of a file, read from its end. */
async function lastLines(path: string, limit: number): Promise<string[]> {
  let file: Deno.FsFile;
  try {
    file = await Deno.open(path);
  } catch {
    return []; // Nothing was printed yet.
  }
  using _closed = file;
  const { size } = await file.stat();
  for (let bytes = TAIL_CHUNK_BYTES;; bytes *= 4) {
    const start = Math.max(0, size - bytes);
    await file.seek(start, Deno.SeekMode.Start);
    const lines = new TextDecoder().decode(await readUpTo(file, size - start)).split("\n");
    if (lines.at(-1) === "") lines.pop();
    if (start > 0) lines.shift(); // It may have been cut.
    if (lines.length >= limit || start === 0) return lines.slice(-limit);
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
