/**
 * Proves that a line to the engine is the command line of the engine's own user on its machine.
 *
 * The engine writes a secret into a file that only its user can read; whoever sends it back in a
 * header while dialling is that user. It is another secret with every start, so what a dead engine
 * left behind opens nothing. Nothing here decides what such a line may do.
 *
 * @module
 */
import { thrownText } from "../../sdk/typescript/wire/errors.ts";
import { isEqualSecret } from "../core/guards.ts";
import type { Log } from "../ports/log.ts";
import { keyFolder, type KeyRecord, portOf, readRecord, thisUser } from "./user_key.ts";

/** Bytes of chance in a key. */
const KEY_BYTES = 32;

/** The key of one engine, while that runs. Disposing of it removes the file. */
export interface ControlKey extends AsyncDisposable {
  /** Where the file is, or was to be. */
  readonly path: string;
  /** Why the file is not there, so that nobody can prove to be the user; `null`: it is there. */
  readonly problem: string | null;
  /** Whether the value of `CONTROL_HEADER` is the key; takes the same time for all. */
  matches(header: string | null): boolean;
}

/**
 * Makes a key for the engine that listens at `url` and writes it where the command line looks.
 *
 * Never fails: without a file the engine runs, the log has a warning, and `problem` says why.
 */
export async function openControlKey(
  url: string,
  log: Log,
  folder?: string,
): Promise<ControlKey> {
  const key = [...crypto.getRandomValues(new Uint8Array(KEY_BYTES))]
    .map((byte) => byte.toString(16).padStart(2, "0")).join("");
  let path = `${portOf(url)}.json`;
  let problem: string | null = null;
  try {
    const place = thisUser();
    const home = folder ?? keyFolder(place);
    path = `${home}/${path}`;
    await makeFolder(home, place.uid);
    await removeStale(home);
    await writeKey(path, { url, pid: Deno.pid, machine: Deno.hostname(), key });
  } catch (thrown) {
    problem = `${path} cannot be written (${thrownText(thrown)})`;
    log.warn("the command line cannot manage workers", { reason: problem });
  }
  return {
    path,
    problem,
    // Not node:crypto's: loading that takes 17 ms of every start.
    matches: (header) => problem === null && header !== null && isEqualSecret(key, header),
    [Symbol.asyncDispose]: async () => {
      // An engine that took the port meanwhile has written a key of its own.
      if ((await readRecord(path))?.key === key) await removeFile(path);
    },
  };
}

/** @throws {Error} It is not the user's own folder, or cannot be made so. */
async function makeFolder(folder: string, uid: number | null): Promise<void> {
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  if (uid === null) return; // Windows: what lies in the user's profile is the user's.
  const info = await Deno.lstat(folder);
  if (!info.isDirectory) throw new Error(`${folder} is no folder`);
  if (info.uid !== uid) throw new Error(`${folder} belongs to another user`);
  if (((info.mode ?? 0) & 0o077) !== 0) await Deno.chmod(folder, 0o700);
}

/** Complete or not there: a reader never finds half a file. */
async function writeKey(path: string, record: KeyRecord): Promise<void> {
  const draft = `${path}.${Deno.pid}`;
  await removeFile(draft); // A dead process may have had the same id.
  const text = `${JSON.stringify(record)}\n`;
  await Deno.writeTextFile(draft, text, { createNew: true, mode: 0o600 });
  await Deno.rename(draft, path);
}

/** Files of engines that ended without removing theirs. */
async function removeStale(folder: string): Promise<void> {
  const machine = Deno.hostname();
  for await (const { name } of Deno.readDir(folder)) {
    if (!/^\d+\.json$/.test(name)) continue;
    const record = await readRecord(`${folder}/${name}`);
    if (record?.machine === machine && isDead(record.pid)) await removeFile(`${folder}/${name}`);
  }
}

async function removeFile(path: string): Promise<void> {
  await Deno.remove(path).catch(() => {}); // Gone already, or not to be removed: it opens nothing.
}

function isDead(pid: number): boolean {
  try {
    Deno.kill(pid, 0 as unknown as Deno.Signal); // Signal 0 only asks.
    return false;
  } catch (thrown) {
    return thrown instanceof Deno.errors.NotFound;
  }
}
