/**
 * Channels as the parts of the engine use them: who may create one, and what is counted.
 *
 * @module
 */
import type { ChannelRef, ChannelRefs } from "../../sdk/typescript/wire/channels.ts";
import type { Connection, ConnectionEvents } from "./connection.ts";

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

/** The writer's connection, as its channel uses it. */
export type WriterEnd = Pick<Connection, "pause" | "resume" | "close">;
/** The reader's connection, as its channel uses it. */
export type ReaderEnd = Pick<
  Connection,
  "queuedBytes" | "send" | "forward" | "sendBinary" | "close"
>;

/** An end in this process, whose other end a worker may claim. */
export interface LocalEnd {
  /** The other end has connected; `events` takes what this end sends, and its end. */
  connected(events: ConnectionEvents): void;
}

/** Creates the ends in this process of two channels, when their other ends connect. */
export interface LocalEnds {
  /** The end that writes what a worker reads. */
  writerEnd(): LocalEnd & WriterEnd;
  /** The end that reads what a worker writes. */
  readerEnd(): LocalEnd & ReaderEnd;
}

/** Two channels, each with an end in this process; nothing is created until a worker connects. */
export interface LocalChannels {
  /** What a worker may read. */
  readonly reader: ChannelRef;
  /** What a worker may write. */
  readonly writer: ChannelRef;
  /** Nothing can connect from now on; a channel that is connected ends with its ends. */
  withdraw(): void;
}

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
  /** Offers two channels; cheap, since they take nothing but a place until a worker connects. */
  offer(ends: LocalEnds): LocalChannels;
}
