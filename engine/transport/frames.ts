/**
 * Frames as a server reads them: bytes in, messages out, and nothing that waits.
 *
 * Whoever has a socket reads into {@linkcode FrameReader.room} and says how much came; the reader
 * takes the masks off in place and reports whole messages. A size is checked when a frame claims
 * it, before anything of it is kept. All of RFC 6455 is held, but that a length written with more
 * bytes than it needs is taken as it is, which every server does.
 *
 * @module
 */
import { isUtf8 } from "node:buffer";
import { READ_BYTES_FIRST, READ_BYTES_MAX } from "../../sdk/typescript/wire/limits.ts";
import { BEYOND_ASCII, type Masked, NOT_PLAIN, unmask } from "./unmask.ts";

/** What a frame is, as it stands in its first byte. */
export const OPCODE = { more: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** Longest payload of a frame that is no message. */
export const CONTROL_BYTES_MAX = 125;

/** How a peer breaks the rules: framing, UTF-8, size. */
export type BrokenCode = 1002 | 1007 | 1009;

/** What frames come to. Bytes are valid until the call with them returns. */
export interface FrameEvents {
  /** See `ConnectionEvents.textBytes`. */
  text(memory: Uint8Array, start: number, end: number, isPlain: boolean): void;
  binary(bytes: Uint8Array): void;
  ping(payload: Uint8Array): void;
  /** The peer's goodbye, 1005 if it gave no code; nothing follows. */
  goodbye(code: number, reason: string): void;
  /** The peer broke a rule; nothing follows. */
  broken(code: BrokenCode, reason: string): void;
}

/** The first byte of a whole message of one frame. */
const WHOLE_TEXT = 0x80 | OPCODE.text;
/** A read that filled all the room there was: the next one gets so many times as much. */
const READ_GROWTH = 4;
/** Memory that is kept for the next message: making it anew costs more than filling it. */
const KEPT_BYTES_MAX = 16 * READ_BYTES_MAX;
/** Behind a large message, so that the start of the next one comes with its end. */
const SPARE_BYTES = 16;
const UTF_8 = new TextDecoder("utf-8", { ignoreBOM: true });
const NOTHING = new Uint8Array();

/** Reads the frames of one line. */
export class FrameReader {
  readonly #events: FrameEvents;
  readonly #maxMessageBytes: number;
  #memory: Masked = memoryOf(READ_BYTES_FIRST);
  /** What was read and not yet handled. */
  #start = 0;
  #end = 0;
  /** Bytes of the whole frame at `#start`, once they are known and not all there. */
  #needs = 0;
  #largestRead = 0;
  #isFull = false;
  #shrinks = false;
  #state: "reading" | "paused" | "over" = "reading";

  /** What has come of a message in fragments; `undefined` opcode: there is none. */
  #opcode: number | undefined;
  #message: Uint8Array = NOTHING;
  #messageBytes = 0;
  #seen = 0;
  /** Has read its fragments from the first that was not ASCII. */
  #soFar: TextDecoder | undefined;

  /** Makes the reader of a line on which nothing was read yet. */
  constructor(events: FrameEvents, maxMessageBytes: number) {
    this.#events = events;
    this.#maxMessageBytes = maxMessageBytes;
  }

  /** A frame's header is all that came of it: a peer may be waiting for a word to send the rest. */
  get endsBehindHeader(): boolean {
    if (this.#needs === 0) return false;
    const header = headerBytes(this.#memory.bytes[this.#start + 1]!);
    return this.#end - this.#start === header && this.#needs > header;
  }

  /** Where the next bytes belong; never empty. */
  room(): Uint8Array {
    if (this.#start === this.#end) this.#resizeEmpty();
    else this.#makeRoom();
    return this.#memory.bytes.subarray(this.#end);
  }

  /** So many bytes were read into {@linkcode room}; {@linkcode read} handles them. */
  added(count: number): void {
    this.#end += count;
    this.#isFull = this.#end === this.#memory.bytes.length;
    if (count > this.#largestRead) this.#largestRead = count;
  }

  /** Reports everything that is there, until it is paused or over. */
  read(): void {
    while (this.#state === "reading" && this.#readFrame());
  }

  /** Reports nothing more until {@linkcode resume} and the next {@linkcode read}. */
  pause(): void {
    if (this.#state === "reading") this.#state = "paused";
  }

  /** See {@linkcode pause}. */
  resume(): void {
    if (this.#state === "paused") this.#state = "reading";
  }

  /** Reports nothing more at all, and lets go of what it holds. */
  stop(): void {
    this.#state = "over";
    this.#start = this.#end = this.#needs = 0;
    this.#forgetMessage();
    this.#replace(READ_BYTES_FIRST);
  }

  /** Called now and then: what was not needed since the last time is let go of. */
  ease(): void {
    this.#shrinks = this.#largestRead * 4 < this.#memory.bytes.length;
    this.#largestRead = 0;
  }

  /** Handles one frame; `false` when not all of it is there. */
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
      return false;
    }

    this.#needs = 0;
    this.#start = end;
    const mask = bytes[start + header - 4]! | bytes[start + header - 3]! << 8 |
      bytes[start + header - 2]! << 16 | bytes[start + header - 1]! << 24;
    const seen = unmask(this.#memory, start + header, end, mask);
    if (first === WHOLE_TEXT) this.#text(bytes, start + header, end, seen);
    else this.#other(first, bytes.subarray(start + header, end), seen);
    return true;
  }

  /** A text of which {@linkcode unmask} said what is in it. */
  #text(memory: Uint8Array, start: number, end: number, seen: number): void {
    if ((seen & BEYOND_ASCII) !== 0 && !isUtf8(memory.subarray(start, end))) {
      return this.#break(1007, "text that is not UTF-8");
    }
    this.#events.text(memory, start, end, (seen & NOT_PLAIN) === 0);
  }

  #other(first: number, payload: Uint8Array, seen: number): void {
    const opcode = first & 15;
    switch (opcode) {
      case OPCODE.ping:
        return this.#events.ping(payload);
      case OPCODE.pong:
        return;
      case OPCODE.close:
        return this.#goodbye(payload);
    }
    if (first === (0x80 | OPCODE.binary)) return this.#events.binary(payload);
    if (opcode !== OPCODE.more) this.#opcode = opcode;
    this.#keep(payload, seen);
    if (first >= 0x80) this.#whole();
    else if (!this.#mayGoOn(payload)) this.#break(1007, "text that is not UTF-8");
  }

  /** A text in fragments is refused with the one that spoils it, not after megabytes of others. */
  #mayGoOn(payload: Uint8Array): boolean {
    if (this.#opcode !== OPCODE.text || (this.#seen & BEYOND_ASCII) === 0) return true;
    this.#soFar ??= new TextDecoder("utf-8", { fatal: true });
    try {
      this.#soFar.decode(payload, { stream: true });
      return true;
    } catch {
      return false; // The only reason is bytes that are not UTF-8.
    }
  }

  /** The last fragment was there. */
  #whole(): void {
    const isText = this.#opcode === OPCODE.text;
    const bytes = this.#message.subarray(0, this.#messageBytes);
    const seen = this.#seen;
    this.#forgetMessage();
    if (isText) this.#text(bytes, 0, bytes.length, seen);
    else this.#events.binary(bytes);
  }

  #keep(payload: Uint8Array, seen: number): void {
    const bytes = this.#messageBytes + payload.length;
    if (bytes > this.#message.length) {
      const larger = new Uint8Array(Math.max(bytes, Math.min(bytes * 2, this.#maxMessageBytes)));
      larger.set(this.#message.subarray(0, this.#messageBytes));
      this.#message = larger;
    }
    this.#message.set(payload, this.#messageBytes);
    this.#messageBytes = bytes;
    this.#seen |= seen;
  }

  #forgetMessage(): void {
    this.#opcode = undefined;
    this.#message = NOTHING;
    this.#messageBytes = 0;
    this.#seen = 0;
    this.#soFar = undefined;
  }

  #goodbye(payload: Uint8Array): void {
    const code = payload.length < 2 ? 1005 : payload[0]! << 8 | payload[1]!;
    const reason = payload.subarray(2);
    if (payload.length === 1) this.#break(1002, "goodbye with half a code");
    else if (payload.length > 1 && !maySend(code)) this.#break(1002, `goodbye with code ${code}`);
    else if (!isUtf8(reason)) this.#break(1007, "goodbye that is not UTF-8");
    else {
      this.#state = "over";
      this.#events.goodbye(code, UTF_8.decode(reason));
    }
  }

  /** What the first two bytes already say: most frames are whole texts with a mask. */
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

  #break(code: BrokenCode, reason: string): void {
    this.#state = "over";
    this.#events.broken(code, reason);
  }

  #resizeEmpty(): void {
    this.#start = this.#end = 0;
    const size = this.#memory.bytes.length;
    if (this.#shrinks && size > READ_BYTES_FIRST) this.#replace(READ_BYTES_FIRST);
    else if (size > KEPT_BYTES_MAX) this.#replace(READ_BYTES_MAX);
    else if (this.#isFull && size < READ_BYTES_MAX) this.#replace(size * READ_GROWTH);
    this.#isFull = this.#shrinks = false;
  }

  /** Grows with what has come, not with what a header claims. */
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

  /** Moves what is kept to the front of memory of this size. */
  #replace(size: number): void {
    const { bytes } = this.#memory;
    if (size === bytes.length) {
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

/** With the mask; `second` is the byte with the short length. */
function headerBytes(second: number): number {
  const short = second & 127;
  return short < 126 ? 6 : short === 126 ? 8 : 14;
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
    if (first < 0x80) return "control frame in fragments";
    return (second & 127) > CONTROL_BYTES_MAX ? "control frame that is too large" : undefined;
  }
  if (opcode === OPCODE.more && !inFragments) return "continuation of nothing";
  if (opcode !== OPCODE.more && inFragments) return "message amid fragments of another";
  return undefined;
}

/** Codes that may stand in a goodbye, by the registry of RFC 6455. */
function maySend(code: number): boolean {
  if (code >= 3000) return code < 5000;
  return code >= 1000 && code <= 1014 && (code < 1004 || code > 1006);
}
