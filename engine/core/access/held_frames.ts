/**
 * Holds the frames of a connection while a function decides about it, and hands them on in order.
 *
 * Until the decision the engine soon stops reading from the peer, so few frames are held; their
 * bytes are taken from the memory of the process.
 *
 * @module
 */
import type { Connection, ConnectionEvents, Outline } from "../../ports/connection.ts";
import type { MemoryBudget } from "../../ports/memory.ts";

/** With more bytes held, the engine does not read from the peer. */
export const HELD_BYTES = 64 * 1024;
/** What one frame takes besides its bytes. */
const FRAME_BYTES = 128;

/** Takes the frames; {@linkcode Session} is one. */
export interface HeldReceiver extends ConnectionEvents {
  /** Counts the reasons for which the engine does not read from the peer. */
  readonly peer: { pauseReading(): boolean; resumeReading(): void };
}

interface HeldFrame {
  readonly bytes: Uint8Array;
  readonly isPlain: boolean;
  readonly isBinary: boolean;
}

/** The events of a connection that may be held. */
export class HeldFrames implements Required<ConnectionEvents> {
  readonly #connection: Connection;
  readonly #memory: MemoryBudget;
  readonly #ended: () => void;
  #receiver: HeldReceiver | undefined;
  #isHolding = true;
  #isClosed = false;
  #frames: HeldFrame[] = [];
  #bytes = 0;
  /** What stopped reading; `undefined`: the engine reads. */
  #paused: "connection" | "peer" | undefined;

  /** Holds from the start. `ended` is called when the connection closes before release(). */
  constructor(connection: Connection, memory: MemoryBudget, ended: () => void = () => {}) {
    this.#connection = connection;
    this.#memory = memory;
    this.#ended = ended;
  }

  /** Whether the connection is closed. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Holds all frames from now on. */
  hold(): void {
    this.#isHolding = true;
  }

  /** Hands on what was held, to the receiver from before unless there is a first one. */
  release(receiver: HeldReceiver | undefined = this.#receiver): void {
    if (this.#isClosed || !receiver) return;
    this.#receiver = receiver;
    this.#isHolding = false;
    let next = 0;
    // A frame that is handed on may hold those behind it.
    while (next < this.#frames.length && !this.#isHeld && !this.#isClosed) {
      this.#hand(this.#frames[next++]!);
    }
    if (this.#isClosed) return;
    this.#frames = this.#frames.slice(next);
    if (this.#frames.length === 0) this.#resume();
  }

  text(text: string): void {
    if (!this.#isHolding) return this.#receiver!.text(text);
    this.#keep(new TextEncoder().encode(text), !text.includes("\\"), false);
  }

  textBytes(
    memory: Uint8Array,
    start: number,
    end: number,
    isPlain: boolean,
    outline?: Outline,
  ): void {
    if (!this.#isHolding) return this.#receiver!.textBytes(memory, start, end, isPlain, outline);
    // Its outline would be of other offsets; without one the receiver reads the bytes again.
    this.#keep(memory.slice(start, end), isPlain, false);
  }

  binary(bytes: Uint8Array): void {
    if (!this.#isHolding) return this.#receiver!.binary(bytes);
    this.#keep(bytes.slice(), false, true);
  }

  drained(): void {
    this.#receiver?.drained();
  }

  suspected(isSuspect: boolean): void {
    this.#receiver?.suspected(isSuspect);
  }

  retire(): boolean {
    return this.#receiver?.retire?.() ?? false;
  }

  closed(code: number, reason: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#frames = [];
    this.#memory.release("queues", this.#bytes);
    this.#bytes = 0;
    if (this.#receiver) this.#receiver.closed(code, reason);
    else this.#ended();
  }

  /** Read anew each time: a receiver may hold while it handles a frame. */
  get #isHeld(): boolean {
    return this.#isHolding;
  }

  #keep(bytes: Uint8Array, isPlain: boolean, isBinary: boolean): void {
    if (this.#isClosed) return;
    const taken = bytes.length + FRAME_BYTES;
    if (!this.#memory.take("queues", taken)) {
      return this.#connection.close(1009, "the engine's memory is used up (engine.memory_mb)");
    }
    this.#bytes += taken;
    this.#frames.push({ bytes, isPlain, isBinary });
    if (this.#bytes > HELD_BYTES) this.#pause();
  }

  #hand({ bytes, isPlain, isBinary }: HeldFrame): void {
    const taken = bytes.length + FRAME_BYTES;
    this.#bytes -= taken;
    this.#memory.release("queues", taken);
    if (isBinary) this.#receiver!.binary(bytes);
    else this.#receiver!.textBytes(bytes, 0, bytes.length, isPlain);
  }

  #pause(): void {
    if (this.#paused) return;
    if (this.#receiver) {
      if (this.#receiver.peer.pauseReading()) this.#paused = "peer";
    } else if (this.#connection.pause()) this.#paused = "connection";
  }

  #resume(): void {
    const paused = this.#paused;
    this.#paused = undefined;
    if (paused === "peer") this.#receiver!.peer.resumeReading();
    else if (paused === "connection") this.#connection.resume();
  }
}
