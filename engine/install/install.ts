/**
 * Installs what a worker depends on, once per content of the files that say so.
 *
 * What was installed is written down when everything is there, so that an installation that was cut
 * short is done again; it is written where no worker can write. Python packages go to a new folder
 * of the engine's (`<data>/deps/<worker>/…`) each time, never to the machine's Python, and the
 * one before stays for programs that still run; npm and Deno keep their own places. Commands run
 * through the worker's own launcher, so they are contained like the worker, but for the network:
 * packages come from the world.
 *
 * @module
 */
import defer * as nodeCrypto from "node:crypto";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Containment, Ended, Launcher, OutputLine } from "../ports/launcher.ts";
import { requireProgram, shellWord } from "../process/programs.ts";
import {
  DEPENDENCY_FILE_BYTES_MAX,
  DEPENDENCY_FILES_MAX,
  INSTALL_TIMEOUT_MS,
  STOP_GRACE_MS,
} from "../supervisor/limits.ts";
import { MANIFEST, type WorkerSpec } from "./manifest.ts";
import { probePython, type PythonFacts } from "./runtimes/python.ts";
import { PYTHON_FILES, PYTHON_REQUIREMENT, pythonSdkDirectory } from "./sdk_copy.ts";
import { removeOthers, removeTree, WorkerFile } from "./worker_files.ts";

/** What to install, and with what. */
export interface InstallOptions {
  /** Name that the worker has in config.yaml; names its folder of dependencies. */
  readonly name: string;
  readonly spec: WorkerSpec;
  readonly launcher: Launcher;
  /** What the commands get of the machine; left out: what the engine has. */
  readonly containment?: Containment | undefined;
  /** The Python that a contained worker runs; left out: the one on its PATH is asked. */
  readonly python?: PythonFacts | undefined;
  readonly dataDirectory: string;
  /** Environment of the worker, with its PATH. */
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** Throws what is cached away first. */
  readonly reinstall: boolean;
  /** Aborted: the installation is no longer wanted. */
  readonly signal: AbortSignal;
  /** Gets what the commands print while they run. */
  output(line: OutputLine): void;
  /** Told what goes on, such as `installing dependencies with pip`. */
  began(what: string): void;
}

/** What came of it. */
export interface Installed {
  /** `none`: there is nothing to install. */
  readonly result: "none" | "installed" | "cached";
  /** What the worker's environment needs so that it finds its dependencies. */
  readonly env: Readonly<Record<string, string>>;
}

/** Commands to run in order, and where they put things. */
interface Plan {
  readonly commands: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Whether everything that an installation left behind is still there. */
  isComplete(): Promise<boolean>;
}

/** Folder below a worker's dependencies where contained package managers keep what they fetched. */
const CACHE = "cache";

/** The folder for all that a worker depends on. */
export function dependencyFolder(dataDirectory: string, name: string): string {
  return `${dataDirectory}/deps/${name}`;
}

/** See {@linkcode CACHE}. */
export function cacheFolder(dataDirectory: string, name: string): string {
  return `${dependencyFolder(dataDirectory, name)}/${CACHE}`;
}

/**
 * Installs, or finds that nothing has changed since.
 *
 * @throws {EngineError} `install_failed`; `launch_failed` when a program is missing; `cancelled`
 * when the signal came first.
 */
export async function installDependencies(options: InstallOptions): Promise<Installed> {
  const { name, spec, dataDirectory, signal } = options;
  const python = spec.kind === "python" ? options.python ?? await pythonOf(options) : undefined;
  const hash = await hashOf(options, python);
  const known = await readInstallation(dataDirectory, name);
  const isKnown = known?.hash === hash && !options.reinstall;
  const fresh = `${hash}-${crypto.randomUUID().slice(0, 8)}`;
  const all = dependencyFolder(dataDirectory, name);
  const folder = isKnown ? known.folder : fresh;
  const plan = await planOf(options, `${all}/${folder}`);
  if (plan.commands.length === 0) return { result: "none", env: plan.env };
  if (isKnown && await plan.isComplete()) return { result: "cached", env: plan.env };
  if (python && !python.hasPip && spec.packageManager === "pip") throw noPip(name);
  if (options.reinstall) await removeTree(`${all}/${CACHE}`);

  const renewed = await planOf(options, `${all}/${fresh}`);
  await Deno.mkdir(all, { recursive: true });
  if (spec.kind === "python") await Deno.mkdir(`${all}/${fresh}`);
  for (const command of renewed.commands) await run(options, command, renewed.env);
  if (signal.aborted) throw cancelled(name);
  // npm and Deno write lock files, which count as well.
  const after = spec.kind === "python" ? hash : await hashOf(options, python);
  await writeInstallation(dataDirectory, name, { hash: after, folder: fresh });
  await removeOthers(all, [CACHE, fresh, known?.folder ?? ""]);
  return { result: "installed", env: renewed.env };
}

function pythonOf({ name, spec, env }: InstallOptions): Promise<PythonFacts> {
  return probePython({ name, directory: spec.directory, env, isolated: false });
}

/** Contained or not is part of it: what Deno fetched is somewhere else then. */
function hashOf(
  { spec, launcher, containment }: InstallOptions,
  python?: PythonFacts,
): Promise<string> {
  const more = [PYTHON_REQUIREMENT, python?.version ?? "", launcher.isolation];
  const copied = python && containment ? [JSON.stringify(PYTHON_FILES)] : [];
  return dependencyHash(spec.directory, [...more, ...copied]);
}

async function planOf(options: InstallOptions, place: string): Promise<Plan> {
  const { spec } = options;
  switch (spec.packageManager) {
    case "pip":
    case "uv":
      return await pythonPlan(options, place);
    case "npm":
      return await npmPlan(options);
    case "deno":
      return await denoPlan(options);
  }
}

async function pythonPlan(
  { name, spec, dataDirectory, env, containment }: InstallOptions,
  place: string,
): Promise<Plan> {
  if (spec.packageManager === "uv") await requireProgram("uv", env.PATH ?? "", name);
  const tool = spec.packageManager === "uv"
    ? "uv pip install --python python3"
    // What is imported is compiled then; packages of the machine's Python are not looked through.
    : "python3 -m pip install --no-compile --no-warn-conflicts";
  const file = `${spec.directory}/requirements.txt`;
  const listed = spec.install === null && await exists(file) ? " -r requirements.txt" : "";
  const own = `${tool} --target ${shellWord(place)} '${PYTHON_REQUIREMENT}'${listed}`;
  const shared = pythonSdkDirectory(dataDirectory);
  // A contained worker cannot keep bytecode in the shared copy, and would compile it at each start.
  const sdk = containment ? `${place}/.sdk` : shared;
  const copy = `mkdir -p ${shellWord(sdk)} && cp -R ${shellWord(`${shared}/engine_sdk`)} ` +
    `${shellWord(sdk)} && `;
  const first = containment ? copy + own : own;
  const path = [place, sdk, env.PYTHONPATH ?? ""];
  return {
    commands: spec.install === null ? [first] : [first, spec.install],
    env: {
      PYTHONPATH: path.filter((part) => part !== "").join(":"),
      PYTHONUNBUFFERED: "1",
      PIP_TARGET: place,
      PIP_USER: "0",
      PIP_NO_INPUT: "1",
      PIP_ROOT_USER_ACTION: "ignore",
      PIP_DISABLE_PIP_VERSION_CHECK: "1",
    },
    isComplete: () => exists(place),
  };
}

async function npmPlan({ name, spec, env }: InstallOptions): Promise<Plan> {
  await requireProgram("node", env.PATH ?? "", name);
  const hasPackages = await exists(`${spec.directory}/package.json`);
  if (hasPackages && spec.install === null) await requireProgram("npm", env.PATH ?? "", name);
  const usual = hasPackages ? ["npm install --no-audit --no-fund"] : [];
  return {
    commands: spec.install === null ? usual : [spec.install],
    env: {},
    // Without dependencies npm makes no folder, but then it leaves a lock file.
    isComplete: async () =>
      spec.install !== null || await exists(`${spec.directory}/node_modules`) ||
      await exists(`${spec.directory}/package-lock.json`),
  };
}

async function denoPlan(
  { name, spec, env, dataDirectory, containment }: InstallOptions,
): Promise<Plan> {
  await requireProgram("deno", env.PATH ?? "", name);
  const usual = spec.entry === null
    ? []
    : [`deno install --quiet --entrypoint ${shellWord(spec.entry)}`];
  return {
    commands: spec.install === null ? usual : [spec.install],
    env: {},
    isComplete: async () => !containment || await exists(cacheFolder(dataDirectory, name)),
  };
}

/** Runs one command to its end, within its time and while it is wanted. */
async function run(
  options: InstallOptions,
  command: string,
  added: Readonly<Record<string, string>>,
): Promise<void> {
  const { name, spec, launcher, env, clock, signal, output, began } = options;
  if (signal.aborted) throw cancelled(name);
  const all = { ...env, ...added };
  const own = { name, command, directory: spec.directory, env: all };
  const containment = options.containment && { ...options.containment, network: "full" } as const;
  const what = `installing dependencies with ${spec.packageManager}`;
  began(what);
  const running = await launcher.start(
    containment ? { ...own, containment, keep: true } : own,
    output,
    (first) => began(`${what}: ${first}`),
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

/** How a program ended, in words: `exit code 1` or `signal SIGKILL (out of memory)`. */
export function describeEnd({ code, signal, reason }: Ended): string {
  if (code === null && signal === null) return reason ?? "an unknown end";
  const because = code === 127 ? reason ?? "a program that it needs was not found" : reason;
  const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
  return because === undefined ? how : `${how} (${because})`;
}

function noPip(name: string): EngineError {
  const message = `Worker ${name} needs pip, which python3 does not have; ` +
    "install it (Debian, Ubuntu: sudo apt install python3-pip; elsewhere: python3 -m ensurepip), " +
    "or set runtime.package_manager to uv";
  return new EngineError("launch_failed", message, { details: { program: "pip" } });
}

function cancelled(name: string): EngineError {
  return new EngineError("cancelled", `The installation of ${name} is no longer wanted`);
}

function exists(path: string): Promise<boolean> {
  return Deno.stat(path).then(() => true, () => false);
}

const FILES = new Set([
  MANIFEST,
  "deno.json",
  "deno.jsonc",
  "deno.lock",
  "npm-shrinkwrap.json",
  "package-lock.json",
  "package.json",
  "poetry.lock",
  "pyproject.toml",
  "uv.lock",
]);

/** Whether a file in a worker's directory says what to install. */
export function isDependencyFile(name: string): boolean {
  return FILES.has(name) || /^requirements.*\.txt$/.test(name);
}

/**
 * Sixteen characters that stand for the contents of those files and for what else matters.
 *
 * A worker may have put anything there: what is no ordinary file, such as a pipe that nobody writes
 * to, counts for nothing; what lies elsewhere, or is too large to be read, by its size and time.
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
    using file = opened(directory, name);
    if (file === undefined || file.size > left) {
      hash.update(await sizeAndTime(`${directory}/${name}`));
      continue;
    }
    left -= file.size;
    hash.update(`${file.size}`);
    for (const piece of file.pieces()) {
      hash.update(piece);
      await aMoment();
    }
  }
  return hash.digest("hex").slice(0, 16);
}

function opened(directory: string, name: string): WorkerFile | undefined {
  try {
    return WorkerFile.open(directory, name);
  } catch {
    return undefined; // Gone, elsewhere, or no file.
  }
}

async function sizeAndTime(path: string): Promise<string> {
  const info = await Deno.stat(path).catch(() => undefined);
  return info?.isFile ? `${info.size} ${info.mtime?.getTime()}` : "";
}

/** Lets the engine do something else. */
function aMoment(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

/** An installation that was finished. */
export interface Installation {
  /** See {@linkcode dependencyHash}. */
  readonly hash: string;
  /** Name of the folder that was made for it, below the worker's dependencies. */
  readonly folder: string;
}

/** The last one that was finished; `undefined` when there is none. */
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
    return undefined; // None, or nothing that can be trusted: then it is done again.
  }
}

/** Writes down that one is finished, in one step. */
export async function writeInstallation(
  dataDirectory: string,
  name: string,
  installation: Installation,
): Promise<void> {
  const folder = `${dataDirectory}/installed`;
  await Deno.mkdir(folder, { recursive: true });
  const temporary = `${folder}/${name}.${crypto.randomUUID().slice(0, 8)}.tmp`;
  await Deno.writeTextFile(temporary, JSON.stringify(installation));
  await Deno.rename(temporary, `${folder}/${name}.json`);
}
