/**
 * Opens files that a worker may have put where they are.
 *
 * A contained worker may write anything into its directory: a link to somebody's secrets, a pipe
 * that nobody writes to, a file without end. So a file is opened without waiting, and what was
 * opened is looked at, not the name, which may be another file's by then. Only what lies in the
 * directory itself is read.
 *
 * @module
 */
import defer * as nodeFs from "node:fs";
import { REMOVAL_TIMEOUT_MS } from "../supervisor/limits.ts";

/** Bytes that are read in one go. */
const PIECE_BYTES = 256 * 1024;
/** Windows has neither such links nor such pipes, and no such flag. */
const noWaiting = (): number => nodeFs.constants.O_RDONLY | (nodeFs.constants.O_NONBLOCK ?? 0);

/** An ordinary file in a worker's directory, open until it is disposed of. */
export class WorkerFile implements Disposable {
  /** In bytes, when it was opened. */
  readonly size: number;
  readonly #descriptor: number;

  private constructor(descriptor: number) {
    this.#descriptor = descriptor;
    const info = nodeFs.fstatSync(descriptor);
    if (!info.isFile()) throw new Error("no ordinary file");
    this.size = info.size;
  }

  /**
   * Opens one.
   *
   * @param directory Absolute.
   * @param name Relative to it.
   * @throws {Deno.errors.NotFound} There is nothing.
   * @throws {Error} It is no ordinary file, lies outside of the directory, or cannot be read.
   */
  static open(directory: string, name: string): WorkerFile {
    const path = `${directory}/${name}`;
    const root = Deno.realPathSync(directory);
    // Before it is opened, too: to open a device may do something already.
    const real = Deno.realPathSync(path);
    checkInside(real, root);
    if (!Deno.statSync(real).isFile) throw new Error("no ordinary file");
    const descriptor = nodeFs.openSync(real, noWaiting());
    try {
      if (Deno.build.os === "linux") {
        checkInside(Deno.readLinkSync(`/proc/self/fd/${descriptor}`), root);
      }
      return new WorkerFile(descriptor);
    } catch (thrown) {
      nodeFs.closeSync(descriptor);
      throw thrown;
    }
  }

  /** What is in it, in pieces; a file that grows meanwhile is read up to its size of before. */
  *pieces(): Generator<Uint8Array> {
    for (let left = this.size; left > 0;) {
      const piece = new Uint8Array(Math.min(PIECE_BYTES, left));
      const count = nodeFs.readSync(this.#descriptor, piece, 0, piece.length, null);
      if (count === 0) return;
      left -= count;
      yield piece.subarray(0, count);
    }
  }

  [Symbol.dispose](): void {
    nodeFs.closeSync(this.#descriptor);
  }
}

/**
 * The text of a file that has to be small.
 *
 * @throws {Deno.errors.NotFound} There is nothing.
 * @throws {Error} As {@linkcode WorkerFile.open}; or it has more bytes than `maxBytes`.
 */
export function readWorkerText(directory: string, name: string, maxBytes: number): string {
  using file = WorkerFile.open(directory, name);
  if (file.size > maxBytes) throw new Error(`${file.size} bytes, and at most ${maxBytes} are read`);
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const parts = Array.from(file.pieces(), (piece) => decoder.decode(piece, { stream: true }));
  return parts.join("") + decoder.decode();
}

function checkInside(path: string, root: string): void {
  const parent = root === "/" ? "/" : `${root}${Deno.build.os === "windows" ? "\\" : "/"}`;
  if (!path.startsWith(parent)) throw new Error("a link that leads out of the worker's directory");
}

/** Where systems keep their programs; what else the PATH says may be a worker's. */
const SYSTEM_PATH = "/usr/bin:/bin:/run/current-system/sw/bin";

/** Arguments of one program. */
const AT_ONCE = 200;

/** Removes a folder or file; see {@linkcode removeOthers}. */
export async function removeTree(path: string): Promise<void> {
  await remove([path], AbortSignal.timeout(REMOVAL_TIMEOUT_MS));
}

/**
 * Removes what is in a folder, except for these names. Never rejects: what cannot be removed, or
 * not within `REMOVAL_TIMEOUT_MS`, is left for the next time.
 */
export async function removeOthers(folder: string, kept: readonly string[]): Promise<void> {
  const signal = AbortSignal.timeout(REMOVAL_TIMEOUT_MS);
  const entries = await Array.fromAsync(Deno.readDir(folder)).catch(() => []); // It is not there.
  const paths = entries.filter(({ name }) => !kept.includes(name))
    .map(({ name }) => `${folder}/${name}`);
  for (let at = 0; at < paths.length && !signal.aborted; at += AT_ONCE) {
    await remove(paths.slice(at, at + AT_ONCE), signal);
  }
}

async function remove(paths: readonly string[], signal: AbortSignal): Promise<void> {
  if (Deno.build.os === "windows") {
    const removals = paths.map((path) => Deno.remove(path, { recursive: true }));
    await Promise.allSettled(removals); // Gone, or still in use.
    return;
  }
  const command = new Deno.Command("/bin/sh", {
    args: ["-c", 'exec rm -rf -- "$@"', "sh", ...paths],
    env: { PATH: SYSTEM_PATH },
    signal,
    stdin: "null",
    stdout: "null",
    stderr: "null",
  });
  await command.output().catch(() => {}); // No shell: nothing else would run here either.
}
