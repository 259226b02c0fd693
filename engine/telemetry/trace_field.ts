/**
 * The `traceparent` that goes along with a call, as the bytes of a field of its frame.
 *
 * @module
 */
import { bytesOf, viewOf } from "../core/wire/bytes.ts";
import { TRACEPARENT_KEY } from "../core/wire/frame_parts.ts";
import type { TraceBytes } from "../ports/call_observer.ts";
import { FLAGS_AT, SPAN_ID_AT, TRACE_ID_AT, TRACE_WORDS } from "./traceparent.ts";

const DIGITS_PER_WORD = 8;
const DIGIT_ZERO = 0x30;
/** The two digits of each number from 0 to 255, the first one in the upper byte. */
const DIGITS = Uint16Array.from({ length: 256 }, (_, byte) => {
  const [first, second] = bytesOf(byte.toString(16).padStart(2, "0"));
  return first! << 8 | second!;
});
const START = TRACEPARENT_KEY.length;

/** A field that is written anew for each span. */
export class TraceField implements TraceBytes {
  readonly memory: Uint8Array = bytesOf(
    `${TRACEPARENT_KEY}00-${"0".repeat(32)}-${"0".repeat(16)}-00"`,
  );
  readonly view: DataView = viewOf(this.memory);

  /** The field of a span: four words from `from` on are its trace, the next two its own. */
  of(words: Uint32Array, from: number, isSampled: boolean): this {
    for (let at = 0; at < TRACE_WORDS; at++) {
      this.#write(words[from + at]!, START + TRACE_ID_AT + at * DIGITS_PER_WORD);
    }
    this.#write(words[from + TRACE_WORDS]!, START + SPAN_ID_AT);
    this.#write(words[from + TRACE_WORDS + 1]!, START + SPAN_ID_AT + DIGITS_PER_WORD);
    this.memory[START + FLAGS_AT + 1] = DIGIT_ZERO + (isSampled ? 1 : 0);
    return this;
  }

  #write(word: number, at: number): void {
    const { view } = this; // Four digits at a time.
    view.setUint32(at, DIGITS[word >>> 24]! << 16 | DIGITS[word >>> 16 & 0xff]!);
    view.setUint32(at + 4, DIGITS[word >>> 8 & 0xff]! << 16 | DIGITS[word & 0xff]!);
  }
}
