/**
 * One QEMU process: started so that it cannot outlive the engine, watched until it is gone.
 *
 * A guard kills it when the engine is gone; the guest, which sees that too, has a moment to end by
 * itself. What the guest's kernel prints is kept for the moment when something goes wrong. What
 * runs inside the guest is not known here.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import { ORPHAN_GRACE_MS } from "../../../sdk/typescript/wire/limits.ts";
import { gatedArgs, Guard, openGate, SHELL } from "../../process/process_group.ts";
import { LineSplitter } from "../../process/output.ts";
import type { Ended } from "../../ports/launcher.ts";

/** Lines of the console that are kept, and told by an error. */
const CONSOLE_LINES = 10;

/** A QEMU that runs. */
export class Machine {
  /** Process id of QEMU. */
  readonly pid: number;
  /** Settles when the process is gone. Never rejects. */
  readonly ended: Promise<Ended>;
  readonly #child: Deno.ChildProcess;
  readonly #console: string[] = [];
  #lastWords: string | undefined;

  private constructor(child: Deno.ChildProcess, guard: Guard) {
    this.#child = child;
    this.pid = child.pid;
    this.ended = this.#watch(guard);
  }

  /**
   * Starts it.
   *
   * @param name The worker's, for messages.
   * @param command Program and arguments.
   * @throws {EngineError} `launch_failed` when there is no such program.
   */
  static async start(name: string, command: readonly string[]): Promise<Machine> {
    let child: Deno.ChildProcess | undefined;
    try {
      child = spawn(command);
      const guard = new Guard(child.pid, { graceMs: ORPHAN_GRACE_MS, asks: false });
      const machine = new Machine(child, guard);
      await openGate(child);
      return machine;
    } catch (thrown) {
      // The gate closes, so nothing has run.
      await child?.stdin.abort().catch(() => {});
      const message = `The microVM of ${name} cannot be started: ${thrown}`;
      throw new EngineError("launch_failed", message, { cause: thrown });
    }
  }

  /** The last lines that the guest and QEMU printed, up to why it ended if that was said. */
  console(): readonly string[] {
    return [...this.#console];
  }

  /** Ends it at once. */
  kill(): void {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It is gone already.
    }
  }

  async #watch(guard: Guard): Promise<Ended> {
    let complaint: string | undefined;
    const readers = [
      eachLine(this.#child.stdout, (line) => this.#keep(line)),
      eachLine(this.#child.stderr, (line) => this.#keep(complaint = line)),
    ];
    const { code, signal } = await this.#child.status;
    await Promise.all(readers);
    await guard.dismiss();
    const ended: Ended = { code: signal === null ? code : null, signal };
    // QEMU that ends by itself with an error says why with its last words.
    const reason = this.#lastWords ?? (ended.code === 0 || signal !== null ? undefined : complaint);
    return reason === undefined ? ended : { ...ended, reason };
  }

  /** What a kernel prints behind its last words is about itself. */
  #keep(line: string): void {
    if (this.#lastWords !== undefined) return;
    this.#console.push(line);
    if (this.#console.length > CONSOLE_LINES) this.#console.shift();
    this.#lastWords = lastWordsOf(line);
  }
}

/**
 * Why a guest ends, if the line says so: `kernel panic: Attempted to kill init!`, or what its first
 * program found missing.
 */
export function lastWordsOf(line: string): string | undefined {
  const panic = /Kernel panic - not syncing: (.*)/.exec(line)?.[1];
  if (panic !== undefined) return `kernel panic: ${panic.trim()}`;
  return /^engine: (.*)/.exec(line)?.[1];
}

async function eachLine(
  stream: ReadableStream<Uint8Array>,
  take: (line: string) => void,
): Promise<void> {
  const lines = new LineSplitter((text) => void (text.trim() !== "" && take(text.trimEnd())));
  try {
    for await (const bytes of stream) lines.add(bytes);
  } catch {
    // A pipe that breaks has nothing more to tell.
  }
  lines.end();
}

function spawn(command: readonly string[]): Deno.ChildProcess {
  return new Deno.Command(SHELL, {
    args: gatedArgs(command),
    cwd: "/",
    detached: true,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}
