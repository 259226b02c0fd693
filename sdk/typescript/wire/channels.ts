/**
 * What both sides of a channel share (PROTOCOL 7): the reference to an end as it travels inside
 * payloads, and the close codes.
 *
 * @module
 */

/** Which end of a channel a reference claims. */
export type ChannelDirection = "read" | "write";

/** A reference to one end of a channel; the first program that connects with it has that end. */
export interface ChannelRef {
  /** Id of the channel. */
  channel_id: string;
  /** The credential of this end. */
  access_key: string;
  /** Which end it is. */
  direction: ChannelDirection;
}

/** References to both ends of one channel. */
export interface ChannelRefs {
  writer: ChannelRef;
  reader: ChannelRef;
}

/** Path of the worker port below which channels are. */
export const CHANNEL_PATH = "/ws/channels/";

/** Frames that the engine buffers for a reader that has not connected, by default and at most. */
export const CHANNEL_FRAMES_DEFAULT = 64;
export const CHANNEL_FRAMES_MAX = 1_024;
/** Size into which an SDK cuts the bytes that it writes. */
export const CHANNEL_WRITE_BYTES = 64 * 1024;
/** Largest frame of bytes that the engine sends to a reader. */
export const CHANNEL_FRAME_BYTES_MAX = 1024 * 1024;

/** Close codes of channels. */
export const CHANNEL_CLOSE = {
  /** The writer has ended the stream, and the reader has all of it; or the reader wants no more. */
  complete: 1000,
  /** The engine stops. */
  goingAway: 1001,
  /** The end is claimed already. */
  claimed: 1008,
  /** No room for what was sent. */
  tooLarge: 1009,
  /** The stream is not whole: the writer gave up or was lost, or an end never connected. */
  aborted: 4001,
} as const;

/** The reason of a normal end. */
export const STREAM_COMPLETE = "stream_complete";
/** The reason that a writer gets when its reader has left. */
export const READER_CLOSED = "reader_closed";

/** Whether a value of a payload is a reference to the end of a channel. */
export function isChannelRef(value: unknown): value is ChannelRef {
  if (value === null || typeof value !== "object") return false;
  const { channel_id, access_key, direction } = value as Partial<ChannelRef>;
  return typeof channel_id === "string" && typeof access_key === "string" &&
    (direction === "read" || direction === "write");
}
