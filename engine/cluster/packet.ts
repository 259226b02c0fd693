/**
 * What one message of the bus carries between two engines.
 *
 * `kind u8, last u8, 0 u16, epoch u32, number u32, 0 u32, acknowledged f64`, all big-endian, then
 * the body: frames as `length u32, bytes` in `data`, a piece of one long frame in `part`, JSON in
 * `control` and `open`. Only `data`, `part` and `control` have numbers of their own; the number of
 * the others is that of the next one, so a lost last packet is noticed, too.
 *
 * @module
 */
import type { Json } from "../../sdk/typescript/wire/protocol.ts";

/** Kinds of packets. */
export const KIND = {
  /** Frames of one tick. */
  data: 1,
  /** A piece of a frame that is longer than {@linkcode PACKET_BYTES}. */
  part: 2,
  /** What was received. */
  ack: 3,
  /** Opens a link; a request. */
  open: 4,
  /** Asks whether the other engine is there; a request. */
  ping: 5,
  /** The link of that epoch is over. */
  reset: 6,
  /** A message between the links themselves: load, drain. */
  control: 7,
} as const;

/** Bytes of the head. */
export const HEAD_BYTES = 24;
/** Frames of one tick share packets up to this size; a longer frame goes in parts. */
export const PACKET_BYTES = 64 * 1024;
/** Longest part; a message of NATS has at most 1 MiB by default. */
export const PART_BYTES = 512 * 1024;
/** Bytes of the length before a frame. */
export const LENGTH_BYTES = 4;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The head of a packet. */
export interface PacketHead {
  readonly kind: number;
  /** The last part of its frame. */
  readonly isLast: boolean;
  readonly epoch: number;
  readonly number: number;
  /** Bytes of numbered packets that its sender has received and handled. */
  readonly acknowledged: number;
}

/** Fields of a head that are not zero. */
export type NewHead = Partial<Omit<PacketHead, "kind" | "epoch">>;

/** A packet with a copy of `body`. */
export function makePacket(
  kind: number,
  epoch: number,
  body?: Uint8Array,
  head: NewHead = {},
): Uint8Array {
  const bytes = new Uint8Array(HEAD_BYTES + (body?.length ?? 0));
  writeHead(new DataView(bytes.buffer), 0, { kind, epoch, ...head });
  if (body) bytes.set(body, HEAD_BYTES);
  return bytes;
}

/** A packet whose body is JSON. */
export function makeMessage(
  kind: number,
  epoch: number,
  message: Json,
  head?: NewHead,
): Uint8Array {
  return makePacket(kind, epoch, encoder.encode(JSON.stringify(message)), head);
}

/** Writes a head at an offset. */
export function writeHead(
  view: DataView,
  at: number,
  { kind, isLast = false, epoch, number = 0, acknowledged = 0 }:
    & Pick<PacketHead, "kind" | "epoch">
    & NewHead,
): void {
  view.setUint8(at, kind);
  view.setUint8(at + 1, isLast ? 1 : 0);
  view.setUint16(at + 2, 0);
  view.setUint32(at + 4, epoch);
  view.setUint32(at + 8, number);
  view.setUint32(at + 12, 0);
  view.setFloat64(at + 16, acknowledged);
}

/** The head of a packet; `undefined` for bytes that are none. */
export function readHead(data: Uint8Array): PacketHead | undefined {
  if (data.length < HEAD_BYTES) return undefined;
  const view = new DataView(data.buffer, data.byteOffset, HEAD_BYTES);
  const acknowledged = view.getFloat64(16);
  const kind = view.getUint8(0);
  if (kind < KIND.data || kind > KIND.control || !(acknowledged >= 0)) return undefined;
  return {
    kind,
    isLast: view.getUint8(1) === 1,
    epoch: view.getUint32(4),
    number: view.getUint32(8),
    acknowledged,
  };
}

/** The JSON in the body of a packet; `undefined` for another body. */
export function readMessage(data: Uint8Array): Json | undefined {
  try {
    return JSON.parse(decoder.decode(data.subarray(HEAD_BYTES)));
  } catch {
    return undefined;
  }
}

/** Why a link ends, and what the callers and the log read of it. */
export const ENDS = {
  gone: "the engine is gone",
  silent: "the engine does not answer",
  lost: "a message to or from the engine was lost",
  reset: "the engine ended its link",
  away: "NATS cannot be reached",
  left: "this engine leaves the cluster",
  anew: "the link is opened again",
  behind: "the engine is too far behind",
  long: "the engine sent a message longer than engine.max_message_bytes here",
  memory: "the memory of this engine is used up",
  malformed: "the engine sent a packet that cannot be read",
  closed: "this engine closed the link",
  refused: "the engine refused the link",
} as const;

/** A reason in {@linkcode ENDS}. */
export type LinkEnd = keyof typeof ENDS;
