/**
 * Writes lines to files some time after they are there, so that nobody waits for a disk.
 *
 * What waits is bounded: a disk that is too slow loses lines, and the log says how many.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Log } from "../../engine/ports/log.ts";
import { DISK_FLUSH_MS, DISK_PENDING_CHARS_MAX, TELEMETRY_WARNING_MS } from "../limits.ts";
import type { LineFiles } from "./disk_files.ts";

/** What writing needs. */
export interface DiskWriterSetup {
  readonly clock: Clock;
  readonly log: Log;
  readonly files: Pick<LineFiles, "append" | "clear" | "close">;
  /** What is written, for the log: `traces` or `logs`. */
  readonly name: string;
}

/** See the top of this file. */
export class DiskWriter implements AsyncDisposable {
  readonly #setup: DiskWriterSetup;
  #pending: string[] = [];
  #chars = 0;
  #dropped = 0;
  #cancel: (() => void) | undefined;
  #writing: Promise<void> | undefined;
  #warnedAt = -Infinity;
  #isClosed = false;
  #isClearing = false;

  /** Stores. */
  constructor(setup: DiskWriterSetup) {
    this.#setup = setup;
  }

  /** A line to write, without its line feed. */
  add(line: string): void {
    if (this.#isClosed) return;
    if (this.#chars + line.length > DISK_PENDING_CHARS_MAX) {
      this.#dropped++;
      return;
    }
    this.#pending.push(line);
    this.#chars += line.length;
    this.#schedule();
  }

  /** Forgets what waits and what was written; what is added from now on is kept. */
  clear(): void {
    this.#pending = [];
    this.#chars = 0;
    this.#isClearing = true;
    this.#schedule();
  }

  /** Writes what waits; never rejects. */
  async flush(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    const turn = (this.#writing ?? Promise.resolve()).then(() => this.#write());
    this.#writing = turn;
    await turn;
    if (this.#writing === turn) this.#writing = undefined;
  }

  /** Writes what waits and takes no more. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.flush();
    this.#setup.files.close();
  }

  #schedule(): void {
    this.#cancel ??= this.#setup.clock.after(DISK_FLUSH_MS, () => {
      this.#cancel = undefined;
      if (this.#writing) this.#schedule(); // One at a time, or lines could change places.
      else void this.flush();
    });
  }

  async #write(): Promise<void> {
    const lines = this.#pending;
    const isClearing = this.#isClearing;
    this.#isClearing = false;
    const dropped = this.#dropped;
    this.#pending = [];
    this.#chars = 0;
    this.#dropped = 0;
    if (dropped > 0) this.#warn("the disk is too slow for all telemetry", { dropped });
    try {
      if (isClearing) await this.#setup.files.clear();
      if (lines.length > 0) await this.#setup.files.append(`${lines.join("\n")}\n`);
    } catch (thrown) {
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      this.#warn("telemetry cannot be written", { dropped: lines.length, reason });
      this.#setup.files.close(); // A new file may do.
    }
  }

  #warn(text: string, fields: Record<string, string | number>): void {
    const { clock, log, name } = this.#setup;
    if (clock.now() - this.#warnedAt < TELEMETRY_WARNING_MS) return;
    this.#warnedAt = clock.now();
    log.warn(text, { kind: name, ...fields });
  }
}
