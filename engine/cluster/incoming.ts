/**
 * The receiving half of a link: packets become frames again, in order and without a gap.
 *
 * A packet that is not the next one says that another was lost; then the link ends, since a frame
 * that is lost in silence would leave a call waiting for its deadline.
 *
 * @module
 */
import type { MemoryBudget } from "../ports/memory.ts";
import { HEAD_BYTES, KIND, LENGTH_BYTES, type LinkEnd, type PacketHead } from "./packet.ts";

const BACKSLASH = 0x5c;
/** Numbers are compared modulo 2^32: further ahead is behind. */
const AHEAD_MAX = 0x7fff_ffff;
/** A forwarded message may be longer than the one that came, by ids and a trace. */
const FORWARDED_BYTES = 4 * 1024;

/** What the receiving half uses. */
export interface IncomingSetup {
  readonly memory: MemoryBudget;
  /** Longest frame, as on connections of workers. */
  readonly maxMessageBytes: number;
  /** Handles a frame; `isPlain`: it has no backslash. */
  frame(memory: Uint8Array, start: number, end: number, isPlain: boolean): void;
  /** Handles a message between the links. */
  control(packet: Uint8Array): void;
  /** Ends the link. */
  fail(reason: LinkEnd): void;
}

/** Receives packets. */
export class Incoming {
  readonly #setup: IncomingSetup;
  /** Number of the packet that has to come next. */
  #next = 0;
  #handledBytes = 0;
  #parts: Uint8Array[] = [];
  #partBytes = 0;
  #isOver = false;

  constructor(setup: IncomingSetup) {
    this.#setup = setup;
  }

  /** Bytes of packets that were handled. */
  get handledBytes(): number {
    return this.#handledBytes;
  }

  /** Takes a packet with a number of its own. */
  take(head: PacketHead, packet: Uint8Array): void {
    if (!this.checkNumber(head.number) || head.number !== this.#next) return;
    this.#next = (this.#next + 1) >>> 0;
    if (head.kind === KIND.data) this.#takeFrames(packet);
    else if (head.kind === KIND.part) this.#takePart(packet, head.isLast);
    else this.#setup.control(packet);
    this.#handledBytes += packet.length;
  }

  /**
   * Whether nothing was lost before the packet with that number; otherwise the link ends. A smaller
   * one is late, or came twice.
   */
  checkNumber(number: number): boolean {
    if (this.#isOver) return false;
    const ahead = (number - this.#next) >>> 0;
    if (ahead === 0 || ahead > AHEAD_MAX) return true;
    this.#setup.fail("lost");
    return false;
  }

  /** Drops what was not handled. */
  close(): void {
    this.#isOver = true;
    this.#setup.memory.release("buffers", this.#partBytes);
    this.#parts = [];
    this.#partBytes = 0;
  }

  #takeFrames(packet: Uint8Array): void {
    const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
    const isPlain = packet.indexOf(BACKSLASH, HEAD_BYTES) < 0;
    for (let at = HEAD_BYTES; at < packet.length && !this.#isOver;) {
      const start = at + LENGTH_BYTES;
      at = start <= packet.length ? start + view.getUint32(at) : Infinity;
      if (at > packet.length) return this.#setup.fail("malformed");
      const { frame } = this.#setup;
      frame(packet, start, at, isPlain || packet.subarray(start, at).indexOf(BACKSLASH) < 0);
    }
  }

  #takePart(packet: Uint8Array, isLast: boolean): void {
    const { memory, maxMessageBytes, fail } = this.#setup;
    const bytes = packet.length - HEAD_BYTES;
    if (this.#partBytes + bytes > maxMessageBytes + FORWARDED_BYTES) {
      return fail("long");
    }
    if (!memory.take("buffers", bytes)) return fail("memory");
    this.#parts.push(packet.slice(HEAD_BYTES));
    this.#partBytes += bytes;
    if (!isLast) return;
    const whole = new Uint8Array(this.#partBytes);
    let at = 0;
    for (const part of this.#parts) {
      whole.set(part, at);
      at += part.length;
    }
    memory.release("buffers", this.#partBytes);
    this.#parts = [];
    this.#partBytes = 0;
    this.#setup.frame(whole, 0, whole.length, whole.indexOf(BACKSLASH) < 0);
  }
}
