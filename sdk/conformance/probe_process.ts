/**
 * The probe worker as a process: started with the address of a scripted engine, its output
 * recorded line by line, ended with the check.
 *
 * @module
 */
import { Log } from "./log.ts";

/** The token that the probe has to pass to its SDK. */
export const TOKEN = "conformance-token";
/** The name that the SDK has to take from its environment. */
export const WORKER_NAME = "conformance-probe";
const TERM_MS = 5_000;

/** A running probe. */
export class ProbeProcess implements AsyncDisposable {
  /** Lines of standard output and standard error. */
  readonly output = new Log<string>();
  /** Exit codes: one at most. */
  readonly exits = new Log<number>();
  readonly #child: Deno.ChildProcess;
  readonly #reading: Promise<unknown>;

  /** Starts the probe; `url` is the address of the engine. */
  constructor(command: readonly string[], url: string, env: Readonly<Record<string, string>> = {}) {
    this.#child = new Deno.Command(command[0]!, {
      args: command.slice(1),
      env: {
        ...env,
        ENGINE_URL: url,
        ENGINE_WORKER_NAME: WORKER_NAME,
        CONFORMANCE_TOKEN: TOKEN,
        OTEL_ENABLED: "true",
      },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#reading = Promise.all([
      this.#read(this.#child.stdout),
      this.#read(this.#child.stderr),
      this.#child.status.then(({ code }) => this.exits.add(code)),
    ]);
  }

  /** Ends the probe: SIGTERM, then SIGKILL. */
  async [Symbol.asyncDispose](): Promise<void> {
    const kill = (signal: Deno.Signal): void => {
      try {
        this.#child.kill(signal);
      } catch {
        // It has exited.
      }
    };
    kill("SIGTERM");
    const timer = setTimeout(() => kill("SIGKILL"), TERM_MS);
    await this.#reading;
    clearTimeout(timer);
  }

  async #read(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    let rest = "";
    for await (const text of stream.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) this.output.add(line);
    }
    if (rest !== "") this.output.add(rest);
  }
}
