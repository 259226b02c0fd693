/**
 * The marker beside the state file: what file belongs there, so that a state file that vanished,
 * was emptied or was replaced is refused instead of starting empty in silence.
 *
 * The marker and the head of the state file hold the same id and an epoch that grows with every
 * start. The file is written first, then the marker; so after a crash the marker is missing or
 * behind, never ahead, and a file without one, such as that of version 0.1.0, gets one. No database
 * is opened here: closing a second handle on the file would release SQLite's locks.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

/** Identity of a state file. */
export interface Marker {
  /** Of the file since it was created; copies have the same. */
  readonly id: string;
  /** Number of the start that wrote it last. */
  readonly epoch: number;
}

/** What lies at the path of a state file. */
export type Presence = "missing" | "empty" | "present";

/** Mode of files that only the user may read. */
export const PRIVATE_FILE_MODE = 0o600;

/** Path of the marker of a state file. */
export function markerPath(path: string): string {
  return `${path}.id`;
}

/** The marker of a state file; `undefined` when there is none. */
export function readMarker(path: string): Marker | undefined {
  let text: string;
  try {
    text = Deno.readTextFileSync(markerPath(path));
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return undefined;
    throw thrown;
  }
  try {
    const { id, epoch } = JSON.parse(text) as Partial<Marker>;
    if (typeof id === "string" && Number.isSafeInteger(epoch)) return { id, epoch: epoch! };
  } catch {
    // As a marker of other content: it is renamed into place, so no crash leaves half of one.
  }
  return { id: "", epoch: 0 };
}

/** Writes the marker; a crash leaves the old or the new one. */
export function writeMarker(path: string, marker: Marker): void {
  const ready = `${markerPath(path)}.new`;
  {
    using file = Deno.openSync(ready, {
      write: true,
      create: true,
      truncate: true,
      mode: PRIVATE_FILE_MODE,
    });
    file.writeSync(new TextEncoder().encode(`${JSON.stringify(marker)}\n`));
    file.syncSync();
  }
  Deno.renameSync(ready, markerPath(path));
}

/** Size of a file in bytes; `undefined` when there is none. */
export function sizeOfFile(path: string): number | undefined {
  try {
    const found = Deno.statSync(path);
    return found.isFile ? found.size : 1; // What is no file is for the database to refuse.
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return undefined;
    throw thrown;
  }
}

/**
 * Watches a state file that is open: the result tells what became of it, `undefined` while it is at
 * its path. Writes into a file that was removed succeed, and are gone with the process.
 */
export function watchPresence(path: string): () => string | undefined {
  const first = Deno.statSync(path);
  return () => {
    let now: Deno.FileInfo;
    try {
      now = Deno.statSync(path);
    } catch (thrown) {
      // Without a descriptor or a permission nothing is known; the write itself fails, or not.
      return thrown instanceof Deno.errors.NotFound ? "was removed" : undefined;
    }
    if (now.ino !== first.ino || now.dev !== first.dev) return "was replaced by another one";
    return now.size === 0 && first.size > 0 ? "was emptied (0 bytes)" : undefined;
  };
}

/**
 * Refuses to open a path where a state file was and is none. With `accepts` the rest is moved
 * aside, and the path is as that of a fresh project.
 *
 * @throws {EngineError} `store_unavailable`.
 */
export function checkPresence(path: string, accepts: boolean): Presence {
  const bytes = sizeOfFile(path);
  const presence = bytes === undefined ? "missing" : bytes === 0 ? "empty" : "present";
  if (presence === "present") return presence;
  const hasMarker = readMarker(path) !== undefined;
  const walBytes = sizeOfFile(`${path}-wal`) ?? 0;
  if (!hasMarker && walBytes === 0) return presence;
  if (!accepts) {
    const what = presence === "missing" ? "is missing" : "is empty (0 bytes)";
    const seen = hasMarker ? "this project has had state" : "its write-ahead log is still there";
    throw lostState(path, `${what}, but ${seen}`);
  }
  moveAside(path);
  return "missing";
}

/**
 * Refuses a state file that is not the one that was there, or an older copy of it. With
 * `damagedCopy`, see {@linkcode copyAside}, it says that a damaged log is the reason.
 *
 * @throws {EngineError} `store_unavailable`.
 */
export function checkIdentity(
  path: string,
  found: Partial<Marker>,
  accepts: boolean,
  damagedCopy?: string,
): void {
  const marker = readMarker(path);
  if (!marker || accepts) return;
  const isOlder = (found.epoch ?? 0) < marker.epoch;
  if (damagedCopy !== undefined && (found.id === undefined || isOlder)) {
    const problem = "has lost its last writes, since its write-ahead log is damaged (a copy of " +
      `both as they were is ${damagedCopy})`;
    throw lostState(path, problem);
  }
  const earlier = earlierCopyOf(path);
  const hint = earlier === undefined ? "" : `; ${earlier} was set aside before`;
  if (found.id !== marker.id) throw lostState(path, `is another one than before${hint}`);
  if (isOlder) throw lostState(path, `is an older copy of the one that was here${hint}`);
}

/** The last that was set aside with its log; the start after that one no longer knows it. */
function earlierCopyOf(path: string): string | undefined {
  const folder = path.slice(0, path.lastIndexOf("/") + 1);
  const start = `${path.slice(folder.length)}.`;
  const names = [...Deno.readDirSync(folder === "" ? "." : folder)].map(({ name }) => name)
    .filter((name) => name.startsWith(start) && name.endsWith("Z-wal"));
  const last = names.toSorted().at(-1);
  return last && `${folder}${last.slice(0, -"-wal".length)}`;
}

/** Moves a state file and what belongs to it to names of their own; the new name of the file. */
export function moveAside(path: string, ends: readonly string[] = ["", "-wal", ".id"]): string {
  const aside = asideOf(path);
  // The file first: without it a start is refused, whatever is still beside it.
  for (const end of ends) {
    if (sizeOfFile(`${path}${end}`) !== undefined) {
      Deno.renameSync(`${path}${end}`, `${aside}${end}`);
    }
  }
  if (sizeOfFile(`${path}-shm`) !== undefined) Deno.removeSync(`${path}-shm`);
  return aside;
}

/**
 * Copies a state file with its damaged write-ahead log, which is gone once the file was open; the
 * name of the copy. Without room for the file, which may be large, only the log is copied.
 *
 * @throws {EngineError} `store_unavailable` when the log cannot be copied.
 */
export function copyAside(path: string): string {
  const aside = asideOf(path);
  try {
    copyPrivately(`${path}-wal`, `${aside}-wal`);
  } catch (thrown) {
    throw new EngineError(
      "store_unavailable",
      `The write-ahead log of the state file ${path} is damaged and cannot be copied before it ` +
        `is dropped (${String(thrown)}); make room, or copy ${path}-wal and remove it`,
      { details: { path } },
    );
  }
  try {
    copyPrivately(path, aside);
    return aside;
  } catch {
    Deno.removeSync(aside);
    return `${aside}-wal`;
  }
}

function copyPrivately(from: string, to: string): void {
  Deno.openSync(to, { write: true, createNew: true, mode: PRIVATE_FILE_MODE }).close();
  Deno.copyFileSync(from, to);
  Deno.chmodSync(to, PRIVATE_FILE_MODE);
}

function asideOf(path: string): string {
  return `${path}.${new Date().toISOString().replaceAll(/[:.]/g, "-")}`;
}

function lostState(path: string, problem: string): EngineError {
  return new EngineError(
    "store_unavailable",
    `The state file ${path} ${problem}; restore a backup with \`engine state restore FILE\`, ` +
      "or start once with --accept-empty-state to go on with what is there",
    { details: { path } },
  );
}
