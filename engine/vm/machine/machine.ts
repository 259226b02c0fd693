/**
 * One QEMU process: started so that it cannot outlive the engine, and watched until it is gone.
 *
 * A guard kills it when the engine is gone; the guest, whose control port closes then, may power
 * off first. The last console lines are kept for error messages.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import { type Ended, ORPHAN_GRACE_MS } from "../../ports/launcher.ts";
import { gatedArgs, Guard, openGate, SHELL } from "../../process/process_group.ts";
import { LineSplitter } from "../../process/output.ts";
import { OutputTurns } from "../../process/output_turns.ts";

/** A microVM that needs longer to boot is killed; emulation on a busy machine is slow. */
export const BOOT_TIMEOUT_MS = 60_000;
/** Console lines kept for error messages. */
const CONSOLE_LINES = 10;

/** A running QEMU process. */
export class Machine {
  /** Process id of QEMU. */
  readonly pid: number;
  /** Resolves when the process is gone. Never rejects. */
  readonly ended: Promise<Ended>;
  readonly #child: Deno.ChildProcess;
  readonly #console: string[] = [];
  #reason: string | undefined;

  private constructor(child: Deno.ChildProcess, guard: Guard, turns: OutputTurns) {
    this.#child = child;
    this.pid = child.pid;
    this.ended = this.#watch(guard, turns);
  }

  /**
   * Starts QEMU.
   *
   * @param name Name of the worker, for messages.
   * @param command QEMU's path and arguments.
   * @param turns The budget of what the console prints.
   * @throws {EngineError} `launch_failed` when the program does not exist.
   */
  static async start(
    name: string,
    command: readonly string[],
    turns: OutputTurns = new OutputTurns(),
  ): Promise<Machine> {
    let child: Deno.ChildProcess | undefined;
    try {
      child = spawn(command);
      const guard = new Guard(child.pid, { graceMs: ORPHAN_GRACE_MS, signals: false });
      const machine = new Machine(child, guard, turns);
      await openGate(child);
      return machine;
    } catch (thrown) {
      // A closed gate ends the process before it executes QEMU.
      await child?.stdin.abort().catch(() => {});
      const message = `The microVM of ${name} cannot be started: ${thrown}`;
      throw new EngineError("launch_failed", message, { cause: thrown });
    }
  }

  /** The last lines of the console and of QEMU, up to the one with the reason for its end. */
  console(): readonly string[] {
    return [...this.#console];
  }

  /** Kills the process. */
  kill(): void {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // Already gone.
    }
  }

  async #watch(guard: Guard, turns: OutputTurns): Promise<Ended> {
    let lastError: string | undefined;
    const readers = [
      eachLine(this.#child.stdout, turns, (line) => this.#keep(line)),
      eachLine(this.#child.stderr, turns, (line) => this.#keep(lastError = line)),
    ];
    const { code, signal } = await this.#child.status;
    await Promise.all(readers);
    await guard.dismiss();
    const ended: Ended = { code: signal === null ? code : null, signal };
    // If QEMU exits with an error, its last line on standard error tells the reason.
    const reason = this.#reason ?? (ended.code === 0 || signal !== null ? undefined : lastError);
    return reason === undefined ? ended : { ...ended, reason };
  }

  /** Keeps a console line, but nothing after the reason: a panicking kernel dumps its state. */
  #keep(line: string): void {
    if (this.#reason !== undefined) return;
    this.#console.push(line);
    if (this.#console.length > CONSOLE_LINES) this.#console.shift();
    this.#reason = endReasonOf(line);
  }
}

/**
 * The reason for a guest's end in a console line: `kernel panic: Attempted to kill init!`, or the
 * fatal error of `guest_init.sh`; `undefined` in other lines.
 */
export function endReasonOf(line: string): string | undefined {
  const panic = /Kernel panic - not syncing: (.*)/.exec(line)?.[1];
  if (panic !== undefined) return `kernel panic: ${panic.trim()}`;
  return /^engine: (.*)/.exec(line)?.[1];
}

async function eachLine(
  stream: ReadableStream<Uint8Array>,
  turns: OutputTurns,
  take: (line: string) => void,
): Promise<void> {
  const lines = new LineSplitter((text) => void (text.trim() !== "" && take(text.trimEnd())));
  try {
    for await (const bytes of stream) await turns.pass(bytes, (piece) => lines.add(piece));
  } catch {
    // The pipe broke; there is no more output.
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
