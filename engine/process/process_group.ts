/**
 * Process groups: who is in one, and how one is ended.
 *
 * A program that the engine starts leads a group of its own, so that what it started can be ended
 * with it. A process is told from a later one with the same id by the time it started.
 *
 * @module
 */
import type { Ended, OutputChunk } from "../ports/launcher.ts";

/** How long a program may take to exit after SIGTERM. */
export const STOP_GRACE_MS = 10_000;

/** A group that is to end is looked at so soon, then ever less often. */
const POLL_FIRST_MS = 10;
const POLL_MAX_MS = 200;

/** Whether somebody in the group still runs. The dead whom nobody has buried do not count. */
export async function isGroupAlive(leader: number): Promise<boolean> {
  if (!signalGroup(leader, 0)) return false;
  if (Deno.build.os !== "linux" || isRunning(await readStat(leader))) return true;
  try {
    for await (const entry of Deno.readDir("/proc")) {
      if (!/^\d+$/.test(entry.name)) continue;
      const stat = await readStat(Number(entry.name));
      if (stat?.group === leader && isRunning(stat)) return true;
    }
    return false;
  } catch {
    return true; // Too many files are open: whoever waits for its end looks again.
  }
}

/** Sends a signal to all in a group; `false` when there is nobody. */
export function signalGroup(leader: number, signal: Deno.Signal | 0): boolean {
  if (leader <= 1) return false; // 0 and 1 would mean the engine's own group or everybody.
  try {
    Deno.kill(-leader, signal);
    return true;
  } catch (thrown) {
    return thrown instanceof Deno.errors.PermissionDenied;
  }
}

/** Waits until nobody is left in a group, for `limitMs` at most; `false` when somebody is. */
export async function groupEnds(leader: number, limitMs: number): Promise<boolean> {
  const limit = performance.now() + limitMs;
  for (let wait = POLL_FIRST_MS;; wait = Math.min(wait * 1.5, POLL_MAX_MS)) {
    if (!await isGroupAlive(leader)) return true;
    if (performance.now() >= limit) return false;
    await pause(Math.min(wait, Math.max(1, limit - performance.now())));
  }
}

/** Asks a group to leave and, after `graceMs`, ends it. Returns when nobody is left. */
export async function endGroup(leader: number, graceMs: number): Promise<void> {
  if (!signalGroup(leader, "SIGTERM")) return;
  if (await groupEnds(leader, graceMs)) return;
  signalGroup(leader, "SIGKILL");
  // A process in the middle of a system call may take a moment, or for ever: not our business.
  await groupEnds(leader, 2_000);
}

/**
 * When a process started, as a text that is equal for the same process only; `undefined` when
 * there is none with this id or the system does not say.
 */
export async function startOf(pid: number): Promise<string | undefined> {
  if (Deno.build.os === "linux") {
    const boot = await Deno.readTextFile("/proc/sys/kernel/random/boot_id").catch(() => "");
    const stat = await readStat(pid);
    return stat && isRunning(stat) ? `${boot.trim()}/${stat.started}` : undefined;
  }
  const command = new Deno.Command("ps", { args: ["-o", "lstart=", "-p", `${pid}`] });
  const { stdout } = await command.output().catch(() => ({ stdout: new Uint8Array() }));
  return new TextDecoder().decode(stdout).trim() || undefined;
}

/** What Linux says of a process. */
interface Stat {
  readonly state: string;
  readonly group: number;
  /** Clock ticks since the machine started. */
  readonly started: string;
}

function isRunning(stat: Stat | undefined): boolean {
  return stat !== undefined && stat.state !== "Z" && stat.state !== "X";
}

/** The name of a program may hold anything, so the fields are read behind it. */
async function readStat(pid: number): Promise<Stat | undefined> {
  const text = await Deno.readTextFile(`/proc/${pid}/stat`).catch(() => undefined);
  if (text === undefined) return undefined;
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0]!, group: Number(fields[2]), started: fields[19]! };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** The shell that runs commands, gates and guards. */
export const SHELL = "/bin/sh";
/** Without the word of the engine nothing is run. */
const GATE = 'read -r _ || exit 125; exec "$@" </dev/null';
/** A word on standard input: the program has ended by itself. Its end: the engine is gone. */
const GUARD = `read -r _ && exit 0
kill "-$3" "-$1" 2>/dev/null || exit 0
left=$2
while [ "$left" -gt 0 ]; do
  sleep 1
  kill -0 "-$1" 2>/dev/null || exit 0
  left=$((left - 1))
done
kill -KILL "-$1" 2>/dev/null`;

/** Arguments of {@linkcode SHELL} that wait at the gate and then run a program. */
export function gatedArgs(argv: readonly string[]): string[] {
  return ["-c", GATE, SHELL, ...argv];
}

/** Lets a program run that waits at the gate. */
export async function openGate({ stdin }: Deno.ChildProcess): Promise<void> {
  await writeLine(stdin);
}

/** What a guard does. */
export interface GuardOptions {
  /** How long the program may take to leave when the engine is gone; whole seconds count. */
  readonly graceMs: number;
  /** Whether it is asked to leave, or sees by itself that the engine is gone. */
  readonly asks: boolean;
}

/** Stands beside the leader of a process group. */
export class Guard {
  readonly #child: Deno.ChildProcess;

  /** @throws {Error} What the system says when it cannot be spawned. */
  constructor(leader: number, { graceMs, asks }: GuardOptions) {
    const seconds = Math.ceil(graceMs / 1_000);
    this.#child = new Deno.Command(SHELL, {
      args: ["-c", GUARD, SHELL, `${leader}`, `${seconds}`, asks ? "TERM" : "0"],
      cwd: "/",
      detached: true,
      stdin: "piped",
      stdout: "null",
      stderr: "null",
    }).spawn();
  }

  /** The program has ended; resolves when the guard has, too. */
  async dismiss(): Promise<void> {
    await writeLine(this.#child.stdin).catch(() => {}); // Somebody ended it; then it is gone.
    await this.#child.status;
  }
}

async function writeLine(stdin: WritableStream<Uint8Array>): Promise<void> {
  const writer = stdin.getWriter();
  await writer.write(new TextEncoder().encode("\n"));
  await writer.close();
}

/** How long output may come after the program and its group are gone. */
const LATE_OUTPUT_MS = 1_000;

/** What to run. */
export interface ProcessSpec {
  /** The program, as a path or a name to look up on the PATH, and its arguments. */
  readonly argv: readonly string[];
  readonly directory: string;
  /** Added to the engine's own environment. */
  readonly env: Readonly<Record<string, string>>;
}

/** One stream of a program while it is read. */
interface Reader {
  readonly done: Promise<void>;
  cancel(): Promise<void>;
}

/** A process, its group and its guard. */
export class GroupedProcess {
  /** Process id, and id of the group. */
  readonly pid: number;
  /** Settles when the process and its group are gone and all output was handed on. */
  readonly ended: Promise<Ended>;
  readonly #child: Deno.ChildProcess;
  readonly #output: (chunk: OutputChunk) => void;
  #guard: Guard | undefined;
  #stopping: Promise<void> | undefined;

  /**
   * Spawns it; it runs nothing before {@linkcode open}.
   *
   * @throws {Error} What the system says when it cannot be spawned.
   */
  constructor({ argv, directory, env }: ProcessSpec, output: (chunk: OutputChunk) => void) {
    this.#output = output;
    this.#child = new Deno.Command(SHELL, {
      args: gatedArgs(argv),
      cwd: directory,
      env: { ...env },
      detached: true,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.pid = this.#child.pid;
    this.ended = this.#watch();
  }

  /**
   * Lets it run, with a guard that gives it `orphanGraceMs` to leave when the engine has died.
   * Rejects, after the process has ended without having run, when `beforehand` does.
   */
  async open(orphanGraceMs: number, beforehand: () => Promise<void>): Promise<void> {
    try {
      await beforehand();
      this.#guard = new Guard(this.pid, { graceMs: orphanGraceMs, asks: true });
      await openGate(this.#child);
    } catch (thrown) {
      await this.#child.stdin.abort().catch(() => {}); // The gate closes.
      await this.ended;
      await this.#dismissGuard(); // It may have come when the process was gone already.
      throw thrown;
    }
  }

  /** Asks the group to leave and, after `graceMs`, ends it. */
  async stop(graceMs: number): Promise<Ended> {
    this.#stopping ??= endGroup(this.pid, graceMs);
    await this.#stopping;
    return await this.ended;
  }

  async #watch(): Promise<Ended> {
    const readers = [
      this.#read(this.#child.stdout, "stdout"),
      this.#read(this.#child.stderr, "stderr"),
    ];
    const status = await this.#child.status;
    // What it started ends with it; while stop() waits, in the time that stop() gives.
    if (!this.#stopping && signalGroup(this.pid, 0)) {
      this.#stopping = endGroup(this.pid, STOP_GRACE_MS);
    }
    await this.#stopping;
    await endReaders(readers);
    await this.#dismissGuard();
    return { code: status.signal === null ? status.code : null, signal: status.signal };
  }

  #read(stream: ReadableStream<Uint8Array<ArrayBuffer>>, name: OutputChunk["stream"]): Reader {
    const reader = stream.getReader();
    const pump = async (): Promise<void> => {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        this.#output({ stream: name, bytes: value });
      }
    };
    // A stream that breaks has ended.
    return { done: pump().catch(() => {}), cancel: () => reader.cancel() };
  }

  async #dismissGuard(): Promise<void> {
    const guard = this.#guard;
    this.#guard = undefined;
    await guard?.dismiss();
  }
}

/** A process that left the group may keep the pipes open; it is not waited for. */
async function endReaders(readers: readonly Reader[]): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, LATE_OUTPUT_MS);
  await Promise.race([Promise.all(readers.map(({ done }) => done)), late.promise]);
  clearTimeout(timer);
  await Promise.all(readers.map(({ cancel }) => cancel().catch(() => {})));
  await Promise.all(readers.map(({ done }) => done));
}
