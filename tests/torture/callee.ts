/**
 * A worker in a process of its own, so that it can be killed and frozen.
 *
 * As a program, `PORT FUNCTION DELAY_MS`, this file is that worker: it answers each call after up to
 * so many milliseconds, with its process id, and prints `ready`.
 *
 * @module
 */
import { Peer } from "./peer.ts";

const PROGRAM = new URL(import.meta.url).pathname;

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

async function serve([port, functionId, delay]: readonly string[]): Promise<void> {
  const peer = await Peer.connect(Number(port));
  peer.onText = (text) => {
    if (!text.startsWith('{"type":"invokefunction"')) return;
    const id = /"invocation_id":"([^"]*)"/.exec(text)![1];
    const ids = `"invocation_id":"${id}","function_id":"${functionId}"`;
    const answer = `{"type":"invocationresult",${ids},"result":${Deno.pid}}`;
    const ms = Math.random() * Number(delay);
    if (ms < 1) void peer.send(answer);
    else setTimeout(() => void peer.send(answer), ms);
  };
  await peer.announce(`callee-${Deno.pid}`);
  await peer.send({ type: "registerfunction", id: functionId! });
  await peer.settled(60_000);
  console.log("ready");
  await peer.ended;
  Deno.exit(0); // Answers that are still due have no connection to go to.
}

if (import.meta.main) await serve(Deno.args);
