/**
 * Holds a worker to the containment it had, until a person says otherwise.
 *
 * A worker in a microVM can write its own directory, the manifest included. Without this it could
 * ask for a plain process there, wait for the restart that an edit brings, and be out. So what
 * weakens its containment has to be said where it cannot write: in config.yaml or on the command
 * line.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/errors.ts";
import type { Isolation, Network } from "../ports/launcher.ts";

/** How a worker is about to run. */
export interface ContainmentWish {
  /** Name that the worker has in config.yaml. */
  readonly name: string;
  /** Absolute path of its directory. */
  readonly path: string;
  readonly isolation: Isolation;
  readonly network: Network;
  /** Whether config.yaml names the isolation, rather than the manifest. */
  readonly isConfigured: boolean;
}

/** What is written down, in `<data>/contained/<worker>.json`. */
interface Pin {
  readonly path: string;
  readonly network: Network;
}

/**
 * Refuses what only the manifest of a worker asks for and what would be weaker than before, else
 * writes down how it runs now.
 *
 * @throws {EngineError} `isolation_unavailable` with the command that allows it.
 */
export async function pinContainment(dataDirectory: string, wish: ContainmentWish): Promise<void> {
  const { name, path, isolation, network, isConfigured } = wish;
  const file = pinFile(dataDirectory, name);
  const pin = await readPin(file);
  if (pin?.path === path && isolation === "process" && !isConfigured) {
    throw refused(wish, "a plain process", `engine worker add ${path} --isolation process`);
  }
  if (isolation === "process") return await removeFile(file);
  if (pin?.path === path && pin.network === "engine" && network === "full") {
    throw refused(wish, "the network", `engine worker add ${path}`);
  }
  if (pin?.path === path && pin.network === network) return;
  await Deno.mkdir(`${dataDirectory}/contained`, { recursive: true });
  await writePin(file, { path, network });
}

/** A person has asked for the worker as its manifest is now: its network is what that says. */
export async function allowNetwork(
  dataDirectory: string,
  name: string,
  network: Network,
): Promise<void> {
  const file = pinFile(dataDirectory, name);
  const pin = await readPin(file);
  if (pin) await writePin(file, { ...pin, network });
}

/**
 * Directories that contained workers can write: nothing in them may be run out here, whoever's PATH
 * says so.
 */
export async function containedFolders(dataDirectory: string): Promise<string[]> {
  const folders = [`${dataDirectory}/deps`];
  try {
    for await (const { name } of Deno.readDir(`${dataDirectory}/contained`)) {
      if (!name.endsWith(".json")) continue; // Not written to its end.
      const pin = await readPin(`${dataDirectory}/contained/${name}`);
      if (pin) folders.push(pin.path);
    }
  } catch (thrown) {
    if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
  }
  return folders;
}

function refused({ name }: ContainmentWish, what: string, command: string): EngineError {
  const message = `Worker ${name} was kept apart so far, and its manifest, which it can write ` +
    `itself, now asks for ${what}; to allow that: ${command}`;
  return new EngineError("isolation_unavailable", message, { details: { worker: name } });
}

function pinFile(dataDirectory: string, name: string): string {
  return `${dataDirectory}/contained/${name}.json`;
}

async function readPin(file: string): Promise<Pin | undefined> {
  let text: string;
  try {
    text = await Deno.readTextFile(file);
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return undefined;
    throw thrown;
  }
  const { path, network } = JSON.parse(text);
  return { path: String(path), network: network === "engine" ? "engine" : "full" };
}

/** In one step, so that no crash leaves half of one. */
async function writePin(file: string, pin: Pin): Promise<void> {
  const temporary = `${file}.${crypto.randomUUID().slice(0, 8)}.tmp`;
  await Deno.writeTextFile(temporary, JSON.stringify(pin));
  await Deno.rename(temporary, file);
}

async function removeFile(file: string): Promise<void> {
  try {
    await Deno.remove(file);
  } catch (thrown) {
    if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
  }
}
