/**
 * WebSocket frames as a server reads them: bytes in, messages out, without I/O.
 *
 * The owner of a socket reads into {@linkcode FrameReader.room} and reports the number of bytes
 * with {@linkcode FrameReader.added}; the reader unmasks them in place and reports whole messages.
 * It checks a size when a header claims it, before it stores any of the payload. All of RFC 6455 is
 * enforced, except that a length encoded in more bytes than necessary is accepted, as by every
 * server.
 *
 * @module
 */
import { isUtf8 } from "node:buffer";
import { MembersScan } from "../core/wire/members.ts";
import { LARGE_BYTES, type Outline, READ_BYTES_MAX } from "../ports/connection.ts";
import type { MemoryBudget } from "../ports/memory.ts";
import { BufferLease } from "./buffer_lease.ts";
import { type Pace, UNPACED } from "./tick_budget.ts";
import { BEYOND_ASCII, type Masked, NOT_PLAIN, unmask, unmaskBinary } from "./unmask.ts";

/** What a line reads into at first; it grows with what comes. With 4 KiB, a line is 3 KB larger. */
export const READ_BYTES_FIRST = 1024;

/** Opcodes, the low four bits of the first byte of a frame. */
export const OPCODE = { more: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** Longest payload of a control frame. */
export const CONTROL_BYTES_MAX = 125;

/** Close codes for a peer that violates framing, UTF-8 or the maximum size. */
export type ViolationCode = 1002 | 1007 | 1009;

/** Events of a reader. Bytes are valid only until the call that receives them returns. */
export interface FrameEvents {
  /** See `ConnectionEvents.textBytes`. */
  text(memory: Uint8Array, start: number, end: number, isPlain: boolean, outline?: Outline): void;
  binary(bytes: Uint8Array): void;
  ping(payload: Uint8Array): void;
  /** The peer's close frame, 1005 if it has no code; no event follows. */
  closeFrame(code: number, reason: string): void;
  /** The peer violated the protocol; no event follows. */
  violation(code: ViolationCode, reason: string): void;
}

/** The first byte of the last fragment of a message. */
const LAST_FRAGMENT = 0x80 | OPCODE.more;
/** The first byte of a text message in one frame. */
const WHOLE_TEXT = 0x80 | OPCODE.text;
const WHOLE_BINARY = 0x80 | OPCODE.binary;
/** Growth of the read buffer after a read that filled it. */
const READ_GROWTH = 4;
/** Largest buffer that is kept for the next message: allocating costs more than filling it. */
const KEPT_BYTES_MAX = 16 * READ_BYTES_MAX;
/** Largest read: a message that is larger comes in parts, and others have their turn between. */
const ROOM_BYTES_MAX = 1024 * 1024;
/** Spare room behind a large message, so that its last read also gets the next header. */
const SPARE_BYTES = 16;
const UTF_8 = new TextDecoder("utf-8", { ignoreBOM: true });
const NOTHING = new Uint8Array();
/** Separates the messages of a batch. */
const NEWLINE = 0x0a;

/** How a connection reads. */
export interface FrameReaderOptions {
  /** The peer may send several text messages in a frame (`engine.batch.v1`). Default: false. */
  readonly isBatching?: boolean;
  /** Counts frames and messages. Default: they are not counted. */
  readonly pace?: Pace;
  /** Default: unlimited. */
  readonly memory?: MemoryBudget | undefined;
  /** Bytes of its buffers that are not taken from it. Default: those of {@linkcode BufferLease}. */
  readonly freeBytes?: number | undefined;
}

/** Reads the frames of one connection. */
export class FrameReader {
  readonly #events: FrameEvents;
  readonly #maxMessageBytes: number;
  readonly #isBatching: boolean;
  readonly #pace: Pace;
  readonly #lease: BufferLease;
  #missingBytes = 0;
  #memory: Masked = memoryOf(READ_BYTES_FIRST);
  /** Range of the bytes that were read and not yet handled. */
  #start = 0;
  #end = 0;
  /** Size of the incomplete frame at `#start`, once its header is known; else 0. */
  #needs = 0;
  #largestRead = 0;
  #isFull = false;
  #shrinks = false;
  #state: "reading" | "paused" | "over" = "reading";

  /** The fragments of an unfinished message; without one the opcode is `undefined`. */
  #opcode: number | undefined;
  #message: Uint8Array = NOTHING;
  #messageBytes = 0;
  #seen = 0;
  /** Reads a message that is fragmented or large while it comes. */
  #scan: MembersScan | undefined;
  /** Bytes of a large incomplete frame at `#start` that were unmasked, and of which kinds. */
  #unmasked = 0;
  #seenAhead = 0;
  #hasReadAhead = false;
  /** Validates the fragments, from the first that is not ASCII on. */
  #soFar: TextDecoder | undefined;

  /** The batch whose messages are being reported: its memory, and where it lies there. */
  #batchMemory: Uint8Array = NOTHING;
  #batch: Uint8Array | undefined;
  #batchStart = 0;
  #batchAt = 0;
  #isBatchPlain = false;

  constructor(
    events: FrameEvents,
    maxMessageBytes: number,
    { isBatching = false, pace = UNPACED, memory, freeBytes }: FrameReaderOptions = {},
  ) {
    this.#events = events;
    this.#maxMessageBytes = maxMessageBytes;
    this.#isBatching = isBatching;
    this.#pace = pace;
    this.#lease = new BufferLease(memory, freeBytes);
  }

  /** Bytes of the process's memory budget that its buffers hold. */
  get heldBytes(): number {
    return this.#lease.heldBytes;
  }

  /**
   * Bytes that have to fit into the memory budget before anything else can be read; 0: it can be
   * read. See {@linkcode room} and {@linkcode read}, which try again.
   */
  get missingBytes(): number {
    return this.#missingBytes;
  }

  /** Whether a header came without its payload: a peer with Nagle's algorithm may wait for us. */
  get endsBehindHeader(): boolean {
    if (this.#needs === 0) return false;
    const header = headerBytes(this.#memory.bytes[this.#start + 1]!);
    return this.#end - this.#start === header && this.#needs > header;
  }

  /** The buffer for the next read; empty only when {@linkcode missingBytes} are missing. */
  room(): Uint8Array {
    this.#missingBytes = 0;
    if (this.#start === this.#end) this.#resizeEmpty();
    else this.#makeRoom();
    const { bytes } = this.#memory;
    const room = bytes.subarray(this.#end, Math.min(bytes.length, this.#end + ROOM_BYTES_MAX));
    if (room.length > 0) this.#missingBytes = 0;
    return room;
  }

  /** Adds `count` bytes that were read into {@linkcode room}; {@linkcode read} handles them. */
  added(count: number): void {
    this.#end += count;
    this.#isFull = this.#end === this.#memory.bytes.length;
    if (count > this.#largestRead) this.#largestRead = count;
  }

  /**
   * Reports all complete messages, until it is paused or ended; `true` when it stopped because the
   * pace is spent or {@linkcode missingBytes} are missing, and has to be called again before the
   * next {@linkcode room}. Part of a large message counts as well.
   */
  read(): boolean {
    const pace = this.#pace;
    this.#missingBytes = 0;
    while (this.#state === "reading") {
      if (this.#batch) this.#readBatch(this.#batch);
      else if (!this.#readFrame()) return this.#missingBytes > 0 || this.#hasSpentAhead();
      if (--pace.credit <= 0 && pace.isSpent()) return true;
    }
    return false;
  }

  /** Stops reporting until {@linkcode resume} and the next {@linkcode read}. */
  pause(): void {
    if (this.#state === "reading") this.#state = "paused";
  }

  /** See {@linkcode pause}. */
  resume(): void {
    if (this.#state === "paused") this.#state = "reading";
  }

  /** Stops reporting for good and frees the buffers. */
  stop(): void {
    this.#state = "over";
    this.#start = this.#end = this.#needs = 0;
    this.#scan = undefined;
    this.#forgetMessage();
    this.#endBatch();
    this.#memory = memoryOf(READ_BYTES_FIRST);
    this.#lease.fit(0);
    this.#missingBytes = 0;
  }

  /** Called regularly: lets the buffer shrink if it was mostly unused since the last call. */
  shrinkBuffers(): void {
    this.#shrinks = this.#largestRead * 4 < this.#memory.bytes.length;
    this.#largestRead = 0;
  }

  /** Handles one frame; `false` when it is incomplete. */
  #readFrame(): boolean {
    const { bytes } = this.#memory;
    const start = this.#start;
    const there = this.#end - start;
    if (there < 2) return false;
    const first = bytes[start]!;
    const second = bytes[start + 1]!;
    if (this.#refuses(first, second)) return false;

    const header = headerBytes(second);
    if (there < header) return false;
    const payload = payloadBytes(bytes, start, second & 127);
    if (this.#isTooLarge(first & 15, payload)) return false;
    const end = start + header + payload;
    if (end > this.#end) {
      this.#needs = header + payload;
      if (payload >= LARGE_BYTES) this.#readAhead(first, start + header, this.#end);
      return false;
    }
    if ((first < 0x80 || first === LAST_FRAGMENT) && !this.#enlargeMessage(payload)) return false;

    this.#needs = 0;
    this.#start = end;
    const mask = maskBefore(bytes, start + header);
    const seen = payload >= LARGE_BYTES
      ? this.#readLarge(first, start + header, end)
      : first === WHOLE_BINARY
      ? unmaskBinary(this.#memory, start + header, end, mask)
      : unmask(this.#memory, start + header, end, mask);
    if (first === WHOLE_TEXT) this.#text(bytes, start + header, end, seen);
    else this.#other(first, bytes.subarray(start + header, end), seen);
    return true;
  }

  /** Unmasks and scans what came of a large frame whose payload begins at `start`. */
  #readAhead(first: number, start: number, end: number): void {
    const mask = maskBefore(this.#memory.bytes, start);
    // The mask has four bytes; what is left is unmasked with the next part.
    const to = start + (end - start & ~3);
    this.#seenAhead |= unmask(this.#memory, start + this.#unmasked, to, mask);
    this.#hasReadAhead = to - start > this.#unmasked;
    this.#unmasked = to - start;
    this.#scanFrame(first, start, to);
  }

  /** Whether reading a part of a large frame has used up the pace. */
  #hasSpentAhead(): boolean {
    if (!this.#hasReadAhead) return false;
    this.#hasReadAhead = false;
    return this.#pace.credit <= 0 && this.#pace.isSpent();
  }

  /** Does the same with the last part; returns which kinds of bytes the whole frame has. */
  #readLarge(first: number, start: number, end: number): number {
    const mask = maskBefore(this.#memory.bytes, start);
    const seen = this.#seenAhead | unmask(this.#memory, start + this.#unmasked, end, mask);
    this.#scanFrame(first, start, end);
    this.#unmasked = this.#seenAhead = 0;
    return seen;
  }

  /** Scans the payload of a frame up to `end`, behind the fragments before it. */
  #scanFrame(first: number, start: number, end: number): void {
    const opcode = first & 15;
    if (opcode === OPCODE.more ? this.#opcode !== OPCODE.text : opcode !== OPCODE.text) return;
    const before = opcode === OPCODE.more ? this.#messageBytes : 0;
    this.#scan ??= new MembersScan();
    this.#scan.advance(this.#memory.bytes, start - before, end);
  }

  /** A text message; `seen` is the result of {@linkcode unmask}. */
  #text(memory: Uint8Array, start: number, end: number, seen: number): void {
    if ((seen & BEYOND_ASCII) !== 0 && !isUtf8(memory.subarray(start, end))) {
      return this.#break(1007, "text that is not UTF-8");
    }
    const isPlain = (seen & NOT_PLAIN) === 0;
    if (this.#scan) return this.#largeText(memory, start, end, isPlain, this.#scan);
    if (!this.#isBatching) return this.#events.text(memory, start, end, isPlain);
    this.#beginBatch(memory, start, end, isPlain);
  }

  /** A text message that was scanned; in a batch, only one that is alone has an outline. */
  #largeText(
    memory: Uint8Array,
    start: number,
    end: number,
    isPlain: boolean,
    scan: MembersScan,
  ): void {
    this.#scan = undefined;
    if (this.#isBatching && memory.subarray(start, end).includes(NEWLINE)) {
      return this.#beginBatch(memory, start, end, isPlain);
    }
    const outline = end - start < LARGE_BYTES ? undefined : { members: scan.members(start) };
    this.#events.text(memory, start, end, isPlain, outline);
  }

  #beginBatch(memory: Uint8Array, start: number, end: number, isPlain: boolean): void {
    this.#batchMemory = memory;
    this.#batch = memory.subarray(start, end);
    this.#batchStart = start;
    this.#batchAt = 0;
    this.#isBatchPlain = isPlain;
    this.#readBatch(this.#batch);
  }

  /** Reports the next message of a batch; an empty one is skipped. */
  #readBatch(batch: Uint8Array): void {
    const from = this.#batchAt;
    const newline = batch.indexOf(NEWLINE, from);
    const to = newline < 0 ? batch.length : newline;
    this.#batchAt = to + 1;
    const memory = this.#batchMemory;
    const start = this.#batchStart;
    if (to + 1 >= batch.length) this.#endBatch();
    if (to > from) this.#events.text(memory, start + from, start + to, this.#isBatchPlain);
  }

  #endBatch(): void {
    this.#batch = undefined;
    this.#batchMemory = NOTHING;
  }

  #other(first: number, payload: Uint8Array, seen: number): void {
    const opcode = first & 15;
    switch (opcode) {
      case OPCODE.ping:
        return this.#events.ping(payload);
      case OPCODE.pong:
        return;
      case OPCODE.close:
        return this.#closeFrame(payload);
    }
    if (first === (0x80 | OPCODE.binary)) return this.#events.binary(payload);
    if (opcode !== OPCODE.more) this.#opcode = opcode;
    this.#scanFrame(first, payload.byteOffset, payload.byteOffset + payload.length);
    this.#keep(payload, seen);
    if (first >= 0x80) this.#finishMessage();
    else if (!this.#isValidSoFar(payload)) this.#break(1007, "text that is not UTF-8");
  }

  /** Checks UTF-8 per fragment, so that a bad one is refused before megabytes follow it. */
  #isValidSoFar(payload: Uint8Array): boolean {
    if (this.#opcode !== OPCODE.text || (this.#seen & BEYOND_ASCII) === 0) return true;
    // Decoding much at once would take long; the whole message is checked at its end.
    if (this.#messageBytes >= LARGE_BYTES) return true;
    this.#soFar ??= new TextDecoder("utf-8", { fatal: true });
    try {
      this.#soFar.decode(payload, { stream: true });
      return true;
    } catch {
      return false; // Thrown for bytes that are not UTF-8 only.
    }
  }

  /** Reports a fragmented message after its last fragment. */
  #finishMessage(): void {
    const isText = this.#opcode === OPCODE.text;
    const bytes = this.#message.subarray(0, this.#messageBytes);
    const seen = this.#seen;
    this.#forgetMessage();
    if (isText) this.#text(bytes, 0, bytes.length, seen);
    else this.#events.binary(bytes);
  }

  /** Makes room for a fragment; `false` when the memory budget has none. */
  #enlargeMessage(payload: number): boolean {
    const bytes = this.#messageBytes + payload;
    if (bytes <= this.#message.length) return true;
    const size = Math.max(bytes, Math.min(bytes * 2, this.#maxMessageBytes));
    if (!this.#fit(this.#memory.bytes.length, size)) return false;
    const larger = new Uint8Array(size);
    larger.set(this.#message.subarray(0, this.#messageBytes));
    this.#message = larger;
    return true;
  }

  #keep(payload: Uint8Array, seen: number): void {
    this.#message.set(payload, this.#messageBytes);
    this.#messageBytes += payload.length;
    this.#seen |= seen;
  }

  /** Takes what buffers of these sizes need. */
  #fit(memoryBytes: number, messageBytes: number): boolean {
    if (this.#lease.fit(memoryBytes + messageBytes)) return true;
    this.#missingBytes = memoryBytes + messageBytes - this.#lease.heldBytes;
    if (this.#lease.exceeds(memoryBytes + messageBytes)) {
      this.#break(1009, "message larger than engine.memory_mb allows");
    }
    return false;
  }

  #forgetMessage(): void {
    this.#opcode = undefined;
    this.#message = NOTHING;
    this.#messageBytes = 0;
    this.#seen = 0;
    this.#soFar = undefined;
    this.#lease.fit(this.#memory.bytes.length);
  }

  #closeFrame(payload: Uint8Array): void {
    const code = payload.length < 2 ? 1005 : payload[0]! << 8 | payload[1]!;
    const reason = payload.subarray(2);
    if (payload.length === 1) this.#break(1002, "close frame with half a code");
    else if (payload.length > 1 && !maySend(code)) {
      this.#break(1002, `close frame with code ${code}`);
    } else if (!isUtf8(reason)) this.#break(1007, "close reason that is not UTF-8");
    else {
      this.#state = "over";
      this.#events.closeFrame(code, UTF_8.decode(reason));
    }
  }

  /** Checks the first two bytes; most frames are masked text messages in one frame. */
  #refuses(first: number, second: number): boolean {
    if (first === WHOLE_TEXT && second >= 0x80 && this.#opcode === undefined) return false;
    const problem = problemOf(first, second, this.#opcode !== undefined);
    if (problem !== undefined) this.#break(1002, problem);
    return problem !== undefined;
  }

  #isTooLarge(opcode: number, payload: number): boolean {
    const before = opcode === OPCODE.more ? this.#messageBytes : 0;
    if (before + payload <= this.#maxMessageBytes || opcode >= OPCODE.close) return false;
    this.#break(1009, `message larger than ${this.#maxMessageBytes} bytes`);
    return true;
  }

  #break(code: ViolationCode, reason: string): void {
    this.#state = "over";
    this.#events.violation(code, reason);
  }

  #resizeEmpty(): void {
    this.#start = this.#end = 0;
    const size = this.#memory.bytes.length;
    const kept = this.#lease.isTight ? READ_BYTES_MAX : KEPT_BYTES_MAX;
    if (this.#shrinks && size > READ_BYTES_FIRST) this.#replace(READ_BYTES_FIRST);
    else if (size > kept) this.#replace(READ_BYTES_MAX);
    else if (this.#isFull && size < READ_BYTES_MAX) this.#replace(size * READ_GROWTH);
    this.#isFull = this.#shrinks = false;
  }

  /** Grows with the bytes received, not with the size that a header claims. */
  #makeRoom(): void {
    const size = this.#memory.bytes.length;
    const isFull = this.#isFull;
    this.#isFull = false;
    if (isFull && size < READ_BYTES_MAX) return this.#replace(size * READ_GROWTH);
    const isTight = size - this.#end < size >> 2;
    if (!isTight || (this.#needs > 0 && this.#needs <= size - this.#start)) return;
    if (this.#needs <= size) this.#replace(size);
    else this.#replace(Math.min(size * 2, this.#needs + SPARE_BYTES));
  }

  /** Moves the unhandled bytes to the front of a buffer of this size, if that fits. */
  #replace(size: number): void {
    const { bytes } = this.#memory;
    if (size === bytes.length || !this.#fit(size, this.#message.length)) {
      bytes.copyWithin(0, this.#start, this.#end);
    } else {
      this.#memory = memoryOf(size);
      this.#memory.bytes.set(bytes.subarray(this.#start, this.#end));
    }
    this.#end -= this.#start;
    this.#start = 0;
  }
}

function memoryOf(size: number): Masked & { readonly bytes: Uint8Array<ArrayBuffer> } {
  const buffer = new ArrayBuffer(size + 3 & ~3);
  return { bytes: new Uint8Array(buffer), words: new Int32Array(buffer) };
}

/** Size of a header with its mask; `second` is the byte with the short length. */
function headerBytes(second: number): number {
  const short = second & 127;
  return short < 126 ? 6 : short === 126 ? 8 : 14;
}

/** The mask, which stands in front of the payload. */
function maskBefore(bytes: Uint8Array, payload: number): number {
  return bytes[payload - 4]! | bytes[payload - 3]! << 8 | bytes[payload - 2]! << 16 |
    bytes[payload - 1]! << 24;
}

function payloadBytes(bytes: Uint8Array, start: number, short: number): number {
  if (short < 126) return short;
  const size = short === 126 ? 2 : 8;
  let length = 0;
  for (let at = start + 2; at < start + 2 + size; at++) length = length * 256 + bytes[at]!;
  return length;
}

function problemOf(first: number, second: number, inFragments: boolean): string | undefined {
  const opcode = first & 15;
  if ((first & 0x70) !== 0) return "reserved bit in a frame";
  if (second < 0x80) return "frame without a mask";
  if (opcode > OPCODE.pong || (opcode > OPCODE.binary && opcode < OPCODE.close)) {
    return `unknown opcode ${opcode}`;
  }
  if (opcode >= OPCODE.close) {
    if (first < 0x80) return "fragmented control frame";
    return (second & 127) > CONTROL_BYTES_MAX ? "control frame that is too large" : undefined;
  }
  if (opcode === OPCODE.more && !inFragments) return "continuation without a message";
  if (opcode !== OPCODE.more && inFragments) return "message between the fragments of another";
  return undefined;
}

/** Whether a close frame may carry the code, by the registry of RFC 6455. */
function maySend(code: number): boolean {
  if (code >= 3000) return code < 5000;
  return code >= 1000 && code <= 1014 && (code < 1004 || code > 1006);
}

/** What a close frame can hold beside its code. */
const REASON_BYTES_MAX = 123;

/** Cuts a close reason, between characters, to the 123 bytes that a close frame can hold. */
export function truncateReason(reason: string): string {
  const { read } = new TextEncoder().encodeInto(reason, new Uint8Array(REASON_BYTES_MAX));
  return reason.slice(0, read);
}
