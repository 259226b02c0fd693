/**
 * From a worker's directory to a command that can be started.
 *
 * Settles whether the worker runs in a microVM or as a plain process, with which folders, runtime
 * and environment, and installs its dependencies. {@linkcode checkNewWorker} checks the same for a
 * worker before it is added.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { keyFolder } from "../auth/control_key.ts";
import type { Clock } from "../ports/clock.ts";
import type { DirectoryEntry } from "../ports/config.ts";
import type {
  Accelerator,
  Containment,
  Isolation,
  Launcher,
  OutputLine,
} from "../ports/launcher.ts";
import { pathOutside } from "../process/programs.ts";
import { allowManifest, containedFolders, pinContainment } from "./containment.ts";
import { checkDirectory, guestEnv, processEnv, SYSTEM_PATH } from "./guest_access.ts";
import { cacheFolder, dependencyFolder, installDependencies, type Installed } from "./install.ts";
import { readManifest, type WorkerSpec } from "./manifest.ts";
import { pathWithDeno } from "./runtimes/javascript.ts";
import { cacheEnv, findRuntime } from "./runtimes/mod.ts";
import type { RuntimeFacts } from "./runtimes/runtime.ts";
import { sdkDirectory } from "./sdk_copy.ts";

/** What the host can start, and where the engine's own files lie. */
export interface Host {
  readonly launchers: Partial<Record<Isolation, Launcher>>;
  readonly dataDirectory: string;
  readonly platform: typeof Deno.build.os;
}

/** What preparing works with. */
export interface PrepareTools extends Host {
  readonly clock: Clock;
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
  /** What the program may use of the machine, for {@linkcode Launcher.start}. */
  readonly containment: Containment | undefined;
  /** The environment without the variables of a single launch. */
  readonly env: Readonly<Record<string, string>>;
  readonly dependencies: Installed["result"];
}

/** What the programs of a worker run in, those that install it included. */
interface Surroundings {
  readonly env: Readonly<Record<string, string>>;
  readonly containment?: Containment;
  readonly facts?: RuntimeFacts | undefined;
}

/**
 * Picks the launcher, builds containment and environment, and installs dependencies.
 *
 * @throws {EngineError} `isolation_unavailable`, `launch_failed`, `install_failed`, `cancelled`.
 */
export async function prepareLaunch(
  { clock, launchers, dataDirectory, platform }: PrepareTools,
  { entry, spec, reinstall, signal, output, began }: PrepareOptions,
): Promise<Prepared> {
  const { name, path } = entry;
  const isolation = isolationOf(entry, spec, platform);
  const launcher = launchers[isolation];
  if (!launcher) throw isolationUnavailable(name, isolation);
  const configured = (["isolation", "replicas"] as const).filter((key) => entry[key] !== undefined);
  const { network, resources } = spec;
  const replicas = entry.replicas ?? spec.replicas;
  const request = { name, path, isolation, network, resources, replicas, configured };
  await pinContainment(dataDirectory, request);

  const { env, containment, facts } = isolation === "microvm"
    ? await contained(entry, spec, dataDirectory)
    : await uncontained(entry, spec, dataDirectory);
  const installed = await installDependencies({
    name,
    spec,
    launcher,
    containment,
    facts,
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

/** The isolation of a worker: its entry decides, else its manifest, else the platform. */
export function isolationOf(
  entry: { readonly isolation?: Isolation | undefined },
  spec: WorkerSpec | undefined,
  platform: typeof Deno.build.os,
): Isolation {
  return entry.isolation ?? spec?.isolation ?? (platform === "linux" ? "microvm" : "process");
}

/** A plain process has the file system of the host, and a part of the engine's environment. */
async function uncontained(
  entry: DirectoryEntry,
  spec: WorkerSpec,
  dataDirectory: string,
): Promise<Surroundings> {
  const own = { ...spec.env, ...entry.env };
  const host = Deno.env.get("PATH") ?? "";
  const writable = await containedFolders(dataDirectory);
  const path = own.PATH ?? await pathOutside(host, writable, []);
  const PATH = await pathWithDeno(path, dataDirectory);
  const passed = processEnv(Deno.env.toObject());
  return { env: { ...passed, ...own, ...workerEnv(entry, "process"), PATH } };
}

/**
 * A guest has its runtime, the SDKs, its dependencies, and settings for package managers. Programs
 * on the host are looked up with the PATH of the engine or config.yaml, never the manifest's.
 */
async function contained(
  entry: DirectoryEntry,
  spec: WorkerSpec,
  dataDirectory: string,
): Promise<Surroundings> {
  const { name } = entry;
  const { kind, packageManager, directory } = spec;
  const outer = entry.env.PATH ?? Deno.env.get("PATH") ?? "";
  const path = await pathWithDeno(outer, dataDirectory);
  const request = { name, kind, packageManager, directory, path, dataDirectory };
  const { folders, bins, facts } = await findRuntime(request);
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
  return { env, containment, facts };
}

function workerEnv({ name }: DirectoryEntry, isolation: Isolation): Record<string, string> {
  return { ENGINE_WORKER_NAME: name, ENGINE_ISOLATION: isolation };
}

/** A worker that a person asks to add. */
export interface NewWorkerRequest {
  /** Absolute directory with a manifest. */
  readonly path: string;
  /** Left out: what the manifest says, else the platform's default. */
  readonly isolation?: Isolation | undefined;
  /** Left out: `auto`. */
  readonly accel?: Accelerator | "auto" | undefined;
}

/** A worker that can be added. */
export interface NewWorker {
  /** Its name in the manifest. */
  readonly name: string;
  readonly isolation: Isolation;
}

/**
 * Reads the manifest of a directory and checks that the worker could start with the isolation that
 * follows. Adding a worker means agreeing to its manifest, so a pinned containment is renewed.
 *
 * @throws {EngineError} `manifest_invalid` with every problem; `isolation_unavailable` with what
 * to do.
 */
export async function checkNewWorker(
  { path, isolation: asked, accel }: NewWorkerRequest,
  { platform, launchers, dataDirectory }: Host,
): Promise<NewWorker> {
  const spec = readManifest(path);
  const isolation = isolationOf({ isolation: asked }, spec, platform);
  const launcher = launchers[isolation];
  if (!launcher) throw isolationUnavailable(spec.name, isolation);
  await launcher.check?.(spec.name, accel ?? "auto");
  if (isolation === "microvm") {
    const more = [keyFolder()];
    await checkDirectory(spec.name, path, { dataDirectory, home: Deno.env.get("HOME"), more });
    await allowManifest(dataDirectory, path, spec);
  }
  return { name: spec.name, isolation };
}

function isolationUnavailable(name: string, isolation: Isolation): EngineError {
  const message = isolation === "microvm"
    ? `Worker ${name} would run in a microVM, which only Linux can start; ` +
      "add it with --isolation process, which runs it as a plain process without containment"
    : `Worker ${name} asks for the isolation ${isolation}, which is not available here`;
  return new EngineError("isolation_unavailable", message, { details: { isolation } });
}
