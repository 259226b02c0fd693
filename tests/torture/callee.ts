/**
 * A worker in a process of its own: `callee_program.ts`, started and ended.
 *
 * @module
 */

const PROGRAM = new URL("callee_program.ts", import.meta.url).pathname;

/** See the top of this file. */
export class Callee implements AsyncDisposable {
  readonly pid: number;
  readonly #child: Deno.ChildProcess;

  private constructor(child: Deno.ChildProcess) {
    this.#child = child;
    this.pid = child.pid;
  }

  /** Starts one and resolves when the engine routes calls to it. */
  static async start(port: number, functionId: string, delayMs: number): Promise<Callee> {
    const args = ["run", "-A", "--quiet", "--no-check", PROGRAM, `${port}`, functionId];
    const child = new Deno.Command(Deno.execPath(), {
      args: [...args, `${delayMs}`],
      stdin: "null",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    const callee = new Callee(child);
    const reader = child.stdout.getReader();
    const { done } = await reader.read();
    await reader.cancel();
    if (!done) return callee;
    await callee[Symbol.asyncDispose]();
    throw new Error("the worker did not start");
  }

  /** Sends a signal; a process that has ended ignores it. */
  signal(signal: Deno.Signal): void {
    try {
      this.#child.kill(signal);
    } catch {
      // It has ended by itself.
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.signal("SIGKILL");
    await this.#child.status;
  }
}
