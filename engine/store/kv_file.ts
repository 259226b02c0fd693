/**
 * Opens the state file for this process alone, or says in one sentence why it cannot be opened.
 *
 * The lock is the operating system's lock on a file beside the state file, which holds the process
 * id of its owner. It ends with its process, however that ends, so a lock of a dead process is
 * simply free. The lock file stays behind: if it were removed, two processes could each lock a file
 * of that name.
 *
 * The marker beside the file (marker.ts) tells whether it is the file that was here before.
 *
 * Durability: Deno KV keeps SQLite in WAL mode with `synchronous` at FULL, its compiled default
 * (`DEFAULT_WAL_SYNCHRONOUS=2`), and a trace of the system calls shows one fsync of the WAL in each
 * commit, before the commit resolves. A commit therefore outlives the end of the process by any
 * signal, and a loss of power as far as disk and file system keep what fsync promises.
 *
 * @module
 */
import { DatabaseSync } from "node:sqlite";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Log } from "../ports/log.ts";
import {
  checkIdentity,
  checkPresence,
  copyAside,
  type Marker,
  PRIVATE_FILE_MODE,
  readMarker,
  sizeOfFile,
  watchPresence,
  writeMarker,
} from "./marker.ts";
import { needsRewrite, rewriteStateFile } from "./state_file.ts";
import { findDroppedTail } from "./wal_tail.ts";

/** What the store uses of a database; all of a commit takes effect, or nothing. */
export interface KvDatabase extends Pick<Deno.Kv, "get" | "getMany" | "list" | "close"> {
  atomic(): KvCommit;
  /** A commit of one key. */
  set(key: Deno.KvKey, value: unknown): Promise<unknown>;
}

/** One commit of a {@linkcode KvDatabase}. */
export interface KvCommit {
  set(key: Deno.KvKey, value: unknown): this;
  delete(key: Deno.KvKey): this;
  /** Resolves when it is durable. */
  commit(): Promise<unknown>;
}

/** An open state file. */
export interface KvFile extends Disposable {
  readonly kv: KvDatabase;
  /** Largest version that was given to an entry; never falls. */
  readonly version: number;
  /** Identity of the file, for its head. */
  readonly marker: Marker;
  /** What became of the file since it was opened; `undefined`: it is there. */
  lost?(): string | undefined;
}

/** How to open a state file. */
export interface OpenKvFileOptions {
  /** Takes what is there when it is not what was there before. Default `false`. */
  readonly acceptsEmptyState?: boolean | undefined;
  /** Gets notices about what was found. */
  readonly log?: Log | undefined;
}

/** Opens a database; the real one is `Deno.openKv`. */
export type OpenKv = (path: string) => Promise<KvDatabase>;

/** Format and version of the file, written with every commit. */
export interface FileHead {
  /** Grows when an older engine could no longer read the file. */
  readonly format: number;
  /** Largest version that was given to an entry. */
  readonly version: number;
  /** Missing in files of format 1. */
  readonly id?: string;
  /** Missing in files of format 1. */
  readonly epoch?: number;
}

/** The format that this engine writes. */
export const FILE_FORMAT = 2;
/** The first format; its records have no checksums, and its head has no identity. */
const FIRST_FORMAT = 1;
/** Key of the {@linkcode FileHead}. */
export const FILE_HEAD_KEY: Deno.KvKey = ["head"];

/**
 * Opens the state file at a path and makes it if there is none; its directory must exist. Without
 * `open` this Deno has no Deno KV.
 *
 * @throws {EngineError} `store_unavailable` with `details.path`, and `details.pid` when another
 * process holds the file.
 */
export async function openKvFile(
  path: string,
  open: OpenKv | undefined,
  options: OpenKvFileOptions = {},
): Promise<KvFile> {
  using started = new DisposableStack();
  started.use(lockStateFile(path));
  const accepts = options.acceptsEmptyState ?? false;
  const copy = prepare(path, accepts, options.log);
  const kv = await openDatabase(path, open);
  started.defer(() => kv.close());
  const head = await readHead(path, kv);
  checkIdentity(path, head, accepts, copy);
  const marker = await mark(path, kv, head);
  const lost = watchPresence(path);
  const held = started.move();
  return { kv, version: head.version, marker, lost, [Symbol.dispose]: () => held.dispose() };
}

/** What has to happen before the database is open; the name of a copy, if one had to be made. */
function prepare(path: string, accepts: boolean, log: Log | undefined): string | undefined {
  if (checkPresence(path, accepts) !== "present") {
    createStateFile(path);
    return undefined;
  }
  const copy = checkLog(path, log);
  for (const end of ["", "-wal", "-shm", ".lock", ".id"]) {
    const name = `${path}${end}`;
    if (Deno.build.os === "windows" || sizeOfFile(name) === undefined) continue;
    // Only the rights of others are taken; a file that its own user may not write stays so.
    const mode = Deno.statSync(name).mode ?? PRIVATE_FILE_MODE;
    if (Deno.statSync(name).isFile && (mode & 0o077) !== 0) Deno.chmodSync(name, mode & 0o700);
  }
  rewriteIfWorth(path, log);
  return copy;
}

/** Reports what SQLite will drop of the write-ahead log; damage is copied first. */
function checkLog(path: string, log: Log | undefined): string | undefined {
  const dropped = findDroppedTail(`${path}-wal`);
  if (!dropped) return undefined;
  const fields = { path, dropped_bytes: dropped.bytes };
  if (!dropped.isDamaged) {
    log?.warn("the end of the state's write-ahead log is incomplete and is dropped", fields);
    return undefined;
  }
  const copy = copyAside(path);
  log?.error("the write-ahead log of the state is damaged; acknowledged writes may be lost", {
    ...fields,
    dropped_commits: dropped.commits,
    copy,
  });
  return copy;
}

/** A file of version 0.1.0 shrinks here only; without space for the rewrite it stays as it is. */
function rewriteIfWorth(path: string, log: Log | undefined): void {
  try {
    if (!needsRewrite(path)) return;
    log?.info("the state file is rewritten without the space of deleted values", { path });
    rewriteStateFile(path);
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    log?.warn("the state file could not be rewritten and keeps its size", { path, reason });
  }
}

/** Makes a file from which pages can be removed while it is open; SQLite decides that at first. */
export function createStateFile(path: string): void {
  try {
    Deno.openSync(path, { write: true, create: true, mode: PRIVATE_FILE_MODE }).close();
    const database = new DatabaseSync(path);
    // A table, for the setting to be written; a crash before leaves an empty file, as if new.
    database.exec("PRAGMA auto_vacuum = INCREMENTAL; CREATE TABLE first (k); DROP TABLE first");
    database.close();
  } catch (thrown) {
    fail(path, thrown);
  }
}

async function openDatabase(path: string, open: OpenKv | undefined): Promise<KvDatabase> {
  if (!open) return refuse(path, "needs Deno KV; start Deno with --unstable-kv");
  try {
    return await open(path);
  } catch (thrown) {
    return fail(path, thrown);
  }
}

async function readHead(path: string, kv: KvDatabase): Promise<FileHead> {
  let head: FileHead | null;
  try {
    ({ value: head } = await kv.get<FileHead>(FILE_HEAD_KEY));
  } catch (thrown) {
    return fail(path, thrown);
  }
  if (head === null) return { format: FILE_FORMAT, version: 0 };
  if (head.format >= FIRST_FORMAT && head.format <= FILE_FORMAT) return head;
  return refuse(path, "was written by a newer engine; start that one, or choose another file");
}

/**
 * Writes the head, so that a file that cannot be written is noticed at once, and then the marker;
 * in this order a crash leaves a marker that is missing or behind, which both are accepted.
 */
async function mark(path: string, kv: KvDatabase, head: FileHead): Promise<Marker> {
  const { id = crypto.randomUUID(), epoch = 0, version } = head;
  const marker = { id, epoch: Math.max(epoch, readMarker(path)?.epoch ?? 0) + 1 };
  try {
    await kv.set(FILE_HEAD_KEY, { format: FILE_FORMAT, version, ...marker });
    writeMarker(path, marker);
  } catch (thrown) {
    return fail(path, thrown);
  }
  return marker;
}

/**
 * Holds a state file until the result is disposed of, or the process ends.
 *
 * @throws {EngineError} `store_unavailable` when another process holds it, with `details.pid`.
 */
export function lockStateFile(path: string): Disposable {
  const file = openLockFile(path);
  if (!file.tryLockSync(true)) {
    const pid = readPid(file);
    file.close();
    const owner = pid === undefined ? "another process" : `process ${pid}`;
    return refuse(path, `is in use by ${owner}; stop that engine first`, pid);
  }
  file.truncateSync();
  file.writeSync(new TextEncoder().encode(`${Deno.pid}\n`));
  return {
    [Symbol.dispose]: () => {
      file.truncateSync();
      // A program that is being started may share the file for a moment, and with it the lock.
      file.unlockSync();
      file.close();
    },
  };
}

function openLockFile(path: string): Deno.FsFile {
  try {
    return Deno.openSync(`${path}.lock`, {
      read: true,
      write: true,
      create: true,
      mode: PRIVATE_FILE_MODE,
    });
  } catch (thrown) {
    return fail(path, thrown);
  }
}

function readPid(file: Deno.FsFile): number | undefined {
  const bytes = new Uint8Array(32);
  const length = file.readSync(bytes) ?? 0;
  const pid = parseInt(new TextDecoder().decode(bytes.subarray(0, length)), 10);
  return Number.isInteger(pid) ? pid : undefined;
}

/** Turns the system's error into a message that says what to do. */
function fail(path: string, thrown: unknown): never {
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  if (thrown instanceof Deno.errors.NotFound) {
    return refuse(path, "cannot be made, since its directory does not exist; make it first");
  }
  if (/read-?only|denied|not permitted/i.test(reason)) {
    return refuse(path, "cannot be written; allow this user to write to it and its directory");
  }
  if (/not a database|malformed|corrupt/i.test(reason)) {
    return refuse(path, "is not a state file or is damaged; move it away or choose another one");
  }
  return refuse(path, `cannot be opened (${reason}); check that it is a file on a local disk`);
}

function refuse(path: string, problem: string, pid?: number): never {
  throw new EngineError("store_unavailable", `The state file ${path} ${problem}`, {
    details: pid === undefined ? { path } : { path, pid },
  });
}
