/**
 * Remembers what was started across the engine's own death, in one small file per worker.
 *
 * An engine that comes back ends what its predecessor left running before it starts a second
 * copy. A process is only touched when both its id and its start are those in the file.
 *
 * @module
 */
import { endGroup, startOf } from "./process_group.ts";
import { endStrays } from "./strays.ts";

/** A program that was started. */
interface Record {
  readonly pid: number;
  /** See {@linkcode startOf}. */
  readonly started: string;
  readonly launch_id: string | null;
}

/** The files of one project, in `<data>/run`. */
export class PidFiles {
  readonly #directory: string;

  /** `directory` is made when it is needed. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Writes down that a program runs. Does nothing where a start cannot be told. */
  async write(name: string, pid: number, launchId: string | null): Promise<void> {
    const started = await startOf(pid);
    if (started === undefined) return;
    const record: Record = { pid, started, launch_id: launchId };
    await Deno.mkdir(this.#directory, { recursive: true });
    const path = this.#path(name);
    await Deno.writeTextFile(`${path}.tmp`, JSON.stringify(record));
    await Deno.rename(`${path}.tmp`, path);
  }

  /** Forgets a program, unless the file is about another one by now. */
  async remove(name: string, pid: number): Promise<void> {
    const record = await this.#read(name);
    if (record?.pid === pid) await Deno.remove(this.#path(name)).catch(() => {}); // Gone is fine.
  }

  /**
   * Ends what the file says, if it is still the same program, and what that had started. Returns
   * its id if it was.
   */
  async endLeftover(name: string, graceMs: number): Promise<number | undefined> {
    const record = await this.#read(name);
    if (!record) return undefined;
    const isSame = await startOf(record.pid) === record.started;
    if (isSame) await endGroup(record.pid, graceMs);
    await endStrays(record.launch_id ?? null, graceMs);
    await this.remove(name, record.pid);
    return isSame ? record.pid : undefined;
  }

  async #read(name: string): Promise<Record | undefined> {
    try {
      const record = JSON.parse(await Deno.readTextFile(this.#path(name)));
      const isRecord = Number.isInteger(record.pid) && record.pid > 1 &&
        typeof record.started === "string";
      return isRecord ? record : undefined;
    } catch {
      return undefined; // None, or one that a crash cut short: then nothing can be said.
    }
  }

  #path(name: string): string {
    return `${this.#directory}/${name}.json`;
  }
}
