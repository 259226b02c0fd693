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
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { INSTALL_TIMEOUT_MS, STOP_GRACE_MS } from "../supervisor/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Containment, Ended, Launcher, OutputLine } from "../ports/launcher.ts";
import { dependencyHash } from "./dependency_hash.ts";
import { readInstallation, writeInstallation } from "./installation.ts";
import type { WorkerSpec } from "./manifest.ts";
import { requireProgram } from "../process/programs.ts";
import { probePython, type PythonFacts } from "./python.ts";
import { removeOthers, removeTree } from "./remove_tree.ts";
import { PYTHON_FILES, PYTHON_REQUIREMENT, pythonSdkDirectory } from "./sdk_copy.ts";
import { shellWord } from "../process/shell_word.ts";

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
