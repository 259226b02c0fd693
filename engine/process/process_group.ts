/**
 * Child processes that never outlive the engine.
 *
 * Each program leads a process group, so that processes it starts end with it. Before it runs it
 * waits at a gate, a shell that becomes the program when it reads a line; beside it stands a guard,
 * a shell in a session of its own that ends the group when the engine's end of its standard input
 * closes. The gate opens when the guard runs, so an engine that is killed at any moment leaves
 * nothing behind. The start time distinguishes a process from a later one with the same id.
 *
 * @module
 */
import type { Ended, OutputChunk } from "../ports/launcher.ts";

/** How long a program may take to exit after SIGTERM. */
export const STOP_GRACE_MS = 10_000;
/** The shell that runs commands, gates and guards. */
export const SHELL = "/bin/sh";

/** How long output may arrive after the program and its group are gone. */
const LATE_OUTPUT_MS = 1_000;
/** How long a killed process may take to go, since a system call can delay its end. */
export const KILLED_MS = 2_000;
/** Interval between checks whether processes are gone; it grows to the maximum. */
const POLL_FIRST_MS = 10;
const POLL_MAX_MS = 200;

/** A program to run. */
export interface ProcessSpec {
  /** The program, as a path or a name to look up on the PATH, and its arguments. */
  readonly argv: readonly string[];
  readonly directory: string;
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Its standard input; cancelled when it has ended. Default: nothing to read. */
  readonly input?: ReadableStream<Uint8Array<ArrayBuffer>>;
}

/** Takes output; the next chunk of a stream is read when the promise resolves. */
export type TakeOutput = (chunk: OutputChunk) => Promise<void>;

/** A pump from one output stream of a program. */
interface Reader {
  readonly done: Promise<void>;
  cancel(): Promise<void>;
}

/** A process, its group and its guard. Output is passed on as bytes. */
export class GroupedProcess {
  /** Process id, and id of the group. */
  readonly pid: number;
  /** Settles when the process and its group are gone and all output was passed on. */
  readonly ended: Promise<Ended>;
  readonly #child: Deno.ChildProcess;
  readonly #output: TakeOutput;
  readonly #input: ProcessSpec["input"];
  readonly #hasEnded = new AbortController();
  #guard: Guard | undefined;
  #stopping: Promise<void> | undefined;

  /**
   * Spawns the shell at the gate; the program runs after {@linkcode open}.
   *
   * @throws {Error} What the system reports when it cannot be spawned.
   */
  constructor({ argv, directory, env, input }: ProcessSpec, output: TakeOutput) {
    this.#output = output;
    this.#input = input;
    this.#child = new Deno.Command(SHELL, {
      args: gatedArgs(argv, input !== undefined),
      cwd: directory,
      env: { ...env },
      clearEnv: true, // The engine's own may hold keys.
      detached: true,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.pid = this.#child.pid;
    this.ended = this.#watch();
  }

  /**
   * Starts the guard and opens the gate, after `beforehand`. When the engine dies, the guard gives
   * the program `orphanGraceMs` to exit. When `beforehand` rejects, the program never runs, and
   * this rejects after the process has ended.
   */
  async open(orphanGraceMs: number, beforehand: () => Promise<void>): Promise<void> {
    try {
      await beforehand();
      this.#guard = new Guard(this.pid, { graceMs: orphanGraceMs, signals: true });
      if (this.#input) await this.#feed(this.#input);
      else await openGate(this.#child);
    } catch (thrown) {
      await this.#child.stdin.abort().catch(() => {}); // Closes the gate.
      await this.ended;
      await this.#dismissGuard(); // It may have been spawned after the process had ended.
      throw thrown;
    }
  }

  /** Sends SIGTERM to the group and, after `graceMs`, SIGKILL. */
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
    this.#hasEnded.abort();
    // The rest of the group ends with the leader, within the time of a stop() that is under way.
    if (!this.#stopping && signalGroup(this.pid, 0)) {
      this.#stopping = endGroup(this.pid, STOP_GRACE_MS);
    }
    await this.#stopping;
    await endReaders(readers);
    await this.#dismissGuard();
    return { code: status.signal === null ? status.code : null, signal: status.signal };
  }

  /** Opens the gate and passes on input until its end or that of the process. */
  async #feed(input: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    const { stdin } = this.#child;
    const writer = stdin.getWriter();
    await writer.write(new TextEncoder().encode("\n"));
    writer.releaseLock();
    // A process that has ended or closed its standard input reads no more.
    input.pipeTo(stdin, { signal: this.#hasEnded.signal }).catch(() => {});
  }

  #read(stream: ReadableStream<Uint8Array<ArrayBuffer>>, name: OutputChunk["stream"]): Reader {
    const reader = stream.getReader();
    const pump = async (): Promise<void> => {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        await this.#output({ stream: name, bytes: value });
      }
    };
    // A stream that fails has ended.
    return { done: pump().catch(() => {}), cancel: () => reader.cancel() };
  }

  async #dismissGuard(): Promise<void> {
    const guard = this.#guard;
    this.#guard = undefined;
    await guard?.dismiss();
  }
}

/** Cancels readers that are not done in time: a process that left the group may hold a pipe. */
async function endReaders(readers: readonly Reader[]): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, LATE_OUTPUT_MS);
  await Promise.race([Promise.all(readers.map(({ done }) => done)), late.promise]);
  clearTimeout(timer);
  await Promise.all(readers.map(({ cancel }) => cancel().catch(() => {})));
  await Promise.all(readers.map(({ done }) => done));
}

/** Exits with 125, without running anything, when standard input closes before a line arrives. */
const GATE = 'read -r _ || exit 125; exec "$@" </dev/null';
/** The same, with the rest of standard input for the program: `read` takes one line of a pipe. */
const FED_GATE = 'read -r _ || exit 125; exec "$@"';
/** A line on standard input means that the program has ended, its end that the engine is gone. */
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
export function gatedArgs(argv: readonly string[], isFed = false): string[] {
  return ["-c", isFed ? FED_GATE : GATE, SHELL, ...argv];
}

/** Lets a program run that waits at the gate. */
export async function openGate({ stdin }: Deno.ChildProcess): Promise<void> {
  await writeLine(stdin);
}

/** What a guard does when the engine is gone. */
export interface GuardOptions {
  /** How long the program may take to exit, rounded up to whole seconds. */
  readonly graceMs: number;
  /** Whether to send SIGTERM first; a program that notices the engine's end needs none. */
  readonly signals: boolean;
}

/** A shell that ends a process group when the engine is gone. */
export class Guard {
  readonly #child: Deno.ChildProcess;

  /** @throws {Error} What the system reports when it cannot be spawned. */
  constructor(leader: number, { graceMs, signals }: GuardOptions) {
    const seconds = Math.ceil(graceMs / 1_000);
    this.#child = new Deno.Command(SHELL, {
      args: ["-c", GUARD, SHELL, `${leader}`, `${seconds}`, signals ? "TERM" : "0"],
      cwd: "/",
      detached: true,
      stdin: "piped",
      stdout: "null",
      stderr: "null",
    }).spawn();
  }

  /** Ends the guard after the program has ended. */
  async dismiss(): Promise<void> {
    await writeLine(this.#child.stdin).catch(() => {}); // It has already ended.
    await this.#child.status;
  }
}

async function writeLine(stdin: WritableStream<Uint8Array>): Promise<void> {
  const writer = stdin.getWriter();
  await writer.write(new TextEncoder().encode("\n"));
  await writer.close();
}

/** Sends SIGTERM to a group and, after `graceMs`, SIGKILL. Resolves when the group is gone. */
export async function endGroup(leader: number, graceMs: number): Promise<void> {
  if (!signalGroup(leader, "SIGTERM")) return;
  if (await waitForGroup(leader, graceMs)) return;
  signalGroup(leader, "SIGKILL");
  await waitForGroup(leader, KILLED_MS);
}

/** Waits until a group is gone, for `limitMs` at most; `false` when it is still there. */
export async function waitForGroup(leader: number, limitMs: number): Promise<boolean> {
  return await pollUntil(async () => !await isGroupAlive(leader), limitMs);
}

/** Asks ever less often whether something holds, for `limitMs` at most; returns the last answer. */
export async function pollUntil(
  holds: () => Promise<boolean>,
  limitMs: number,
): Promise<boolean> {
  const limit = performance.now() + limitMs;
  for (let wait = POLL_FIRST_MS;; wait = Math.min(wait * 1.5, POLL_MAX_MS)) {
    if (await holds()) return true;
    const left = limit - performance.now();
    if (left <= 0) return false;
    await new Promise((resolve) => setTimeout(resolve, Math.min(wait, Math.max(1, left))));
  }
}

/** Whether a process of the group still runs; zombies do not count. */
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
    return true; // Too many files are open; callers ask again.
  }
}

/** Sends a signal to a group; `false` when the group is empty. */
export function signalGroup(leader: number, signal: Deno.Signal | 0): boolean {
  if (leader <= 1) return false; // 0 would mean the engine's own group, 1 every process.
  try {
    Deno.kill(-leader, signal);
    return true;
  } catch (thrown) {
    return thrown instanceof Deno.errors.PermissionDenied;
  }
}

/**
 * The start of a process, as a text that no other process shares; `undefined` when no process with
 * this id runs or the system does not report it.
 */
export async function processStart(pid: number): Promise<string | undefined> {
  if (Deno.build.os === "linux") {
    const boot = await Deno.readTextFile("/proc/sys/kernel/random/boot_id").catch(() => "");
    const stat = await readStat(pid);
    return isRunning(stat) ? `${boot.trim()}/${stat!.started}` : undefined;
  }
  const command = new Deno.Command("ps", { args: ["-o", "lstart=", "-p", `${pid}`] });
  const { stdout } = await command.output().catch(() => ({ stdout: new Uint8Array() }));
  return new TextDecoder().decode(stdout).trim() || undefined;
}

/** What Linux reports about a process. */
interface Stat {
  readonly state: string;
  readonly group: number;
  /** Clock ticks since boot. */
  readonly started: string;
}

function isRunning(stat: Stat | undefined): boolean {
  return stat !== undefined && stat.state !== "Z" && stat.state !== "X";
}

async function readStat(pid: number): Promise<Stat | undefined> {
  const text = await Deno.readTextFile(`/proc/${pid}/stat`).catch(() => undefined);
  if (text === undefined) return undefined;
  const fields = statFields(text);
  return { state: fields[0]!, group: Number(fields[2]), started: fields[19]! };
}

/**
 * The fields of `/proc/<pid>/stat` from the state on. The name before them may contain any
 * character, parentheses included.
 */
export function statFields(text: string): string[] {
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
}
