/**
 * The messages in a frame of a line that takes batches (`engine.batch.v1`).
 *
 * @module
 */
const NEWLINE = 0x0a;

/** Reports where each message lies in `memory` between `start` and `end`; empty ones are none. */
export function eachMessage(
  memory: Uint8Array,
  start: number,
  end: number,
  take: (start: number, end: number) => void,
): void {
  const frame = memory.subarray(start, end);
  for (let from = 0; from < frame.length;) {
    const newline = frame.indexOf(NEWLINE, from);
    const to = newline < 0 ? frame.length : newline;
    if (to > from) take(start + from, start + to);
    from = to + 1;
  }
}
