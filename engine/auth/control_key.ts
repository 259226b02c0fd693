/**
 * The control key: proves that a connection comes from the command line of the engine's own user,
 * on the engine's machine.
 *
 * The engine writes a secret to a file that only its user can read; a client that sends it back in
 * a header while dialling is that user. Each start of an engine makes another secret, so a key that
 * a dead engine left behind proves nothing. What such a connection may do is not decided here.
 *
 * The file also says which project the engine runs and where it listens, so that a command in the
 * folder of a project finds its engine. It is not in the project's own folder, because a folder may
 * come from elsewhere and name any address.
 *
 * @module
 */
import { thrownText } from "../../sdk/typescript/wire/errors.ts";
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import { isEqualSecret } from "../core/guards.ts";
import type { Log } from "../ports/log.ts";

/** The header that carries the key. Web pages cannot send it. */
export const CONTROL_HEADER = "x-engine-control";

/** Random bytes in a key. */
const KEY_BYTES = 32;

/** The key of one engine, while that runs. Disposing of it removes the file. */
export interface ControlKey extends AsyncDisposable {
  /** Where the file is, or would be. */
  readonly path: string;
  /** Why there is no file, so that no client can prove to be the user; `null`: there is one. */
  readonly problem: string | null;
  /** Whether the value of {@linkcode CONTROL_HEADER} is the key; takes the same time for all. */
  matches(header: string | null): boolean;
}

/** A running engine, as its key file describes it. */
export interface RunningEngine {
  /** Id of its process. */
  readonly pid: number;
  /** Address of the engine, such as `ws://127.0.0.1:49134`. */
  readonly url: string;
  /** Where programs on this machine reach it without TLS. */
  readonly local: string;
  /** The folder of its project; absolute. */
  readonly project: string;
  /** Whether clients have to send a token. */
  readonly needs_token: boolean;
}

/** What a key file says besides the key. */
export interface KeyOptions extends Partial<Omit<RunningEngine, "url" | "pid">> {
  /** Default: that of this user. */
  readonly folder?: string;
}

/** Content of a key file. */
interface KeyRecord extends RunningEngine {
  /** The machine or container it runs in: process ids of others say nothing here. */
  readonly machine: string;
  readonly key: string;
}

/** Where the keys of a user are, as far as the machine decides it. */
export interface KeyPlace {
  /** As `Deno.build.os` names it. */
  readonly platform: string;
  /** A variable of the environment. */
  env(name: string): string | undefined;
  /** Number of the user; `null` where users have none. */
  readonly uid: number | null;
}

/**
 * Makes a key for the engine that listens at `url` and writes it where the command line looks.
 *
 * Never fails: without a file the engine runs, the log has a warning, and `problem` says why.
 */
export async function openControlKey(
  url: string,
  log: Log,
  { folder, local = url, project = "", needs_token = false }: KeyOptions = {},
): Promise<ControlKey> {
  const key = [...crypto.getRandomValues(new Uint8Array(KEY_BYTES))]
    .map((byte) => byte.toString(16).padStart(2, "0")).join("");
  let path = `${portOf(url)}.json`;
  let problem: string | null = null;
  try {
    const home = folder ?? keyFolder();
    path = `${home}/${path}`;
    await makeFolder(home);
    await removeStale(home);
    const engine: RunningEngine = { url, local, project, needs_token, pid: Deno.pid };
    await writeKey(path, { ...engine, machine: Deno.hostname(), key });
  } catch (thrown) {
    problem = `${path} cannot be written (${thrownText(thrown)})`;
    log.warn("the command line cannot manage workers", { reason: problem });
  }
  return {
    path,
    problem,
    matches: (header) => problem === null && header !== null && isEqualSecret(key, header),
    [Symbol.asyncDispose]: async () => {
      // An engine that took the port meanwhile has written a key of its own.
      if ((await readRecord(path))?.key === key) await removeFile(path);
    },
  };
}

/**
 * The key of the engine at an address; `undefined` when there is none that may be sent there: a key
 * goes to addresses of this machine only, and to the address that the engine itself listens on.
 */
export async function readControlKey(url: string, folder?: string): Promise<string | undefined> {
  try {
    const home = folder ?? keyFolder();
    const record = await readRecord(`${home}/${portOf(url)}.json`) ??
      (await liveRecords(home)).find(({ local }) => local === url);
    if (!record) return undefined;
    const host = hostOf(url);
    return isLoopback(host) || host === hostOf(record.url) ? record.key : undefined;
  } catch {
    return undefined; // Without a key the connection has no rights of the user; the engine says so.
  }
}

/** The engines of this user that run on this machine. Never rejects. */
export async function runningEngines(folder?: string): Promise<readonly RunningEngine[]> {
  try {
    return await liveRecords(folder ?? keyFolder());
  } catch {
    return []; // There is no such folder.
  }
}

async function liveRecords(folder: string): Promise<KeyRecord[]> {
  const machine = Deno.hostname();
  const names = [...Deno.readDirSync(folder)].map(({ name }) => name).filter(isKeyName);
  const records = await Promise.all(names.map((name) => readRecord(`${folder}/${name}`)));
  return records.filter((record) => record !== undefined)
    .filter((record) => record.machine === machine && !isProcessDead(record.pid));
}

function isKeyName(name: string): boolean {
  return /^\d+\.json$/.test(name);
}

/** The folder of all keys of a user; absolute. */
export function keyFolder({ platform, env, uid }: KeyPlace = thisUser()): string {
  if (platform === "windows") {
    const data = env("LOCALAPPDATA") ?? env("TEMP") ?? "C:\\Windows\\Temp";
    return `${data.replaceAll("\\", "/")}/engine`;
  }
  const state = env("XDG_STATE_HOME");
  if (state?.startsWith("/")) return `${state}/engine`; // A relative one has to be ignored.
  const home = env("HOME");
  if (home?.startsWith("/")) return `${home}/.local/state/engine`;
  return `${env("TMPDIR")?.replace(/\/$/, "") ?? "/tmp"}/engine-${uid ?? "user"}/engine`;
}

/** The user and the machine of this process. */
function thisUser(): KeyPlace {
  return {
    platform: Deno.build.os,
    env: (name) => Deno.env.get(name) || undefined,
    uid: Deno.uid(),
  };
}

/** @throws {Error} When the folder is not the user's own, or cannot be made so. */
async function makeFolder(folder: string): Promise<void> {
  const uid = Deno.uid();
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  if (uid === null) return; // Windows: the user's profile belongs to the user.
  const info = await Deno.lstat(folder);
  if (!info.isDirectory) throw new Error(`${folder} is not a directory`);
  if (info.uid !== uid) throw new Error(`${folder} belongs to another user`);
  if (((info.mode ?? 0) & 0o077) !== 0) await Deno.chmod(folder, 0o700);
}

/** Removes the files of engines that ended without removing theirs. */
async function removeStale(folder: string): Promise<void> {
  const machine = Deno.hostname();
  for await (const { name } of Deno.readDir(folder)) {
    if (!isKeyName(name)) continue;
    const record = await readRecord(`${folder}/${name}`);
    if (record?.machine === machine && isProcessDead(record.pid)) {
      await removeFile(`${folder}/${name}`);
    }
  }
}

/** Writes a file that is complete or absent: a reader never finds half of one. */
async function writeKey(path: string, record: KeyRecord): Promise<void> {
  const draft = `${path}.${Deno.pid}`;
  await removeFile(draft); // A dead process may have had the same id.
  const text = `${JSON.stringify(record)}\n`;
  await Deno.writeTextFile(draft, text, { createNew: true, mode: 0o600 });
  await Deno.rename(draft, path);
}

/** Content of a file; `undefined` when it is absent or no key file. */
async function readRecord(path: string): Promise<KeyRecord | undefined> {
  const text = await Deno.readTextFile(path).catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    const { url, local = url, project = "", needs_token = false, pid, machine, key } = JSON.parse(
      text,
    );
    const isWhole = typeof url === "string" && URL.canParse(url) && Number.isInteger(pid) &&
      pid > 0 && typeof machine === "string" && typeof key === "string" &&
      /^[0-9a-f]{64}$/.test(key) && URL.canParse(local) && typeof project === "string";
    return isWhole
      ? { url, local, project, needs_token: needs_token === true, pid, machine, key }
      : undefined;
  } catch {
    return undefined; // Not JSON: another program's file.
  }
}

async function removeFile(path: string): Promise<void> {
  await Deno.remove(path).catch(() => {}); // Already gone, or protected: the key proves nothing.
}

/** Whether no process of this machine has this id. */
export function isProcessDead(pid: number): boolean {
  try {
    Deno.kill(pid, 0 as unknown as Deno.Signal); // Signal 0 only asks.
    return false;
  } catch (thrown) {
    return thrown instanceof Deno.errors.NotFound;
  }
}

/** The port of an address, which names its key's file. */
function portOf(url: string): string {
  const { port, protocol } = new URL(url);
  return port || (protocol === "wss:" ? "443" : "80");
}

function hostOf(url: string): string {
  return new URL(url).hostname;
}
