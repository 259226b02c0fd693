/**
 * Cuts what a program prints into lines.
 *
 * A line that is too long becomes several, what is no UTF-8 becomes replacement characters: a
 * program may print anything.
 *
 * @module
 */
import { OUTPUT_LINE_CHARS_MAX } from "../supervisor/limits.ts";

/** Collects bytes, hands on lines without their ends. */
export class LineSplitter {
  readonly #decoder = new TextDecoder();
  readonly #line: (text: string) => void;
  #rest = "";

  /** `line` is called in order, for every whole line. */
  constructor(line: (text: string) => void) {
    this.#line = line;
  }

  /** Takes some bytes. */
  add(bytes: Uint8Array): void {
    this.#take(this.#decoder.decode(bytes, { stream: true }));
  }

  /** Hands on what stands behind the last line end. */
  end(): void {
    this.#take(this.#decoder.decode());
    if (this.#rest !== "") this.#line(this.#rest);
    this.#rest = "";
  }

  #take(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop()!;
    for (const line of lines) this.#cut(line.endsWith("\r") ? line.slice(0, -1) : line, true);
    this.#rest = this.#cut(this.#rest, false);
  }

  /** Hands on the full pieces of a line; the last piece too if the line has ended. */
  #cut(line: string, hasEnded: boolean): string {
    let rest = line;
    while (rest.length > OUTPUT_LINE_CHARS_MAX) {
      this.#line(rest.slice(0, OUTPUT_LINE_CHARS_MAX));
      rest = rest.slice(OUTPUT_LINE_CHARS_MAX);
    }
    if (hasEnded) this.#line(rest);
    return rest;
  }
}
