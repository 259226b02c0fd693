/**
 * Installs the dependencies of a worker, once per content of the files that declare them.
 *
 * A finished installation is recorded in `<data>/installed/<worker>.json`, where no worker can
 * write; one that was interrupted has no record and is repeated. Python packages go to a new folder
 * `<data>/deps/<worker>/…` each time, and the folder before it stays for programs that still run;
 * npm and Deno keep their own places. Commands run through the worker's own launcher, contained
 * like the worker, but with access to the network.
 *
 * @module
 */
import * as nodeCrypto from "node:crypto";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Containment, Launcher, OutputLine } from "../ports/launcher.ts";
import { STOP_GRACE_MS } from "../process/process_group.ts";
import { describeEnd } from "../process/programs.ts";
import type { WorkerSpec } from "./manifest.ts";
import { isDependencyFile, toolchainOf } from "./runtimes/mod.ts";
import type { InstallPlan, RuntimeFacts } from "./runtimes/runtime.ts";
import { removeOthers, removeTree, WorkerFile } from "./worker_files.ts";

/** How long one install command may take. */
const INSTALL_TIMEOUT_MS = 600_000;
/** Bytes of dependency files that are hashed; files beyond count by size and time. */
export const DEPENDENCY_FILE_BYTES_MAX = 64 * 1024 * 1024;
/** Dependency files whose content is hashed; files beyond count by name. */
export const DEPENDENCY_FILES_MAX = 1_000;
/** Folder below a worker's dependencies where contained package managers keep downloads. */
const CACHE = "cache";

/** What to install, and with what. */
export interface InstallOptions {
  /** Name that the worker has in config.yaml; names its folder of dependencies. */
  readonly name: string;
  readonly spec: WorkerSpec;
  readonly launcher: Launcher;
  /** What the commands may use of the machine; left out: what the engine may. */
  readonly containment?: Containment | undefined;
  /** What a guest runs the worker with; left out: the program on the worker's PATH is inspected. */
  readonly facts?: RuntimeFacts | undefined;
  readonly dataDirectory: string;
  /** Environment of the worker, with its PATH. */
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** Deletes downloads and installs although nothing has changed. */
  readonly reinstall: boolean;
  /** Aborts the installation. */
  readonly signal: AbortSignal;
  /** Receives what the commands print while they run. */
  output(line: OutputLine): void;
  /** Called with what is being done, such as `installing dependencies with pip`. */
  began(what: string): void;
}

/** The outcome of an installation. */
export interface Installed {
  /** `none`: there is nothing to install. */
  readonly result: "none" | "installed" | "cached";
  /** What the worker needs in its environment to find its dependencies. */
  readonly env: Readonly<Record<string, string>>;
}

/** The folder for everything that a worker depends on. */
export function dependencyFolder(dataDirectory: string, name: string): string {
  return `${dataDirectory}/deps/${name}`;
}

/** See {@linkcode CACHE}. */
export function cacheFolder(dataDirectory: string, name: string): string {
  return `${dependencyFolder(dataDirectory, name)}/${CACHE}`;
}

/**
 * Installs the dependencies of a worker unless a finished installation still fits.
 *
 * @throws {EngineError} `install_failed`; `launch_failed` when a program is missing; `cancelled`
 * when the signal aborts it.
 */
export async function installDependencies(options: InstallOptions): Promise<Installed> {
  const { name, spec, dataDirectory, env, signal } = options;
  const toolchain = toolchainOf(spec.kind, spec.packageManager);
  const request = { name, directory: spec.directory, env };
  const facts = options.facts ?? await toolchain.inspect?.(request);
  const hash = await hashOf(options, facts);
  const known = await readInstallation(dataDirectory, name);
  const isKnown = known?.hash === hash && !options.reinstall;
  const fresh = `${hash}-${crypto.randomUUID().slice(0, 8)}`;
  const all = dependencyFolder(dataDirectory, name);
  const plan = await planFor(options, `${all}/${isKnown ? known.folder : fresh}`);
  if (plan.commands.length === 0) return { result: "none", env: plan.env };
  if (isKnown && await plan.isComplete()) return { result: "cached", env: plan.env };
  if (facts?.installProblem) throw facts.installProblem;
  if (options.reinstall) await removeTree(`${all}/${CACHE}`);

  const renewed = await planFor(options, `${all}/${fresh}`);
  await Deno.mkdir(all, { recursive: true });
  if (toolchain.usesPackageFolder) await Deno.mkdir(`${all}/${fresh}`);
  for (const command of renewed.commands) await run(options, command, renewed.env);
  if (signal.aborted) throw cancelled(name);
  // npm and Deno write lock files, which are hashed as well.
  const after = toolchain.usesPackageFolder ? hash : await hashOf(options, facts);
  await writeInstallation(dataDirectory, name, { hash: after, folder: fresh });
  await removeOthers(all, [CACHE, fresh, known?.folder ?? ""]);
  return { result: "installed", env: renewed.env };
}

/** Includes the isolation, since a contained Deno keeps downloads elsewhere. */
function hashOf({ spec, launcher }: InstallOptions, facts?: RuntimeFacts): Promise<string> {
  return dependencyHash(spec.directory, [...facts?.fingerprint ?? [], launcher.isolation]);
}

function planFor(
  { name, spec, dataDirectory, env, containment }: InstallOptions,
  packageFolder: string,
): Promise<InstallPlan> {
  return toolchainOf(spec.kind, spec.packageManager).plan({
    name,
    directory: spec.directory,
    env,
    entry: spec.entry,
    install: spec.install,
    dataDirectory,
    isContained: containment !== undefined,
    packageFolder,
    cacheFolder: cacheFolder(dataDirectory, name),
  });
}

/** Runs one command until it ends, takes too long or is aborted. */
async function run(
  options: InstallOptions,
  command: string,
  added: Readonly<Record<string, string>>,
): Promise<void> {
  const { name, spec, launcher, env, clock, signal, output, began } = options;
  if (signal.aborted) throw cancelled(name);
  const own = { name, command, directory: spec.directory, env: { ...env, ...added } };
  const containment = options.containment && { ...options.containment, network: "full" } as const;
  const what = `installing dependencies with ${spec.packageManager}`;
  began(what);
  const running = await launcher.start(
    containment ? { ...own, containment, keep: true } : own,
    output,
    (phase) => began(`${what}: ${phase}`),
    signal,
  );
  let isLate = false;
  const stop = (): void => void running.stop(STOP_GRACE_MS);
  const cancelTimer = clock.after(INSTALL_TIMEOUT_MS, () => {
    isLate = true;
    stop();
  });
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  const ended = await running.ended;
  cancelTimer();
  signal.removeEventListener("abort", stop);
  if (signal.aborted) throw cancelled(name);
  if (ended.code === 0 && !isLate) return;
  const how = isLate ? `took longer than ${INSTALL_TIMEOUT_MS / 1_000} s` : describeEnd(ended);
  const message = `Installing the dependencies of ${name} failed: ${command}: ${how}`;
  throw new EngineError("install_failed", message);
}

function cancelled(name: string): EngineError {
  return new EngineError("cancelled", `The installation of ${name} was cancelled`);
}

/**
 * Sixteen characters that stand for the dependency files of a directory and for some more texts.
 *
 * A worker may have put anything there. What is no regular file counts only by its name; a file
 * outside of the directory, or one that is too large, counts by size and time.
 */
export async function dependencyHash(
  directory: string,
  more: readonly string[],
): Promise<string> {
  const names: string[] = [];
  for await (const entry of Deno.readDir(directory)) {
    if (!entry.isDirectory && isDependencyFile(entry.name)) names.push(entry.name);
  }
  const hash = nodeCrypto.createHash("sha256").update(JSON.stringify([...more, Deno.build.target]));
  let left = DEPENDENCY_FILE_BYTES_MAX;
  for (const [i, name] of names.sort().entries()) {
    hash.update(JSON.stringify(name));
    if (i >= DEPENDENCY_FILES_MAX) continue;
    using file = openIfRegular(directory, name);
    if (file === undefined || file.size > left) {
      hash.update(await sizeAndTime(`${directory}/${name}`));
      continue;
    }
    left -= file.size;
    hash.update(`${file.size}`);
    for (const piece of file.pieces()) {
      hash.update(piece);
      await new Promise((resolve) => setTimeout(resolve, 0)); // Lets the engine route calls.
    }
  }
  return hash.digest("hex").slice(0, 16);
}

function openIfRegular(directory: string, name: string): WorkerFile | undefined {
  try {
    return WorkerFile.open(directory, name);
  } catch {
    return undefined; // It is gone, lies elsewhere, or is no regular file.
  }
}

async function sizeAndTime(path: string): Promise<string> {
  const info = await Deno.stat(path).catch(() => undefined);
  return info?.isFile ? `${info.size} ${info.mtime?.getTime()}` : "";
}

/** A finished installation. */
interface Installation {
  /** See {@linkcode dependencyHash}. */
  readonly hash: string;
  /** Name of its folder below the worker's dependencies. */
  readonly folder: string;
}

/** The last finished installation; `undefined` when there is none. */
export async function readInstallation(
  dataDirectory: string,
  name: string,
): Promise<Installation | undefined> {
  try {
    const text = await Deno.readTextFile(`${dataDirectory}/installed/${name}.json`);
    const { hash, folder } = JSON.parse(text);
    const isName = typeof folder === "string" && /^[\w-]+$/.test(folder);
    return typeof hash === "string" && isName ? { hash, folder } : undefined;
  } catch {
    return undefined; // There is none, or it cannot be trusted; the installation is repeated.
  }
}

/** Records a finished installation, atomically. */
export async function writeInstallation(
  dataDirectory: string,
  name: string,
  installation: Installation,
): Promise<void> {
  const folder = `${dataDirectory}/installed`;
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  const temporary = `${folder}/${name}.${crypto.randomUUID().slice(0, 8)}.tmp`;
  await Deno.writeTextFile(temporary, JSON.stringify(installation), { mode: 0o600 });
  await Deno.rename(temporary, `${folder}/${name}.json`);
}
