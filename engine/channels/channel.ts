/**
 * One channel between two connections: a state machine without I/O (PROTOCOL 7).
 *
 * What the writer sends goes to the reader's connection at once, without a copy of its own. While
 * that connection has too much unsent, the writer's is not read, so the kernel's buffers fill up
 * and the writer waits. Only frames that arrive before the reader has connected are held here.
 *
 * @module
 */
import {
  CHANNEL_CLOSE,
  CHANNEL_FRAME_BYTES_MAX,
  READER_CLOSED,
  STREAM_COMPLETE,
} from "../../sdk/typescript/wire/channels.ts";
import { CHANNEL_HELD_BYTES_MAX, type ReaderEnd, type WriterEnd } from "../ports/channels.ts";
import { type ConnectionEvents, STREAM_AHEAD_BYTES } from "../ports/connection.ts";
import type { MemoryBudget } from "../ports/memory.ts";

/** What a channel works with. */
export interface ChannelOptions {
  /** Frames that are held for a reader that has not connected. */
  readonly bufferFrames: number;
  readonly memory: MemoryBudget;
  /** Called with the bytes of each frame. */
  moved(bytes: number): void;
  /** Called once, when nothing more can happen. */
  ended(): void;
}

/** Bytes that may wait where the writer's transport cannot stop reading. */
export const UNPAUSED_BYTES_MAX = 16 * 1024 * 1024;

const EMPTY = new Uint8Array();
const encoder = new TextEncoder();

/** A frame that waits for the reader. */
interface HeldFrame {
  readonly isText: boolean;
  readonly bytes: Uint8Array;
}

/** How the reader's connection is to be closed. */
interface Ending {
  readonly code: number;
  readonly reason: string;
}

/** What happens between the two ends. */
export class Channel {
  readonly #options: ChannelOptions;
  #writer: WriterEnd | undefined;
  #reader: ReaderEnd | undefined;
  #isWriterClaimed = false;
  #isReaderClaimed = false;
  #held: HeldFrame[] = [];
  #heldBytes = 0;
  #isPaused = false;
  /** Set when the writer has ended. */
  #ending: Ending | undefined;
  #isOver = false;

  constructor(options: ChannelOptions) {
    this.#options = options;
  }

  /** Whether both ends were connected at some time. */
  get isClaimed(): boolean {
    return this.#isWriterClaimed && this.#isReaderClaimed;
  }

  /** Connects the writer; `undefined` when there was one before. */
  claimWriter(writer: WriterEnd): ConnectionEvents | undefined {
    if (this.#isWriterClaimed || this.#isOver) return undefined;
    this.#isWriterClaimed = true;
    this.#writer = writer;
    return new WriterEvents(this);
  }

  /** Connects the reader, which gets what was held for it; `undefined`: there was one before. */
  claimReader(reader: ReaderEnd): ConnectionEvents | undefined {
    if (this.#isReaderClaimed || this.#isOver) return undefined;
    this.#isReaderClaimed = true;
    this.#reader = reader;
    for (const frame of this.#takeHeld()) this.#deliver(reader, frame);
    if (this.#ending) this.#endReader(this.#ending);
    else if (!this.#isBehind(reader)) this.#resume();
    return new ReaderEvents(this);
  }

  /** A text message of the writer, as UTF-8 in a part of `memory`. */
  text(memory: Uint8Array, start: number, end: number): void {
    const reader = this.#readerFor(end - start);
    if (!reader) return this.#hold(true, memory.subarray(start, end));
    reader.forward(EMPTY, 0, memory, start, end);
    this.#checkQueue(reader);
  }

  /** Bytes of the writer. */
  binary(bytes: Uint8Array): void {
    const reader = this.#readerFor(bytes.length);
    if (!reader) return this.#hold(false, bytes);
    sendBytes(reader, bytes);
    this.#checkQueue(reader);
  }

  /** The reader's connection has sent most of what it had. */
  drained(): void {
    if (this.#isReaderClaimed) this.#resume();
  }

  /** The writer's connection has ended. */
  writerClosed(code: number, reason: string): void {
    this.#writer = undefined;
    if (this.#isOver || this.#ending) return;
    const ending = endingOf(code, reason);
    this.#ending = ending;
    if (this.#reader) this.#endReader(ending);
    else if (this.#isReaderClaimed) this.#over();
  }

  /** The reader's connection has ended. */
  readerClosed(): void {
    this.#reader = undefined;
    this.#over();
    this.#closeWriter(CHANNEL_CLOSE.complete, READER_CLOSED);
  }

  /** Ends it for both sides; the reader's stream counts as not whole. */
  abort(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#ending ??= { code, reason };
    const reader = this.#reader;
    this.#reader = undefined;
    this.#over();
    this.#closeWriter(code, reason);
    reader?.close(code, reason);
  }

  /** The connected reader, when nothing is held for it; counts the frame. */
  #readerFor(bytes: number): ReaderEnd | undefined {
    this.#options.moved(bytes);
    return this.#reader;
  }

  #hold(isText: boolean, bytes: Uint8Array): void {
    if (this.#isReaderClaimed || this.#isOver) return; // It has left; the writer learns that.
    if (!this.#options.memory.take("buffers", bytes.length)) {
      return this.abort(CHANNEL_CLOSE.tooLarge, "engine.memory_mb is used up");
    }
    this.#held.push({ isText, bytes: bytes.slice() });
    this.#heldBytes += bytes.length;
    const isFull = this.#held.length >= this.#options.bufferFrames ||
      this.#heldBytes >= CHANNEL_HELD_BYTES_MAX;
    if (isFull) this.#pause(this.#heldBytes);
  }

  #deliver(reader: ReaderEnd, { isText, bytes }: HeldFrame): void {
    if (isText) reader.forward(EMPTY, 0, bytes, 0, bytes.length);
    else sendBytes(reader, bytes);
  }

  #checkQueue(reader: ReaderEnd): void {
    if (this.#isBehind(reader)) this.#pause(reader.queuedBytes);
  }

  #isBehind({ queuedBytes }: ReaderEnd): boolean {
    return queuedBytes > STREAM_AHEAD_BYTES;
  }

  /** Stops reading from the writer; a transport that cannot do that may send so much at most. */
  #pause(waitingBytes: number): void {
    if (this.#isPaused || !this.#writer) return;
    this.#isPaused = this.#writer.pause();
    if (this.#isPaused || waitingBytes <= UNPAUSED_BYTES_MAX) return;
    this.abort(CHANNEL_CLOSE.tooLarge, `over ${UNPAUSED_BYTES_MAX} bytes wait for the reader`);
  }

  #resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#writer?.resume();
  }

  #endReader({ code, reason }: Ending): void {
    this.#reader?.close(code, reason);
  }

  #closeWriter(code: number, reason: string): void {
    const writer = this.#writer;
    this.#writer = undefined;
    writer?.close(code, reason);
  }

  #takeHeld(): HeldFrame[] {
    const held = this.#held;
    this.#options.memory.release("buffers", this.#heldBytes);
    this.#held = [];
    this.#heldBytes = 0;
    return held;
  }

  #over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#takeHeld();
    this.#options.ended();
  }
}

/** Clients close with 1000 or without a code when all is sent. */
function endingOf(code: number, reason: string): Ending {
  if (code === 1000 || code === 1005) {
    return { code: CHANNEL_CLOSE.complete, reason: STREAM_COMPLETE };
  }
  const { aborted, goingAway } = CHANNEL_CLOSE;
  if (code === aborted) return { code, reason };
  if (code === goingAway) return { code, reason: reason || "the writer went away" };
  return { code: aborted, reason: `the writer was lost (${code}${reason && `: ${reason}`})` };
}

/** Some clients refuse larger messages, and the sizes of frames of bytes have no meaning. */
function sendBytes(reader: ReaderEnd, bytes: Uint8Array): void {
  if (bytes.length <= CHANNEL_FRAME_BYTES_MAX) return reader.sendBinary(bytes);
  for (let at = 0; at < bytes.length; at += CHANNEL_FRAME_BYTES_MAX) {
    reader.sendBinary(bytes.subarray(at, at + CHANNEL_FRAME_BYTES_MAX));
  }
}

/** What the writer's connection reports. */
class WriterEvents implements ConnectionEvents {
  readonly #channel: Channel;

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  text(text: string): void {
    const bytes = encoder.encode(text);
    this.#channel.text(bytes, 0, bytes.length);
  }

  textBytes(memory: Uint8Array, start: number, end: number): void {
    this.#channel.text(memory, start, end);
  }

  binary(bytes: Uint8Array): void {
    this.#channel.binary(bytes);
  }

  drained(): void {}

  suspected(): void {}

  closed(code: number, reason: string): void {
    this.#channel.writerClosed(code, reason);
  }
}

/** What the reader's connection reports; what a reader sends is ignored. */
class ReaderEvents implements ConnectionEvents {
  readonly #channel: Channel;

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  text(): void {}

  textBytes(): void {}

  binary(): void {}

  drained(): void {
    this.#channel.drained();
  }

  suspected(): void {}

  closed(): void {
    this.#channel.readerClosed();
  }
}
