/**
 * What waits to be exported: bounded, sent in batches, one batch at a time.
 *
 * A queue never delays who fills it. What does not fit is dropped and counted; the receiver, not
 * the engine, is what has become too slow.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";

/** How a queue sends. */
export interface QueueOptions<T> {
  readonly clock: Clock;
  /** Items that wait at most. */
  readonly most: number;
  /** Items sent together at most. */
  readonly batch: number;
  /** How long the first item of a batch waits for others. */
  readonly delayMs: number;
  /** Sends a batch; must not reject. */
  send(items: readonly T[]): Promise<unknown>;
}

/** Collects items and sends them. */
export class ExportQueue<T> {
  readonly #options: QueueOptions<T>;
  #waiting: T[] = [];
  #sending: Promise<void> | undefined;
  #cancel: (() => void) | undefined;
  #dropped = 0;

  /** Sends nothing before the first item. */
  constructor(options: QueueOptions<T>) {
    this.#options = options;
  }

  /** Items that did not fit. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Items that wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Takes an item, or drops it. */
  push(item: T): void {
    const { most, batch, delayMs, clock } = this.#options;
    if (this.#waiting.length >= most) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(item);
    if (this.#waiting.length >= batch) this.#start();
    else this.#cancel ??= clock.after(delayMs, () => this.#start());
  }

  /** Sends all that waits; resolves when that has ended, well or badly. */
  async flush(): Promise<void> {
    while (this.#waiting.length > 0 || this.#sending) {
      this.#start();
      await this.#sending;
    }
  }

  /** Sends no more by itself. */
  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #start(): void {
    this.close();
    this.#sending ??= this.#run();
  }

  async #run(): Promise<void> {
    const { batch, send, delayMs, clock } = this.#options;
    do {
      await send(this.#waiting.splice(0, batch));
    } while (this.#waiting.length >= batch);
    this.#sending = undefined;
    // What came meanwhile waits for others in its turn.
    if (this.#waiting.length > 0) this.#cancel ??= clock.after(delayMs, () => this.#start());
  }
}
