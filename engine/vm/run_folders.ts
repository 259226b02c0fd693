/**
 * Names folders for what running guests need on this machine, and removes what was left of others.
 *
 * A guest makes and removes its own folder. Each is named after the engine's process, so that an
 * engine can tell what one left that was killed.
 *
 * @module
 */
import { startOf } from "../process/process_group.ts";

/** The folders of one project's guests. */
export class RunFolders {
  readonly #parent: string;
  #swept: Promise<void> | undefined;

  /** `parent` need not exist. */
  constructor(parent: string) {
    this.#parent = parent;
  }

  /** The absolute path of a new folder, which is not made. */
  async next(): Promise<string> {
    await (this.#swept ??= sweep(this.#parent));
    return `${this.#parent}/${await ownerOf(Deno.pid)}-${crypto.randomUUID().slice(0, 8)}`;
  }
}

/** Differs for a later process with the same id, but for one after the next boot, by bad luck. */
async function ownerOf(pid: number): Promise<string> {
  return `${pid}-${(await startOf(pid))?.split("/").at(-1) ?? ""}`;
}

async function sweep(parent: string): Promise<void> {
  for (const name of await namesIn(parent)) {
    const [, owner, pid] = /^((\d+)-\d*)-\w+$/.exec(name) ?? [];
    if (owner === undefined || owner === await ownerOf(Number(pid))) continue;
    await Deno.remove(`${parent}/${name}`, { recursive: true }).catch(() => {}); // Next time.
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name);
  } catch {
    return []; // There is none yet.
  }
}
