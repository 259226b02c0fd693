/**
 * One child process that leads a process group, waits at a gate and has a guard.
 *
 * It waits until everything is in place that ends it when the engine dies: what its owner writes
 * down, and its guard. What the program prints is handed on as bytes.
 *
 * @module
 */
import type { Ended, OutputChunk } from "../ports/launcher.ts";
import { gatedArgs, Guard, openGate, SHELL } from "./guard.ts";
import { endGroup, signalGroup, STOP_GRACE_MS } from "./process_group.ts";

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
