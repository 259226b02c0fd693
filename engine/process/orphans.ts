/**
 * Remembers what was started across the engine's own death, in one small file per program.
 *
 * An engine that comes back ends what its predecessor left running before it starts a second
 * copy. A process is only touched when both its id and its start are those in the file, and when
 * the engine that started it is gone: a worker runs on while its next version is installed.
 *
 * @module
 */
import { endGroup, startOf } from "./process_group.ts";

/** A process that nothing else can be taken for. */
interface Identity {
  readonly pid: number;
  /** See {@linkcode startOf}. */
  readonly started: string;
}

/** A program that was started. */
interface Record extends Identity {
  readonly launch_id: string | null;
  /** Who started it. */
  readonly engine: Identity;
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
    const [started, engineStarted] = await Promise.all([startOf(pid), startOf(Deno.pid)]);
    if (started === undefined || engineStarted === undefined) return;
    const engine = { pid: Deno.pid, started: engineStarted };
    const record: Record = { pid, started, launch_id: launchId, engine };
    await Deno.mkdir(this.#directory, { recursive: true });
    const path = this.#path(name, pid);
    await Deno.writeTextFile(`${path}.tmp`, JSON.stringify(record));
    await Deno.rename(`${path}.tmp`, path);
  }

  /** Forgets a program. */
  async remove(name: string, pid: number): Promise<void> {
    await Deno.remove(this.#path(name, pid)).catch(() => {}); // Gone is fine.
  }

  /**
   * Ends the programs of that name whose engine is gone, and what they had started. Returns the
   * ids of those that still ran.
   */
  async endLeftovers(name: string, graceMs: number): Promise<number[]> {
    const ended = await Promise.all(
      this.#pathsOf(name).map(async (path) => {
        const record = await readRecord(path);
        if (record && await isAlive(record.engine)) return [];
        const isSame = record !== undefined && await isAlive(record);
        if (isSame) await endGroup(record.pid, graceMs);
        await endStrays(record?.launch_id ?? null, graceMs);
        await Deno.remove(path).catch(() => {}); // Somebody else has.
        return isSame ? [record.pid] : [];
      }),
    );
    return ended.flat();
  }

  #pathsOf(name: string): string[] {
    try {
      return [...Deno.readDirSync(this.#directory)].map((entry) => entry.name)
        .filter((file) => file.startsWith(`${name}#`) && file.endsWith(".json"))
        .map((file) => `${this.#directory}/${file}`);
    } catch {
      return []; // Nothing was ever started.
    }
  }

  /** No name has a #, so no other worker's file is meant. */
  #path(name: string, pid: number): string {
    return `${this.#directory}/${name}#${pid}.json`;
  }
}

/** `undefined` when a crash cut it short: then nothing can be said. */
async function readRecord(path: string): Promise<Record | undefined> {
  try {
    const record = JSON.parse(await Deno.readTextFile(path));
    return [record, record.engine].every(isIdentity) ? record : undefined;
  } catch {
    return undefined;
  }
}

function isIdentity({ pid, started }: Identity): boolean {
  return Number.isInteger(pid) && pid > 1 && typeof started === "string";
}

async function isAlive({ pid, started }: Identity): Promise<boolean> {
  return await startOf(pid) === started;
}

/** Only an id that nothing else can have says whose a process is. */
const UNIQUE = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Strays that are to end are looked at so soon, then ever less often. */
const POLL_FIRST_MS = 10;
const POLL_MAX_MS = 200;
/** A process that was killed may take so long to go. */
const KILLED_MS = 2_000;

/** Ids of the living processes that have this launch in their environment, sorted. */
export async function straysOf(launchId: string | null): Promise<number[]> {
  if (Deno.build.os !== "linux" || launchId === null || !UNIQUE.test(launchId)) return [];
  const entry = `ENGINE_LAUNCH_ID=${launchId}`;
  const found = await Promise.all(
    pidsHere().filter((pid) => Number.isInteger(pid) && pid !== Deno.pid).map(async (pid) => {
      // Other users' are not to be read, and of those that are dead it is empty.
      const text = await Deno.readTextFile(`/proc/${pid}/environ`).catch(() => "");
      return text.split("\0").includes(entry) ? [pid] : [];
    }),
  );
  return found.flat().sort((one, other) => one - other);
}

/** Asks the strays of a launch to leave; after `graceMs`, ends them. Returns when none is left. */
export async function endStrays(launchId: string | null, graceMs: number): Promise<void> {
  const asked = new Set<number>();
  const began = performance.now();
  for (let wait = POLL_FIRST_MS;; wait = Math.min(wait * 1.5, POLL_MAX_MS)) {
    const strays = await straysOf(launchId);
    const passed = performance.now() - began;
    if (strays.length === 0 || passed > graceMs + KILLED_MS) return;
    for (const pid of strays) {
      if (passed > graceMs) send(pid, "SIGKILL");
      else if (!asked.has(pid)) send(pid, "SIGTERM");
      asked.add(pid);
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

function pidsHere(): number[] {
  try {
    return [...Deno.readDirSync("/proc")].map(({ name }) => Number(name));
  } catch {
    return []; // Too many files are open: then no environment can be read either.
  }
}

function send(pid: number, signal: Deno.Signal): void {
  try {
    Deno.kill(pid, signal);
  } catch {
    // It has gone meanwhile, or is not ours to end.
  }
}
