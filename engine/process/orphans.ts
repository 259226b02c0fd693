/**
 * Finds and ends orphan processes, which run on although the engine no longer holds them.
 *
 * Two kinds exist. An engine that was killed leaves programs behind; {@linkcode PidFiles} records
 * each program in a small file, so that the next engine ends them before it starts another copy.
 * And a process that has left its process group, such as by `setsid`, is not ended with it; it is
 * found by the id of its launch, which processes inherit in their environment. Only Linux lets the
 * engine read that; a process that clears its environment as well is not found.
 *
 * @module
 */
import { endGroup, KILLED_MS, pollUntil, processStart } from "./process_group.ts";

/** What tells a process from all others. */
interface Identity {
  readonly pid: number;
  /** See {@linkcode processStart}. */
  readonly started: string;
}

/** The content of a pid file. */
interface PidRecord extends Identity {
  readonly launch_id: string | null;
  /** The engine that started the program. */
  readonly engine: Identity;
}

/** The pid files of a project, in `<data>/run`, which is created when needed. */
export class PidFiles {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Records a running program. Does nothing where the system does not report start times. */
  async write(name: string, pid: number, launchId: string | null): Promise<void> {
    const [started, engineStarted] = await Promise.all([
      processStart(pid),
      processStart(Deno.pid),
    ]);
    if (started === undefined || engineStarted === undefined) return;
    const engine = { pid: Deno.pid, started: engineStarted };
    const record: PidRecord = { pid, started, launch_id: launchId, engine };
    await Deno.mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const path = this.#path(name, pid);
    await Deno.writeTextFile(`${path}.tmp`, JSON.stringify(record), { mode: 0o600 });
    await Deno.rename(`${path}.tmp`, path);
  }

  /** Removes the record of a program. */
  async remove(name: string, pid: number): Promise<void> {
    await Deno.remove(this.#path(name, pid)).catch(() => {}); // It is gone already.
  }

  /**
   * Ends programs of that name whose engine is gone, with everything that they started. Programs
   * of an engine that lives are left alone, since a worker runs on while its next version is
   * installed. Returns the ids of programs that still ran.
   */
  async endLeftovers(name: string, graceMs: number): Promise<number[]> {
    const ended = await Promise.all(
      this.#pathsOf(name).map(async (path) => {
        const record = await readRecord(path);
        if (record && await isAlive(record.engine)) return [];
        const isSame = record !== undefined && await isAlive(record);
        if (isSame) await endGroup(record.pid, graceMs);
        await endOrphans(record?.launch_id ?? null, graceMs);
        await Deno.remove(path).catch(() => {}); // Another engine has removed it.
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
      return []; // No program was ever started.
    }
  }

  /** Names of workers contain no #, so the files of two workers cannot be confused. */
  #path(name: string, pid: number): string {
    return `${this.#directory}/${name}#${pid}.json`;
  }
}

/** The record in a file; `undefined` when a crash has truncated it. */
async function readRecord(path: string): Promise<PidRecord | undefined> {
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
  return await processStart(pid) === started;
}

/** Ids of launches are UUIDs; any other value in an environment could mean something else. */
const LAUNCH_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Ids of the processes that have this launch, or this id, in their environment, sorted. */
export async function findOrphans(
  launchId: string | null,
  variable = "ENGINE_LAUNCH_ID",
): Promise<number[]> {
  if (Deno.build.os !== "linux" || launchId === null || !LAUNCH_ID.test(launchId)) return [];
  const entry = `${variable}=${launchId}`;
  const found = await Promise.all(
    processIds().filter((pid) => Number.isInteger(pid) && pid !== Deno.pid).map(async (pid) => {
      // The engine may not read processes of other users; zombies have an empty environment.
      const text = await Deno.readTextFile(`/proc/${pid}/environ`).catch(() => "");
      return text.split("\0").includes(entry) ? [pid] : [];
    }),
  );
  return found.flat().sort((one, other) => one - other);
}

/** Sends SIGTERM to the orphans of a launch and, after `graceMs`, SIGKILL, until none is left. */
export async function endOrphans(
  launchId: string | null,
  graceMs: number,
  variable?: string,
): Promise<void> {
  const asked = new Set<number>();
  const began = performance.now();
  await pollUntil(async () => {
    const orphans = await findOrphans(launchId, variable);
    const isLate = performance.now() - began > graceMs;
    for (const pid of orphans) {
      if (isLate) send(pid, "SIGKILL");
      else if (!asked.has(pid)) send(pid, "SIGTERM");
      asked.add(pid);
    }
    return orphans.length === 0;
  }, graceMs + KILLED_MS);
}

function processIds(): number[] {
  try {
    return [...Deno.readDirSync("/proc")].map(({ name }) => Number(name));
  } catch {
    return []; // Too many files are open, so no environment can be read either.
  }
}

function send(pid: number, signal: Deno.Signal): void {
  try {
    Deno.kill(pid, signal);
  } catch {
    // It has ended, or belongs to another user.
  }
}
