/**
 * Reads and removes files that a worker may have created.
 *
 * A contained worker can put anything into its directory: a link to other users' files, a pipe
 * without a writer, a file without end, thousands of nested folders. Reading therefore opens a file
 * without blocking and checks the descriptor rather than the name, which may mean another file by
 * then; only files in the directory itself are read. Removing runs `rm`, which follows no links and
 * can fail alone: Deno's own removal recurses, and very deep folders would crash the engine.
 *
 * @module
 */
import * as nodeFs from "node:fs";

/** Name of the manifest in a worker's directory. */
export const MANIFEST = "engine.worker.yaml";

/** Bytes per read. */
const PIECE_BYTES = 256 * 1024;
/** How long a removal may take, in milliseconds; what is left is removed the next time. */
const REMOVAL_TIMEOUT_MS = 60_000;
/** Folders where systems keep their programs; a worker may control others on the PATH. */
const SYSTEM_BINS = "/usr/bin:/bin:/run/current-system/sw/bin";
/** Paths per run of `rm`. */
const REMOVALS_AT_ONCE = 200;

/** A regular file in a worker's directory, open until it is disposed of. */
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
   * Opens the file `name` of an absolute directory.
   *
   * @throws {Deno.errors.NotFound} There is no such file.
   * @throws {Error} It is no regular file, lies outside of the directory, or cannot be read.
   */
  static open(directory: string, name: string): WorkerFile {
    const path = `${directory}/${name}`;
    const root = Deno.realPathSync(directory);
    // Checked before opening, too: opening a device may have an effect.
    const real = Deno.realPathSync(path);
    checkInside(real, root);
    if (!Deno.statSync(real).isFile) throw new Error("no ordinary file");
    const descriptor = nodeFs.openSync(real, openFlags());
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

  /** The content in pieces; a file that grows meanwhile is read up to its size when opened. */
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
 * The text of a small file.
 *
 * @throws {Deno.errors.NotFound} There is no such file.
 * @throws {Error} As {@linkcode WorkerFile.open}, or when it has more bytes than `maxBytes`.
 */
export function readWorkerText(directory: string, name: string, maxBytes: number): string {
  using file = WorkerFile.open(directory, name);
  if (file.size > maxBytes) throw new Error(`${file.size} bytes, and at most ${maxBytes} are read`);
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const parts = Array.from(file.pieces(), (piece) => decoder.decode(piece, { stream: true }));
  return parts.join("") + decoder.decode();
}

/** Removes a folder or file; fails silently, as {@linkcode removeOthers} does. */
export async function removeTree(path: string): Promise<void> {
  await remove([path], AbortSignal.timeout(REMOVAL_TIMEOUT_MS));
}

/**
 * Removes everything in a folder except these names. Never rejects: what cannot be removed, or not
 * within `REMOVAL_TIMEOUT_MS`, stays.
 */
export async function removeOthers(folder: string, kept: readonly string[]): Promise<void> {
  const signal = AbortSignal.timeout(REMOVAL_TIMEOUT_MS);
  const entries = await Array.fromAsync(Deno.readDir(folder)).catch(() => []); // It is missing.
  const paths = entries.filter(({ name }) => !kept.includes(name))
    .map(({ name }) => `${folder}/${name}`);
  for (let at = 0; at < paths.length && !signal.aborted; at += REMOVALS_AT_ONCE) {
    await remove(paths.slice(at, at + REMOVALS_AT_ONCE), signal);
  }
}

async function remove(paths: readonly string[], signal: AbortSignal): Promise<void> {
  if (Deno.build.os === "windows") {
    const removals = paths.map((path) => Deno.remove(path, { recursive: true }));
    await Promise.allSettled(removals); // Some may be gone or still in use.
    return;
  }
  const command = new Deno.Command("/bin/sh", {
    args: ["-c", 'exec rm -rf -- "$@"', "sh", ...paths],
    env: { PATH: SYSTEM_BINS },
    signal,
    stdin: "null",
    stdout: "null",
    stderr: "null",
  });
  await command.output().catch(() => {}); // There is no shell.
}

/** Windows has neither such links nor such pipes, and no such flag. */
function openFlags(): number {
  return nodeFs.constants.O_RDONLY | (nodeFs.constants.O_NONBLOCK ?? 0);
}

function checkInside(path: string, root: string): void {
  const parent = root === "/" ? "/" : `${root}${Deno.build.os === "windows" ? "\\" : "/"}`;
  if (!path.startsWith(parent)) throw new Error("a link that leads out of the worker's directory");
}
