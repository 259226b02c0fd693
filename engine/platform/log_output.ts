/**
 * Where the lines of the log go: standard error, without waiting for who reads it.
 *
 * A pipe takes 64 KiB. Behind it a synchronous write holds the thread, and with it every call,
 * until the other program reads: a terminal whose output is stopped, or a log collector that is
 * busy. So lines wait in a queue with a bound, one write is under way at a time, and beyond the
 * bound lines are dropped and counted. What waits when the process ends is written synchronously.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";

/** Bytes of lines that wait. */
export const LOG_QUEUE_BYTES_MAX = 1024 * 1024;
/** Bytes of one write, unless a single line has more. */
const WRITE_BYTES = 64 * 1024;
/** Longest wait for the reader when the engine stops. */
export const LOG_FLUSH_MS = 1_000;

/** A stream, as {@linkcode LogOutput} writes to it. */
export interface LogTarget {
  write(bytes: Uint8Array): Promise<number>;
  writeSync(bytes: Uint8Array): number;
}

const encoder = new TextEncoder();

/** See the module. */
export class LogOutput implements Disposable {
  readonly #target: LogTarget;
  readonly #dropped: (lines: number) => void;
  /** Encoded lines, with their ends. */
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  #droppedLines = 0;
  /** Resolves when the queue is empty; `undefined` while it is. */
  #writing: Promise<void> | undefined;
  #isGivenUp = false;
  readonly #atExit = (): void => this.#writeRest();

  /** `dropped` reports, behind what was written, how many lines were dropped before. */
  constructor(dropped: (lines: number) => void, target: LogTarget = Deno.stderr) {
    this.#dropped = dropped;
    this.#target = target;
    globalThis.addEventListener("unload", this.#atExit);
  }

  /** Adds a line, which comes without its line feed. */
  write(line: string): void {
    const bytes = encoder.encode(line + "\n");
    if (this.#queuedBytes > 0 && this.#queuedBytes + bytes.length > LOG_QUEUE_BYTES_MAX) {
      this.#droppedLines++;
      return;
    }
    this.#queue.push(bytes);
    this.#queuedBytes += bytes.length;
    this.#writing ??= this.#run();
  }

  /** Resolves when all lines are written, or after {@linkcode LOG_FLUSH_MS}. */
  async flush(clock: Pick<Clock, "after">): Promise<void> {
    if (!this.#writing) return;
    const late = Promise.withResolvers<void>();
    const cancel = clock.after(LOG_FLUSH_MS, () => {
      this.#isGivenUp = true;
      late.resolve();
    });
    await Promise.race([this.#writing, late.promise]);
    cancel();
  }

  [Symbol.dispose](): void {
    globalThis.removeEventListener("unload", this.#atExit);
  }

  async #run(): Promise<void> {
    await Promise.resolve(); // The lines of one tick are one write.
    try {
      while (this.#queue.length > 0) await this.#writeSome();
    } catch {
      this.#forget(); // Standard error is closed, so there is no place to report it.
    }
    this.#writing = undefined;
    const lines = this.#droppedLines;
    this.#droppedLines = 0;
    if (lines > 0) this.#dropped(lines);
  }

  async #writeSome(): Promise<void> {
    const chunk = this.#takeChunk();
    for (let at = 0; at < chunk.length;) at += await this.#target.write(chunk.subarray(at));
    this.#queuedBytes -= chunk.length;
  }

  #takeChunk(): Uint8Array {
    let count = 1;
    let bytes = this.#queue[0]!.length;
    for (; count < this.#queue.length; count++) {
      if (bytes + this.#queue[count]!.length > WRITE_BYTES) break;
      bytes += this.#queue[count]!.length;
    }
    const lines = this.#queue.splice(0, count);
    if (count === 1) return lines[0]!;
    const chunk = new Uint8Array(bytes);
    let at = 0;
    for (const line of lines) {
      chunk.set(line, at);
      at += line.length;
    }
    return chunk;
  }

  /** A reader that was waited for in vain would hold the end of the process, too. */
  #writeRest(): void {
    if (this.#isGivenUp) return;
    try {
      for (const line of this.#queue) {
        for (let at = 0; at < line.length;) at += this.#target.writeSync(line.subarray(at));
      }
    } catch {
      // It is closed.
    }
    this.#forget();
  }

  #forget(): void {
    this.#queue = [];
    this.#queuedBytes = 0;
  }
}
