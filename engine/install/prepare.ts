/**
 * Everything between the wish to run a worker and a command that can be started.
 *
 * What contains a worker is settled here too: which folders it may see, which runtime it gets, and
 * what of the engine's environment.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { keyFolder, thisUser } from "../auth/user_key.ts";
import type { Clock } from "../ports/clock.ts";
import type { DirectoryEntry } from "../ports/config.ts";
import type {
  Accelerator,
  Containment,
  Isolation,
  Launcher,
  OutputLine,
} from "../ports/launcher.ts";
import { pathOutside, pathWithDeno } from "../process/programs.ts";
import { cacheEnv, guestEnv, SYSTEM_PATH } from "../vm/guest_env.ts";
import { allowManifest, containedFolders, pinContainment } from "./containment.ts";
import { checkPlace } from "./guest_access.ts";
import { cacheFolder, dependencyFolder, installDependencies, type Installed } from "./install.ts";
import { readManifest, type WorkerSpec } from "./manifest.ts";
import { findRuntime } from "./runtimes/mod.ts";
import type { PythonFacts } from "./runtimes/python.ts";
import { sdkDirectory } from "./sdk_copy.ts";

/** What preparing needs of its surroundings. */
export interface Preparations {
  readonly clock: Clock;
  readonly launchers: Partial<Record<Isolation, Launcher>>;
  readonly dataDirectory: string;
  readonly platform: typeof Deno.build.os;
}

/** One attempt to prepare a worker. */
export interface PrepareOptions {
  readonly entry: DirectoryEntry;
  readonly spec: WorkerSpec;
  readonly reinstall: boolean;
  readonly signal: AbortSignal;
  output(line: OutputLine): void;
  began(what: string): void;
}

/** A worker that can be started. */
export interface Prepared {
  readonly launcher: Launcher;
  /** What the program gets of the machine, for {@linkcode Launcher.start}. */
  readonly containment: Containment | undefined;
  /** The environment without what belongs to one launch only. */
  readonly env: Readonly<Record<string, string>>;
  readonly dependencies: Installed["result"];
}

/** What a worker's programs run with, those that install included. */
interface Surroundings {
  readonly containment: Containment | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly python: PythonFacts | undefined;
}

/** How a worker is kept apart: its entry says, else its manifest, else the platform. */
export function isolationOf(
  entry: DirectoryEntry,
  spec: WorkerSpec | undefined,
  platform: typeof Deno.build.os,
): Isolation {
  return entry.isolation ?? spec?.isolation ?? defaultIsolation(platform);
}

/**
 * Picks the launcher, puts containment and environment together and installs dependencies.
 *
 * @throws {EngineError} `isolation_unavailable`, `launch_failed`, `install_failed`, `cancelled`.
 */
export async function prepareLaunch(
  { clock, launchers, dataDirectory, platform }: Preparations,
  { entry, spec, reinstall, signal, output, began }: PrepareOptions,
): Promise<Prepared> {
  const { name, path } = entry;
  const isolation = isolationOf(entry, spec, platform);
  const launcher = launchers[isolation];
  if (!launcher) throw isolationUnavailable(name, isolation);
  const configured = (["isolation", "replicas"] as const).filter((key) => entry[key] !== undefined);
  const { network, resources } = spec;
  const replicas = entry.replicas ?? spec.replicas;
  const wish = { name, path, isolation, network, resources, replicas, configured };
  await pinContainment(dataDirectory, wish);

  const { containment, python, env } = isolation === "microvm"
    ? await contained(entry, spec, dataDirectory)
    : await uncontained(entry, spec, dataDirectory);
  const installed = await installDependencies({
    name,
    spec,
    launcher,
    containment,
    python,
    dataDirectory,
    env,
    clock,
    reinstall,
    signal,
    output,
    began,
  });
  return {
    launcher,
    containment,
    env: { ...env, ...installed.env },
    dependencies: installed.result,
  };
}

/** A plain process has what the engine has. */
async function uncontained(
  entry: DirectoryEntry,
  spec: WorkerSpec,
  dataDirectory: string,
): Promise<Surroundings> {
  const inherited = Deno.env.get("PYTHONPATH");
  const own = { ...spec.env, ...entry.env };
  const here = Deno.env.get("PATH") ?? "";
  const theirs = await containedFolders(dataDirectory);
  const env = {
    ...inherited ? { PYTHONPATH: inherited } : {},
    ...own,
    ...workerEnv(entry, "process"),
    PATH: await pathWithDeno(own.PATH ?? await pathOutside(here, theirs, []), dataDirectory),
  };
  return { containment: undefined, env, python: undefined };
}

/**
 * A contained one has its runtime, the SDKs, its dependencies, and settings for package managers.
 * Its manifest decides nothing that happens outside: programs are looked for with the PATH of the
 * engine or of config.yaml.
 */
async function contained(
  entry: DirectoryEntry,
  spec: WorkerSpec,
  dataDirectory: string,
): Promise<Surroundings> {
  const { name } = entry;
  const outer = entry.env.PATH ?? Deno.env.get("PATH") ?? "";
  const path = await pathWithDeno(outer, dataDirectory);
  const { folders, bins, python } = await findRuntime({ name, spec, path, dataDirectory });
  const own = dependencyFolder(dataDirectory, name);
  await Deno.mkdir(own, { recursive: true });
  const containment: Containment = {
    reads: [sdkDirectory(dataDirectory), ...folders],
    writes: [own],
    network: spec.network,
    resources: spec.resources,
    accel: entry.accel ?? "auto",
  };
  const visible = [entry.path, ...containment.reads, ...containment.writes];
  const env = {
    ...guestEnv(Deno.env.toObject(), visible),
    ...cacheEnv(cacheFolder(dataDirectory, name)),
    ...spec.env,
    ...entry.env,
    ...workerEnv(entry, "microvm"),
    PATH: [...bins, entry.env.PATH ?? spec.env.PATH ?? SYSTEM_PATH].join(":"),
  };
  return { containment, env, python };
}

function workerEnv({ name }: DirectoryEntry, isolation: Isolation): Record<string, string> {
  return { ENGINE_WORKER_NAME: name, ENGINE_ISOLATION: isolation };
}

/** What somebody wants to add. */
export interface NewWorkerRequest {
  /** Absolute directory with a manifest. */
  readonly path: string;
  /** Left out: what the manifest says, else what the platform offers. */
  readonly isolation?: Isolation | undefined;
  /** Left out: `auto`. */
  readonly accel?: Accelerator | "auto" | undefined;
}

/** What this machine can start, and where the engine's own files lie. */
export interface NewWorkerSurroundings {
  readonly platform: typeof Deno.build.os;
  readonly dataDirectory: string;
  readonly launchers: Partial<Record<Isolation, Launcher>>;
}

/** A worker that can be added. */
export interface NewWorker {
  /** What its manifest calls it. */
  readonly name: string;
  /** How it would run. */
  readonly isolation: Isolation;
}

/**
 * Reads the manifest of a directory, settles how the worker would be kept apart, and asks the
 * launcher whether that can be had. Somebody who adds a worker anew agrees to its manifest.
 *
 * @throws {EngineError} `manifest_invalid` with every problem; `isolation_unavailable` with what
 * to do.
 */
export async function checkNewWorker(
  { path, isolation, accel }: NewWorkerRequest,
  { platform, launchers, dataDirectory }: NewWorkerSurroundings,
): Promise<NewWorker> {
  const spec = readManifest(path);
  const settled = isolation ?? spec.isolation ?? defaultIsolation(platform);
  const launcher = launchers[settled];
  if (!launcher) throw isolationUnavailable(spec.name, settled);
  await launcher.check?.(spec.name, accel ?? "auto");
  if (settled === "microvm") {
    const more = [keyFolder(thisUser())];
    await checkPlace(spec.name, path, { dataDirectory, home: Deno.env.get("HOME"), more });
    await allowManifest(dataDirectory, path, spec);
  }
  return { name: spec.name, isolation: settled };
}

/** How a worker is kept apart when nobody says. */
export function defaultIsolation(platform: typeof Deno.build.os): Isolation {
  return platform === "linux" ? "microvm" : "process";
}

/** The error for an isolation that there is no launcher for. */
export function isolationUnavailable(name: string, isolation: Isolation): EngineError {
  const message = isolation === "microvm"
    ? `Worker ${name} would run in a microVM, which only Linux can start; ` +
      "add it with --isolation process, which runs it as a plain process without containment"
    : `Worker ${name} asks for the isolation ${isolation}, which is not available here`;
  return new EngineError("isolation_unavailable", message, { details: { isolation } });
}
