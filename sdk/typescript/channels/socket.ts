/**
 * The WebSocket of one end of a channel, on any platform.
 *
 * Unlike the connection of a worker it can stop reading, and it says when sent data has left. It
 * never reconnects: an end is claimed once.
 *
 * @module
 */
import { CHANNEL_PATH, type ChannelRef } from "../wire/channels.ts";
import { OPEN_TIMEOUT_MS, PING_INTERVAL_MS, SILENCE_MS } from "../wire/limits.ts";

/** The events of a {@linkcode ChannelSocket}. `closed` comes once and last. */
export interface ChannelSocketEvents {
  opened(): void;
  /** A message of the writer; its bytes are the receiver's. */
  message(data: string | Uint8Array): void;
  /** The WebSocket close code, 1006 when the connection failed, and a reason. */
  closed(code: number, reason: string): void;
}

/** One end of a channel. No method throws. */
export interface ChannelSocket {
  /** Sends a message; a promise, which resolves when more may be sent, if too much is unsent. */
  send(data: string | Uint8Array): Promise<void> | undefined;
  /** Stops reading, where the platform can. */
  pause(): void;
  resume(): void;
  /** Closes when all is sent; `closed` follows when the engine has it, however long that takes. */
  finish(code: number, reason: string): void;
  /** Ends the connection now. */
  terminate(): void;
}

/** Opens the WebSocket of an end. */
export type OpenChannelSocket = (url: string, events: ChannelSocketEvents) => ChannelSocket;

/** Time limits of a socket; tests pass shorter ones. */
export interface SocketTimes {
  /** How long the upgrade may take. */
  readonly openMs: number;
  /** Interval of pings. */
  readonly pingMs: number;
  /** The connection is lost when nothing arrives for this long while it is read. */
  readonly silenceMs: number;
}

/** Those of an engine. */
export const SOCKET_TIMES: SocketTimes = {
  openMs: OPEN_TIMEOUT_MS,
  pingMs: PING_INTERVAL_MS,
  silenceMs: SILENCE_MS,
};

/** Largest message that is received; the engine cuts bytes, but not texts. */
export const INBOUND_BYTES_MAX: number = 256 * 1024 * 1024;
/** Unsent bytes above which a writer waits. */
export const UNSENT_BYTES_MAX = 256 * 1024;
/** Longest reason of a close frame, in bytes of UTF-8. */
const REASON_BYTES_MAX = 123;

/** The address of an end: the route comes before the query of the engine's address. */
export function channelUrl(engineUrl: string, ref: ChannelRef): string {
  const address = new URL(engineUrl);
  const base = address.pathname.replace(/\/+$/, "");
  address.pathname = `${base}${CHANNEL_PATH}${encodeURIComponent(ref.channel_id)}`;
  address.searchParams.set("key", ref.access_key);
  address.searchParams.set("dir", ref.direction);
  return address.href;
}

/** A reason that fits into a close frame. */
export function shortReason(reason: string): string {
  const bytes = new TextEncoder().encode(reason);
  if (bytes.length <= REASON_BYTES_MAX) return reason;
  return new TextDecoder().decode(bytes.subarray(0, REASON_BYTES_MAX)).replace(/\ufffd+$/, "");
}
