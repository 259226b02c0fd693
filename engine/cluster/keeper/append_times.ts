/**
 * How long the log of the state takes to acknowledge a message.
 *
 * A message is one group of writes, which wait for it together, so these are the times that callers
 * wait for the servers of the log.
 *
 * @module
 */
import type { Clock } from "../../ports/clock.ts";
import type { AppendTimesView } from "../../ports/directory.ts";
import type { LogEnd, LogMessage, SnapshotPiece, StateLog } from "../../ports/state_log.ts";

/** Upper bounds, in seconds; a last bucket has everything above. */
const BOUNDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];

/** A log whose appends are timed. */
export class TimedLog implements StateLog {
  readonly times = { bounds: BOUNDS, counts: new Array<number>(BOUNDS.length + 1).fill(0), sum: 0 };
  readonly #log: StateLog;
  readonly #clock: Pick<Clock, "now">;

  constructor(log: StateLog, clock: Pick<Clock, "now">) {
    this.#log = log;
    this.#clock = clock;
    this.times satisfies AppendTimesView;
  }

  get bytes(): number {
    return this.#log.bytes;
  }

  end(): Promise<LogEnd> {
    return this.#log.end();
  }

  async append(bytes: Uint8Array, after: number, signal?: AbortSignal): Promise<number> {
    const began = this.#clock.now();
    const number = await this.#log.append(bytes, after, signal);
    const seconds = (this.#clock.now() - began) / 1_000;
    const bucket = BOUNDS.findIndex((bound) => seconds <= bound);
    this.times.counts[bucket < 0 ? BOUNDS.length : bucket]!++;
    this.times.sum += seconds;
    return number;
  }

  read(from: number): AsyncIterable<LogMessage | SnapshotPiece> {
    return this.#log.read(from);
  }

  snapshot(pieces: AsyncIterable<Uint8Array>, upTo: number): Promise<void> {
    return this.#log.snapshot(pieces, upTo);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#log[Symbol.asyncDispose]());
  }
}
