/**
 * Check, backup and restore of the state file of a project whose engine does not run.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { StateCheck } from "../ports/store.ts";
import { FILE_FORMAT, FILE_HEAD_KEY, type FileHead, lockStateFile } from "./kv_file.ts";
import { moveAside, readMarker, sizeOfFile, writeMarker } from "./marker.ts";
import { checkStateFile, copyStateFile, sync } from "./state_file.ts";

/** A restored state. */
export interface RestoredState {
  /** What verifying the backup found. */
  readonly check: StateCheck;
  /** Where the state before it is now; `undefined` when there was none. */
  readonly aside: string | undefined;
  /** The cluster whose state was replaced; absent: that of one engine was. */
  readonly cluster?: string | undefined;
}

/**
 * Verifies a state file that no engine holds.
 *
 * @throws {EngineError} `store_unavailable`, with `details.pid` when an engine holds it.
 */
export function checkOffline(path: string): StateCheck {
  using _lock = lockExisting(path);
  return checkStateFile(path);
}

/**
 * Copies a state file that no engine holds.
 *
 * @throws {EngineError} `store_unavailable`, with `details.pid` when an engine holds it.
 */
export function backupOffline(path: string, to: string): StateCheck {
  using _lock = lockExisting(path);
  return copyStateFile(path, to);
}

/**
 * Puts a backup in place of a state file that no engine holds, and keeps that file aside. A crash
 * leaves the old file, no file (the next start is refused), or the new one.
 *
 * @throws {EngineError} `store_unavailable` when an engine holds it, `INVALID_ARGUMENTS` when the
 * backup is not intact; nothing has changed then.
 */
export async function restoreOffline(path: string, backup: string): Promise<RestoredState> {
  using _lock = lockStateFile(path);
  const ready = `${path}.restored`;
  const check = copyBackup(backup, ready);
  const marker = readMarker(path);
  const found = await adopt(ready, marker);
  sync(ready);
  const hadState = sizeOfFile(path) !== undefined || sizeOfFile(`${path}-wal`) !== undefined;
  const aside = hadState ? moveAside(path, ["", "-wal"]) : undefined;
  Deno.renameSync(ready, path);
  writeMarker(path, found);
  return { check, aside };
}

/**
 * Copies a backup and verifies it.
 *
 * @throws {EngineError} `INVALID_ARGUMENTS` when it is not intact; there is no copy then.
 */
export function copyBackup(backup: string, ready: string): StateCheck {
  if ((sizeOfFile(backup) ?? 0) === 0) {
    throw new EngineError("INVALID_ARGUMENTS", `There is no backup at ${backup}`);
  }
  const check = copyOf(backup, ready);
  if (check.problems.length === 0 && check.damaged_count === 0) return check;
  Deno.removeSync(ready);
  const what = check.problems[0] ?? `${check.damaged_count} of its records are damaged`;
  throw new EngineError(
    "INVALID_ARGUMENTS",
    `The backup ${backup} is not intact (${what}); restore another one`,
    { details: { problems: [...check.problems], damaged_count: check.damaged_count } },
  );
}

function copyOf(backup: string, ready: string): StateCheck {
  try {
    return copyStateFile(backup, ready);
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    throw new EngineError(
      "INVALID_ARGUMENTS",
      `${backup} is not a backup of the state (${reason})`,
    );
  }
}

/** Gives the copy the identity that belongs here. */
async function adopt(ready: string, marker: { id: string; epoch: number } | undefined) {
  using kv = await Deno.openKv(ready);
  const { value } = await kv.get<FileHead>(FILE_HEAD_KEY);
  const { id = crypto.randomUUID(), epoch = 0, version = 0 } = value ?? {};
  const identity = {
    id: marker?.id || id,
    epoch: Math.max(epoch, marker?.epoch ?? 0) + 1,
  };
  await kv.set(FILE_HEAD_KEY, { format: FILE_FORMAT, version, ...identity });
  return identity;
}

function lockExisting(path: string): Disposable {
  if (sizeOfFile(path) === undefined) {
    throw new EngineError("store_unavailable", `There is no state file at ${path}`, {
      details: { path },
    });
  }
  return lockStateFile(path);
}
