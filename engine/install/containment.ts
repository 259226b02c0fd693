/**
 * Keeps a worker contained as it was, until a person allows more.
 *
 * A worker in a microVM can write its own directory, the manifest included. It could ask there for
 * a plain process or for all memory of the host, and get it with the restart that the edit causes.
 * The engine therefore pins the containment of each directory in `<data>/contained/`, and only
 * config.yaml or the command line can weaken it. The pin belongs to the directory, since a worker
 * can write its name, too.
 *
 * @module
 */
import * as nodeCrypto from "node:crypto";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Isolation, Network, Resources } from "../ports/launcher.ts";

/** How a worker asks to run. */
export interface ContainmentRequest {
  /** Name that the worker has in config.yaml. */
  readonly name: string;
  /** Absolute path of its directory. */
  readonly path: string;
  readonly isolation: Isolation;
  readonly network: Network;
  readonly resources: Resources;
  readonly replicas: number;
  /** What config.yaml sets, rather than the manifest. */
  readonly configured: readonly ("isolation" | "replicas")[];
}

/** What a manifest may ask for and a person agrees to. */
type Allowed = Pick<ContainmentRequest, "network" | "resources" | "replicas">;

/** The content of a pin file. */
interface Pin extends Allowed {
  readonly path: string;
}

/**
 * Pins the containment of a worker that is about to run, unless its manifest alone asks for less
 * containment or more resources than are pinned.
 *
 * @throws {EngineError} `isolation_unavailable` with the command that allows it.
 */
export async function pinContainment(
  dataDirectory: string,
  request: ContainmentRequest,
): Promise<void> {
  const { path, isolation, configured } = request;
  const file = await pinFile(dataDirectory, path);
  const pin = await readPin(file);
  if (isolation === "process") {
    if (!pin) return;
    if (configured.includes("isolation")) return await Deno.remove(file);
    throw refused(request, "a plain process", `engine worker add ${path} --isolation process`);
  }
  const more = pin && moreThan(pin, request);
  if (more !== undefined) throw refused(request, more, `engine worker add ${path}`);
  await writePin(file, pin ? largest(pin, request) : pinned(path, request));
}

/** Renews the pin of a directory, after a person has agreed to its manifest. */
export async function allowManifest(
  dataDirectory: string,
  path: string,
  allowed: Allowed,
): Promise<void> {
  const file = await pinFile(dataDirectory, path);
  if (await readPin(file)) await writePin(file, pinned(path, allowed));
}

/**
 * Directories that contained workers can write. The engine must not run programs in them, even if
 * the PATH names them.
 */
export async function containedFolders(dataDirectory: string): Promise<string[]> {
  const pins = await readPins(dataDirectory);
  return [`${dataDirectory}/deps`, ...pins.map(({ path }) => path)];
}

/** What a request asks for beyond a pin, in words; `undefined`: nothing. */
function moreThan(
  pin: Pin,
  { network, resources, replicas, configured }: ContainmentRequest,
): string | undefined {
  if (pin.network === "engine" && network === "full") return "the network";
  const { cpus, memory_mb } = pin.resources;
  if (resources.cpus > cpus) return `${resources.cpus} processors instead of ${cpus}`;
  if (resources.memory_mb > memory_mb) {
    return `${resources.memory_mb} MiB of memory instead of ${memory_mb}`;
  }
  if (replicas <= pin.replicas || configured.includes("replicas")) return undefined;
  return `${replicas} replicas instead of ${pin.replicas}`;
}

function pinned(path: string, { network, resources, replicas }: Allowed): Pin {
  return { path, network, resources, replicas };
}

/** The network as requested; resources that were allowed before stay allowed. */
function largest(pin: Pin, { network, resources, replicas }: ContainmentRequest): Pin {
  return {
    path: pin.path,
    network,
    resources: {
      cpus: Math.max(pin.resources.cpus, resources.cpus),
      memory_mb: Math.max(pin.resources.memory_mb, resources.memory_mb),
    },
    replicas: Math.max(pin.replicas, replicas),
  };
}

function refused({ name }: ContainmentRequest, what: string, command: string): EngineError {
  const message = `Worker ${name} was isolated so far, and its manifest, which it can write ` +
    `itself, now asks for ${what}; to allow that: ${command}`;
  return new EngineError("isolation_unavailable", message, { details: { worker: name } });
}

/** One file per directory, independent of the name of its worker. */
async function pinFile(dataDirectory: string, path: string): Promise<string> {
  const real = await Deno.realPath(path).catch(() => path);
  const digest = nodeCrypto.createHash("sha256").update(real).digest("hex").slice(0, 16);
  return `${dataDirectory}/contained/${digest}.json`;
}

async function readPins(dataDirectory: string): Promise<Pin[]> {
  const folder = `${dataDirectory}/contained`;
  const entries = await Array.fromAsync(Deno.readDir(folder)).catch(ignoreMissing) ?? [];
  // Files with another ending were not completely written.
  const names = entries.map(({ name }) => name).filter((name) => name.endsWith(".json"));
  const pins = await Promise.all(names.map((name) => readPin(`${folder}/${name}`)));
  return pins.filter((pin) => pin !== undefined);
}

async function readPin(file: string): Promise<Pin | undefined> {
  const text = await Deno.readTextFile(file).catch(ignoreMissing);
  return text === undefined ? undefined : JSON.parse(text);
}

/** Writes a file atomically, so that a crash leaves no partial one. */
async function writePin(file: string, pin: Pin): Promise<void> {
  const folder = file.slice(0, file.lastIndexOf("/"));
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  const temporary = `${file}.${crypto.randomUUID().slice(0, 8)}.tmp`;
  await Deno.writeTextFile(temporary, JSON.stringify(pin), { mode: 0o600 });
  await Deno.rename(temporary, file);
}

function ignoreMissing(thrown: unknown): undefined {
  if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
}
