/**
 * Installs what a worker depends on, once per content of the files that say so.
 *
 * A marker is written when everything is there, so that an installation that was cut short is done
 * again. Python packages go to a folder of the engine's (`<data>/deps/<worker>/<hash>`), never to
 * the machine's Python; npm and Deno keep their own places. Commands run through the worker's own
 * launcher, so they are contained like the worker.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/errors.ts";
import { INSTALL_TIMEOUT_MS, STOP_GRACE_MS } from "../../sdk/typescript/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ended, Launcher, OutputLine } from "../ports/launcher.ts";
import { dependencyHash } from "./dependency_hash.ts";
import { shellWord, type WorkerSpec } from "./manifest.ts";
import { requireProgram } from "./programs.ts";
import { probePython } from "./python.ts";
import { PYTHON_REQUIREMENT, pythonSdkDirectory } from "./sdk_copy.ts";

/** What to install, and with what. */
export interface InstallOptions {
  /** Name that the worker has in config.yaml; names its folder of dependencies. */
  readonly name: string;
  readonly spec: WorkerSpec;
  readonly launcher: Launcher;
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
  /** Told before commands run, such as `installing dependencies with pip`. */
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
  /** Whether everything that the marker vouches for is still there. */
  isComplete(): Promise<boolean>;
}

const MARKER = ".installed";

/**
 * Installs, or finds that nothing has changed since.
 *
 * @throws {EngineError} `install_failed`; `launch_failed` when a program is missing; `cancelled`
 * when the signal came first.
 */
export async function installDependencies(options: InstallOptions): Promise<Installed> {
  const { name, spec, dataDirectory, signal } = options;
  const python = spec.kind === "python" ? await probePython(name, spec, options.env) : undefined;
  const hash = await dependencyHash(spec.directory, [PYTHON_REQUIREMENT, python?.version ?? ""]);
  const all = `${dataDirectory}/deps/${name}`;
  const place = `${all}/${hash}`;
  const plan = await planOf(options, place);
  if (plan.commands.length === 0) return { result: "none", env: plan.env };

  if (options.reinstall) await removeTree(all);
  const isDone = await exists(`${place}/${MARKER}`) && await plan.isComplete();
  if (isDone) return { result: "cached", env: plan.env };
  if (python && !python.hasPip && spec.packageManager === "pip") throw noPip(name);

  await removeTree(all);
  await Deno.mkdir(place, { recursive: true });
  options.began(`installing dependencies with ${spec.packageManager}`);
  for (const command of plan.commands) await run(options, command, plan.env);
  // npm and Deno write lock files, which count as well.
  const after = await dependencyHash(spec.directory, [PYTHON_REQUIREMENT, python?.version ?? ""]);
  const marked = spec.kind === "python" ? place : `${all}/${after}`;
  if (signal.aborted) throw cancelled(name);
  await Deno.mkdir(marked, { recursive: true });
  await Deno.writeTextFile(`${marked}/${MARKER}`, "");
  return { result: "installed", env: plan.env };
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
  { name, spec, dataDirectory, env }: InstallOptions,
  place: string,
): Promise<Plan> {
  if (spec.packageManager === "uv") await requireProgram("uv", env.PATH ?? "", name);
  const tool = spec.packageManager === "uv"
    ? "uv pip install --python python3"
    : "python3 -m pip install";
  const file = `${spec.directory}/requirements.txt`;
  const listed = spec.install === null && await exists(file) ? " -r requirements.txt" : "";
  const own = `${tool} --target ${shellWord(place)} '${PYTHON_REQUIREMENT}'${listed}`;
  const path = [place, pythonSdkDirectory(dataDirectory), env.PYTHONPATH ?? ""];
  return {
    commands: spec.install === null ? [own] : [own, spec.install],
    env: {
      PYTHONPATH: path.filter((part) => part !== "").join(":"),
      PYTHONUNBUFFERED: "1",
      PIP_TARGET: place,
      PIP_USER: "0",
      PIP_NO_INPUT: "1",
      PIP_ROOT_USER_ACTION: "ignore",
      PIP_DISABLE_PIP_VERSION_CHECK: "1",
    },
    isComplete: () => Promise.resolve(true),
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

async function denoPlan({ name, spec, env }: InstallOptions): Promise<Plan> {
  await requireProgram("deno", env.PATH ?? "", name);
  const usual = spec.entry === null
    ? []
    : [`deno install --quiet --entrypoint ${shellWord(spec.entry)}`];
  return {
    commands: spec.install === null ? usual : [spec.install],
    env: {},
    isComplete: () => Promise.resolve(true),
  };
}

/** Runs one command to its end, within its time and while it is wanted. */
async function run(
  { name, spec, launcher, env, clock, signal, output }: InstallOptions,
  command: string,
  added: Readonly<Record<string, string>>,
): Promise<void> {
  if (signal.aborted) throw cancelled(name);
  const all = { ...env, ...added };
  const running = await launcher.start(
    { name, command, directory: spec.directory, env: all },
    output,
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

/** How a program ended, in words: `exit code 1` or `signal SIGKILL`. */
export function describeEnd({ code, signal }: Ended): string {
  if (signal !== null) return `signal ${signal}`;
  if (code === 127) return "exit code 127 (a program that it needs was not found)";
  return `exit code ${code}`;
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

async function removeTree(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (thrown) {
    if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
  }
}
