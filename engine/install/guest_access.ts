/**
 * What a worker sees of the host: which folders a guest, and which environment variables any.
 *
 * A guest receives the system's programs, its runtime, and the worker's own folders, each at the
 * path that it has on the host. A folder that contains private files (the user's home, the engine's
 * files) is refused rather than masked: root in a guest can lift a mask. Of the engine's
 * environment a worker receives settings of the network, package managers and language, since other
 * variables may hold keys; one without a guest also those that name places of the host.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { LaunchSpec } from "../ports/launcher.ts";
import { isWithin, realPath } from "../process/programs.ts";
import { isGuestSetting } from "./runtimes/mod.ts";
import { SYSTEM } from "./runtimes/runtime.ts";

/** A folder of the host that a guest sees at the same path. */
export interface Share {
  /** Absolute. */
  readonly path: string;
  readonly writable: boolean;
}

/** Folders that no guest may see. */
export interface ProtectedFolders {
  /** Absolute path of the engine's files of a project. */
  readonly dataDirectory: string;
  /** The user's home; `undefined` when it is not known. */
  readonly home: string | undefined;
  /** More folders, such as a cache outside the home. */
  readonly more?: readonly string[];
}

/** Where a guest finds programs, after those of its runtime. */
export const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Folders that contain too much to be shared as a whole. */
const WHOLE = [
  ...["/", "/boot", "/dev", "/etc", "/home", "/media", "/mnt", "/opt", "/proc", "/root", "/run"],
  ...["/srv", "/sys", "/tmp", "/var", "/var/lib", "/var/tmp"],
  ...[SYSTEM, "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/local", "/usr/sbin", "/usr/share"],
];
/** Folders in a home where many programs keep files. */
const WHOLE_IN_HOME = [
  "",
  ".cache",
  ".config",
  ".local",
  ".local/bin",
  ".local/share",
  ".local/state",
];
/** Folders without real files, where no worker can live. */
const VIRTUAL_FOLDERS = ["/dev", "/proc", "/sys"];
/** Certificates that a guest has a copy of, where the host has them. */
const CERTIFICATES = ["/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted"];
/** Variables that every worker receives; those of toolchains come on top. */
const PASSED = [
  /^(https?|ftp|all|no)_proxy$/i,
  /^(SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|GIT_SSL_CAINFO)$/,
  /^(NIX_SSL_CERT_FILE|AWS_CA_BUNDLE|HTTPLIB2_CA_CERTS)$/,
  /^(GRPC_DEFAULT_SSL_ROOTS_FILE_PATH|LANG|LANGUAGE|LC_[A-Z]+|TZ)$/,
];

/** Variables that name the user and places of the host, which plain processes receive besides. */
const PASSED_ON_HOST = [
  /^(PATH|HOME|USER|LOGNAME|SHELL|TMPDIR|TMP|TEMP|XDG_[A-Z]+_(HOME|DIR|DIRS))$/,
  /^(DENO_DIR|NODE_OPTIONS|NODE_PATH|PYTHONHOME|VIRTUAL_ENV|LD_LIBRARY_PATH|DYLD_\w+)$/,
  /^(ASDF_(DATA_)?DIR|FNM_DIR|MISE_(DATA|CONFIG)_DIR|NODENV_ROOT|NVM_DIR|N_PREFIX)$/,
  /^(PYENV_(ROOT|VERSION)|VOLTA_HOME)$/,
];

/**
 * The folders that a program needs, outer ones before those inside them.
 *
 * @throws {EngineError} `launch_failed` when one does not exist; `isolation_unavailable` when one
 * contains private files.
 */
export async function resolveShares(
  spec: LaunchSpec,
  hidden: ProtectedFolders,
): Promise<Share[]> {
  const { name, directory, containment } = spec;
  await checkDirectory(name, directory, hidden);
  const shares: Share[] = [{ path: SYSTEM, writable: false }];
  for (const path of containment?.reads ?? []) {
    await checkPath(name, path);
    await refuseWhole(name, `it needs the folder ${path}`, path, hidden);
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
 * Checks that a worker's directory can be shared with a guest.
 *
 * @throws {EngineError} `launch_failed` when it does not exist; `isolation_unavailable` when it
 * contains private files.
 */
export async function checkDirectory(
  name: string,
  directory: string,
  hidden: ProtectedFolders,
): Promise<void> {
  const { dataDirectory, home } = hidden;
  for (const secret of [dataDirectory, ...home === undefined ? [] : [home]]) {
    const real = await realPath(secret);
    // The home of a system account may be a folder of programs, which is not private.
    if (secret === home && real === secret && !real.startsWith(`${SYSTEM}/home/`)) continue;
    if (isBelow(real, SYSTEM)) {
      throw refused(name, `${secret} lies below ${SYSTEM}, which every microVM can read`);
    }
  }
  await checkPath(name, directory);
  const real = await realPath(directory);
  if (VIRTUAL_FOLDERS.some((place) => isBelow(real, place)) && !isBelow(real, "/dev/shm")) {
    throw refused(name, `its directory ${directory} holds no ordinary files`);
  }
  if (isBelow(real, await realPath(dataDirectory))) {
    throw refused(name, `its directory ${directory} lies among the engine's own files`);
  }
  await refuseWhole(name, `its directory is ${directory}`, directory, hidden);
}

/**
 * The directories of workers that guests have received. They must not overlap: a worker could read
 * and change another's files inside its own, or replace its directory by a link.
 */
export class WorkerFolders {
  /** Name of the worker by real path. */
  readonly #owners = new Map<string, string>();

  /**
   * Records the directory of a worker in place of an earlier one; `name@2` is a replica of `name`.
   *
   * @throws {EngineError} `isolation_unavailable` when it overlaps with that of another worker.
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

function isBelow(path: string, folder: string): boolean {
  return path !== folder && isWithin(path, folder);
}

async function checkPath(name: string, path: string): Promise<void> {
  // deno-lint-ignore no-control-regex -- Control characters are what it looks for.
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
  { dataDirectory, home, more = [] }: ProtectedFolders,
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

/** Without folders inside another one that is shared with the same rights or more. */
function withoutNested(shares: readonly Share[]): Share[] {
  const sorted = [...new Map(shares.map((share) => [share.path, share])).values()]
    .sort((one, other) => one.path < other.path ? -1 : 1);
  return sorted.filter(({ path, writable }) =>
    !sorted.some((other) => isBelow(path, other.path) && (other.writable || !writable))
  );
}

/** Refuses a folder behind a link in a shared folder, since the guest resolves the link itself. */
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

/** The part of an environment that a worker receives which runs as a plain process. */
export function processEnv(env: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(env).filter(([name]) => {
    return isPassed(name) || PASSED_ON_HOST.some((pattern) => pattern.test(name));
  });
  return Object.fromEntries(entries);
}

/**
 * The part of an environment that a guest receives. Values and words in them that are paths which
 * the guest does not have are left out; `visible` are the folders that it sees besides the
 * system's.
 */
export function guestEnv(
  env: Readonly<Record<string, string>>,
  visible: readonly string[],
): Record<string, string> {
  const places = [SYSTEM, ...CERTIFICATES, ...visible];
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (!isPassed(name)) continue;
    const words = value.split(/\s+/).filter((word) => isVisible(word, places));
    const left = /(^|\s)(\/|~|file:)/.test(value) ? words.join(" ") : value;
    if (left !== "" || value === "") passed[name] = left;
  }
  return passed;
}

function isPassed(name: string): boolean {
  return PASSED.some((pattern) => pattern.test(name)) || isGuestSetting(name);
}

/** Whether a word is no path, or one in these folders. */
function isVisible(word: string, places: readonly string[]): boolean {
  if (word.startsWith("~")) return false;
  const path = word.startsWith("file:") ? word.replace(/^file:(\/\/)?/, "") : word;
  if (!path.startsWith("/")) return true;
  return !path.split("/").includes("..") && places.some((place) => isWithin(path, place));
}
