/**
 * Ties a process to the engine: a gate before it and a guard beside it.
 *
 * The gate is a shell that becomes the program once it has read a line. The guard is a shell in a
 * session of its own that ends the program's group when the engine's end of its standard input
 * closes. The gate opens when the guard stands, so there is no moment in which an engine that is
 * killed leaves a program behind.
 *
 * @module
 */

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
