/**
 * Frames that wait for a line, in order and bounded in bytes.
 *
 * A frame is written when it leaves, so that a call says how much of its time is left then; a call
 * that ended meanwhile is taken out and never leaves.
 *
 * @module
 */

/** A frame that waits. */
export interface QueuedFrame {
  /** Names a call, so that it can be taken out; `undefined` for frames nobody waits for. */
  readonly invocation_id: string | undefined;
  /** What it counts for. */
  readonly bytes: number;
  /** The frame as it is to leave now; `undefined` for not at all. */
  write(): string | undefined;
}

/** The frames of one worker that wait for a line. */
export class OfflineQueue {
  readonly #frames = new Map<string | symbol, QueuedFrame>();
  readonly #bytesMax: number;
  #bytes = 0;

  /** Holds at most `bytesMax`. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes that wait. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Puts a frame at the end; `false` when there is no room. */
  add(frame: QueuedFrame): boolean {
    if (this.#bytes + frame.bytes > this.#bytesMax) return false;
    this.#frames.set(frame.invocation_id ?? Symbol(), frame);
    this.#bytes += frame.bytes;
    return true;
  }

  /** Takes a call out again. */
  remove(invocation_id: string): void {
    const frame = this.#frames.get(invocation_id);
    if (!frame) return;
    this.#frames.delete(invocation_id);
    this.#bytes -= frame.bytes;
  }

  /** Hands over all frames in order and holds none any more. */
  takeAll(): QueuedFrame[] {
    const frames = [...this.#frames.values()];
    this.#frames.clear();
    this.#bytes = 0;
    return frames;
  }
}
