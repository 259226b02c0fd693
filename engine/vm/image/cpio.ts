/**
 * Writes a cpio archive (`newc`), the form in which a kernel takes its first files.
 *
 * Equal entries give equal bytes: times are zero, all belongs to root and inodes are counted.
 *
 * @module
 */

/** A file, a folder or a character device in an archive. */
export interface CpioEntry {
  /** Without a slash at its beginning; folders come before what lies in them. */
  readonly path: string;
  /** What a file holds; left out for a folder or a device. */
  readonly bytes?: Uint8Array;
  /** Major and minor number of a character device. */
  readonly device?: readonly [number, number];
  /** Whether it can be run; `false` if left out. */
  readonly executable?: boolean;
}

const FOLDER = 0o040755;
const DEVICE = 0o020600;
const FILE = 0o100644;
const PROGRAM = 0o100755;
const TRAILER = "TRAILER!!!";

/** The archive of the entries, in their order. */
export function cpioArchive(entries: readonly CpioEntry[]): Uint8Array<ArrayBuffer> {
  const parts = entries.flatMap((entry, i) => record(entry, modeOf(entry), i + 1));
  parts.push(...record({ path: TRAILER }, 0, 0));
  const archive = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    archive.set(part, at);
    at += part.length;
  }
  return archive;
}

function modeOf(entry: CpioEntry): number {
  if (entry.device) return DEVICE;
  if (entry.bytes === undefined) return FOLDER;
  return entry.executable ? PROGRAM : FILE;
}

/** Header with name, and content, each filled up to a multiple of four bytes. */
function record(entry: CpioEntry, mode: number, inode: number): Uint8Array[] {
  const name = new TextEncoder().encode(`${entry.path}\0`);
  const bytes = entry.bytes ?? new Uint8Array();
  const [major, minor] = entry.device ?? [0, 0];
  // Inode, mode, owner, group, links, time, size, where the file lies, the device, name, check.
  const fields = [inode, mode, 0, 0, 1, 0, bytes.length, 0, 0, major, minor, name.length, 0];
  const head = "070701" + fields.map((field) => field.toString(16).padStart(8, "0")).join("");
  return [filled([new TextEncoder().encode(head), name]), filled([bytes])];
}

function filled(parts: readonly Uint8Array[]): Uint8Array {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const whole = new Uint8Array(Math.ceil(length / 4) * 4);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
