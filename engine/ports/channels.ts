/**
 * Channels as the parts of the engine use them: who may create one, and what is counted.
 *
 * @module
 */
import type { ChannelRefs } from "../../sdk/typescript/wire/channels.ts";

/** Channels that one worker may have open at once. */
export const CHANNELS_PER_OWNER_MAX = 1_000;
/** Channels that the engine may have open at once. */
export const CHANNELS_MAX = 10_000;
/** A channel of which an end is not claimed by then is removed. */
export const CHANNEL_UNCLAIMED_MS = 300_000;
/** Time between two looks for such channels. */
export const CHANNEL_SWEEP_MS = 60_000;
/** Bytes that the engine holds for a reader that has not connected, one larger frame aside. */
export const CHANNEL_HELD_BYTES_MAX = 256 * 1024;

/** Counts of all channels since the engine started. */
export interface ChannelStats {
  /** Channels that are open now. */
  readonly open: number;
  readonly created: number;
  /** Payload bytes that were forwarded. */
  readonly bytes: number;
}

/** The channels of one engine. */
export interface Channels {
  readonly stats: ChannelStats;
  /**
   * Creates a channel that counts as one of `owner`. Up to `bufferFrames` frames wait for a reader
   * that has not connected.
   *
   * @throws {EngineError} `overloaded`.
   */
  create(owner: string, bufferFrames: number): ChannelRefs;
}
