/**
 * Launcher on plain processes. It contains nothing: a worker may do what the engine's user may.
 *
 * A program waits at a gate (one line on its standard input) until everything is in place that
 * ends it when the engine dies: its pid file, and a guard, a small shell in a session of its own
 * that ends the program's group when the engine's end of the guard's standard input closes. So
 * there is no moment in which a killed engine leaves a program behind.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/errors.ts";
import { ORPHAN_GRACE_MS, STOP_GRACE_MS } from "../../sdk/typescript/limits.ts";
import type { Ended, Launcher, LaunchSpec, OutputLine, Running } from "../ports/launcher.ts";
import { LineSplitter } from "./output_lines.ts";
import { PidFiles } from "./pid_file.ts";
import { endGroup, signalGroup } from "./process_group.ts";

const SHELL = "/bin/sh";
/** Without the word of the engine nothing is run. */
const GATE = 'read -r _ || exit 125; exec </dev/null; exec "$0" -c "$1"';
/** A word on standard input: the program has ended by itself. Its end: the engine is gone. */
const GUARD = `read -r _ && exit 0
kill -TERM "-$1" 2>/dev/null || exit 0
left=$2
while [ "$left" -gt 0 ]; do
  sleep 1
  kill -0 "-$1" 2>/dev/null || exit 0
  left=$((left - 1))
done
kill -KILL "-$1" 2>/dev/null`;
/** How long output may come after the program and its group are gone. */
const LATE_OUTPUT_MS = 1_000;

/** Starts programs as processes, each leader of a group of its own. */
export class ProcessLauncher implements Launcher {
  /** Always `process`. */
  readonly isolation = "process";
  readonly #pidFiles: PidFiles;
  readonly #graceMs: number;

  /**
   * Keeps its pid files in `run` below the data directory. A program whose engine has died gets
   * `orphanGraceMs` to leave, in whole seconds.
   */
  constructor(dataDirectory: string, orphanGraceMs: number = ORPHAN_GRACE_MS) {
    this.#pidFiles = new PidFiles(`${dataDirectory}/run`);
    this.#graceMs = orphanGraceMs;
  }

  async start(spec: LaunchSpec, output: (line: OutputLine) => void): Promise<Running> {
    await this.#pidFiles.endLeftover(spec.name, this.#graceMs);
    const child = spawnProgram(spec);
    const program = new Program(child, output, () => this.#pidFiles.remove(spec.name, child.pid));
    try {
      const launchId = spec.env.ENGINE_LAUNCH_ID ?? null;
      await this.#pidFiles.write(spec.name, child.pid, launchId);
      program.guard = spawnGuard(child.pid, this.#graceMs);
      await writeLine(child.stdin);
    } catch (thrown) {
      // The gate closes, so the program ends without having run.
      await child.stdin.abort().catch(() => {});
      await program.ended;
      throw thrown instanceof EngineError ? thrown : launchFailed(spec, thrown);
    }
    return program;
  }
}

/** One process, its group and its guard. */
class Program implements Running {
  readonly pid: number;
  readonly ended: Promise<Ended>;
  /** Ends the group if the engine dies. */
  guard: Deno.ChildProcess | undefined;
  readonly #child: Deno.ChildProcess;
  readonly #output: (line: OutputLine) => void;
  #stopping: Promise<void> | undefined;

  constructor(
    child: Deno.ChildProcess,
    output: (line: OutputLine) => void,
    forget: () => Promise<void>,
  ) {
    this.#child = child;
    this.#output = output;
    this.pid = child.pid;
    this.ended = this.#watch(forget);
  }

  async stop(graceMs: number): Promise<Ended> {
    this.#stopping ??= endGroup(this.pid, graceMs);
    await this.#stopping;
    return await this.ended;
  }

  async #watch(forget: () => Promise<void>): Promise<Ended> {
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
    await this.#endReaders(readers);
    await this.#dismissGuard();
    await forget();
    return { code: status.signal === null ? status.code : null, signal: status.signal };
  }

  #read(stream: ReadableStream<Uint8Array>, name: OutputLine["stream"]): Reader {
    const lines = new LineSplitter((text) => this.#output({ stream: name, text }));
    const reader = stream.getReader();
    const pump = async (): Promise<void> => {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        lines.add(value);
      }
      lines.end();
    };
    return { done: pump().catch(() => lines.end()), cancel: () => reader.cancel() };
  }

  /** A process that left the group may keep the pipes open; it is not waited for. */
  async #endReaders(readers: readonly Reader[]): Promise<void> {
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, LATE_OUTPUT_MS);
    await Promise.race([Promise.all(readers.map(({ done }) => done)), late.promise]);
    clearTimeout(timer);
    await Promise.all(readers.map(({ cancel }) => cancel().catch(() => {})));
    await Promise.all(readers.map(({ done }) => done));
  }

  async #dismissGuard(): Promise<void> {
    if (!this.guard) return;
    await writeLine(this.guard.stdin).catch(() => {}); // Somebody ended it; then it is gone.
    await this.guard.status;
  }
}

/** One stream of a program while it is read. */
interface Reader {
  readonly done: Promise<void>;
  cancel(): Promise<void>;
}

function spawnProgram(spec: LaunchSpec): Deno.ChildProcess {
  try {
    return new Deno.Command(SHELL, {
      args: ["-c", GATE, SHELL, spec.command],
      cwd: spec.directory,
      env: { ...spec.env },
      detached: true,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  } catch (thrown) {
    throw launchFailed(spec, thrown);
  }
}

function spawnGuard(pid: number, graceMs: number): Deno.ChildProcess {
  return new Deno.Command(SHELL, {
    args: ["-c", GUARD, SHELL, `${pid}`, `${Math.ceil(graceMs / 1_000)}`],
    cwd: "/",
    detached: true,
    stdin: "piped",
    stdout: "null",
    stderr: "null",
  }).spawn();
}

async function writeLine(stdin: WritableStream<Uint8Array>): Promise<void> {
  const writer = stdin.getWriter();
  await writer.write(new TextEncoder().encode("\n"));
  await writer.close();
}

function launchFailed({ name, directory }: LaunchSpec, thrown: unknown): EngineError {
  const what = thrown instanceof Deno.errors.NotFound
    ? `${directory} or ${SHELL} does not exist`
    : String(thrown);
  return new EngineError("launch_failed", `Worker ${name} cannot be started: ${what}`, {
    cause: thrown,
  });
}
