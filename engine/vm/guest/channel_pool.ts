/**
 * Hands out the channels of a guest on which programs run beside the main one.
 *
 * @module
 */
import type { GuestChannel } from "./channel.ts";

/** See the module. */
export class ChannelPool {
  readonly channels: readonly GuestChannel[];
  #freed = Promise.withResolvers<void>();
  #isClosed = false;

  /** All are free at first. */
  constructor(channels: readonly GuestChannel[]) {
    this.channels = channels;
  }

  /**
   * Waits for a free one and starts on it at once. `undefined` when the guest is gone, or the
   * signal came first.
   */
  async start<T>(use: (channel: GuestChannel) => T, signal: AbortSignal): Promise<T | undefined> {
    const aborted = Promise.withResolvers<void>();
    const abort = (): void => aborted.resolve();
    signal.addEventListener("abort", abort);
    try {
      while (!this.#isClosed && !signal.aborted) {
        const channel = this.channels.find(({ isFree }) => isFree);
        // At once: behind an await, somebody else may have taken it.
        if (channel) return use(channel);
        await Promise.race([this.#freed.promise, aborted.promise]);
      }
      return undefined;
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  /** A program has ended: those who wait look again. */
  wake(): void {
    this.#freed.resolve();
    this.#freed = Promise.withResolvers();
  }

  /** The guest is gone: nobody needs to wait any longer. */
  close(): void {
    this.#isClosed = true;
    this.wake();
  }
}
