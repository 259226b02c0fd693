/**
 * Hands on what a socket reads in slices, with the turns of other connections between them.
 *
 * One read brings 64 KiB, in which an HTTP body may have 11,000 chunks of one byte. The platform's
 * parser handles all of what it gets at once, and takes 5 µs for each chunk: 60 ms for one read,
 * and a second for those of 16 connections. Nothing can end it before, so it gets less at a time.
 *
 * @module
 */
import type { Duplex } from "node:stream";
import type { Turns, Work } from "../ports/turns.ts";

/** Bytes that are handed on at once, at first and after a slow slice. */
export const SLICE_BYTES = 1_024;
/** The same for bytes that take little time, such as those of large chunks. */
export const SLICE_BYTES_MAX = 8_192;
/** A slice that takes less is followed by a larger one, a slice that takes longer by the least. */
const QUICK_MS = 0.2;
const SLOW_MS = 1;

/**
 * Paces the reads of a socket that was not read yet. Reads of up to {@linkcode SLICE_BYTES}, as
 * most answers are, go on at once.
 */
export function paceReading(socket: Duplex, turns: Turns): void {
  const push = socket.push.bind(socket);
  const read = socket._read.bind(socket);
  /** What was read and not handed on; `null` is the end. */
  const held: (Uint8Array | null)[] = [];
  let sliceBytes = SLICE_BYTES;
  let isQueued = false;

  /** Hands on one slice; whether the reader takes more. */
  const handOn = (): boolean => {
    const first = held[0]!;
    if (first === null) {
      held.length = 0;
      return push(null);
    }
    if (first.length > sliceBytes) held[0] = first.subarray(sliceBytes);
    else held.shift();
    const began = performance.now();
    const wantsMore = push(first.subarray(0, sliceBytes));
    const ms = performance.now() - began;
    if (ms > SLOW_MS) sliceBytes = SLICE_BYTES;
    else if (ms < QUICK_MS) sliceBytes = Math.min(2 * sliceBytes, SLICE_BYTES_MAX);
    return wantsMore;
  };
  const slices: Work = {
    work() {
      isQueued = false;
      if (socket.destroyed) held.length = 0;
      while (held.length > 0 && handOn()) {
        if (held.length > 0 && turns.isSpent()) return isQueued = true;
      }
      return false;
    },
  };
  const queue = (): void => {
    if (isQueued) return;
    isQueued = true;
    turns.queue(slices);
  };
  socket.push = (chunk: Uint8Array | null, encoding?: BufferEncoding): boolean => {
    const isSmall = chunk === null || chunk.length <= SLICE_BYTES;
    if (held.length === 0 && isSmall) return push(chunk, encoding);
    held.push(chunk);
    queue();
    return false; // The platform reads no more until it is asked to.
  };
  // Called when the reader takes more, which is the next slice as long as there is one.
  socket._read = (bytes: number): void => held.length > 0 ? queue() : read(bytes);
}
