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
 * Refuses a state file that is not the one that was there, or an older copy of it.
 *
 * @throws {EngineError} `store_unavailable`.
 */
export function checkIdentity(path: string, found: Partial<Marker>, accepts: boolean): void {
  const marker = readMarker(path);
  if (!marker || accepts) return;
  if (found.id !== marker.id) throw lostState(path, "is another one than before");
  if ((found.epoch ?? 0) < marker.epoch) {
    throw lostState(path, "is an older copy of the one that was here");
  }
}

/** Moves a state file and what belongs to it to names of their own; the new name of the file. */
export function moveAside(path: string, ends: readonly string[] = ["", "-wal", ".id"]): string {
  const aside = `${path}.${new Date().toISOString().replaceAll(/[:.]/g, "-")}`;
  // The file first: without it a start is refused, whatever is still beside it.
  for (const end of ends) {
    if (sizeOfFile(`${path}${end}`) !== undefined) {
      Deno.renameSync(`${path}${end}`, `${aside}${end}`);
    }
  }
  if (sizeOfFile(`${path}-shm`) !== undefined) Deno.removeSync(`${path}-shm`);
  return aside;
}

function lostState(path: string, problem: string): EngineError {
  return new EngineError(
    "store_unavailable",
    `The state file ${path} ${problem}; bring a backup back with \`engine state restore FILE\`, ` +
      "or start once with --accept-empty-state to go on with what is there",
    { details: { path } },
  );
}
