/**
 * Finds the end of what one program printed in a stream that several programs use in turn.
 *
 * The guest ends each with a zero byte and a mark that nobody could guess. What cannot belong to
 * the mark is handed on at once, so that a line is never kept back for the next one.
 *
 * @module
 */

/** Cuts one stream. */
export class EndMarks {
  readonly #output: (bytes: Uint8Array<ArrayBuffer>) => void;
  /** Bytes that may be the beginning of the mark. */
  #held = new Uint8Array();
  #mark: Uint8Array | undefined;
  #found: (() => void) | undefined;

  /** `output` gets what programs printed; bytes outside any program are dropped. */
  constructor(output: (bytes: Uint8Array<ArrayBuffer>) => void) {
    this.#output = output;
  }

  /** From now on the stream is a program's; resolves when its end was found. */
  next(mark: string): Promise<void> {
    this.#mark = new TextEncoder().encode(`\0${mark}`);
    return new Promise((resolve) => this.#found = resolve);
  }

  /** Takes some bytes. */
  add(bytes: Uint8Array<ArrayBuffer>): void {
    if (!this.#mark) return;
    let rest = bytes;
    if (this.#held.length > 0) {
      rest = new Uint8Array(this.#held.length + bytes.length);
      rest.set(this.#held);
      rest.set(bytes, this.#held.length);
      this.#held = new Uint8Array();
    }
    const at = indexOfStart(rest, this.#mark);
    if (at > 0) this.#output(rest.subarray(0, at));
    if (rest.length - at >= this.#mark.length) this.end();
    else this.#held = rest.slice(at);
  }

  /** The stream is over: what was held back was no mark. */
  end(): void {
    if (this.#held.length > 0) this.#output(this.#held);
    this.#held = new Uint8Array();
    this.#mark = undefined;
    this.#found?.();
    this.#found = undefined;
  }
}

/** Where the mark stands or may begin to; the length of `bytes` if nowhere. */
function indexOfStart(bytes: Uint8Array, mark: Uint8Array): number {
  for (let at = bytes.indexOf(mark[0]!); at >= 0; at = bytes.indexOf(mark[0]!, at + 1)) {
    const end = Math.min(mark.length, bytes.length - at);
    let same = 1;
    while (same < end && bytes[at + same] === mark[same]) same++;
    if (same === end) return at;
  }
  return bytes.length;
}
