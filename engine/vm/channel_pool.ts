/**
 * Hands out the channels of a guest on which programs run beside the main one.
 *
 * @module
 */
import type { GuestChannel } from "./guest_channel.ts";

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
   * Waits for a free one and starts on it at once. `undefined` when the guest is gone.
   *
   * @throws The signal's reason, if it comes while it waits.
   */
  async start<T>(use: (channel: GuestChannel) => T, signal: AbortSignal): Promise<T | undefined> {
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    const abort = (): void => reject(signal.reason);
    signal.addEventListener("abort", abort);
    try {
      for (;;) {
        signal.throwIfAborted();
        if (this.#isClosed) return undefined;
        const channel = this.channels.find(({ isFree }) => isFree);
        // At once: behind an await, somebody else may have taken it.
        if (channel) return use(channel);
        await Promise.race([this.#freed.promise, aborted]);
      }
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
