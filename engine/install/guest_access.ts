/**
 * Which folders of this machine a microVM sees, and which it must never see.
 *
 * A guest gets the system's programs, what the worker needs to run, and the worker's own folders,
 * each at the path that it has here. A folder that holds something which is nobody's business (the
 * user's home, the engine's files) is refused rather than masked: root in a guest can lift a mask.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { LaunchSpec } from "../ports/launcher.ts";
import type { Share } from "../vm/guest/guest.ts";

/** What no guest may see. */
export interface Guarded {
  /** Absolute path of the engine's folder of a project. */
  readonly dataDirectory: string;
  /** The user's home; `undefined` when nobody says. */
  readonly home: string | undefined;
  /** More folders that are not to be shared as a whole, such as a cache outside the home. */
  readonly more?: readonly string[];
}

/** The system's programs and libraries; every guest sees it. */
export const SYSTEM = "/usr";

/** Too much for one worker, whoever asks. */
const WHOLE = [
  ...["/", "/boot", "/dev", "/etc", "/home", "/media", "/mnt", "/opt", "/proc", "/root", "/run"],
  ...["/srv", "/sys", "/tmp", "/var", "/var/lib", "/var/tmp"],
  ...[SYSTEM, "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/local", "/usr/sbin", "/usr/share"],
];
/** Folders in a home where programs of all kinds keep things. */
const WHOLE_IN_HOME = [
  "",
  ".cache",
  ".config",
  ".local",
  ".local/bin",
  ".local/share",
  ".local/state",
];
/** What the kernel makes up is no folder to work in. */
const NO_FILES = ["/dev", "/proc", "/sys"];

/**
 * The folders for one program, those that hold others first.
 *
 * @throws {EngineError} `launch_failed` when one does not exist; `isolation_unavailable` when one
 * would show too much.
 */
export async function sharesOf(
  spec: LaunchSpec,
  guarded: Guarded,
): Promise<Share[]> {
  const { name, directory, containment } = spec;
  await checkPlace(name, directory, guarded);
  const shares: Share[] = [{ path: SYSTEM, writable: false }];
  for (const path of containment?.reads ?? []) {
    await checkPath(name, path);
    await refuseWhole(name, `it needs the folder ${path}`, path, guarded);
    shares.push({ path, writable: false });
  }
  for (const path of [directory, ...containment?.writes ?? []]) {
    await checkPath(name, path);
    shares.push({ path, writable: true });
  }
  const needed = withoutNested(shares);
  for (const share of needed) await refuseBehindLink(name, share, needed);
  return needed;
}

/**
 * Makes sure that a worker's directory can be shared with a guest.
 *
 * @throws {EngineError} `launch_failed` when it does not exist; `isolation_unavailable` when it
 * would show too much.
 */
export async function checkPlace(
  name: string,
  directory: string,
  guarded: Guarded,
): Promise<void> {
  const { dataDirectory, home } = guarded;
  for (const secret of [dataDirectory, ...home === undefined ? [] : [home]]) {
    const real = await realPath(secret);
    // An account of the system may live in a folder that holds nothing but programs.
    if (secret === home && real === secret && !real.startsWith(`${SYSTEM}/home/`)) continue;
    if (isBelow(real, SYSTEM)) {
      throw refused(name, `${secret} lies below ${SYSTEM}, which every microVM can read`);
    }
  }
  await checkPath(name, directory);
  const real = await realPath(directory);
  if (NO_FILES.some((place) => isBelow(real, place)) && !isBelow(real, "/dev/shm")) {
    throw refused(name, `its directory ${directory} holds no ordinary files`);
  }
  if (isBelow(real, await realPath(dataDirectory))) {
    throw refused(name, `its directory ${directory} lies among the engine's own files`);
  }
  await refuseWhole(name, `its directory is ${directory}`, directory, guarded);
}

/**
 * The directories of workers that were given to guests: one that lies in another's could be read
 * and changed by it, or swapped for a link to somewhere else.
 */
export class WorkerFolders {
  /** Name of the worker by real path. */
  readonly #owners = new Map<string, string>();

  /**
   * Notes the directory of a worker, whose earlier one no longer counts; `name@2` is a replica.
   *
   * @throws {EngineError} `isolation_unavailable` when it lies in that of another worker, or the
   * other way round.
   */
  async claim(program: string, directory: string): Promise<void> {
    const real = await realPath(directory);
    const name = program.replace(/@\d+$/, "");
    for (const [other, owner] of this.#owners) {
      if (owner === name) this.#owners.delete(other);
      else if (isBelow(real, other) || isBelow(other, real)) {
        throw refused(name, `its directory ${directory} and that of ${owner}, ${other}, overlap`);
      }
    }
    this.#owners.set(real, name);
  }
}

/** Whether a path is a folder or something in it. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || isBelow(path, folder);
}

/** The path without links; itself where there is nothing. */
export function realPath(path: string): Promise<string> {
  return Deno.realPath(path).catch(() => path);
}

function isBelow(path: string, folder: string): boolean {
  return path.startsWith(folder === "/" ? "/" : `${folder}/`) && path !== folder;
}

async function checkPath(name: string, path: string): Promise<void> {
  // deno-lint-ignore no-control-regex -- That is the point.
  if (/[\u0000-\u001f\u007f]/.test(path)) {
    throw refused(name, `the path ${JSON.stringify(path)} has control characters`);
  }
  const info = await Deno.stat(path).catch(() => undefined);
  if (info?.isDirectory) return;
  const message = `Worker ${name} cannot be started: ${path} is not a folder`;
  throw new EngineError("launch_failed", message);
}

async function refuseWhole(
  name: string,
  what: string,
  path: string,
  { dataDirectory, home, more = [] }: Guarded,
): Promise<void> {
  const real = await realPath(path);
  const inHome = home === undefined ? [] : WHOLE_IN_HOME.map((part) => `${home}/${part}`);
  const exact = [...WHOLE, ...inHome.map((path) => path.replace(/\/$/, ""))];
  for (const whole of exact) {
    if (real === whole || real === await realPath(whole)) {
      throw refused(name, `${what}, and all of ${real} would be shown`);
    }
  }
  const secrets = [dataDirectory, ...home === undefined ? [] : [home], ...more];
  for (const secret of secrets) {
    if (isWithin(await realPath(secret), real)) {
      throw refused(name, `${what}, which holds ${secret}`);
    }
  }
}

/** A folder that another one shows already with the same rights or more need not be shared. */
function withoutNested(shares: readonly Share[]): Share[] {
  const sorted = [...new Map(shares.map((share) => [share.path, share])).values()]
    .sort((one, other) => one.path < other.path ? -1 : 1);
  return sorted.filter(({ path, writable }) =>
    !sorted.some((other) => isBelow(path, other.path) && (other.writable || !writable))
  );
}

/** Links inside a folder lead elsewhere in the guest, so nothing can be shown behind one. */
async function refuseBehindLink(
  name: string,
  { path }: Share,
  shares: readonly Share[],
): Promise<void> {
  const outer = shares.find((other) => isBelow(path, other.path));
  if (!outer) return;
  const expected = (await realPath(outer.path)) + path.slice(outer.path.length);
  const real = await realPath(path);
  if (real === expected) return;
  throw refused(name, `${path} is a link inside ${outer.path}; use its real path ${real}`);
}

function refused(name: string, why: string): EngineError {
  const message = `Worker ${name} cannot run in a microVM: ${why}; ` +
    "move it, or run it with --isolation process, which contains nothing";
  return new EngineError("isolation_unavailable", message, { details: { isolation: "microvm" } });
}
