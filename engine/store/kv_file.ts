/**
 * Opens the state file for this process alone, or says in one sentence why it cannot be opened.
 *
 * The lock is the operating system's lock on a file beside the state file, which holds the process
 * id of its owner. It ends with its process, however that ends, so a lock of a dead process is
 * simply free. The lock file stays behind: if it were removed, two processes could each lock a file
 * of that name.
 *
 * Durability: Deno KV keeps SQLite in WAL mode with `synchronous` at FULL, its compiled default
 * (`DEFAULT_WAL_SYNCHRONOUS=2`), and a trace of the system calls shows one fsync of the WAL in each
 * commit, before the commit resolves. A commit therefore outlives the end of the process by any
 * signal, and a loss of power as far as disk and file system keep what fsync promises.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

/** An open state file. */
export interface KvFile extends Disposable {
  readonly kv: Deno.Kv;
  /** Largest version that was given to an entry; never falls. */
  readonly version: number;
}

/** Opens a database; the real one is `Deno.openKv`. */
export type OpenKv = (path: string) => Promise<Deno.Kv>;

/** Format and version of the file, written with every commit. */
export interface FileHead {
  /** Grows when an older engine could no longer read the file. */
  readonly format: number;
  /** Largest version that was given to an entry. */
  readonly version: number;
}

/** The format that this engine writes. */
export const FILE_FORMAT = 1;
/** Key of the {@linkcode FileHead}. */
export const FILE_HEAD_KEY: Deno.KvKey = ["head"];

/**
 * Opens the state file at a path and makes it if there is none; its directory must exist. Without
 * `open` this Deno has no Deno KV.
 *
 * @throws {EngineError} `store_unavailable` with `details.path`, and `details.pid` when another
 * process holds the file.
 */
export async function openKvFile(path: string, open: OpenKv | undefined): Promise<KvFile> {
  using started = new DisposableStack();
  started.use(lock(path));
  const kv = await openDatabase(path, open);
  started.defer(() => kv.close());
  const version = await readVersion(path, kv);
  const held = started.move();
  return { kv, version, [Symbol.dispose]: () => held.dispose() };
}

async function openDatabase(path: string, open: OpenKv | undefined): Promise<Deno.Kv> {
  if (!open) return refuse(path, "needs Deno KV; start Deno with --unstable-kv");
  try {
    return await open(path);
  } catch (thrown) {
    return fail(path, thrown);
  }
}

/** Reads the head, and writes it, so that a file that cannot be written is noticed at once. */
async function readVersion(path: string, kv: Deno.Kv): Promise<number> {
  try {
    const { value } = await kv.get<FileHead>(FILE_HEAD_KEY);
    const head = value ?? { format: FILE_FORMAT, version: 0 };
    if (head.format === FILE_FORMAT) {
      await kv.set(FILE_HEAD_KEY, head);
      return head.version;
    }
  } catch (thrown) {
    return fail(path, thrown);
  }
  return refuse(path, "was written by a newer engine; start that one, or choose another file");
}

function lock(path: string): Disposable {
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
      file.close();
    },
  };
}

function openLockFile(path: string): Deno.FsFile {
  try {
    return Deno.openSync(`${path}.lock`, { read: true, write: true, create: true });
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
  return refuse(path, `cannot be opened (${reason}); see that it is a file on a local disk`);
}

function refuse(path: string, problem: string, pid?: number): never {
  throw new EngineError("store_unavailable", `The state file ${path} ${problem}`, {
    details: pid === undefined ? { path } : { path, pid },
  });
}
