/**
 * Holds a worker to the containment it had, until a person says otherwise.
 *
 * A worker in a microVM can write its own directory, the manifest included. Without this it could
 * ask for a plain process there, wait for the restart that an edit brings, and be out; or ask for
 * all memory of the machine. So what weakens its containment has to be said where it cannot write:
 * in config.yaml or on the command line. It is held by its directory: it can write its name, too.
 *
 * @module
 */
import defer * as nodeCrypto from "node:crypto";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Isolation, Network, Resources } from "../ports/launcher.ts";

/** How a worker is about to run. */
export interface ContainmentWish {
  /** Name that the worker has in config.yaml. */
  readonly name: string;
  /** Absolute path of its directory. */
  readonly path: string;
  readonly isolation: Isolation;
  readonly network: Network;
  readonly resources: Resources;
  readonly replicas: number;
  /** What config.yaml names, rather than the manifest. */
  readonly configured: readonly ("isolation" | "replicas")[];
}

/** What the manifest of a worker asks for, and a person agrees to. */
export type Allowed = Pick<ContainmentWish, "network" | "resources" | "replicas">;

/** What is written down, in `<data>/contained/`. */
interface Pin extends Allowed {
  readonly path: string;
}

/**
 * Refuses what only the manifest of a worker asks for and what would be weaker or larger than
 * before, else writes down how it runs now.
 *
 * @throws {EngineError} `isolation_unavailable` with the command that allows it.
 */
export async function pinContainment(dataDirectory: string, wish: ContainmentWish): Promise<void> {
  const { path, isolation, configured } = wish;
  const file = await pinFile(dataDirectory, path);
  const pin = await readPin(file);
  if (isolation === "process") {
    if (!pin) return;
    if (configured.includes("isolation")) return await Deno.remove(file);
    throw refused(wish, "a plain process", `engine worker add ${path} --isolation process`);
  }
  const more = pin && moreThan(pin, wish);
  if (more !== undefined) throw refused(wish, more, `engine worker add ${path}`);
  await writePin(file, pin ? largest(pin, wish) : pinned(path, wish));
}

/** A person has asked for the worker as its manifest is now: that counts from now on. */
export async function allowManifest(
  dataDirectory: string,
  path: string,
  allowed: Allowed,
): Promise<void> {
  const file = await pinFile(dataDirectory, path);
  if (await readPin(file)) await writePin(file, pinned(path, allowed));
}

/**
 * Directories that contained workers can write: nothing in them may be run out here, whoever's PATH
 * says so.
 */
export async function containedFolders(dataDirectory: string): Promise<string[]> {
  const pins = await readPins(dataDirectory);
  return [`${dataDirectory}/deps`, ...pins.map(({ path }) => path)];
}

/** What a manifest asks for beyond a pin, in words. */
function moreThan(
  pin: Pin,
  { network, resources, replicas, configured }: ContainmentWish,
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

/** The network as it is now; the amounts that were allowed so far stay allowed. */
function largest(pin: Pin, { network, resources, replicas }: ContainmentWish): Pin {
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

function refused({ name }: ContainmentWish, what: string, command: string): EngineError {
  const message = `Worker ${name} was kept apart so far, and its manifest, which it can write ` +
    `itself, now asks for ${what}; to allow that: ${command}`;
  return new EngineError("isolation_unavailable", message, { details: { worker: name } });
}

/** One file for each directory, whatever its worker is called. */
async function pinFile(dataDirectory: string, path: string): Promise<string> {
  const real = await Deno.realPath(path).catch(() => path);
  const digest = nodeCrypto.createHash("sha256").update(real).digest("hex").slice(0, 16);
  return `${dataDirectory}/contained/${digest}.json`;
}

async function readPins(dataDirectory: string): Promise<Pin[]> {
  const folder = `${dataDirectory}/contained`;
  const entries = await Array.fromAsync(Deno.readDir(folder)).catch(ifThere) ?? [];
  // Others were not written to their end.
  const names = entries.map(({ name }) => name).filter((name) => name.endsWith(".json"));
  const pins = await Promise.all(names.map((name) => readPin(`${folder}/${name}`)));
  return pins.filter((pin) => pin !== undefined);
}

async function readPin(file: string): Promise<Pin | undefined> {
  const text = await Deno.readTextFile(file).catch(ifThere);
  return text === undefined ? undefined : JSON.parse(text);
}

/** In one step, so that no crash leaves half of one. */
async function writePin(file: string, pin: Pin): Promise<void> {
  await Deno.mkdir(file.slice(0, file.lastIndexOf("/")), { recursive: true });
  const temporary = `${file}.${crypto.randomUUID().slice(0, 8)}.tmp`;
  await Deno.writeTextFile(temporary, JSON.stringify(pin));
  await Deno.rename(temporary, file);
}

function ifThere(thrown: unknown): undefined {
  if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
}
