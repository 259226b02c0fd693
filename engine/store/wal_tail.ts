/**
 * Finds what SQLite will drop from the end of a write-ahead log when it opens the file.
 *
 * A log consists of frames, each with a checksum over all before it; the last frame of a commit
 * says so. SQLite takes everything up to the last intact commit. Frames behind it are the tail of a
 * commit that a crash interrupted, or, when commits lie behind a damaged frame, lost writes. Frames
 * with other salts are left from an earlier use of the file.
 *
 * @module
 */

/** What is dropped. */
export interface DroppedTail {
  readonly bytes: number;
  /** Ends of commits among them: writes that may have been acknowledged. */
  readonly commits: number;
  /** More than the end that a crash leaves: commits, or a log whose head cannot be read. */
  readonly isDamaged: boolean;
}

const HEAD_BYTES = 32;
const FRAME_HEAD_BYTES = 24;
const MAGIC = 0x377f0682;
const PAGE_BYTES_MAX = 65_536;

/** The tail of a log that will be dropped; `undefined` when nothing is. */
export function findDroppedTail(walPath: string): DroppedTail | undefined {
  let file: Deno.FsFile;
  try {
    file = Deno.openSync(walPath, { read: true });
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return undefined;
    throw thrown;
  }
  try {
    return readTail(file);
  } finally {
    file.close();
  }
}

function readTail(file: Deno.FsFile): DroppedTail | undefined {
  const size = file.statSync().size;
  if (size === 0) return undefined;
  const head = new Uint8Array(HEAD_BYTES);
  const headless = { bytes: size, commits: 0, isDamaged: size > HEAD_BYTES + FRAME_HEAD_BYTES };
  if (readFully(file, head) < HEAD_BYTES) return headless;
  const view = new DataView(head.buffer);
  const pageBytes = view.getUint32(8);
  const isLittle = view.getUint32(0) === MAGIC;
  const isLog = (view.getUint32(0) & ~1) >>> 0 === MAGIC && pageBytes <= PAGE_BYTES_MAX;
  const sums: [number, number] = [0, 0];
  addSums(sums, head, 24, isLittle);
  if (!isLog || sums[0] !== view.getUint32(24) || sums[1] !== view.getUint32(28)) {
    return headless;
  }
  return readFrames(file, { view, pageBytes, isLittle, sums });
}

interface LogHead {
  readonly view: DataView;
  readonly pageBytes: number;
  readonly isLittle: boolean;
  readonly sums: [number, number];
}

function readFrames(file: Deno.FsFile, log: LogHead): DroppedTail | undefined {
  const frame = new Uint8Array(FRAME_HEAD_BYTES + log.pageBytes);
  const view = new DataView(frame.buffer);
  let bytes = 0;
  let commits = 0;
  let isIntact = true;
  for (;;) {
    const length = readFully(file, frame);
    if (length < FRAME_HEAD_BYTES) {
      bytes += length;
      break;
    }
    const isOfThisUse = view.getUint32(8) === log.view.getUint32(16) &&
      view.getUint32(12) === log.view.getUint32(20);
    if (!isOfThisUse) break;
    if (isIntact) {
      addSums(log.sums, frame, 8, log.isLittle);
      addSums(log.sums, frame.subarray(FRAME_HEAD_BYTES), log.pageBytes, log.isLittle);
      isIntact = length === frame.length && log.sums[0] === view.getUint32(16) &&
        log.sums[1] === view.getUint32(20);
    }
    const isCommit = view.getUint32(4) > 0;
    bytes = isIntact && isCommit ? 0 : bytes + length;
    if (!isIntact && isCommit && length === frame.length) commits++;
    if (length < frame.length) break;
  }
  return bytes > 0 ? { bytes, commits, isDamaged: commits > 0 } : undefined;
}

/** SQLite's checksum: over pairs of 32-bit words, in the byte order that the magic names. */
function addSums(sums: [number, number], data: Uint8Array, bytes: number, isLittle: boolean): void {
  const view = new DataView(data.buffer, data.byteOffset);
  let [one, two] = sums;
  for (let at = 0; at < bytes; at += 8) {
    one = one + view.getUint32(at, isLittle) + two >>> 0;
    two = two + view.getUint32(at + 4, isLittle) + one >>> 0;
  }
  sums[0] = one;
  sums[1] = two;
}

function readFully(file: Deno.FsFile, into: Uint8Array): number {
  let length = 0;
  while (length < into.length) {
    const read = file.readSync(into.subarray(length));
    if (read === null) break;
    length += read;
  }
  return length;
}
