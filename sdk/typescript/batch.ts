/**
 * Several messages in one frame, where both ends agreed on it (`engine.batch.v1`).
 *
 * Messages are separated by newlines, which a message itself never holds: all that the SDK sends
 * was written by `JSON.stringify`, which escapes them.
 *
 * @module
 */
import { BATCH_CHARS_MAX } from "./wire/limits.ts";

/** Messages that are about to leave together, in order. */
export class Batch {
  readonly #write: (frame: string) => void;
  #texts: string[] = [];
  #chars = 0;

  /** Empty; `write` gets whole frames. */
  constructor(write: (frame: string) => void) {
    this.#write = write;
  }

  /** Characters that have not left. */
  get chars(): number {
    return this.#chars;
  }

  /** Puts a message at the end; what has no room in the same frame leaves first. */
  add(text: string): void {
    const chars = text.length + 1;
    if (this.#chars + chars > BATCH_CHARS_MAX) this.flush();
    this.#texts.push(text);
    this.#chars += chars;
  }

  /** Sends what there is. */
  flush(): void {
    const texts = this.#texts;
    if (texts.length === 0) return;
    this.#texts = [];
    this.#chars = 0;
    this.#write(texts.length === 1 ? texts[0]! : texts.join("\n"));
  }
}

/** Hands over each message of a frame; empty lines are none. */
export function splitBatch(frame: string, take: (message: string) => void): void {
  let start = 0;
  let end = frame.indexOf("\n");
  for (; end !== -1; end = frame.indexOf("\n", start)) {
    if (end > start) take(frame.slice(start, end));
    start = end + 1;
  }
  if (start < frame.length) take(start === 0 ? frame : frame.slice(start));
}
